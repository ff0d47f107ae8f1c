//! wrk's scripts, one of each kind.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::generator::{self, Report, load};
use super::peer::{OK, Peer};
use testing::{Folder, eventually};

/// Runs a script; its last option may be followed by words for the script.
fn run(text: &str, options: &str, words: &str, peer: &Peer) -> Report {
    let folder = Folder::new();
    folder.write("script.lua", text);
    let script = folder.join("script.lua");
    let url = format!("http://{}/", peer.address);
    load(&format!("{options} -s {} {url} {words}", script.display()))
}

fn said<'r>(report: &'r Report, name: &str) -> &'r str {
    let begin = format!("{name}=");
    let line = report.out.lines().find_map(|line| line.strip_prefix(&begin));
    line.unwrap_or_else(|| panic!("no {name} in {report:#?}"))
}

#[test]
fn threads_are_set_up_and_asked_at_the_end() {
    let text = r#"
        local threads = {}
        function setup(thread)
            table.insert(threads, thread)
            thread:set("id", #threads)
        end
        function init(args) asked, heard, ok = 0, 0, 0; word = args[1]; path = args[0] end
        function request()
            asked = asked + 1
            return wrk.format("PUT", "/" .. id, { ["X-Word"] = word }, "body of " .. id)
        end
        function response(status, headers, body)
            heard = heard + 1
            if status == 200 and headers["Content-Length"] == "2" and body == "ok" then
                ok = ok + 1
            end
        end
        function done(summary, latency, requests)
            local sums = { heard = 0, ok = 0 }
            for _, thread in ipairs(threads) do
                for name in pairs(sums) do sums[name] = sums[name] + thread:get(name) end
            end
            print("threads=" .. #threads)
            print("heard=" .. sums.heard)
            print("ok=" .. sums.ok)
            print("word=" .. threads[2]:get("word"))
            print("path=" .. threads[1]:get("path"))
            print("requests=" .. summary.requests)
            print("errors=" .. summary.errors.read + summary.errors.status)
            print("latencies=" .. #latency)
            print("ordered=" .. tostring(latency.min <= latency:percentile(50)
                and latency:percentile(50) <= latency.max))
        end
    "#;
    let peer = Peer::answering(OK);
    let report = run(text, "-n 1000 -c 7 -t 3", "hello", &peer);
    report.assert_clean(1000);
    let seen = peer.seen();
    let lines: Vec<_> = seen.lines.iter().map(|(line, count)| (line.as_str(), *count)).collect();
    assert_eq!(
        lines,
        [("PUT /1 HTTP/1.1", 334), ("PUT /2 HTTP/1.1", 333), ("PUT /3 HTTP/1.1", 333)]
    );
    assert!(seen.last.contains("\r\nX-Word: hello\r\n") && seen.last.contains("\r\n\r\nbody of "));
    for (name, value) in [
        ("threads", "3"),
        ("heard", "1000"),
        ("ok", "1000"),
        ("word", "hello"),
        ("requests", "1000"),
    ] {
        assert_eq!(said(&report, name), value, "{report:#?}");
    }
    assert_eq!((said(&report, "errors"), said(&report, "ordered")), ("0", "true"));
    assert_eq!(said(&report, "path"), format!("http://{}/", peer.address));
    assert!(said(&report, "latencies").parse::<u64>().unwrap() > 0);
}

#[test]
fn a_thread_stops_when_it_has_enough() {
    let peer = Peer::answering(OK);
    let text = "local n = 0\n\
                function response() n = n + 1; if n == 50 then wrk.thread:stop() end end";
    let report = run(text, "-d 60s -c 1 -t 1", "", &peer);
    report.assert_clean(50);
    let text = "local n = 0\n\
                function request() n = n + 1; if n > 50 then wrk.thread:stop() end\n\
                return wrk.request() end";
    let report = run(text, "-d 60s -c 1 -t 1", "", &peer);
    assert!((48..=51).contains(&report.requests()), "{report:#?}");
}

#[test]
fn a_delay_comes_before_each_request() {
    let peer = Peer::answering(OK);
    let text = "function delay() return 50 end\n\
                function done(summary, latency)\n\
                print('waited=' .. summary.duration - latency.mean * summary.requests) end";
    let report = run(text, "-n 10 -c 1 -t 1", "", &peer);
    report.assert_clean(10);
    // What is not latency is delay: had the latency included it, nothing would be left.
    let waited_us: f64 = said(&report, "waited").parse().unwrap();
    assert!(waited_us >= 490_000.0, "{report:#?}");
}

#[test]
fn a_delay_does_not_make_the_generator_late() {
    let peer = Peer::answering(OK);
    let text = "function delay() return 2000 end\n\
                function done(_, latency) print('median=' .. latency:percentile(50)) end";
    let report = run(text, "--timeout 60s --rate 20 -d 500ms -c 10 -t 1", "", &peer);
    report.assert_clean(10);
    let late = report.err.lines().find(|line| line.contains("the generator's own lateness"));
    let (_, late) = late.unwrap().split_once("p50 ").unwrap();
    let late_us = microseconds(late.split(',').next().unwrap());
    let median_us: f64 = said(&report, "median").parse().unwrap();
    // However slow the machine is, the delay is part of a latency and of no lateness. A histogram
    // rounds by 0.1 %.
    assert!(late_us + 2e6 <= median_us * 1.002, "{report:#?}");
}

/// A time as the report writes it: `1.50ms`.
fn microseconds(text: &str) -> f64 {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let scale = match &text[number.len()..] {
        "us" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        unit => panic!("{unit}"),
    };
    scale * number.parse::<f64>().unwrap()
}

#[test]
fn a_script_may_send_several_requests_at_once() {
    let peer = Peer::answering(OK);
    let text = "function init() local r = {}\n\
                for n = 1, 3 do r[n] = wrk.format(nil, '/' .. n) end\n\
                all = table.concat(r) end\n\
                function request() return all end";
    let report = run(text, "-d 200ms -c 2 -t 1", "", &peer);
    report.assert_clean(report.requests());
    assert!(report.requests() > 3, "{report:#?}");
    let counts: Vec<u64> = peer.seen().lines.values().copied().collect();
    assert!(counts.len() == 3 && counts.iter().all(|count| count.abs_diff(counts[0]) <= 2));
    for options in ["-n 10", "--rate 10 -d 1s"] {
        let report = run(text, options, "", &peer);
        assert_eq!(report.code, Some(1), "{report:#?}");
        assert!(report.err.contains("with a script that pipelines"), "{report:#?}");
    }
}

#[test]
fn script_errors_name_their_line() {
    let peer = Peer::answering(OK);
    for (text, line) in [
        ("function request(\n", "script.lua:"),
        ("\nerror('so not')", "script.lua:2: so not"),
        ("function init()\nerror('init') end", "script.lua:2: init"),
        ("function request() return 5 + nil end", "script.lua:1: "),
        ("function response()\n\n x.y = 1 end", "script.lua:3: "),
        ("function done() error('at the end') end", "script.lua:1: at the end"),
    ] {
        let report = run(text, "-n 100 -c 2 -t 2", "", &peer);
        assert_eq!(report.code, Some(1), "{text}: {report:#?}");
        assert!(report.err.contains(line), "{text}: {report:#?}");
    }
}

#[test]
fn a_script_that_fails_at_the_end_costs_no_results() {
    let peer = Peer::answering(OK);
    let folder = Folder::new();
    let json = folder.join("run.json").display().to_string();
    let text = "function done() error('at the end') end";
    let report = run(text, &format!("-n 100 --json {json}"), "", &peer);
    assert_eq!(report.code, Some(1), "{report:#?}");
    assert!(std::fs::read_to_string(json).unwrap().contains("\"replies\": 100"));
}

#[test]
fn a_script_that_hangs_before_or_after_the_run_can_be_ended() {
    let peer = Peer::answering(OK);
    let folder = Folder::new();
    let script = folder.join("script.lua").display().to_string();
    let hang = "print('hangs') io.stdout:flush() while true do end";
    for text in [
        hang.to_owned(),
        format!("function setup() {hang} end"),
        format!("function init() {hang} end"),
        format!("function done() {hang} end"),
    ] {
        folder.write("script.lua", &text);
        let words = format!("-n 20 -s {script} http://{}/", peer.address);
        // A job in the background inherits that SIGINT is ignored.
        for start in [generator::start, generator::start_in_background] {
            let mut running = start(&words);
            running.await_line("hangs");
            let report = running.interrupt();
            assert_eq!(report.code, None, "{text}: {report:#?}");
        }
    }
}

#[test]
fn an_interrupted_script_can_still_read_its_threads() {
    let has_ended = Arc::new(AtomicBool::new(false));
    let (asked, ended) = (AtomicBool::new(false), has_ended.clone());
    let peer = Peer::start(move |mut client| {
        if client.request().is_some() && !asked.swap(true, Ordering::Relaxed) {
            client.write(OK)?;
            client.hold()?;
            ended.store(true, Ordering::Relaxed);
        }
        client.hold()
    });
    let text = "local all = {}\n\
                function setup(thread) table.insert(all, thread) end\n\
                function init() n = 0 end\n\
                function response() n = n + 1 end\n\
                function done() local sum = 0\n\
                for _, thread in ipairs(all) do sum = sum + thread:get('n') end\n\
                print('sum=' .. sum) end";
    let folder = Folder::new();
    folder.write("script.lua", text);
    let script = folder.join("script.lua");
    let url = format!("http://{}/", peer.address);
    let words = format!("-n 2 -c 2 -t 2 --timeout 60s -s {} {url}", script.display());
    let running = generator::start(&words);
    // One thread is done and its connection closed, the other still waits.
    peer.await_requests(2);
    eventually("an end", || has_ended.load(Ordering::Relaxed).then_some(()));
    let report = running.interrupt();
    assert_eq!((said(&report, "sum"), report.requests()), ("1", 1), "{report:#?}");
}

#[test]
fn a_second_interrupt_ends_a_hanging_script() {
    let peer = Peer::answering(OK);
    let folder = Folder::new();
    let text = "function request()\n\
                if n then print('hangs') io.stdout:flush() while true do end end\n\
                n = 1 return wrk.request() end";
    folder.write("script.lua", text);
    let script = folder.join("script.lua");
    let words = format!("-d 60s -c 1 -t 1 -s {} http://{}/", script.display(), peer.address);
    let mut running = generator::start(&words);
    running.await_line("hangs");
    testing::kill(running.pid() as i32, "INT");
    // A signal that still waits to be seen would be one with the next.
    let status = format!("/proc/{}/status", running.pid());
    eventually("the signal seen", || {
        let text = std::fs::read_to_string(&status).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("ShdPnd:")).unwrap();
        (u64::from_str_radix(line.trim(), 16).unwrap() == 0).then_some(())
    });
    let report = running.interrupt();
    assert_eq!(report.code, Some(1), "{report:#?}");
    assert!(report.err.contains("interrupted again"), "{report:#?}");
}
