//! Small slips in a generated configuration: both servers have to accept it, or both to refuse it.

use statistics::SplitMix;

use super::tree::{self, ConfigNode};

/// The most slips in one configuration.
const SLIPS_MAX: usize = 2;

/// Words that stand where another was.
const WORDS: &[&str] = &[
    "off",
    "on",
    "0",
    "-1",
    "1",
    "1k",
    "1g",
    "99999999999999999999",
    "1s",
    "1x",
    "\"\"",
    "$uri",
    "$none",
    "=404",
    "@n1",
    "/x",
    "~",
    "all",
    "default",
    "http://127.0.0.1:1",
    "\"a b\"",
    "a=b",
    "*",
];

/// Directives that stand where another was.
const DIRECTIVES: &[&str] = &[
    "deny all",
    "internal",
    "return 204",
    "break",
    "root html",
    "alias html",
    "server_name x",
    "location /m { }",
    "if ($uri) { }",
    "limit_except GET { }",
    "upstream m { }",
    "proxy_pass http://127.0.0.1:1/x",
    "map $uri $m { }",
    "types { }",
    "events { }",
    "error_page 404",
    "try_files $uri",
    "default_type",
    "unknown_directive 1",
];

/// The configuration with one slip or two.
pub(super) fn mutated(mut nodes: Vec<ConfigNode>, random: &mut SplitMix) -> Vec<ConfigNode> {
    for _ in 0..=random.below(SLIPS_MAX) {
        let count = tree::count(&nodes);
        if count > 0 {
            let mut left = random.below(count);
            slip(&mut nodes, &mut left, random);
        }
    }
    nodes
}

/// Changes node number `left`, counted as they are written; whether it was among these.
fn slip(nodes: &mut Vec<ConfigNode>, left: &mut usize, random: &mut SplitMix) -> bool {
    for at in 0..nodes.len() {
        if *left == 0 {
            change(nodes, at, random);
            return true;
        }
        *left -= 1;
        if nodes[at].inside.as_mut().is_some_and(|inside| slip(inside, left, random)) {
            return true;
        }
    }
    false
}

fn change(nodes: &mut Vec<ConfigNode>, at: usize, random: &mut SplitMix) {
    // The servers have to be reached, and to stay where they are.
    if nodes[at].head.starts_with("listen ") {
        return;
    }
    match random.below(8) {
        0 => drop(nodes.remove(at)),
        1 => nodes.insert(at, nodes[at].clone()),
        2 => {
            let other = random.below(nodes.len());
            nodes.swap(at, other);
        }
        3 => nodes[at].inside = nodes[at].inside.take().map_or(Some(vec![]), |_| None),
        4 => {
            let parsed = ConfigNode::parse(&format!("{};", random_of(DIRECTIVES, random)));
            nodes.splice(at..at, parsed.into_iter().filter(|node| !node.head.is_empty()));
        }
        kind => change_words(&mut nodes[at].head, kind, random),
    }
}

fn change_words(head: &mut String, kind: usize, random: &mut SplitMix) {
    let mut words: Vec<&str> = head.split(' ').collect();
    let at = random.below(words.len());
    match kind {
        5 => drop(words.remove(at)),
        6 => words.insert(at, words[at]),
        _ => words[at] = random_of(WORDS, random),
    }
    *head = words.join(" ");
}

fn random_of<'a>(words: &[&'a str], random: &mut SplitMix) -> &'a str {
    words[random.below(words.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "a 1 2; server { listen 1; location / { b c; } } d e;";

    #[test]
    fn a_mutation_is_a_function_of_its_seed() {
        let text = |seed| tree::text(&mutated(ConfigNode::parse(SAMPLE), &mut SplitMix::new(seed)));
        assert!((0..50).all(|seed| text(seed) == text(seed)));
        let plain = tree::text(&ConfigNode::parse(SAMPLE));
        assert!((0..50).filter(|seed| text(*seed) != plain).count() > 30);
    }

    #[test]
    fn ports_stay_as_they_are() {
        for seed in 0..200 {
            let text = tree::text(&mutated(ConfigNode::parse(SAMPLE), &mut SplitMix::new(seed)));
            assert!(!text.contains("listen") || text.contains("listen 1;"), "{text}");
        }
    }
}
