use serde_json::{Value, json};

use super::figures::TopFigures;
use super::growth::{Growth, TopSnapshot};
use super::view::{LineStyle, PAGES, TopOrder, TopPage, TopView, quiet};
use super::{amounts, plus};

fn counts(filled: &[(usize, u64)]) -> Value {
    let mut counts = [0; 22];
    filled.iter().for_each(|(at, count)| counts[*at] = *count);
    json!({ "counts": counts, "sum": 0 })
}

/// A tree after so many seconds and requests.
fn tree(seconds: u64, requests: u64) -> Value {
    let now = 1_800_000_000_000 + seconds * 1000;
    json!({
        "angie": { "version": "0.1.0", "address": "127.0.0.1" },
        "weir": { "version": "0.1.0", "generation": 3,
            "started_at": 1_799_996_400_000_u64, "now_at": now, "state": "serving" },
        "connections": { "active": 12, "idle": 7 },
        "http": {
            "requests": { "total": requests, "current": 2 },
            "server_zones": { "site": {
                "requests": { "total": requests, "processing": 1, "discarded": 0 },
                "responses": { "200": requests / 2, "404": requests / 4, "502": requests / 4 },
                "data": { "received": requests * 100, "sent": requests * 5000 },
                "time": counts(&[(6, requests)]),
            } },
            "caches": { "edge": {
                "size": 4_000_000, "max_size": 8_000_000, "cold": false,
                "entries": 500, "max_entries": 8000, "purge_rules": 2,
                "hit": { "responses": requests / 2, "bytes": requests * 1000 },
                "stale": { "responses": requests / 4, "bytes": 0 },
                "miss": { "responses": requests / 4, "bytes": 0,
                    "responses_written": requests / 8, "bytes_written": 0 },
            } },
            "upstreams": { "app": {
                "queue": { "length": 5, "max_length": 5 },
                "peers": {
                    "10.0.0.1:80": { "state": "up", "selected": { "current": 2, "total": requests },
                        "limit": 4, "health": { "fails": 0 },
                        "connections": { "opened": requests / 10, "reused": requests * 9 / 10 } },
                    "10.0.0.2:80": { "state": "unhealthy", "since_at": now - 180_000,
                        "why": "connect() failed", "selected": { "current": 0, "total": 0 } },
                },
            } },
        },
        "tls": { "certificates": [
            { "file": "a.pem", "names": ["a.example"], "not_after_at": now + 6 * 86_400_000 },
            { "file": "b.pem", "names": [], "not_after_at": now + 60 * 86_400_000 },
        ] },
        "workers": [{ "id": 0, "pid": 9, "busy": seconds as f64 * 0.25 }],
        "slow": [{ "at": now - 5000, "request": "GET /x HTTP/1.1", "status": 200, "time": 1.25,
            "upstream": "10.0.0.1:80", "phases": { "connect": 0.1, "queue": 0.9 } }],
    })
}

fn figures(then: Value, now: Value) -> TopFigures {
    TopFigures::new(&TopSnapshot::of(now), Some(&TopSnapshot::of(then)))
}

#[test]
fn rates_are_differences_over_the_servers_own_time() {
    let figures = figures(tree(10, 1000), tree(12, 1400));
    assert_eq!(figures.rate, Some(200.0));
    assert_eq!(figures.error_share, Some(0.25));
    assert_eq!(figures.busy, Some(0.25));
    assert_eq!(figures.queued, Some(5.0));
    let site = &figures.sites[0];
    assert_eq!((site.rate, site.sent), (Some(200.0), Some(1_000_000.0)));
    assert_eq!(site.classes, [0.0, 0.0, 200.0, 0.0, 100.0, 100.0]);
    let server = &figures.groups[0].servers[0];
    assert_eq!((server.rate, server.reuse), (Some(200.0), Some(0.9)));
}

#[test]
fn quantiles_lie_within_their_bucket() {
    let figures = figures(tree(10, 1000), tree(12, 1400));
    // The bucket from 5 to 10 ms, filled evenly.
    assert_eq!(figures.p50, Some(0.0075));
    let then = TopSnapshot::of(json!({ "weir": { "now_at": 1000 } }));
    let filled = counts(&[(0, 90), (20, 9), (21, 1)]);
    let now = TopSnapshot::of(json!({ "weir": { "now_at": 2000 }, "time": filled }));
    assert_eq!(Growth::new(&now, None).times(&["time"]).quantile(0.5), None);
    let times = Growth::new(&now, Some(&then)).times(&["time"]);
    assert!(times.quantile(0.5).is_some_and(|p50| p50 <= 0.0001));
    assert_eq!(times.quantile(1.0), Some(60.0));
}

#[test]
fn a_counter_that_became_smaller_began_anew() {
    let figures = figures(tree(10, 1000), tree(11, 40));
    assert_eq!(figures.rate, Some(40.0));
    assert_eq!(figures.sites[0].classes, [0.0, 0.0, 20.0, 0.0, 10.0, 10.0]);
    assert_eq!(figures.p50, Some(0.0075));
    // A clock that went back gives no rates.
    assert_eq!(self::figures(tree(10, 1), tree(9, 2)).rate, None);
}

#[test]
fn the_first_snapshot_has_no_rates() {
    let figures = TopFigures::new(&TopSnapshot::of(tree(10, 1000)), None);
    assert_eq!((figures.rate, figures.p50, figures.busy), (None, None, None));
    assert_eq!(figures.connections, Some(12.0));
    assert_eq!(figures.sites[0].classes, [0.0; 6]);
}

#[test]
fn missing_and_odd_fields_are_unknown() {
    for odd in [
        json!({}),
        json!([]),
        json!(null),
        json!({ "http": 1, "weir": [], "workers": {}, "slow": 5, "tls": { "certificates": "x" } }),
        json!({ "http": { "server_zones": { "a": null, "b": { "requests": "x", "time": 3 } },
            "upstreams": { "u": { "peers": [1], "queue": 1 }, "v": { "peers": { "p": [] } } } },
            "workers": [1, {}], "slow": [1, {}], "tls": { "certificates": [1, {}] } }),
    ] {
        let figures = figures(odd.clone(), odd);
        assert_eq!(figures.rate, None);
        let mut view = TopView::default();
        view.note(&figures);
        for page in PAGES {
            view.page = page;
            assert!(!view.lines(&figures, quiet(String::new()), 24).is_empty());
        }
        assert!(TopView::plain(&figures).contains("requests -/s"));
    }
}

#[test]
fn warnings_say_what_is_wrong() {
    let figures = figures(tree(10, 1000), tree(12, 1400));
    let expected = [
        "25% of replies are 5xx in site site",
        "server 10.0.0.2:80 of app unhealthy for 3 min: connect() failed",
        "queue of app is full: 5 requests wait",
        "certificate of a.example expires in 6 days",
    ];
    assert_eq!(figures.warnings, expected);
}

#[test]
fn the_plain_text_has_everything() {
    let text = TopView::plain(&figures(tree(10, 1000), tree(12, 1400)));
    for part in [
        "Weir  0.1.0  127.0.0.1  generation 3  up 60 min\n",
        "requests 200/s   in progress 2   5xx 25%   p50 7.50ms   p99 9.95ms   connections 12 ",
        "! certificate of a.example expires in 6 days\n",
        "\nSITE ",
        "\nsite                             200     1     50%     0%    25%     25%   20.0kB ",
        "\napp 10.0.0.2:80              unhealthy ",
        "app 10.0.0.1:80              up              200       2/4",
        "\nedge                             200    75%    200kB       25     4.0MB/8.0MB ",
        "       500/8000       2\n",
        "\n5 s         1.25s    200  10.0.0.1:80           GET /x HTTP/1.1 (queue 900ms, ",
    ] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    assert!(!text.contains('\x1b'), "{text}");
    let empty = TopView::plain(&figures(json!({}), json!({})));
    assert!(empty.contains("no sites: status_zone NAME;"), "{empty}");
}

#[test]
fn a_screen_has_its_rows_and_columns() {
    let figures = figures(tree(10, 1000), tree(12, 1400));
    for (columns, rows) in [(80, 24), (20, 5), (1, 1), (200, 60)] {
        let mut view = TopView::default();
        view.note(&figures);
        view.skipped = usize::MAX;
        for page in PAGES {
            view.page = page;
            let lines = view.lines(&figures, quiet("the end".into()), rows);
            assert!(lines.len() <= rows, "{columns}x{rows}");
            assert_eq!(lines.last().unwrap().text, "the end");
            let widest =
                lines.iter().map(|line| line.written(columns, false).chars().count()).max();
            assert!(widest <= Some(columns));
        }
    }
}

#[test]
fn rows_have_an_order_and_servers_in_trouble_come_first() {
    let tree = |requests: u64| {
        let mut tree = tree(10 + requests, 1000 * requests);
        for (name, rate) in [("slow", 1), ("fast", 9)] {
            tree["http"]["server_zones"][name] =
                json!({ "requests": { "total": requests * rate } });
        }
        tree
    };
    let figures = figures(tree(1), tree(2));
    let mut view = TopView::default();
    view.page = TopPage::Sites;
    let mut names = |order, reversed| {
        (view.order, view.reversed) = (order, reversed);
        let lines = view.lines(&figures, quiet(String::new()), 60);
        let rows = lines.into_iter().skip_while(|line| !line.text.starts_with("SITE")).skip(1);
        let name = |text: &str| text.split(' ').next().unwrap().to_owned();
        rows.map(|line| name(&line.text)).filter(|name| !name.is_empty()).collect::<Vec<_>>()
    };
    assert_eq!(names(TopOrder::Rate, false), ["site", "fast", "slow"]);
    assert_eq!(names(TopOrder::Rate, true), ["slow", "fast", "site"]);
    assert_eq!(names(TopOrder::Name, false), ["fast", "site", "slow"]);
    view.page = TopPage::Upstreams;
    let lines = view.lines(&figures, quiet(String::new()), 60);
    let at = |name: &str| lines.iter().position(|line| line.text.starts_with(name)).unwrap();
    assert!(at("app 10.0.0.2:80") < at("app 10.0.0.1:80"));
    assert_eq!(lines[at("app 10.0.0.2:80")].style, LineStyle::Bad);
}

#[test]
fn text_of_others_gives_the_terminal_no_orders() {
    let mut evil = tree(12, 1400);
    evil["slow"][0]["request"] = "GET /\x1b[2J\u{9b}31m\r\n".into();
    let text = TopView::plain(&figures(tree(10, 1000), evil));
    assert!(text.contains("GET /?[2J?31m?? ("), "{text}");
    assert!(!text.contains('\x1b'));
}

#[test]
fn the_tree_of_nginx_plus_is_read() {
    let parts = |requests: u64| {
        plus::tree(vec![
            ("nginx", json!({ "version": "1.27.4", "address": "10.0.0.9", "generation": 2 })),
            ("connections", json!({ "active": 3, "idle": 1 })),
            ("http/requests", json!({ "total": requests, "current": 1 })),
            (
                "http/server_zones",
                json!({ "site": { "requests": requests, "processing": 4,
                "responses": { "2xx": requests, "5xx": 0, "codes": { "200": requests } },
                "received": 1, "sent": 2 } }),
            ),
            (
                "http/upstreams",
                json!({ "app": { "keepalive": 0, "peers": [
                { "server": "10.0.0.1:80", "state": "unavail", "active": 2, "requests": requests,
                    "fails": 7, "responses": { "2xx": requests } },
            ], "queue": { "size": 1, "max_size": 10, "overflows": 0 } } }),
            ),
        ])
    };
    let (then, mut now) = (parts(10), parts(30));
    // Plus tells no time.
    now["weir"] = json!({ "now_at": u64::from(u32::MAX) * 1_000_000 });
    let figures = figures(then, now);
    assert!(figures.rate.is_some_and(|rate| rate > 0.0));
    assert_eq!(figures.sites[0].in_progress, Some(4.0));
    assert_eq!(figures.sites[0].classes[2], 20.0);
    assert_eq!(figures.groups[0].queue, Some((1.0, 10.0)));
    assert!(figures.groups[0].servers[0].is_bad());
    assert_eq!(figures.groups[0].servers[0].fails, 7.0);
    assert_eq!(figures.warnings[0], "no server of app can take requests");
}

#[test]
fn amounts_are_short() {
    let counts = [0.0, 0.5, 9.0, 1234.0, 9999.0, 10_000.0, 123_456.0, 1e6, 2.5e9, 1e15];
    let counts = counts.map(|n| amounts::count(Some(n)));
    let expected = ["0", "0.5", "9", "1234", "9999", "10.0k", "123k", "1.0M", "2.5G", "1000T"];
    assert_eq!(counts, expected);
    let times = [0.00001, 0.0012, 0.0123, 0.5, 1.25, 60.0].map(|n| amounts::time(Some(n)));
    assert_eq!(times, ["10.0us", "1.20ms", "12.3ms", "500ms", "1.25s", "60s+"]);
    assert_eq!(amounts::bytes(Some(999.0)), "999B");
    assert_eq!(amounts::bytes(Some(12_345.0)), "12.3kB");
    assert_eq!([amounts::bytes(None), amounts::count(None)], ["-", "-"]);
    assert_eq!(amounts::percent(Some(0.123)), "12%");
    assert_eq!(amounts::percent(Some(0.012)), "1.2%");
    assert_eq!(amounts::span(180_000.0), "3 min");
}
