//! What crosses between the main state and those of the threads, and the report.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use super::*;

/// What a thread is asked for while it does not run.
enum Ask {
    Get(String, Sender<Result<LuaValue, ScriptError>>),
    Set(String, LuaValue, Sender<Result<(), ScriptError>>),
    Addr(Sender<Option<SocketAddr>>),
    SetAddr(SocketAddr),
    Init(Sender<Result<(), ScriptError>>),
    Request,
}

/// The main side's end of a thread.
#[derive(Clone)]
struct Far(Sender<Ask>);

impl Far {
    fn start(source: &'static str) -> (Self, thread::JoinHandle<()>) {
        let (ask, asked) = channel();
        (Self(ask), thread::spawn(move || serve(&load(source), asked)))
    }

    fn ask<T>(&self, what: impl FnOnce(Sender<T>) -> Ask) -> T {
        let (tell, told) = channel();
        self.0.send(what(tell)).unwrap();
        told.recv().unwrap()
    }
}

fn serve(script: &Script, asked: Receiver<Ask>) {
    for ask in asked {
        match ask {
            Ask::Get(name, tell) => tell.send(script.get(&name)).unwrap(),
            Ask::Set(name, value, tell) => tell.send(script.set(&name, &value)).unwrap(),
            Ask::Addr(tell) => tell.send(script.addr()).unwrap(),
            Ask::SetAddr(addr) => script.set_addr(addr),
            Ask::Init(tell) => tell.send(script.init(&arguments())).unwrap(),
            Ask::Request => script.request(&mut Vec::new()).unwrap(),
        }
    }
}

impl ScriptThread for Far {
    fn addr(&self) -> Option<SocketAddr> {
        self.ask(Ask::Addr)
    }

    fn set_addr(&self, addr: SocketAddr) {
        self.0.send(Ask::SetAddr(addr)).unwrap();
    }

    fn get(&self, name: &str) -> Result<LuaValue, ScriptError> {
        self.ask(|tell| Ask::Get(name.into(), tell))
    }

    fn set(&self, name: &str, value: LuaValue) -> Result<(), ScriptError> {
        self.ask(|tell| Ask::Set(name.into(), value, tell))
    }
}

/// A thread that is never asked.
pub(super) fn nobody() -> impl ScriptThread + 'static {
    Far(channel().0)
}

#[test]
fn the_main_state_shapes_threads_and_asks_them_at_the_end() {
    const SOURCE: &str = "
        local threads = {}
        function setup(thread)
            threads[#threads + 1] = thread
            thread:set('id', #threads)
            thread:set('list', { 'a', { deep = true } })
            thread.addr = wrk.lookup('127.0.0.1', 80 + #threads)[1]
            thread:stop()
        end
        function init()
            made = 0
            seen = list[1] .. tostring(list[2].deep) .. tostring(wrk.thread.addr)
        end
        function request() made = made + 1 return wrk.request() end
        function done()
            report = ''
            for _, thread in ipairs(threads) do
                report = report .. thread:get('id') .. thread:get('made') .. thread:get('seen')
                    .. tostring(thread:get('none')) .. tostring(thread.addr) .. ' '
            end
        end";
    let main = load(SOURCE);
    let mut joins = Vec::new();
    for requests in 1..=2 {
        let (far, join) = Far::start(SOURCE);
        main.setup(far.clone()).unwrap();
        far.ask(Ask::Init).unwrap();
        (0..requests).for_each(|_| far.0.send(Ask::Request).unwrap());
        joins.push(join);
    }
    let none = Histogram::new(3).unwrap();
    main.done(&ScriptSummary::default(), &none, &none).unwrap();
    assert_eq!(
        text(&main, "report"),
        "11atrue127.0.0.1:81nil127.0.0.1:81 22atrue127.0.0.1:82nil127.0.0.1:82 "
    );
    drop(main);
    joins.into_iter().for_each(|join| join.join().unwrap());
}

#[test]
fn values_cross_as_they_are() {
    let script = load("");
    let table = LuaValue::Table(vec![
        (LuaValue::Number(1.0), LuaValue::String(b"\0\xff".to_vec())),
        (LuaValue::Number(2.0), LuaValue::Table(Vec::new())),
    ]);
    for value in [LuaValue::Nil, LuaValue::Boolean(false), LuaValue::Number(0.5), table] {
        script.set("x", &value).unwrap();
        assert_eq!(script.get("x"), Ok(value));
    }
}

#[test]
fn a_value_that_cannot_be_copied_is_an_error() {
    let script = load(
        "endless = {} endless.again = endless
        deep = {} for _ = 1, 99 do deep = { deep } end
        deeper = { deep }
        wide = { 1 } for _ = 1, 20 do wide = { wide, wide } end
        mixed = { f = print }
        keyed = { [print] = 1 }
        routine = coroutine.create(print)
        handle = io.stdout",
    );
    assert!(script.get("deep").is_ok());
    let table = [
        (
            "endless",
            "a table nested 100 levels deep, or one that contains itself, cannot be passed",
        ),
        ("deeper", "a table nested 100 levels deep, or one that contains itself, cannot be passed"),
        ("wide", "a table with more than 1048576 values cannot be passed"),
        ("mixed", "a function cannot be passed"),
        ("keyed", "a function cannot be passed"),
        ("routine", "a coroutine cannot be passed"),
        ("handle", "an object cannot be passed"),
    ];
    for (name, expected) in table {
        let wrong = message(script.get(name));
        assert!(wrong.starts_with(&format!("test.lua: {expected}")), "{name}: {wrong}");
    }
    assert!(script.set("x", &LuaValue::Table(vec![(LuaValue::Nil, LuaValue::Nil)])).is_err());
}

#[test]
fn setup_and_done_are_optional() {
    let script = load("");
    script.setup(nobody()).unwrap();
    assert!(!script.has_done());
    let none = Histogram::new(3).unwrap();
    script.done(&ScriptSummary::default(), &none, &none).unwrap();
}

#[test]
fn done_sees_the_summary() {
    let script = load(
        "function done(s)
            local e = s.errors
            seen = table.concat({ s.duration, s.requests, s.bytes, e.connect, e.read, e.write,
                e.status, e.timeout }, ' ')
        end",
    );
    let summary = ScriptSummary {
        duration: Duration::from_micros(2_000_001),
        requests: 2,
        bytes: 10_000_000_000,
        connect: 3,
        read: 4,
        write: 5,
        status: 6,
        timeout: 7,
    };
    let none = Histogram::new(3).unwrap();
    script.done(&summary, &none, &none).unwrap();
    assert_eq!(text(&script, "seen"), "2000001 2 10000000000 3 4 5 6 7");
}

#[test]
fn done_sees_statistics() {
    let script = load(
        "function done(_, latency, requests)
            first = table.concat({ latency.min, latency.max, latency.mean, #latency,
                latency:percentile(50), latency:percentile(75), latency:percentile(100.0) }, ' ')
            stdev = latency.stdev
            local value, count = latency(2)
            second = table.concat({ value, count, (latency(9)), (latency(0)) }, ' ')
            second = second .. tostring(latency.median)
            none = table.concat({ requests.min, requests.max, requests.mean, requests.stdev,
                #requests, requests:percentile(99), (requests(1)) }, ' ')
        end",
    );
    let mut latency = Histogram::new(3).unwrap();
    for value in [10, 20, 20, 40] {
        latency.record(value).unwrap();
    }
    script.done(&ScriptSummary::default(), &latency, &Histogram::new(3).unwrap()).unwrap();
    assert_eq!(text(&script, "first"), "10 40 22.5 3 20 20 40");
    assert_eq!(text(&script, "second"), "20 2 0 0nil");
    assert_eq!(text(&script, "none"), "0 0 0 0 0 0 0");
    let Ok(LuaValue::Number(stdev)) = script.get("stdev") else { panic!("no stdev") };
    assert!((stdev - 12.583_057).abs() < 1e-5, "{stdev}");
}

#[test]
fn statistics_want_numbers() {
    for line in ["latency:percentile('x')", "latency()"] {
        let script = load(&format!("function done(_, latency)\n{line}\nend"));
        let none = Histogram::new(3).unwrap();
        let wrong = message(script.done(&ScriptSummary::default(), &none, &none));
        assert!(wrong.starts_with("test.lua:2: "), "{line}: {wrong}");
    }
}
