//! `xtask prove`: promises about the program that only whole processes can show.
//!
//! A proof is a file here and a line in [`PROOFS`]. What they share is here: the program under
//! test, a folder, and how a proof ends. How cheap the program is, `bench` measures.

mod discovery;
mod folder;
mod generator;
mod handshakes;
mod intervals;
mod kills;
mod latency;
mod limit;
mod names;
mod port;
mod shared_limits;
mod soak;
mod stream;
mod transfers;
mod verdict;

use std::path::{Path, PathBuf};

use crate::args::Args;
use crate::project;
pub(crate) use folder::ProofFolder;
pub(crate) use port::free_port;
pub(crate) use verdict::ProofVerdict;

pub(crate) const HELP: &str =
    "weir load's figures, the limit, large bodies, sessions of stream, TLS

Usage: cargo xtask prove [PROOF [OPTION]...] [--weir PATH]

  --weir PATH   this program instead of a fresh release build

Without PROOF all are run, as long as none fails.

latency     The latencies that weir load reports are those that requests had. weir backend answers
            200 requests a second after 52 ms, 1 % of them 200 ms later, and nothing in the last
            second of ten. Fails when p50, p99 or p99.9 are off by more than 1 ms and 1 %, or the
            maximum by more than 5 ms, from what follows from that schedule or from the backend's
            log. Where a request was started or answered 2 ms late a wrong figure may be the
            machine's, and the run is repeated.
  --seconds N   length of a run (60; at least 11)
  --runs N      a run that the machine spoilt is repeated, up to so many in all (5)
  --alone       the open loop only, nothing beside it

limit       The limit towards a backend that gets slower the more it has to do at once, as a
            table. Fails when with the limit 500 clients get less than 95 % of what 200 get, or a
            request fails, or the backend ever has more than the limit. Needs wrk; nginx is shown
            beside where it is installed.
  --rounds N    runs of each, in turn (1)
  --seconds N   length of a run (5)

generator   weir load before servers that count (weir, nginx, haproxy, Go's net/http), and beside
            wrk: the texts of both are compared, and read by npm's parser of them. See
            conformance/generator/README.md.
  --requests N  sent in each way to each server (10000)
  --scripts DIR run wrk's scripts of this folder with both programs
  --strict      what is skipped is a failure

transfers   Bodies of 100 MB through proxy_pass over HTTP/2, four streams on one connection, in
            both directions, buffered and not, with slow clients and backends. Every byte is
            compared. Fails when one differs or is missing, or when the server's memory grows by
            more than 8 MB. Needs curl.
  --megabytes N    size of a body (100)
  --nginx PATH     an nginx, which is shown beside it

stream      Many connections through proxy_pass of stream {}: many at once, many more one after the
            other, and many at once again. Fails when one is not answered or not logged, when
            descriptors or sockets are left over, or when the memory grows on after the first time.
            Then the memory of idle sessions; sessions whose ends misbehave: half-closed, reset,
            never reading, with a backend that is killed; and sessions that outlive 100 reloads, or
            are ended by worker_shutdown_timeout.
  --connections N  one after the other (100000)
  --at-once N      at once (4000)
  --nginx PATH     an nginx with stream, which is shown beside it

handshakes  Latencies of requests on kept HTTPS connections while clients open others as fast as
            one worker can do full RSA handshakes. Fails when a client is not answered, or when the
            median of the runs' p99 is more than a third of nginx's. A run in which the worker was
            not on its core for 90 % of the time is repeated. Needs two cores and openssl.
  --rounds N       runs of each server, in turn (3)
  --seconds N      length of a run (3)
  --nginx PATH     an nginx to compare with

names       Many names with a P-256 certificate and key each: the time to check the configuration,
            and the memory after the start and after reloads. Fails when memory grows with the
            number of reloads, or when time or memory exceed nginx's. Needs openssl.
  --names N        (10000)
  --reloads N      (12)
  --nginx PATH     an nginx to compare with

intervals   Whether the intervals of `weir lab run` contain the truth on this machine: one long run
            of the study `same` is cut into studies of 12, 40 and 160 blocks. Its rows are equal as
            measured, and 5 % apart once the figures of one are multiplied. Fails when more of the
            studies miss the truth than 5 of 100 and chance explain.
  --blocks N       of the long run (1200; 15 minutes)
  --disturb        beside a process that uses half a core
  --record FILE    judges the record.json of such a run instead

kills       A server with a cache that is killed under load, again and again. Every line of a body
            is its key and version. Fails when a body is torn, mixed up or newer than the backend's,
            when temporary files stay after a start, or when descriptors are left over.
  --kills N        also those of clean ends, one of twenty (1000)
  --nginx PATH     an nginx, which is shown beside it

discovery   A server, weir-discover and the source of its lists (files, then etcd) are killed under
            load in any order and started again with new lists. Fails when a group is ever empty or
            has an old list, when new lists are not everywhere in 30 seconds, or when an owner
            stays. Needs weir-discover beside the program, and Debian's etcd-server and etcd-client.
  --kills N        rounds for each source (50)

shared-limits  What three servers admit together that share a rate through Redis, next to the
            formula of docs/shared-limits.md, at three rates; and while Redis is stopped and killed.
            Fails when the overshoot is above the bound, with 100 ms for an exchange, or when less
            than 90 % of the rate are admitted. Needs redis-server and wrk.
  --seconds N      length of a run (10)

soak        Attackers that once stopped a worker, all at once for an hour, with a reload every 15
            seconds: HTTP/2 header blocks that never end, replies in pieces of one byte, standard
            error of FastCGI without end. Fails when a request of others is not answered, when their
            p99 is more than twice the quiet one, when memory grows, or when descriptors are left
            over. Needs two cores that are left alone.
  --minutes N      under attack (60)
  --nginx PATH     an nginx, which is shown beside it
";

struct Proof {
    name: &'static str,
    run: fn(Args, &Path) -> Result<ProofVerdict, String>,
}

const PROOFS: &[Proof] = &[
    Proof { name: "latency", run: latency::run },
    Proof { name: "limit", run: limit::run },
    Proof { name: "generator", run: generator::run },
    Proof { name: "transfers", run: transfers::run },
    Proof { name: "stream", run: stream::run },
    Proof { name: "handshakes", run: handshakes::run },
    Proof { name: "names", run: names::run },
    Proof { name: "kills", run: kills::run },
    Proof { name: "discovery", run: discovery::run },
    Proof { name: "shared-limits", run: shared_limits::run },
    Proof { name: "intervals", run: intervals::run },
    Proof { name: "soak", run: soak::run },
];

pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let (proofs, options) = chosen(words)?;
    let mut args = Args::new(options);
    let weir = args.option("--weir")?.map(PathBuf::from);
    let weir = weir.map_or_else(|| project::release("weir"), Ok)?;
    let weir = weir.canonicalize().map_err(|err| format!("{}: {err}", weir.display()))?;
    for proof in proofs {
        println!("== {}", proof.name);
        match (proof.run)(args.clone(), &weir)? {
            ProofVerdict::Right => {}
            ProofVerdict::Skipped(why) => println!("skipped: {why}"),
            ProofVerdict::Disturbed(why) => return Err(why),
        }
    }
    Ok(())
}

/// One proof with a fresh release build, for another command.
pub(crate) fn one(name: &str, options: &[&str]) -> Result<ProofVerdict, String> {
    let name = [name.to_owned()];
    let (proofs, _) = chosen(&name)?;
    let options: Vec<String> = options.iter().map(|word| (*word).to_owned()).collect();
    (proofs[0].run)(Args::new(&options), &project::release("weir")?)
}

/// The proof that is named first, or all, and what follows.
fn chosen(words: &[String]) -> Result<(&'static [Proof], &[String]), String> {
    match words {
        [name, options @ ..] if !name.starts_with('-') => {
            let place = PROOFS.iter().position(|proof| proof.name == name);
            let place = place.ok_or_else(|| {
                let names: Vec<&str> = PROOFS.iter().map(|proof| proof.name).collect();
                format!("there is no proof \"{name}\": {}", names.join(" "))
            })?;
            Ok((&PROOFS[place..=place], options))
        }
        _ => Ok((PROOFS, words)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_chosen_by_its_name() {
        let words = ["limit".to_owned(), "--rounds".to_owned(), "2".to_owned()];
        let (proofs, options) = chosen(&words).expect("it exists");
        assert_eq!((proofs.len(), proofs[0].name, options.len()), (1, "limit", 2));
        assert_eq!(chosen(&words[1..]).map(|(all, _)| all.len()), Ok(PROOFS.len()));
        assert!(chosen(&["limits".to_owned()]).is_err_and(|why| why.contains("latency limit")));
        for proof in PROOFS {
            assert!(HELP.contains(&format!("\n{:11} ", proof.name)), "{}", proof.name);
        }
    }
}
