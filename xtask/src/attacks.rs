//! `xtask attacks`: attacks on the program by clients of HTTP/2 and TLS, and by backends.
//!
//! An attack on HTTP/2 is a row in [`ATTACKS`]. It runs on several connections at a time against a
//! server with one worker, while another client asks on a connection of its own.

mod attack;
mod attacker;
mod backends;
mod bystander;
pub(crate) mod frames;
mod http2_servers;
mod key_updates;
mod server;
mod unfinished;

use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use processes::procfs;

use crate::args::Args;
use crate::own_certificate::OwnCertificate;
use crate::project;
use crate::running::Running;
use attack::{ATTACKS, Attack, AttackEnd};
use attacker::Attacker;
use bystander::{Bystander, BystanderLatency};
use frames::{PING, frame};

pub(crate) const HELP: &str = "attacks by clients and backends: others are served meanwhile

Usage: cargo xtask attacks [--weir PATH] [--nginx PATH] [--only NAME]

  --weir PATH   the program under test; built where none is named
  --nginx PATH  an nginx, which is shown beside it and not judged
  --only NAME   attacks whose name contains this

A line for each attack: what it was sent, how it ended, by how much the server's memory grew per
connection at most, and what another client's requests took, with percentiles of the time. Fails
where an attack does not end as docs/security.md says, where the other client is not served or waits
for too long, where memory grows too much, or where connections that stop in the middle stay open.
Servers of HTTP/2 attack through proxy_pass and grpc_pass; their names begin with \"server: \".
";

/// Connections that attack at the same time.
const ATTACKERS: usize = 8;

/// What a connection under attack may take. The bodies that nobody reads are most of it.
const MEMORY_PER_CONNECTION_MAX: f64 = 16.0 * 1024.0 * 1024.0;

/// The longest that another client may wait, on a machine that does other things besides.
const BYSTANDER_MAX: Duration = Duration::from_secs(2);

/// Half of the time, other clients wait no longer than this beside requests that cost much to
/// decode.
const BUSY_MEDIAN_MAX: Duration = Duration::from_millis(10);

const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(10);

pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let mut args = Args::new(words);
    let weir = args.option("--weir")?.map(PathBuf::from);
    let nginx = args.option("--nginx")?.map(PathBuf::from);
    let only = args.option("--only")?.unwrap_or_default();
    args.end()?;
    let weir = weir.map_or_else(|| project::release("weir"), Ok)?;
    let mut wrong = Vec::new();
    attack_all(&weir, &only, |line| wrong.push(line))?;
    if let Some(nginx) = nginx {
        println!("\n{}", nginx.display());
        attack_all(&nginx, &only, |_| {})?;
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

fn attack_all(program: &Path, only: &str, mut complain: impl FnMut(String)) -> Result<(), String> {
    attack_server(program, only, &mut complain)?;
    twice(&mut complain, &mut |complain| unfinished::run(program, only, complain))?;
    twice(&mut complain, &mut |complain| key_updates::run(program, only, complain))?;
    twice(&mut complain, &mut |complain| backends::run(program, only, complain))?;
    http2_servers::run(program, only, &mut complain)
}

/// Runs attacks, once more if there is a complaint: a busy machine delays bystanders. The first
/// complaints are printed, so that none is hidden.
fn twice(
    complain: &mut dyn FnMut(String),
    attack: &mut impl FnMut(&mut dyn FnMut(String)) -> Result<(), String>,
) -> Result<(), String> {
    let mut first = Vec::new();
    attack(&mut |why| first.push(why))?;
    if first.is_empty() {
        return Ok(());
    }
    println!("tried once more: {}", first.join("; "));
    attack(complain)
}

/// All attacks over both transports; `complain` is told what does not end as it should.
fn attack_server(
    program: &Path,
    only: &str,
    mut complain: impl FnMut(String),
) -> Result<(), String> {
    let keys = OwnCertificate::new()?;
    println!("attack                     over   sent    end           memory   others p50/p99/max");
    for tls in [false, true] {
        let transport = if tls { "TLS" } else { "plain" };
        for attack in ATTACKS.iter().filter(|attack| attack.name.contains(only)) {
            twice(&mut complain, &mut |complain| {
                let server = server::start(program, &keys, tls)?;
                let report = attack_with(&server, attack, tls)?;
                println!("{:26} {transport:5} {report}", attack.name);
                if let Err(why) = report.judge(attack, &server) {
                    complain(format!("{} over {transport}: {why}", attack.name));
                }
                Ok(())
            })?;
        }
    }
    Ok(())
}

struct AttackReport {
    sent: u32,
    ends: Vec<Result<(), String>>,
    code: Option<u32>,
    bytes_per_connection: f64,
    latency: BystanderLatency,
}

impl std::fmt::Display for AttackReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let end = self.code.map_or("open".to_owned(), |code| format!("GOAWAY {code}"));
        write!(
            f,
            "{:7} {end:10} {:8.0} KB {}",
            self.sent,
            self.bytes_per_connection / 1024.0,
            self.latency
        )
    }
}

impl AttackReport {
    fn judge(&self, attack: &Attack, server: &Running) -> Result<(), String> {
        self.ends.iter().find(|end| end.is_err()).cloned().unwrap_or(Ok(()))?;
        if let Some((code, message)) = attack.end.goaway() {
            if self.code != Some(code) {
                return Err(format!("it did not end as meant: {:?}", self.code));
            }
            if !server.log().contains(message) {
                return Err(format!("no {message:?} in the log"));
            }
        }
        if self.bytes_per_connection > MEMORY_PER_CONNECTION_MAX {
            return Err(format!("{} bytes per connection", self.bytes_per_connection));
        }
        let median_max = if attack.is_busy { BUSY_MEDIAN_MAX } else { BYSTANDER_MAX };
        self.latency.judge(median_max, BYSTANDER_MAX)
    }
}

fn attack_with(
    server: &Running,
    attack: &'static Attack,
    tls: bool,
) -> Result<AttackReport, String> {
    let bystander = Bystander::start(&server.file("other.sock"))?;
    let before = procfs::memory(server.pid())?;
    let mut peak = before;
    let address = server.address;
    let attackers: Vec<_> =
        (0..ATTACKERS).map(|_| thread::spawn(move || attack_once(address, attack, tls))).collect();
    while attackers.iter().any(|attacker| !attacker.is_finished()) {
        peak = procfs::memory(server.pid())?.max(peak);
        thread::sleep(LOOK);
    }
    let mut report = AttackReport {
        sent: 0,
        ends: Vec::new(),
        code: None,
        bytes_per_connection: (peak - before) / ATTACKERS as f64,
        latency: bystander.stop()?,
    };
    for attacker in attackers {
        let outcome = attacker.join().map_err(|_| "an attacker panicked")?;
        let (sent, code, end) = outcome.map_err(|err| format!("{}: {err}", attack.name))?;
        report.sent = report.sent.max(sent);
        report.code = report.code.or(code);
        report.ends.push(end);
    }
    Ok(report)
}

/// How often it was sent, the code of GOAWAY, and whether it ended as meant.
type AttackOutcome = (u32, Option<u32>, Result<(), String>);

fn attack_once(
    address: std::net::SocketAddr,
    attack: &Attack,
    tls: bool,
) -> std::io::Result<AttackOutcome> {
    let mut attacker = Attacker::connect(address, tls)?;
    let mut sent = 0;
    let mut fails = attacker.send(&(attack.begin)()).is_err();
    while sent < attack.times && !fails && !attacker.seen(|seen| seen.went_away.is_some()) {
        fails = attacker.send(&(attack.again)(sent)).is_err();
        sent += 1;
    }
    let ended = match (attack.end, attack.end.goaway()) {
        // What was still under way when the server closed makes the kernel reset the connection,
        // and the reset may take GOAWAY with it. Some attacker must have read it.
        (_, Some((meant, _))) => attacker.sees(PATIENCE, |seen| match seen.went_away {
            Some(code) => code == meant,
            None => seen.is_closed,
        }),
        (AttackEnd::Reset, None) => attacker.sees(PATIENCE, |seen| seen.resets >= attack.times),
        (_, None) => {
            let _ = attacker.send(&frame(PING, 0, 0, &[7; 8]));
            attacker.sees(PATIENCE, |seen| seen.pongs > 0 && seen.went_away.is_none())
        }
    };
    let code = attacker.seen(|seen| seen.went_away);
    let end = if ended { Ok(()) } else { Err(format!("it did not end as meant: {code:?}")) };
    Ok((sent, code, end))
}
