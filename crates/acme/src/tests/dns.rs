//! dns-01: records of a name server that does wrong, and programs that do.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use net::Address;
use upstream::address::Endpoint;
use wire::dns::{DomainName, TsigKey};

use super::fake_name_server::{DnsFault, FakeNameServer, KEY};
use super::*;
use crate::dns01::{DnsCheck, DnsHook, DnsSettings, DnsWriter, DnsZone};

/// Less time than usual passes while the name server, which is another thread, may answer.
const DNS_WORKING_MS: u64 = 4;
const TIMEOUT_MS: u64 = 20_000;
const RECORD: &str = "_acme-challenge.a.test";

fn dns_issuer(
    authority: &FakeAuthority,
    folder: &Arc<StateFolder>,
    writer: DnsWriter,
    check: DnsCheck,
) -> Arc<AcmeIssuer> {
    Arc::new(AcmeIssuer {
        challenges: vec![ChallengeKind::Dns01],
        dns: Some(DnsSettings { writer, check, timeout_ms: TIMEOUT_MS }),
        ..(*issuer("a", authority, folder)).clone()
    })
}

/// An issuer that updates the zone of this server.
fn updating(
    authority: &FakeAuthority,
    folder: &Arc<StateFolder>,
    server: &FakeNameServer,
) -> Arc<AcmeIssuer> {
    let place = Endpoint::At(Address::Ip(server.address));
    let zone = DnsZone {
        servers: vec![place.clone()],
        name: DomainName::from_text(b"test").unwrap(),
        key: TsigKey::parse_line(KEY.as_bytes()).unwrap(),
        ttl_s: 60,
    };
    let check = DnsCheck::Servers(vec![place]);
    dns_issuer(authority, folder, DnsWriter::Updates(vec![zone]), check)
}

/// A name server, an authority that looks there, and a process.
struct Scene {
    server: Arc<FakeNameServer>,
    authority: FakeAuthority,
    folder: Arc<StateFolder>,
    process: Process,
}

impl Scene {
    fn start(fault: DnsFault) -> Self {
        Self::with(fault, &[])
    }

    fn with(fault: DnsFault, aliases: &[(&str, &str)]) -> Self {
        let (server, authority) = (Arc::new(FakeNameServer::start()), FakeAuthority::start());
        server.set_fault(fault);
        let aliases = aliases.iter().map(|(from, to)| ((*from).into(), (*to).into()));
        server.zone().aliases = aliases.collect();
        let seen = server.clone();
        authority.look_in_dns(move || !seen.zone().records.is_empty());
        let folder = Arc::new(StateFolder::in_memory());
        let mut process = Process::start(vec![updating(&authority, &folder, &server)]);
        process.working_ms = DNS_WORKING_MS;
        Self { server, authority, folder, process }
    }

    async fn until_obtained(&self) {
        self.process.until(|| self.process.number() == 1).await;
        assert_eq!((self.process.failures(), self.authority.count("/new-order")), (0, 1));
        self.assert_clean();
    }

    fn assert_clean(&self) {
        assert_eq!(self.server.zone().records, [], "the record is removed");
        let files = self.folder.names("").unwrap();
        assert!(!files.iter().any(|name| name.ends_with(".answers")), "{files:?}");
    }

    /// Waits for a failure, and returns what is said about it.
    async fn until_failed(&self) -> String {
        self.process.until(|| self.process.failures() == 1).await;
        assert_eq!(self.authority.count("/challenge"), 0, "the authority was not told");
        self.process.last_error()
    }
}

#[test]
fn a_record_is_added_seen_and_removed() {
    simulate(async || {
        let scene = Scene::start(DnsFault::Nothing);
        scene.until_obtained().await;
        let (added, updates) = scene.server.counts();
        assert_eq!((added, updates), (1, [2, 0]));
        scene.process.end();
    });
}

#[test]
fn an_alias_of_the_challenge_is_followed() {
    simulate(async || {
        let aliases = [(RECORD, "one.acme.test"), ("one.acme.test", "two.acme.test")];
        let scene = Scene::with(DnsFault::Hides, &aliases);
        scene.process.until(|| !scene.server.zone().records.is_empty()).await;
        assert_eq!(scene.server.zone().records[0].0, "two.acme.test");
        scene.server.set_fault(DnsFault::Nothing);
        scene.until_obtained().await;
        scene.process.end();
    });
}

#[test]
fn a_server_without_udp_is_updated_over_tcp() {
    simulate(async || {
        let scene = Scene::start(DnsFault::NoUdp);
        scene.until_obtained().await;
        assert_eq!(scene.server.counts().1[1], 2);
        scene.process.end();
    });
}

#[test]
fn a_response_that_is_cut_off_is_requested_over_tcp() {
    simulate(async || {
        let scene = Scene::start(DnsFault::Truncated);
        scene.until_obtained().await;
        assert_eq!(scene.server.counts().1, [2, 2]);
        scene.process.end();
    });
}

#[test]
fn a_refused_update_is_a_failure() {
    simulate(async || {
        let scene = Scene::start(DnsFault::Refuses(5));
        let error = scene.until_failed().await;
        assert!(error.contains("refuses the update (REFUSED) (update of zone test"), "{error}");
        // Nothing is left to be withdrawn but what was noted.
        scene.server.set_fault(DnsFault::Nothing);
        scene.process.until(|| scene.process.number() == 1).await;
        scene.assert_clean();
        scene.process.end();
    });
}

#[test]
fn a_wrong_secret_is_a_failure_that_says_so() {
    simulate(async || {
        let scene = Scene::start(DnsFault::OtherSecret);
        let error = scene.until_failed().await;
        assert!(error.contains("(BADSIG)"), "{error}");
        scene.process.end();
    });
}

#[test]
fn a_server_failure_is_tried_again_soon() {
    simulate(async || {
        let scene = Scene::start(DnsFault::Refuses(2));
        scene.process.until(|| scene.server.zone().updates[0] == 2).await;
        scene.server.set_fault(DnsFault::Nothing);
        scene.until_obtained().await;
        scene.process.end();
    });
}

#[test]
fn a_silent_server_is_given_up() {
    simulate(async || {
        let mut scene = Scene::start(DnsFault::Silent);
        scene.process.working_ms = WORKING_MS;
        let began_ms = clock::now_ms();
        let error = scene.until_failed().await;
        assert!(error.contains("name server"), "{error}");
        let took_ms = clock::now_ms() - began_ms;
        assert!(took_ms < 3 * MINUTE_MS, "aliases, an addition and a removal: {took_ms} ms");
        scene.process.end();
    });
}

#[test]
fn a_record_that_nobody_shows_is_a_failure_in_time() {
    simulate(async || {
        let scene = Scene::start(DnsFault::Forgets);
        let error = scene.until_failed().await;
        let server = scene.server.address;
        let expected = format!("name server {server} does not show {RECORD}, 20 s after");
        assert!(error.contains(&expected), "{error}");
        scene.process.end();
    });
}

/// The process dies while the record is there, and another one finds it.
#[test]
fn a_record_that_a_crash_has_left_is_removed() {
    simulate(async || {
        let scene = Scene::start(DnsFault::Hides);
        scene.process.until(|| !scene.server.zone().records.is_empty()).await;
        scene.process.end();
        let stem = process_stem(&scene.folder);
        scene.folder.write(&format!("{stem}.lock"), b"dead\n0\n").unwrap();
        let issuer = updating(&scene.authority, &scene.folder, &scene.server);
        let issuers = vec![IssuerInUse::new(issuer)];
        let task = net::spawn(leftovers::withdraw_all(vec![scene.folder.clone()], issuers));
        until_withdrawn(&scene.folder).await;
        assert_eq!(scene.server.zone().records, []);
        assert_eq!(scene.server.counts().0, 1);
        task.stop();
    });
}

/// A process with an issuer whose records are changed by a script with these lines. The record is
/// the file `DIR/zone`.
fn hooked(
    authority: &FakeAuthority,
    state: &Arc<StateFolder>,
    folder: &Path,
    lines: &str,
) -> Process {
    let (script, zone) = (folder.join("hook"), folder.join("zone"));
    let text = format!("#!/bin/sh\nzone={}\n{lines}\n", zone.display());
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, Permissions::from_mode(0o755)).unwrap();
    authority.look_in_dns(move || !std::fs::read(&zone).unwrap_or_default().is_empty());
    let hook = DnsHook { program: script.into(), arguments: vec!["own".into()] };
    let issuer = dns_issuer(authority, state, DnsWriter::Hook(hook), DnsCheck::Off);
    let mut process = Process::start(vec![issuer]);
    process.working_ms = DNS_WORKING_MS;
    process
}

#[test]
fn a_program_adds_and_removes_the_record() {
    simulate(async || {
        let (authority, folder) = (FakeAuthority::start(), testing::Folder::new());
        let state = Arc::new(StateFolder::in_memory());
        let lines = "echo \"$1 $2 $3 $ACME_ACTION $ACME_DOMAIN $ACME_NAME\" >> $zone.log\n\
                     if [ $2 = add ]; then echo $4 > $zone; else rm $zone; fi";
        let process = hooked(&authority, &state, &folder.join(""), lines);
        process.until(|| process.number() == 1).await;
        let log = std::fs::read_to_string(folder.join("zone.log")).unwrap();
        let line = |action: &str| format!("own {action} {RECORD} {action} a.test {RECORD}\n");
        assert_eq!(log, line("add") + &line("remove"));
        assert!(!folder.join("zone").exists());
        process.end();
    });
}

#[test]
fn a_program_that_fails_is_a_failure() {
    simulate(async || {
        let (authority, folder) = (FakeAuthority::start(), testing::Folder::new());
        let state = Arc::new(StateFolder::in_memory());
        let process = hooked(&authority, &state, &folder.join(""), "echo no; exit 3");
        process.until(|| process.failures() == 1).await;
        let error = process.last_error();
        assert!(error.contains("failed with code 3"), "{error}");
        assert_eq!(authority.count("/challenge"), 0);
        process.end();
    });
}

#[test]
fn a_program_that_hangs_is_killed() {
    simulate(async || {
        let (authority, folder) = (FakeAuthority::start(), testing::Folder::new());
        let state = Arc::new(StateFolder::in_memory());
        let process = hooked(&authority, &state, &folder.join(""), "[ $2 = add ] && sleep 1000");
        process.until(|| process.failures() == 1).await;
        let error = process.last_error();
        assert!(error.contains("was killed after 20 s"), "{error}");
        process.end();
    });
}
