//! Configurations and their errors, and sessions on sockets.

mod logs;
mod pass;
mod slots;
mod udp;
mod waits;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use ::session::Client;
use ::testing::{Folder, connected_pair};
use conf::{Directive, Load, MemoryFiles, Subsystem};
use net::Arrival;
use net::testing::tls;
use observe::LogFiles;

use crate::session::StreamSession;
use crate::site::{Decision, StreamGeneration, StreamServerId, StreamSite};
use crate::{StreamWorker, compile};

/// The text of a file that Weir logs to.
pub(crate) fn logged(folder: &Folder, name: &str) -> String {
    observe::flush_all();
    folder.read(name)
}

pub(crate) fn load(text: &str, folder: &Path, lenient: bool) -> Result<StreamSite, String> {
    let text = format!("stream {{ {text}\n}}");
    let mut files = MemoryFiles::default().with("/nginx.conf", text);
    let (sources, tree) = conf::parse(b"/nginx.conf", b"/", None, &mut files).into_result();
    let tree = tree.map_err(|error| error.message)?;
    let mut load = Load::new(&mut files, folder, Path::new("/"));
    (load.sources, load.lenient) = (sources, lenient);
    let stream: &Directive = &tree.root[0];
    let site = compile::read(stream, &mut load).and_then(|plan| plan.compile(&mut load));
    assert_eq!(load.subsystem, Subsystem::Main);
    let site = site.map_err(|error| match error.span {
        Some(span) => format!("{}:{}", error.message, span.line),
        None => error.message,
    })?;
    load.registry.of::<LogFiles>().open().map_err(|error| error.to_string())?;
    Ok(site)
}

pub(crate) fn refusal(text: &str) -> String {
    match load(text, Path::new("/nowhere"), false) {
        Ok(_) => panic!("accepted: {text}"),
        Err(refusal) => refusal,
    }
}

/// The bytes that a client of the first socket receives after it has sent `input`.
pub(crate) fn answer(text: &str, folder: &Folder, input: &'static [u8]) -> Vec<u8> {
    let generation = StreamGeneration::new(Arc::new(load(text, folder, false).unwrap()), 1);
    let answer = net::run(async move { serve(generation, input).await }).unwrap();
    // The next configuration opens the file again; flushing keeps the order of lines.
    observe::flush_all();
    answer
}

async fn serve(generation: Rc<StreamGeneration>, input: &'static [u8]) -> Vec<u8> {
    serve_with(generation, move |mut stream| {
        stream.write_all(input).unwrap();
        let mut answer = Vec::new();
        // The server may have closed the connection, or reset it after the last byte.
        if !input.is_empty() {
            let _ = stream.shutdown(Shutdown::Write);
        }
        let _ = stream.read_to_end(&mut answer);
        answer
    })
    .await
}

/// Serves a connection whose client runs on a thread of its own. Returns the client's result.
pub(crate) async fn serve_with(
    generation: Rc<StreamGeneration>,
    client: impl FnOnce(TcpStream) -> Vec<u8> + Send + 'static,
) -> Vec<u8> {
    let (near, stream) = connected_pair();
    let peer = stream.peer_addr().unwrap();
    let client = std::thread::spawn(move || client(near));
    stream.set_nonblocking(true).unwrap();
    let (balancer, _handed) = net::balancer_handles(1).remove(0).begin();
    balancer.set_limit(1);
    let arrival = Arrival { fd: stream.into(), peer: Some(peer), slot: 0 };
    let Ok(Some(accepted)) = balancer.assign(arrival) else { panic!("no room") };
    let worker = StreamWorker::new(generation);
    worker.start(accepted, false);
    worker.leave().await;
    client.join().unwrap()
}

const SERVER: &str = "listen 127.0.0.1:1;";

fn text_of(returned: &str) -> String {
    let folder = Folder::new();
    let text = format!("server {{ {SERVER} return \"{returned}\"; }}");
    String::from_utf8(answer(&text, &folder, b"")).unwrap()
}

#[test]
fn a_text_with_variables_is_returned() {
    assert_eq!(text_of("hello"), "hello");
    let said = text_of("$remote_addr $protocol $bytes_sent $status $session_time");
    assert!(said.starts_with("127.0.0.1 TCP 0 000 0."), "{said}");
    assert_eq!(text_of("[$upstream_addr][$ssl_protocol][$server_name]"), "[][][]");
    assert_eq!(text_of(""), "");
}

#[test]
fn set_runs_before_return() {
    let folder = Folder::new();
    let text = "map 0 $m { default original; }
                server { listen 127.0.0.1:1; return $m:$v; set $v $m; set $m new; }";
    assert_eq!(answer(text, &folder, b""), b"new:original");
}

#[test]
fn a_pattern_in_a_map_sets_captures() {
    let folder = Folder::new();
    let text = "map $remote_addr $m { ~^(?<net>127)\\.(0) $net-$2; }
                server { listen 127.0.0.1:1; return $m; }";
    assert_eq!(answer(text, &folder, b""), b"127-0");
}

#[test]
fn sessions_are_logged_with_their_result() {
    let folder = Folder::new();
    let log = "log_format f '$remote_addr $status $bytes_sent $upstream_addr';
               access_log a.log f; error_log e.log info;";
    let text = format!("{log} server {{ {SERVER} return hello; }}");
    answer(&text, &folder, b"");
    assert_eq!(logged(&folder, "a.log"), "127.0.0.1 200 5 -\n");
    let connected = logged(&folder, "e.log");
    assert!(connected.contains(" connected to 127.0.0.1:1\n"), "{connected}");
    // Without a content handler, the session fails.
    answer(&format!("{log} server {{ {SERVER} }}"), &folder, b"");
    assert!(logged(&folder, "a.log").ends_with("127.0.0.1 500 0 -\n"));
}

#[test]
fn a_denied_client_receives_nothing_and_is_logged() {
    let folder = Folder::new();
    let text = format!(
        "log_format f $status; access_log a.log f; error_log e.log;
         server {{ {SERVER} allow 192.0.2.1; deny all; return hello; }}"
    );
    assert_eq!(answer(&text, &folder, b""), b"");
    assert_eq!(logged(&folder, "a.log"), "403\n");
    let message = "access forbidden by rule while initializing session, client: 127.0.0.1, \
                   server: 127.0.0.1:1\n";
    assert!(logged(&folder, "e.log").ends_with(message), "{}", logged(&folder, "e.log"));
}

#[test]
fn a_proxy_header_comes_first() {
    let folder = Folder::new();
    let text = "error_log e.log; log_format f $status; access_log a.log f;
                server {
                    listen 127.0.0.1:1 proxy_protocol;
                    return $proxy_protocol_addr:$proxy_protocol_port;
                }";
    let said = answer(text, &folder, b"PROXY TCP4 192.0.2.1 192.0.2.2 123 5678\r\n");
    assert_eq!(said, b"192.0.2.1:123");
    assert_eq!(answer(text, &folder, b"hello\r\n"), b"");
    assert_eq!(logged(&folder, "a.log"), "200\n400\n");
    let broken = "broken header: \"hello\" while reading PROXY protocol, client: ";
    assert!(logged(&folder, "e.log").contains(broken), "{}", logged(&folder, "e.log"));
}

#[test]
fn a_trusted_proxy_sets_the_client_address() {
    let folder = Folder::new();
    let header = b"PROXY TCP4 192.0.2.1 192.0.2.2 123 5678\r\n";
    let site = |lines: &str| {
        format!(
            "geo $where {{ default other; 192.0.2.0/24 test; }}
             log_format f '$remote_addr $realip_remote_addr $status';
             access_log a.log f; error_log e.log;
             server {{ listen 127.0.0.1:1 proxy_protocol; {lines}
                       return '$remote_addr:$remote_port $where'; }}"
        )
    };
    let trusted = site("set_real_ip_from 127.0.0.1;");
    assert_eq!(answer(&trusted, &folder, header), b"192.0.2.1:123 test");
    let stranger = answer(&site("set_real_ip_from 192.0.2.1;"), &folder, header);
    assert!(stranger.starts_with(b"127.0.0.1:") && stranger.ends_with(b" other"));
    assert_eq!(answer(&trusted, &folder, b"PROXY UNKNOWN\r\n").split_at(10).0, b"127.0.0.1:");
    // Access is checked, and lines are logged, for the client that the proxy names.
    let denied = site("set_real_ip_from 127.0.0.1; deny 192.0.2.1;");
    assert_eq!(answer(&denied, &folder, header), b"");
    let own = "127.0.0.1 127.0.0.1 200\n";
    let lines = format!("192.0.2.1 127.0.0.1 200\n{own}{own}192.0.2.1 127.0.0.1 403\n");
    assert_eq!(logged(&folder, "a.log"), lines);
    let message = "access forbidden by rule while initializing session, client: 192.0.2.1, ";
    assert!(logged(&folder, "e.log").contains(message), "{}", logged(&folder, "e.log"));
}

#[test]
fn limit_conn_limits_connections() {
    let folder = Folder::new();
    let site = |lines: &str| {
        let text = format!(
            "limit_conn_zone $remote_addr zone=a:1m; limit_conn_zone $nothing zone=b:1m;
             map 0 $nothing {{ default ''; }}
             log_format f '$status $limit_conn_status'; access_log a.log f; error_log e.log;
             server {{ {SERVER} limit_conn a 1; limit_conn b 1; {lines} return hello; }}"
        );
        StreamGeneration::new(Arc::new(load(&text, &folder, false).unwrap()), 1)
    };
    for (lines, said) in [("", &b""[..]), ("limit_conn_dry_run on;", b"hello")] {
        let generation = site(lines);
        let client =
            Client::new(1, Some("127.0.0.1:1".parse().unwrap()), net::SocketProbe::NONE, 0);
        let mut first = StreamSession::new(generation.clone(), StreamServerId(0), Rc::new(client));
        let server = generation.server(StreamServerId(0));
        assert_eq!(server.preaccess[0](&mut first), Decision::Next);
        let second = generation.clone();
        assert_eq!(net::run(async move { serve(second, b"").await }).unwrap(), said);
        drop(first);
        assert_eq!(net::run(async move { serve(generation, b"").await }).unwrap(), b"hello");
        observe::flush_all();
    }
    let lines = "503 REJECTED\n200 PASSED\n200 REJECTED_DRY_RUN\n200 PASSED\n";
    assert_eq!(logged(&folder, "a.log"), lines);
    let message = "limiting connections by zone \"a\" while initializing session, client: ";
    assert!(logged(&folder, "e.log").contains(message), "{}", logged(&folder, "e.log"));
    assert!(logged(&folder, "e.log").contains("limiting connections, dry run, by zone \"a\""));
}

#[test]
fn the_debug_log_names_the_handler_that_decided() {
    let folder = Folder::new();
    let session = |lines: &str| {
        let text = format!("error_log e.log debug; server {{ {SERVER} {lines} return hello; }}");
        let site = load(&text, &folder, false).unwrap();
        let generation = StreamGeneration::new(Arc::new(site), 1);
        net::run(async move { serve(generation, b"").await }).unwrap();
        observe::flush_all();
        logged(&folder, "e.log")
    };
    let serves = "content phase: \"return_text\" serves the session";
    let denied = session("deny all;");
    assert!(denied.contains("access phase: \"access\" refuses with 403"), "{denied}");
    assert!(!denied.contains(serves), "{denied}");
    let granted = session("allow all;");
    assert!(granted.contains("access phase: \"access\" grants access"), "{granted}");
    assert!(granted.contains(serves), "{granted}");
}

#[test]
fn the_default_server_has_the_connections_of_an_address() {
    let site = |text: &str| load(text, Path::new("/nowhere"), false).unwrap();
    let two = "server { listen 127.0.0.1:1; } server { listen 127.0.0.1:1; listen 127.0.0.1:2; }";
    let listens: Vec<_> = site(two).listens.iter().map(|listen| listen.names.default.0).collect();
    assert_eq!(listens, [0, 1]);
    let two = "server { listen 127.0.0.1:1; } server { listen 127.0.0.1:1 default_server; }";
    assert_eq!(site(two).listens[0].names.default.0, 1);
}

#[test]
fn server_port_sets_the_port_of_variables() {
    let folder = Folder::new();
    let text = "server { listen 127.0.0.1:1 server_port=53; return $server_port; }";
    assert_eq!(answer(text, &folder, b""), b"53");
    let two =
        |first, second| format!("server {{ listen 1 {first}; }} server {{ listen 1 {second}; }}");
    for other in ["server_port=80", ""] {
        load(&two("server_port=80", other), Path::new("/nowhere"), false).unwrap();
    }
    assert_eq!(
        refusal(&two("server_port=80", "server_port=81")),
        "another \"server_port\" for 0.0.0.0:1 was given before:1"
    );
    for wrong in ["server_port=0", "server_port=65536", "server_port=x", "server_port="] {
        let told = refusal(&format!("server {{ listen 1 {wrong}; }}"));
        assert_eq!(told, format!("invalid \"{wrong}\":1"));
    }
}

#[test]
fn invalid_directives_are_refused_in_nginx_words() {
    let table = [
        ("server { }", "no \"listen\" is defined for server:1"),
        ("upstream a { server 1.2.3.4; }", "no port in upstream \"1.2.3.4\":1"),
        ("upstream a { server localhost; }", "no port in upstream \"localhost\":1"),
        ("upstream a { server [::1]; }", "no port in upstream \"[::1]\":1"),
        ("server { listen 127.0.0.1; }", "no port in \"127.0.0.1\" of the \"listen\" directive:1"),
        ("server { listen 1 frob; }", "invalid parameter \"frob\":1"),
        ("server { listen 1; listen 1; }", "a duplicate listen 0.0.0.0:1:1"),
        ("server { listen 1; set a b; }", "invalid variable name \"a\":1"),
        ("server { listen 1; set $pid b; }", "the duplicate \"pid\" variable:1"),
        ("server { listen 1; return $none; }", "unknown \"none\" variable"),
        ("server { listen 1; return a; return b; }", "\"return\" directive is duplicate:1"),
        ("log_format combined a; access_log a none;", "unknown log format \"none\":1"),
        ("access_log a;", "log format is not specified:1"),
        ("upstream u { }", "no servers are inside upstream:1"),
        (
            "upstream u { server a:1; keepalive 2; }",
            "\"keepalive\" directive is not allowed here:1",
        ),
        ("upstream u { server a:1; check; }", "unknown directive \"check\":1"),
        ("upstream u { server 127.0.0.1:1; } upstream u { }", "duplicate upstream \"u\":1"),
        ("server { listen 1; limit_conn a 1; }", "zero size shared memory zone \"a\""),
        ("limit_conn_status 429;", "\"limit_conn_status\" directive is not allowed here:1"),
        ("real_ip_header X;", "\"real_ip_header\" directive is not allowed here:1"),
        ("geo $g { proxy 127.0.0.1; }", "invalid network \"proxy\":1"),
    ];
    for (text, expected) in table {
        assert_eq!(refusal(text), expected, "{text}");
    }
}

#[test]
fn lenient_mode_leaves_out_servers_with_unsupported_directives() {
    let text = "server { listen 127.0.0.1:2; return hello; }
                server { listen unix:/u udp; return hello; }";
    let site = load(text, Path::new("/nowhere"), true).unwrap();
    let ports: Vec<_> = site.listens.iter().map(|listen| listen.address.to_string()).collect();
    assert_eq!(ports, ["127.0.0.1:2"]);
}

/// Replaces the names of certificates by their files.
fn with_certificate(text: &str) -> String {
    let (certificate, key) = (tls::ECDSA_CERTIFICATE, tls::ECDSA_KEY);
    let lines = format!("ssl_certificate 'data:{certificate}'; ssl_certificate_key 'data:{key}';");
    text.replace("ECDSA;", &lines)
}

#[test]
fn variables_describe_the_tls_session() {
    let folder = Folder::new();
    let text = with_certificate(
        "server { listen 127.0.0.1:1 ssl; ECDSA; ssl_alpn a b;
             return '$ssl_protocol $ssl_alpn_protocol $ssl_server_name'; }",
    );
    let generation = StreamGeneration::new(Arc::new(load(&text, &folder, false).unwrap()), 1);
    let answer = net::run(serve_with(generation, |stream| {
        let mut answer = Vec::new();
        let mut stream = tls::TlsClient::new().offering(&[b"b"]).connect("n.test", stream);
        let _ = stream.read_to_end(&mut answer);
        answer
    }));
    assert_eq!(String::from_utf8(answer.unwrap()).unwrap(), "TLSv1.3 b n.test");
}

#[test]
fn a_client_without_a_valid_certificate_is_rejected() {
    let folder = Folder::new();
    let answer = |mode: &str, client: tls::TlsClient| {
        let trusted = format!("ssl_client_certificate 'data:{}';", tls::ECDSA_CERTIFICATE);
        let text = with_certificate(&format!(
            "error_log e.log info; server {{ listen 127.0.0.1:1 ssl; ECDSA; {trusted}
                 ssl_verify_client {mode}; return '$ssl_client_verify $ssl_client_s_dn'; }}"
        ));
        let generation = StreamGeneration::new(Arc::new(load(&text, &folder, false).unwrap()), 1);
        let answer = net::run(serve_with(generation, move |stream| {
            let mut answer = Vec::new();
            let _ = client.connect("n.test", stream).read_to_end(&mut answer);
            answer
        }));
        String::from_utf8(answer.unwrap()).unwrap()
    };
    let trusted = || tls::TlsClient::new().showing(tls::ECDSA_CERTIFICATE, tls::ECDSA_KEY);
    let other = || tls::TlsClient::tls12().showing(tls::RSA_CERTIFICATE, tls::RSA_KEY);
    assert_eq!(answer("on", trusted()), "SUCCESS CN=ecdsa");
    assert_eq!(answer("on", other()), "");
    assert_eq!(answer("on", tls::TlsClient::new()), "");
    assert_eq!(answer("optional", tls::TlsClient::new()), "NONE ");
    assert_eq!(answer("optional_no_ca", other()), "FAILED:self-signed certificate CN=rsa");
    let log = logged(&folder, "e.log");
    for said in [
        "client SSL certificate verify error: (18:self-signed certificate) while SSL handshaking",
        "client sent no required SSL certificate while SSL handshaking",
    ] {
        assert!(log.contains(said), "{said}: {log}");
    }
}

#[test]
fn a_client_whose_certificate_no_responder_confirms_is_rejected() {
    let folder = Folder::new();
    let leaf = include_str!("../../net/src/tls/testdata/ocsp/leaf.pem");
    let issuer = include_str!("../../net/src/tls/testdata/ocsp/issuer.crt");
    let answer = |settings: &str| {
        let text = with_certificate(&format!(
            "error_log e.log info; server {{ listen 127.0.0.1:1 ssl; ECDSA; {settings}
                 ssl_client_certificate 'data:{issuer}'; ssl_verify_client on;
                 return $ssl_client_verify; }}"
        ));
        let generation = StreamGeneration::new(Arc::new(load(&text, &folder, false).unwrap()), 1);
        let answer = net::run(serve_with(generation, move |stream| {
            let mut answer = Vec::new();
            let client = tls::TlsClient::new().showing(leaf, leaf);
            let _ = client.connect("n.test", stream).read_to_end(&mut answer);
            answer
        }));
        String::from_utf8(answer.unwrap()).unwrap()
    };
    assert_eq!(answer("ssl_ocsp off;"), "SUCCESS");
    // The certificate names a responder, which does not exist.
    assert_eq!(answer("ssl_ocsp on;"), "");
    let log = logged(&folder, "e.log");
    for said in [
        "OCSP responder failed (",
        "responder: 127.0.0.1:8081 while requesting certificate status, client",
        "client SSL certificate verify error: certificate status request failed while",
    ] {
        assert!(log.contains(said), "{said}: {log}");
    }
}

#[test]
fn a_failed_handshake_ends_the_session() {
    let folder = Folder::new();
    let log = "error_log e.log info;";
    let server = with_certificate("listen 127.0.0.1:1 ssl; ECDSA; return secret;");
    assert_eq!(answer(&format!("{log} server {{ {server} }}"), &folder, b"plain"), b"");
    let rejects = "ssl_reject_handshake on; listen 127.0.0.1:1 ssl; return secret;";
    let hello = b"\x16\x03\x01\0\x04\x01\0\0\0";
    let alert = b"\x15\x03\x01\0\x02\x02\x70";
    assert_eq!(answer(&format!("{log} server {{ {rejects} }}"), &folder, hello), alert);
    let log = logged(&folder, "e.log");
    for said in ["the client does not speak TLS) while SSL handshaking", "handshake rejected"] {
        assert!(log.contains(said), "{said}: {log}");
    }
    assert!(
        refusal("server { listen 127.0.0.1:1 ssl; return a; }")
            .starts_with("no \"ssl_certificate\" is defined for the \"listen ... ssl\" directive")
    );
}

#[test]
fn a_client_reaches_the_server_that_it_names() {
    let folder = Folder::new();
    let text = with_certificate(
        "server { listen 127.0.0.1:1 ssl; server_name a.test; ECDSA; return '$server_name.'; }
         server { listen 127.0.0.1:1; server_name .b.test; ECDSA; ssl_protocols TLSv1.3;
                  return '$server_name.'; }
         server { listen 127.0.0.1:1; server_name ~^(?<sub>\\w+)\\.c\\.test$; return '$sub.'; }
         server { listen 127.0.0.1:1; server_name no.test; ssl_reject_handshake on; }",
    );
    let ask = |name: &'static str, client: tls::TlsClient| {
        let site = Arc::new(load(&text, &folder, false).unwrap());
        let generation = StreamGeneration::new(site, 1);
        let answer = net::run(async move {
            serve_with(generation, move |stream| {
                let mut answer = String::new();
                match client.connect(name, stream).read_to_string(&mut answer) {
                    Ok(_) => answer.into_bytes(),
                    Err(error) => error.to_string().into_bytes(),
                }
            })
            .await
        });
        String::from_utf8(answer.unwrap()).unwrap()
    };
    for (name, said) in
        [("other", "a.test."), ("A.test", "a.test."), ("x.b.test", "b.test."), ("y.c.test", "y.")]
    {
        assert_eq!(ask(name, tls::TlsClient::new()), said, "{name}");
    }
    assert!(ask("no.test", tls::TlsClient::new()).contains("UnrecognisedName"));
    assert!(ask("b.test", tls::TlsClient::tls12()).contains("ProtocolVersion"));
    let default_rejects = with_certificate(
        "server { listen 127.0.0.1:1 ssl; ssl_reject_handshake on; return a; }
         server { listen 127.0.0.1:1; server_name b; return b; }",
    );
    let refused = refusal(&default_rejects);
    assert!(refused.starts_with("no \"ssl_certificate\" is defined"), "{refused}");
    assert!(refused.ends_with(":2"), "{refused}");
}

/// The ClientHello of a client that names a server.
fn hello(name: &str) -> Vec<u8> {
    let mut sent =
        tls::TlsClient::new().offering(&[b"h2", b"b"]).connect(name, Recorded::default());
    let _ = sent.write_all(b"x");
    std::mem::take(&mut sent.below().0)
}

/// Records what is written, and has nothing to read.
#[derive(Default)]
struct Recorded(Vec<u8>);

impl Read for Recorded {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        Ok(0)
    }
}

impl Write for Recorded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

const PREREAD: &str = "'$ssl_preread_server_name $ssl_preread_alpn_protocols \
                       $ssl_preread_protocol $bytes_received'";

#[test]
fn a_client_hello_is_read_without_terminating_tls() {
    let (folder, sent) = (Folder::new(), hello("a.test").leak());
    let server = format!("server {{ {SERVER} ssl_preread on; return {PREREAD}; }}");
    let said = |input| String::from_utf8(answer(&server, &folder, input)).unwrap();
    assert_eq!(said(sent), format!("a.test h2,b TLSv1.3 {}", sent.len()));
    assert_eq!(said(b"\x80\x2e\x01\x03\x01"), "  TLSv1 5");
    assert_eq!(said(b"SSH-2.0"), "   7");
    let named = format!("{server} server {{ {SERVER} server_name a.test; return $server_name; }}");
    assert_eq!(answer(&named, &folder, sent), b"a.test");
}

#[test]
fn a_missing_client_hello_ends_the_session() {
    let (folder, sent) = (Folder::new(), hello("a.test").leak());
    let log = "log_format f '$status $bytes_received'; access_log a.log f; error_log e.log info;";
    let server = format!("{log} server {{ {SERVER} ssl_preread on; return {PREREAD}; }}");
    assert_eq!(answer(&server, &folder, &sent[..9]), b"");
    assert_eq!(logged(&folder, "a.log"), "200 9\n");
    let small = format!("preread_buffer_size 16; {server}");
    assert_eq!(answer(&small, &folder, sent), b"");
    assert_eq!(logged(&folder, "a.log"), "200 9\n400 16\n");
    let full = "preread buffer full while prereading client data, client: 127.0.0.1, server: ";
    assert!(logged(&folder, "e.log").contains(full));
}
