use std::ffi::OsString;
use std::net::TcpListener;

use super::run;
use crate::results::Results;
use crate::settings::{Settings, Wish};

fn results(line: &str) -> Results {
    let words: Vec<OsString> = line.split(' ').map(Into::into).collect();
    let Wish::Load(settings) = Settings::read(&words).unwrap() else { panic!("{line}") };
    run(&settings.plan().unwrap(), &mut || Ok(()), &mut |_| {}).unwrap().results
}

#[test]
fn who_is_on_its_way_at_the_end_has_had_its_time() {
    // The kernel opens the connections; nobody ever answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let tally = results(&format!("--rate 200 -d 100ms --timeout 50ms -c 40 -t 2 {url}")).tally;
    assert_eq!((tally.errors.timeout, tally.errors.sum(), tally.unsent), (20, 20, 0));
}
