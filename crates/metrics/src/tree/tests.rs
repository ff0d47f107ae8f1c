//! A tree as JSON, and parts of it.

use super::{Items, JsonPage, PathPart, StatusTree, Visitor, find, list, object, only};

fn zone(count: u64) -> std::sync::Arc<dyn super::TreeSource> {
    std::sync::Arc::new(move |out: &mut dyn Visitor| {
        out.number(b"count", count);
        object(out, b"data", |out| {
            out.number(b"sent", count * 10);
            out.text(b"why", b"a \"b\"\n\xff");
        });
        list(out, b"times", |out| (0..2).for_each(|time| out.number(b"", time)));
    })
}

fn tree() -> StatusTree {
    let mut tree = StatusTree::default();
    tree.fields(&[b"weir"], |out: &mut dyn Visitor| out.flag(b"up", true));
    tree.add(
        &[b"http", b"zones"],
        Items::Named(vec![(b"a"[..].into(), zone(1)), (b"b"[..].into(), zone(2))]),
    );
    tree.fields(&[b"http", b"groups", b"app"], |out: &mut dyn Visitor| out.float(b"load", 0.5));
    tree.add(&[b"http", b"groups", b"app", b"peers"], Items::List(vec![zone(3)]));
    tree.add(&[b"http", b"groups", b"none", b"peers"], Items::List(Vec::new()));
    tree.add(&[b"slabs"], Items::Named(Vec::new()));
    tree
}

fn json(tree: StatusTree) -> String {
    String::from_utf8(JsonPage::new(tree).text()).unwrap()
}

const ZONE_1: &str = r#"{"count":1,"data":{"sent":10,"why":"a \"b\"\n"#;

#[test]
fn a_tree_is_one_object() {
    let text = json(tree());
    assert!(text.starts_with(r#"{"weir":{"up":true},"http":{"zones":{"a":{"count":1,"#), "{text}");
    assert!(text.contains(ZONE_1), "{text}");
    assert!(text.contains("\u{fffd}"), "{text}");
    let end = r#""groups":{"app":{"load":0.5,"peers":[{"count":3,"data":{"sent":30,"#;
    assert!(text.contains(end), "{text}");
    assert!(text.ends_with(r#""none":{"peers":[]}}},"slabs":{}}"#), "{text}");
}

#[test]
fn a_page_comes_in_pieces() {
    let mut page = JsonPage::new(tree());
    let (mut whole, mut most) = (Vec::new(), 0);
    loop {
        let mut piece = Vec::new();
        let goes_on = page.write_piece(&mut piece);
        most = most.max(piece.len());
        whole.extend_from_slice(&piece);
        if !goes_on {
            break;
        }
    }
    assert_eq!(whole, json(tree()).into_bytes());
    assert!(most < whole.len() / 3, "{most} of {}", whole.len());
}

fn at(path: &str) -> Option<String> {
    let path: Vec<&[u8]> =
        path.split('/').filter(|part| !part.is_empty()).map(str::as_bytes).collect();
    find(tree(), &path).map(|part| match part {
        PathPart::Tree(tree) => json(tree),
        PathPart::Value(value) => String::from_utf8(value).unwrap(),
    })
}

#[test]
fn any_part_has_a_path() {
    assert_eq!(at("/weir").as_deref(), Some(r#"{"up":true}"#));
    assert_eq!(at("/http/zones/b/count").as_deref(), Some("2"));
    assert!(at("/http/zones/b/data").unwrap().starts_with(r#"{"sent":20,"why""#));
    assert_eq!(at("/http/zones/b/data/sent").as_deref(), Some("20"));
    assert!(at("/http/groups/app").unwrap().starts_with(r#"{"load":0.5,"peers":[{"count":3"#));
    assert!(at("/http/groups/app/peers").unwrap().starts_with(r#"[{"count":3"#));
    assert_eq!(at("/http/groups/none/peers").as_deref(), Some("[]"));
    assert!(at("/http/groups/app/peers/0").unwrap().starts_with(r#"{"count":3"#));
    assert_eq!(at("/http/groups/app/load").as_deref(), Some("0.5"));
    assert_eq!(at("/slabs").as_deref(), Some("{}"));
    assert!(at("/http").unwrap().starts_with(r#"{"zones":{"a""#));
}

#[test]
fn what_is_not_there_has_none() {
    for path in [
        "/x",
        "/weir/x",
        "/weir/up/x",
        "/http/zones/c",
        "/http/zones/a/count/x",
        "/http/zones/a/x",
        "/http/groups/app/peers/1",
        "/http/groups/app/peers/x",
        "/slabs/x",
    ] {
        assert_eq!(at(path), None, "{path}");
    }
}

#[test]
fn only_wanted_fields_are_shown() {
    let fields = |names: &[&str]| names.iter().map(|name| name.as_bytes().into()).collect();
    let part = |path: &[&[u8]]| match find(tree(), path) {
        Some(PathPart::Tree(tree)) => tree,
        _ => panic!("an object"),
    };
    let zones = only(part(&[b"http", b"zones"]), fields(&["count"]), 1);
    assert_eq!(json(zones), r#"{"a":{"count":1},"b":{"count":2}}"#);
    let zone = only(part(&[b"http", b"zones", b"a"]), fields(&["count", "x"]), 0);
    assert_eq!(json(zone), r#"{"count":1}"#);
    let groups = only(part(&[b"http", b"groups"]), fields(&["load"]), 1);
    assert_eq!(json(groups), r#"{"app":{"load":0.5}}"#);
    let peers = only(part(&[b"http", b"groups", b"app"]), fields(&["peers"]), 0);
    assert!(json(peers).starts_with(r#"{"peers":[{"count":3,"data""#));
}
