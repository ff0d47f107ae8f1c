use std::ffi::OsString;
use std::io;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use super::plan::RunPlan;
use super::{explained, run};
use crate::command::CalledAs;
use crate::results::{LoadKind, Results};
use crate::settings::{LoadSettings, RequestedRun};

fn plan(line: &str) -> RunPlan {
    let words: Vec<OsString> = line.split(' ').map(Into::into).collect();
    let RequestedRun::Load(settings) = LoadSettings::read(&words, CalledAs::Load).unwrap() else {
        panic!("{line}")
    };
    settings.plan().unwrap()
}

fn results(plan: &RunPlan) -> Results {
    run(plan, &mut || Ok(()), &mut |_| {}).unwrap().results
}

#[test]
fn who_is_on_its_way_at_the_end_has_had_its_time() {
    // The kernel opens the connections; nobody ever answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let (plan, began) =
        (plan(&format!("--rate 200 -d 100ms --timeout 2s -c 40 -t 2 {url}")), Instant::now());
    let results = results(&plan);
    let tally = results.tally;
    assert_eq!((tally.errors.timeout, tally.errors.sum(), tally.unsent), (20, 20, 0));
    // The time in which replies were awaited does not count as time in which requests started.
    assert!(results.elapsed + Duration::from_secs(2) <= began.elapsed(), "{:?}", results.elapsed);
}

#[test]
fn an_open_loop_takes_its_time_though_the_server_is_gone() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", server.local_addr().unwrap());
    let plan = plan(&format!("--rate 8..12 -d 350ms -c 1 -t 1 {url}"));
    drop(server);
    let results = results(&plan);
    assert_eq!((results.tally.replies, results.tally.errors.refused), (0, 4));
    // It only comes to the end of the ramp at the end of its time.
    assert!(matches!(results.pace, LoadKind::Open { to: 12.0, .. }), "{:?}", results.pace);
}

#[test]
fn a_limit_of_the_system_is_named() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let plan = plan(&format!("-c 100 http://{}/", server.local_addr().unwrap()));
    let error = io::Error::from_raw_os_error(net::listening::EMFILE);
    assert!(explained(&error, &plan).ends_with(": ulimit -n is too low for 100 connections"));
}
