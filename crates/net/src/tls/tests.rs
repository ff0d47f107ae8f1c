//! Sessions over a pair of sockets, against rustls's own client.

use std::future::poll_fn;
use std::io::{self, IoSlice, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use wire::client_hello::ClientHello;
use wire::tls::{TlsGroup, TlsSuite};

use super::record::PLAINTEXT_MAX;
use super::server_credentials::ServerCredentials;
use super::{
    ChainRules, ClientTrust, Credential, ResumptionPlan, ServerTls, ServerTlsPlan, TlsSessionCache,
    TrustedCertificates,
};
use crate::event_loop::longest_poll;
use crate::testing::tls::{
    ECDSA_CERTIFICATE, ECDSA_KEY, RSA_CERTIFICATE, RSA_KEY, RawRecords, TlsClient, TlsClientStream,
};
use crate::{Stream, Timer, accept};

fn plan() -> ServerTlsPlan {
    let credential = |certificate: &str, key: &str| {
        Credential::read(certificate.as_bytes(), key.as_bytes(), &[]).unwrap()
    };
    ServerTlsPlan {
        credentials: vec![
            credential(ECDSA_CERTIFICATE, ECDSA_KEY),
            credential(RSA_CERTIFICATE, RSA_KEY),
        ],
        has_tls12: true,
        has_tls13: true,
        suites: [&TlsSuite::TLS13[..], &TlsSuite::TLS12].concat(),
        groups: vec![TlsGroup::X25519],
        record_max: PLAINTEXT_MAX,
        protocols: vec![b"http/1.1"[..].into()],
        ..ServerTlsPlan::default()
    }
}

/// A server that echoes received data until the client ends.
fn echo(plan: ServerTlsPlan) -> (UnixStream, thread::JoinHandle<Result<usize, String>>) {
    let (near, far) = UnixStream::pair().unwrap();
    near.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    far.set_nonblocking(true).unwrap();
    let server = thread::spawn(move || {
        crate::run(async move {
            let mut stream = Stream::new(far.into());
            serve_echo(&mut stream, &ServerTls::new(plan)?).await
        })
        .unwrap()
    });
    (near, server)
}

async fn serve_echo(stream: &mut Stream, tls: &ServerTls) -> Result<usize, String> {
    let (timer, mut received) = (Timer::new(), Vec::new());
    let hello = accept::read_client_hello(stream, &mut received, &timer).await;
    let hello = hello.map_err(|error| format!("{error:?}"))?.ok_or("no TLS")?;
    let session = tls.session(ClientHello::parse(&hello).as_ref(), false, &received, None);
    let session = session.map_err(|error| error.to_string())?;
    accept::secure(stream, session, &timer).await.map_err(|error| format!("{error:?}"))?;
    let mut echoed = 0;
    loop {
        let mut bytes = Vec::new();
        let read = poll_fn(|cx| stream.poll_read(cx, &mut bytes)).await;
        if read.map_err(|error| error.to_string())? == 0 {
            break;
        }
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            // In two pieces, like heads and bodies.
            let (first, second) = rest.split_at(rest.len() / 3);
            let slices = [IoSlice::new(first), IoSlice::new(second)];
            let written = poll_fn(|cx| stream.poll_write(cx, &slices)).await;
            let written = written.map_err(|error| error.to_string())?;
            (rest, echoed) = (&rest[written..], echoed + written);
        }
    }
    poll_fn(|cx| stream.poll_shutdown(cx)).await.map_err(|error| error.to_string())?;
    Ok(echoed)
}

fn exchange(client: &mut TlsClientStream<UnixStream>, bytes: &[u8]) {
    let mut echoed = vec![0; bytes.len()];
    for (part, back) in bytes.chunks(40_000).zip(echoed.chunks_mut(40_000)) {
        client.write_all(part).unwrap();
        client.read_exact(back).unwrap();
    }
    assert_eq!(echoed, bytes);
}

#[test]
fn an_invalid_first_record_is_answered_with_an_alert() {
    let beginnings: [(&[u8], u8); 3] = [
        (&[22, 3, 1, 0xff, 0xff], 22),
        (&[22, 3, 1, 0x40, 0, 1, 3, 0, 0], 47),
        (&[22, 3, 1, 0, 100, 20], 10),
    ];
    for (beginning, alert) in beginnings {
        let (mut near, server) = echo(plan());
        near.write_all(beginning).unwrap();
        let mut said = Vec::new();
        near.read_to_end(&mut said).unwrap();
        assert_eq!(said, [21, 3, 1, 0, 2, 2, alert]);
        assert!(server.join().unwrap().unwrap_err().contains("InvalidData"));
    }
}

#[test]
fn data_is_echoed_in_both_versions() {
    for (client, record_max) in
        [(TlsClient::new(), PLAINTEXT_MAX), (TlsClient::tls12(), 1000), (TlsClient::new(), 1)]
    {
        let (near, server) = echo(ServerTlsPlan { record_max, ..plan() });
        let mut client = client.offering(&[b"http/1.1"]).connect("localhost", near);
        exchange(&mut client, b"first");
        let length = if record_max == 1 { 500 } else { 300_000 };
        let bytes: Vec<u8> = (0..length).map(|number: u32| number as u8).collect();
        exchange(&mut client, &bytes);
        assert_eq!(client.protocol(), Some(&b"http/1.1"[..]));
        client.close().unwrap();
        assert_eq!(client.read(&mut [0; 9]).unwrap(), 0, "close_notify comes back");
        assert_eq!(server.join().unwrap(), Ok(5 + bytes.len()));
    }
}

#[test]
fn keys_can_change() {
    let (near, server) = echo(plan());
    let mut client = TlsClient::new().connect("localhost", near);
    for number in 0..100 {
        exchange(&mut client, &[number; 10]);
        client.refresh_keys();
    }
    client.close().unwrap();
    assert_eq!(server.join().unwrap(), Ok(1000));
}

const ALERT: u8 = 21;
const UNEXPECTED_MESSAGE: &[u8] = &[2, 10];

/// Sends records of the given types and contents, and returns the server's first answer.
fn answer_to(records: &[(u8, &[u8])]) -> Option<(u8, Vec<u8>)> {
    let (near, server) = echo(plan());
    let mut client = TlsClient::new().connect("localhost", near);
    exchange(&mut client, b"hello");
    let mut client = client.into_records();
    for (kind, text) in records {
        client.send(*kind, text).unwrap();
    }
    let answer = client.receive().unwrap();
    drop(client);
    let _ = server.join().unwrap();
    answer
}

#[test]
fn handshake_messages_may_not_be_split_mixed_or_repeated_freely() {
    const HANDSHAKE: u8 = RawRecords::<UnixStream>::HANDSHAKE;
    const DATA: u8 = RawRecords::<UnixStream>::DATA;
    const KEY_UPDATE: [u8; 5] = [24, 0, 0, 1, 0];
    let two = KEY_UPDATE.repeat(2);
    let and_a_half = [&KEY_UPDATE[..], &[24]].concat();
    let thousands = KEY_UPDATE.repeat(3200);
    let refused = Some((ALERT, UNEXPECTED_MESSAGE.to_vec()));
    for records in [
        &[(HANDSHAKE, &two[..])][..],
        &[(HANDSHAKE, &thousands)],
        &[(HANDSHAKE, &and_a_half)],
        &[(HANDSHAKE, &KEY_UPDATE[..2]), (HANDSHAKE, &two[2..])],
        &[(HANDSHAKE, &KEY_UPDATE[..2]), (DATA, b"data")],
        &[(HANDSHAKE, &[4, 0, 0, 0])],
        &[(HANDSHAKE, &b""[..]); 33],
        &[(DATA, &b""[..]); 33],
    ] {
        assert_eq!(answer_to(records), refused, "{records:?}");
    }
    let whole = [(DATA, &b""[..]), (HANDSHAKE, &[]), (DATA, b"data")];
    assert_eq!(answer_to(&whole), Some((DATA, b"data".to_vec())));
}

#[test]
fn a_requested_key_update_is_sent_once_and_before_data() {
    let (near, server) = echo(plan());
    let mut client = TlsClient::new().connect("localhost", near);
    exchange(&mut client, b"hello");
    for _ in 0..32 {
        client.refresh_keys();
    }
    exchange(&mut client, b"data");
    exchange(&mut client, b"more");
    client.refresh_keys();
    client.close().unwrap();
    assert_eq!(server.join().unwrap(), Ok(13));
    let (near, server) = echo(plan());
    let mut client = TlsClient::new().connect("localhost", near);
    exchange(&mut client, b"hello");
    (0..33).for_each(|_| client.refresh_keys());
    client.flush().unwrap();
    assert_eq!(server.join().unwrap(), Err("unexpected message".into()));
}

/// Changing keys takes longer than reading the messages that request it.
#[test]
fn key_updates_let_other_tasks_run() {
    const TIMES: usize = 200;
    let (near, far) = UnixStream::pair().unwrap();
    near.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    far.set_nonblocking(true).unwrap();
    let server = thread::spawn(move || {
        crate::run(async move {
            let mut stream = Stream::new(far.into());
            let mut task = crate::spawn(async move {
                let _ = serve_echo(&mut stream, &ServerTls::new(plan()).unwrap()).await;
            });
            assert!(task.ended().await);
            longest_poll()
        })
        .unwrap()
    });
    let mut client = TlsClient::new().connect("localhost", near);
    exchange(&mut client, b"hello");
    for _ in 0..TIMES {
        (0..31).for_each(|_| client.refresh_keys());
        client.write_all(b"x").unwrap();
    }
    client.read_exact(&mut [0; TIMES]).unwrap();
    client.close().unwrap();
    let longest = server.join().unwrap();
    // The work was counted, and made the task yield.
    assert!((256 * 1024..512 * 1024).contains(&longest), "{longest}");
}

#[test]
fn an_end_without_close_notify_is_detected() {
    for says_so in [true, false] {
        let (near, far) = UnixStream::pair().unwrap();
        far.set_nonblocking(true).unwrap();
        let server = thread::spawn(move || {
            crate::run(async move {
                let mut stream = Stream::new(far.into());
                let echoed = serve_echo(&mut stream, &ServerTls::new(plan()).unwrap()).await;
                (echoed, stream.is_cut())
            })
            .unwrap()
        });
        let mut client = TlsClient::new().connect("localhost", near);
        exchange(&mut client, b"hello");
        if says_so {
            client.close().unwrap();
        }
        client.below().shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(server.join().unwrap(), (Ok(5), !says_so));
    }
}

#[test]
fn a_changed_record_ends_the_session() {
    let (near, server) = echo(plan());
    let mut client = TlsClient::new().connect("localhost", near);
    exchange(&mut client, b"hello");
    let mut record = vec![23, 3, 3, 0, 40];
    record.extend_from_slice(&[7; 40]);
    client.below().write_all(&record).unwrap();
    let error = client.read(&mut [0; 9]).unwrap_err();
    assert!(error.to_string().contains("BadRecordMac"), "{error}");
    assert_eq!(server.join().unwrap(), Err("bad record mac".into()));
}

#[test]
fn a_client_without_a_common_protocol_gets_an_alert() {
    let (near, server) = echo(plan());
    let mut client = TlsClient::new().offering(&[b"spdy"]).connect("localhost", near);
    let error = client.read(&mut [0; 9]).unwrap_err();
    assert!(error.to_string().contains("NoApplicationProtocol"), "{error}");
    assert!(server.join().unwrap().unwrap_err().contains("Connection"));
}

/// Records writes; reads never succeed.
#[derive(Default)]
struct WrittenBytes(Vec<u8>);

impl Read for WrittenBytes {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::WouldBlock.into())
    }
}

impl Write for WrittenBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn with_early_data() -> ServerTlsPlan {
    let cache = Some(Arc::new(TlsSessionCache::new(100_000)));
    let resumption = ResumptionPlan { lifetime_s: 60, cache, ..ResumptionPlan::default() };
    ServerTlsPlan { early_data_max: 16_384, resumption, ..plan() }
}

#[test]
fn early_data_is_taken_once() {
    let plan = with_early_data();
    let client = TlsClient::new().with_early_data();
    let (near, server) = echo(plan.clone());
    let mut first = client.connect("localhost", near);
    exchange(&mut first, b"first");
    first.close().unwrap();
    assert_eq!(server.join().unwrap(), Ok(5));

    let mut flight = client.connect("localhost", WrittenBytes::default());
    assert!(flight.write_early(b"early"));
    flight.read(&mut [0]).unwrap_err();
    let flight = std::mem::take(&mut flight.below().0);
    let replay = || {
        let (mut near, server) = echo(plan.clone());
        near.write_all(&flight).unwrap();
        near.shutdown(std::net::Shutdown::Write).unwrap();
        near.read_to_end(&mut Vec::new()).unwrap();
        server.join().unwrap()
    };
    assert_eq!(replay(), Ok(5), "served before the handshake is over");
    assert_eq!(replay(), Err("Closed".into()), "the same bytes again");
}

#[test]
fn more_early_data_than_allowed_ends_the_session() {
    let plan = with_early_data();
    let client = TlsClient::new().with_early_data();
    let (near, server) = echo(plan.clone());
    let mut first = client.connect("localhost", near);
    exchange(&mut first, b"first");
    first.close().unwrap();
    assert_eq!(server.join().unwrap(), Ok(5));
    let (near, server) = echo(ServerTlsPlan { early_data_max: 100, ..plan });
    let mut second = client.connect("localhost", near);
    assert!(second.write_early(&[b'x'; 101]));
    assert!(second.read(&mut [0]).unwrap_err().to_string().contains("UnexpectedMessage"));
    server.join().unwrap().unwrap_err();
}

#[test]
fn the_last_certificate_of_a_kind_counts() {
    let [ecdsa, rsa] = plan().credentials.try_into().unwrap();
    let replaced = plan().credentials.remove(1);
    let kept = ServerCredentials::new(vec![replaced, ecdsa.clone(), rsa.clone()]);
    let is_kept =
        |credential: &Credential| kept.iter().any(|one| Arc::ptr_eq(one, &credential.key));
    assert!(is_kept(&ecdsa) && is_kept(&rsa) && kept.iter().count() == 2);
}

/// A certificate with its key.
type Shown = (&'static str, &'static str);

const ECDSA: Shown = (ECDSA_CERTIFICATE, ECDSA_KEY);
const FIRST: Shown = (include_str!("testdata/first.crt"), include_str!("testdata/sec1.key"));
/// A certificate of version 1.
const OLD: Shown = (include_str!("testdata/version1.crt"), FIRST.1);

/// Requests client certificates, and trusts none.
fn asking() -> ServerTlsPlan {
    let trusted = TrustedCertificates::none();
    let rules = ChainRules { trusted, revoked: None, depth_max: 1 };
    ServerTlsPlan { clients: ClientTrust::new(rules, None, false).map(Arc::new), ..plan() }
}

#[test]
fn a_client_must_prove_to_have_its_certificates_key() {
    for client in [TlsClient::new(), TlsClient::tls12()] {
        for (shown, is_proved) in [
            (client.clone(), true),
            (client.clone().showing(ECDSA_CERTIFICATE, ECDSA_KEY), true),
            (client.clone().showing(RSA_CERTIFICATE, RSA_KEY), true),
            (client.clone().showing(OLD.0, OLD.1), true),
            (client.clone().pretending(ECDSA, FIRST), false),
            (client.clone().pretending(OLD, ECDSA), false),
        ] {
            let (near, server) = echo(asking());
            let mut stream = shown.connect("localhost", near);
            let is_answered =
                stream.write_all(b"x").is_ok() && stream.read(&mut [0; 9]).is_ok_and(|n| n > 0);
            assert_eq!(is_answered, is_proved);
            let _ = stream.close();
            assert_eq!(server.join().unwrap().is_ok(), is_proved);
        }
    }
}
