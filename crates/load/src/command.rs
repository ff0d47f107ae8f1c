//! `weir load` from its command line to its last line of output.
//!
//! What is measured goes to standard output, what happens meanwhile to standard error. Called as
//! `wrk` it prints what wrk prints, and nothing else.

use std::ffi::OsString;
use std::io::Write;

use crate::options;
use crate::results::{Results, Second, notes, wrk};
use crate::run;
use crate::settings::{ABOUT, CHOICES, Settings, USAGE, Wish};

/// How the program was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Called {
    /// `weir load`.
    Load,
    /// `wrk`.
    Wrk,
}

/// Does what the words after the name say. An error is said by whoever called.
pub fn command(words: &[OsString], called: Called) -> Result<(), String> {
    match Settings::read(words) {
        Ok(Wish::Load(settings)) => load(&settings, called),
        Ok(Wish::Help) => print(&usage()),
        Ok(Wish::Version) => print(&format!(
            "weir load {} with the options of wrk 4.2.0\n",
            env!("CARGO_PKG_VERSION")
        )),
        Err(what) => Err(format!("{what}\n{}", usage())),
    }
}

fn usage() -> String {
    format!("{USAGE}  Options:\n{}{ABOUT}", options::help(CHOICES))
}

fn load(settings: &Settings, called: Called) -> Result<(), String> {
    let plan = settings.plan()?;
    // Where the system allows fewer connections than are asked for, they say so themselves.
    let _ = net::process::raise_open_files_limit();
    print(&wrk::opening(&plan.urls, plan.threads, plan.connections, plan.duration))?;
    let finished = run::run(&plan, &mut |second| watch(second))?;
    let results = &finished.results;
    print(&wrk::closing(results, settings.latency))?;
    finished.say_done()?;
    if called == Called::Load {
        print(&format!("\n{}", notes::notes(results, settings.latency)))?;
    }
    finished.failed.map_or_else(|| answered(results), Err)
}

fn watch(_second: &Second) {}

/// A run without a single reply has failed.
fn answered(results: &Results) -> Result<(), String> {
    let failures = results.tally.failures();
    if results.tally.replies == 0 && failures > 0 {
        return Err(format!("no reply to any of {failures} requests"));
    }
    Ok(())
}

/// Nobody may be reading any more; that ends it.
fn print(text: &str) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| error.to_string())
}
