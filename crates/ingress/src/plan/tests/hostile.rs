//! Every text of realistic objects is replaced by texts that try to become more than a value.

use serde_json::Value;

use crate::plan::fuzz::{check, ingress_plan};
use crate::{Objects, plan::dry_run::insert};

const TEXTS: &[&str] = &[
    "",
    "a; } evil on; {",
    "a\"; evil on; #",
    "a' ; evil on;",
    "a\\",
    "a\\\"; evil on;",
    "$evil",
    "/${evil}",
    "/a\nevil on;",
    "/a b{}",
    "}",
    "#",
    "*",
    "*.evil.test",
    "(?<evil>a)",
    "/(",
    "/.weir/mirror/httproute.shop.filters/7-1",
    "../../etc/passwd",
    "http://a.test/ ; evil on;",
    "/$1$2$evil",
    "-s",
];

fn seeds() -> Vec<Value> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/ingress_plan");
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.map(|path| serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()).collect()
}

/// The places of all texts, with an exception: a kind that is no longer known tests nothing.
fn places(value: &Value, here: &str, out: &mut Vec<String>) {
    match value {
        Value::String(_) if !here.ends_with("/kind") || here.contains("Ref") => {
            out.push(here.to_owned());
        }
        Value::Array(all) => {
            let each = all.iter().enumerate();
            each.for_each(|(number, one)| places(one, &format!("{here}/{number}"), out));
        }
        Value::Object(all) => {
            for (name, one) in all {
                let name = name.replace('~', "~0").replace('/', "~1");
                places(one, &format!("{here}/{name}"), out);
            }
        }
        _ => {}
    }
}

#[test]
fn no_text_of_an_object_becomes_more_than_a_value() {
    for seed in seeds() {
        let mut all = Vec::new();
        places(&seed, "", &mut all);
        assert!(all.len() > 50);
        for (number, place) in all.iter().enumerate() {
            // Each place gets some of the texts, and each text many places.
            for text in TEXTS.iter().skip(number % 10).step_by(10) {
                let mut changed = seed.clone();
                *changed.pointer_mut(place).unwrap() = Value::from(*text);
                let mut objects = Objects::default();
                let _ = insert(changed, &mut objects);
                check(&objects);
            }
        }
    }
}

#[test]
fn parts_of_any_other_type_are_as_good_as_missing() {
    for seed in seeds() {
        let mut all = Vec::new();
        places(&seed, "", &mut all);
        let others = [Value::Null, Value::from(-1), Value::from(vec![1]), Value::Bool(true)];
        for (place, other) in all.iter().zip(others.iter().cycle()) {
            let mut changed = seed.clone();
            let parent = place.rsplit_once('/').map_or("", |(parent, _)| parent);
            *changed.pointer_mut(parent).unwrap() = other.clone();
            let mut objects = Objects::default();
            let _ = insert(changed, &mut objects);
            check(&objects);
        }
    }
}

#[test]
fn beginnings_of_objects_are_planned() {
    for seed in seeds() {
        let text = seed.to_string();
        for end in (0..text.len()).step_by(997).filter(|end| text.is_char_boundary(*end)) {
            ingress_plan(&text.as_bytes()[..end]);
        }
    }
}
