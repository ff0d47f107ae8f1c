//! Properties that hold for any input, as functions that panic if they do not.
//!
//! Shared by the fuzz targets (`fuzz/`) and by the tests that run their seeds; not part of the
//! crate's interface.

use std::time::Duration;

use wire::fuzz::splits;

use crate::expect::Expectation;
use crate::replies::{BufferSearch, CompleteReply, HEAD_MAX, Replies};
use crate::results::{LoadKind, Results, RunStats};
use crate::settings;
use crate::target::{LoadTarget, TargetScheme};

/// Replies are the same in pieces and as a whole, to GET and to HEAD.
pub fn load_replies(input: &[u8]) {
    // How much of a long head is parsed depends on the pieces.
    if input.len() >= HEAD_MAX {
        return;
    }
    for to_head in [false, true] {
        let whole = hear(input, to_head, &[input.len()]);
        for ends in splits(input) {
            assert_eq!(hear(input, to_head, &ends), whole, "in pieces {ends:?}");
        }
        let statuses = whole.replies.iter().map(|(reply, ..)| reply.status);
        assert!(statuses.into_iter().all(|status| (1..=999).contains(&status)));
        let last = whole.replies.len().saturating_sub(1);
        let earlier = &whole.replies[..last];
        assert!(earlier.iter().all(|(reply, ..)| reply.keep), "nothing comes after the last");
    }
}

/// The parsed replies of a server with their fields and bodies, and the end.
#[derive(Debug, Default, PartialEq)]
struct FuzzReplies {
    replies: Vec<(CompleteReply, ReadFields, Vec<u8>)>,
    is_invalid: bool,
    /// The reply that the end of the connection completes, and whether the end is within a reply.
    end: Option<(Option<CompleteReply>, bool)>,
}

type ReadFields = Vec<(Vec<u8>, Vec<u8>)>;

/// Parses replies as a client does, which keeps bytes of incomplete replies.
fn hear(input: &[u8], to_head: bool, ends: &[usize]) -> FuzzReplies {
    let mut heard = FuzzReplies::default();
    let mut replies = Replies::default();
    replies.listen(true);
    let mut at = 0;
    for &end in ends {
        while at < end {
            match replies.take(&input[at..end], to_head) {
                Err(_) => return FuzzReplies { is_invalid: true, ..heard },
                Ok(BufferSearch::More(taken)) => {
                    at += taken;
                    assert!(at <= end);
                    break;
                }
                Ok(BufferSearch::Reply(taken, reply)) => {
                    assert!(taken <= end - at);
                    at += taken;
                    let last = replies.heard().expect("it listens");
                    heard.replies.push((reply, last.fields.clone(), last.body.clone()));
                    if !reply.keep {
                        return heard;
                    }
                }
            }
        }
    }
    let is_within = replies.is_within(input.len() - at);
    heard.end = Some((replies.end(), is_within));
    heard
}

/// An accepted URL can be written again, with each byte of the user escaped, and contains nothing
/// that could end a line of a request.
pub fn load_url(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(target) = LoadTarget::parse(text) else { return };
    assert!(target.path.starts_with('/') && !target.host.is_empty());
    let parts = [&target.path, &target.host, &target.port];
    assert!(parts.iter().all(|part| part.bytes().all(|byte| byte > b' ' && byte != 0x7f)));
    // Such a host can only be written after a user, which is not kept.
    if target.scheme == TargetScheme::Http && target.authority().starts_with("unix:") {
        return;
    }
    let again = match target.scheme {
        TargetScheme::Unix => format!("http://unix:{}:{}", target.host, target.path),
        scheme => {
            let scheme = format!("{scheme:?}").to_ascii_lowercase();
            format!("{scheme}://{}{}{}", user(&target), target.authority(), target.path)
        }
    };
    let read = LoadTarget::parse(&again).expect("what was written");
    assert_eq!(
        LoadTarget { url: String::new(), ..read },
        LoadTarget { url: String::new(), ..target }
    );
}

fn user(target: &LoadTarget) -> String {
    let Some(colon) = target.credentials.iter().position(|byte| *byte == b':') else {
        return String::new();
    };
    let escaped = |part: &[u8]| part.iter().map(|byte| format!("%{byte:02x}")).collect::<String>();
    let (user, password) = target.credentials.split_at(colon);
    format!("{}:{}@", escaped(user), escaped(&password[1..]))
}

/// An accepted expectation can judge a run without replies and one with some.
pub fn load_expect(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(expectation) = Expectation::parse(text) else { return };
    let nothing = fuzzed_run(0);
    assert!(expectation.judge(&nothing).measured.is_none_or(f64::is_finite));
    let run = fuzzed_run(1);
    let judged = expectation.judge(&run);
    assert!(judged.measured.is_some_and(f64::is_finite), "{judged:?}");
}

/// A run in which every count is `count`.
fn fuzzed_run(count: u64) -> Results {
    let mut tally = RunStats { replies: count, bytes: count, unsent: count, ..RunStats::default() };
    if count > 0 {
        tally.statuses.add(404, count);
        // A value within the range of the histogram.
        let _ = tally.latency_us.record_n(1500, count);
    }
    Results {
        urls: Vec::new(),
        threads: 1,
        connections: 1,
        duration: None,
        pace: LoadKind::Closed,
        began_unix_ms: 0,
        elapsed: Duration::from_secs(1),
        tally,
        seconds: Vec::new(),
        cpu: Duration::ZERO,
        busiest_thread: 0.0,
        interrupted: false,
        judged: Vec::new(),
    }
}

/// Starts are in order of time, at any rate.
pub fn load_rate(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(rate) = settings::rate(text) else { return };
    let within = (rate.from + rate.to) / 2.0 * rate.over.as_secs_f64();
    for first in [0, within as u64, within as u64 / 2] {
        let starts: Vec<_> =
            (first.saturating_sub(50)..first + 50).map(|n| rate.start_of(n)).collect();
        for pair in starts.windows(2) {
            // The last digits are rounding errors.
            let rounding = pair[0].mul_f64(1e-12);
            assert!(pair[1].saturating_add(rounding) >= pair[0], "{rate:?}: {pair:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    type Check = fn(&[u8]);
    /// Whether a target accepts a seed.
    type IsUnderstood = fn(&[u8]) -> bool;

    const TARGETS: [(&str, Check, IsUnderstood); 4] = [
        ("load_replies", load_replies, |seed| !hear(seed, false, &[seed.len()]).replies.is_empty()),
        ("load_url", load_url, |seed| LoadTarget::parse(&text(seed)).is_ok()),
        ("load_expect", load_expect, |seed| Expectation::parse(&text(seed)).is_ok()),
        ("load_rate", load_rate, |seed| settings::rate(&text(seed)).is_ok()),
    ];

    fn text(seed: &[u8]) -> String {
        String::from_utf8_lossy(seed).into_owned()
    }

    /// Runs the seeds, so that earlier findings stay fixed without a fuzzer.
    #[test]
    fn seeds_pass() {
        for (name, check, is_understood) in TARGETS {
            let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(name);
            let mut understood = 0;
            for entry in fs::read_dir(seeds).expect(name) {
                let seed = fs::read(entry.unwrap().path()).unwrap();
                check(&seed);
                understood += usize::from(is_understood(&seed));
            }
            assert!(understood > 1, "{name}: seeds that mean something");
        }
    }
}
