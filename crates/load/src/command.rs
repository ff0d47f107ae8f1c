//! `weir load` from its command line to its last line of output.
//!
//! wrk's text goes to standard output; what is said beside it, while it runs and of the result, to
//! standard error. Called as `wrk` it prints what wrk prints, and nothing else.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use crate::options;
use crate::results::live::Live;
use crate::results::{Results, Second, amounts, compare, hlog, json, notes, wrk};
use crate::run::plan::Plan;
use crate::run::schedule::Rate;
use crate::run::{self, Finished};
use crate::search::{Search, Verdict};
use crate::settings::{ABOUT, CHOICES, Goal, Settings, USAGE, Wish};
use crate::tell;

/// Descriptors of threads and their alarms, and some to spare.
const DESCRIPTORS: u64 = 4096;

/// Steps of a search that are thrown away because the generator was in the way.
const DISTURBED_MAX: u32 = 5;

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
    if let Some((_, rest)) = words.split_first().filter(|(first, _)| *first == "compare") {
        return print(&compare::run(rest)?);
    }
    match Settings::read(words) {
        Ok(Wish::Load(settings)) => load(&settings, called),
        Ok(Wish::Help) => print(&usage()),
        Ok(Wish::Version) => {
            let version = env!("CARGO_PKG_VERSION");
            print(&format!("weir load {version} with the options of wrk 4.2.0\n"))
        }
        Err(what) => Err(format!("{what}\n(weir load --help says what there is)")),
    }
}

fn usage() -> String {
    format!("{USAGE}  Options:\n{}{ABOUT}", options::help(CHOICES))
}

fn load(settings: &Settings, called: Called) -> Result<(), String> {
    let plan = settings.plan()?;
    settings.files().try_for_each(try_file)?;
    // Where the system allows fewer connections than are asked for, they say so themselves.
    let _ = net::process::raise_open_files_limit();
    let _ = net::process::reserve_descriptors(plan.connections + DESCRIPTORS);
    let mut kept = Vec::new();
    let done = match settings.search {
        Some(goal) => search(settings, &plan, goal, &mut kept),
        None => measure(settings, &plan, called, &mut kept),
    };
    save(settings, &kept, is_output)?;
    done
}

/// Whether what is to be kept can be: nobody wants to know after an hour that it cannot.
fn try_file(path: &Path) -> Result<(), String> {
    // Whoever reads a pipe would take this for its end.
    let is_pipe = path.metadata().is_ok_and(|file| file.file_type().is_fifo());
    if is_output(path) || is_pipe {
        return Ok(());
    }
    let opened = OpenOptions::new().append(true).create(true).open(path);
    opened.map(|_| ()).map_err(|error| format!("{}: {error}", path.display()))
}

/// Runs as often as it is told to, and shows each run.
fn measure(
    settings: &Settings,
    plan: &Plan,
    called: Called,
    kept: &mut Vec<Results>,
) -> Result<(), String> {
    for number in 1..=settings.repeat {
        if settings.repeat > 1 {
            show(settings, &format!("Run {number} of {}\n", settings.repeat))?;
        }
        let finished = watched(settings, plan, called)?;
        let results = &finished.results;
        kept.push(results.clone());
        // Before all that can still go wrong.
        let saved = save(settings, kept, is_file);
        show(settings, &wrk::closing(results, settings.latency))?;
        let said = finished.say_done();
        if called == Called::Load {
            // Not there where programs read that expect wrk's last line to be the last.
            tell(&format!("\n{}", notes::notes(results, settings.latency)));
        }
        saved.and(said)?;
        let is_interrupted = results.interrupted;
        let answered = answered(results);
        finished.failed.map_or(answered, Err)?;
        if is_interrupted {
            break;
        }
    }
    Ok(())
}

/// A run, with a line for each of its seconds on standard error, or a view where it is a terminal.
fn watched(settings: &Settings, plan: &Plan, called: Called) -> Result<Finished, String> {
    let is_quiet = settings.quiet || called == Called::Wrk;
    let mut live = Live::default();
    let columns = net::system::terminal_columns();
    let opening = wrk::opening(&plan.urls, plan.threads, plan.connections, plan.duration);
    let finished = run::run(plan, &mut || show(settings, &opening), &mut |second: &Second| {
        if !is_quiet {
            tell(&match columns {
                Some(columns) => live.view(second, columns),
                None => live.line(second),
            });
        }
    });
    tell(&live.clear());
    finished
}

/// Writes what is to be kept in such places: all runs so far, and the latencies of the last.
fn save(settings: &Settings, kept: &[Results], place: fn(&Path) -> bool) -> Result<(), String> {
    let Some(last) = kept.last() else { return Ok(()) };
    if let Some(path) = settings.json.as_deref().filter(|path| place(path)) {
        write(path, &json::write(kept))?;
    }
    if let Some(path) = settings.hlog.as_deref().filter(|path| place(path)) {
        write(path, &hlog(last)?)?;
    }
    Ok(())
}

/// Whether what is to be kept goes to standard output: whole, and once.
fn is_output(path: &Path) -> bool {
    path == Path::new("-")
}

fn is_file(path: &Path) -> bool {
    !is_output(path)
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    if is_output(path) {
        return print(text);
    }
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Looks for the highest rate, and shows every step.
fn search(
    settings: &Settings,
    plan: &Plan,
    goal: Goal,
    kept: &mut Vec<Results>,
) -> Result<(), String> {
    let most = run::run(plan, &mut || Ok(()), &mut |_| {})?;
    answered(&most.results)?;
    let capacity = most.results.replies_per_second();
    let percentile = format!("p{}", goal.percentile);
    let heading = format!(
        "Searching the highest rate with {percentile} below {} @ {}\n\
         \x20 closed loop: {capacity:.0} requests/s\n\
         {:>10} {:>10} {:>10} {percentile:>10} {:>10}\n",
        amounts::time_us(goal.below.as_micros() as f64),
        plan.urls[0],
        "asked",
        "replies/s",
        "p50",
        "max",
    );
    show(settings, &heading)?;
    let mut search = Search::new((capacity / 2.0).max(1.0));
    let mut disturbed = 0;
    let mut is_interrupted = most.results.interrupted;
    while let Some(rate) = search.next().filter(|_| !is_interrupted) {
        let plan = Plan { rate: Some(Rate::constant(rate)), ..plan.clone() };
        let results = run::run(&plan, &mut || Ok(()), &mut |_| {})?.results;
        is_interrupted = results.interrupted;
        let verdict = goal.judge(&results, rate);
        show(settings, &step(&results, rate, goal, &verdict))?;
        kept.push(results);
        save(settings, kept, is_file)?;
        if is_interrupted {
            break;
        }
        disturbed += u32::from(verdict == Verdict::Disturbed);
        // What says nothing about the server is asked again, but not for ever.
        if verdict != Verdict::Disturbed || disturbed > DISTURBED_MAX {
            search.learn(verdict == Verdict::Holds);
        }
    }
    let found = match search.found() {
        Some(rate) => format!("{percentile} stays below the bound up to {rate:.0} requests/s.\n"),
        None if is_interrupted => "Interrupted before a rate was found.\n".into(),
        None => "At no rate that was tried it stays below the bound.\n".into(),
    };
    show(settings, &found)
}

/// A step of a search, as a line.
fn step(results: &Results, rate: f64, goal: Goal, verdict: &Verdict) -> String {
    let latency = &results.tally.latency_us;
    let time = |us: u64| amounts::time_us(us as f64);
    format!(
        "{rate:>10.0} {:>10.0} {:>10} {:>10} {:>10}  {}\n",
        results.replies_per_second(),
        time(latency.value_at_quantile(0.5)),
        time(goal.reached(results).as_micros() as u64),
        time(latency.max()),
        match verdict {
            Verdict::Holds => "holds",
            Verdict::Fails(why) => why,
            Verdict::Interrupted => "interrupted",
            Verdict::Disturbed => "the generator was too slow, or disturbed",
        },
    )
}

/// A run without a single reply has failed.
fn answered(results: &Results) -> Result<(), String> {
    let failures = results.tally.failures();
    if results.tally.replies == 0 && failures > 0 {
        return Err(format!("no reply to any of {failures} requests"));
    }
    Ok(())
}

/// What people read gives way to what programs read.
fn show(settings: &Settings, text: &str) -> Result<(), String> {
    if settings.files().any(is_output) {
        tell(text);
        return Ok(());
    }
    print(text)
}

/// Nobody may be reading any more; that ends it.
fn print(text: &str) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| error.to_string())
}
