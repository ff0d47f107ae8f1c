//! Leaves out of a generated configuration what nginx refuses for where it stands.
//!
//! It knows the rules that the grammars break often. What else is wrong is left: both servers have
//! to refuse it.

use super::tree::ConfigNode;

/// What is around a directive.
#[derive(Clone, Copy, PartialEq)]
enum Around<'a> {
    Http,
    Server,
    /// The location's modifier and name.
    Location(&'a str, &'a str),
    /// `if` or `limit_except`.
    Condition,
}

/// Directives that exclude each other; the first one counts.
const RIVALS: &[&[&str]] = &[
    &["root", "alias"],
    &["secure_link_secret", "secure_link"],
    &["secure_link_secret", "secure_link_md5"],
];

/// The configuration of `http {}` without what cannot stand where it is.
pub(super) fn valid(nodes: Vec<ConfigNode>) -> Vec<ConfigNode> {
    within(nodes, Around::Http)
}

fn within(nodes: Vec<ConfigNode>, around: Around<'_>) -> Vec<ConfigNode> {
    let mut kept: Vec<ConfigNode> = Vec::new();
    for mut node in nodes {
        if !may_stand(&node, around) || has_rival(&node, &kept) {
            continue;
        }
        if node.name() == "proxy_pass" {
            without_path(&mut node, around);
        }
        let head = node.head.clone();
        node.inside = node.inside.map(|inside| match inner(&head, around) {
            Some(Inner::Block(around)) => within(inside, around),
            Some(Inner::Table) => without_conflicts(inside),
            None => inside,
        });
        kept.push(node);
    }
    kept
}

enum Inner<'a> {
    Block(Around<'a>),
    /// Keys and values.
    Table,
}

fn inner<'a>(head: &'a str, around: Around<'a>) -> Option<Inner<'a>> {
    let mut words = head.split_whitespace();
    Some(match words.next()? {
        "server" if around == Around::Http => Inner::Block(Around::Server),
        "location" => {
            let last = words.next_back()?;
            Inner::Block(Around::Location(words.next().unwrap_or_default(), last))
        }
        "if" | "limit_except" => Inner::Block(Around::Condition),
        "map" | "geo" => Inner::Table,
        _ => return None,
    })
}

fn may_stand(node: &ConfigNode, around: Around<'_>) -> bool {
    match (node.name(), around) {
        ("alias", Around::Location(_, name)) => !name.starts_with('@'),
        ("alias", _) => false,
        ("location", Around::Location(modifier, name)) => nests(node, modifier, name),
        _ => true,
    }
}

/// Whether a location may stand in the one of this name.
fn nests(node: &ConfigNode, modifier: &str, name: &str) -> bool {
    let inner: Vec<&str> = node.head.split_whitespace().skip(1).collect();
    let is_pattern = inner.first().is_some_and(|word| word.starts_with('~'));
    let own = inner.last().copied().unwrap_or_default();
    modifier != "="
        && !name.starts_with('@')
        && !own.starts_with('@')
        && (is_pattern || own.starts_with(name))
}

fn has_rival(node: &ConfigNode, before: &[ConfigNode]) -> bool {
    let name = node.name();
    let rivals = RIVALS.iter().filter(|names| names.contains(&name)).flat_map(|names| names.iter());
    let mut rivals = rivals.filter(|rival| **rival != name);
    rivals.any(|rival| before.iter().any(|other| other.name() == *rival))
}

/// Where a path cannot be replaced, `proxy_pass` has none.
fn without_path(node: &mut ConfigNode, around: Around<'_>) {
    let replaces = match around {
        Around::Location(modifier, name) => !modifier.starts_with('~') && !name.starts_with('@'),
        _ => false,
    };
    let url_start = node.head.find("//").map_or(0, |at| at + 2);
    if let Some(path) = node.head[url_start..].find('/')
        && !replaces
        && !node.head.contains('$')
    {
        node.head.truncate(url_start + path);
    }
}

/// A table without keys that it has already.
fn without_conflicts(nodes: Vec<ConfigNode>) -> Vec<ConfigNode> {
    let mut kept: Vec<ConfigNode> = Vec::new();
    for node in nodes {
        let is_same = |other: &ConfigNode| other.name().eq_ignore_ascii_case(node.name());
        if !kept.iter().any(is_same) {
            kept.push(node);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::super::tree;
    use super::*;

    fn checked(text: &str) -> String {
        tree::text(&valid(ConfigNode::parse(text))).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_cannot_stand_there_is_left_out() {
        let of_location = |inside: &str| checked(&format!("server {{ {inside} }}"));
        assert_eq!(of_location("alias /a; root /b;"), "server { root /b; }");
        let nested = "location /a { location /a/b { } location /c { } location ~ x { } }";
        let kept = "server { location /a { location /a/b { } location ~ x { } } }";
        assert_eq!(of_location(nested), kept);
        let named = of_location("location @n { alias /a; location /b { } deny all; }");
        assert_eq!(named, "server { location @n { deny all; } }");
        let roots = of_location("location / { alias /a; root /b; }");
        assert_eq!(roots, "server { location / { alias /a; } }");
    }

    #[test]
    fn a_path_goes_where_it_cannot_be_replaced() {
        let text = "server { location / { proxy_pass http://a/b; \
                    if ($x) { proxy_pass http://a/b; } } \
                    location ~ x { proxy_pass http://a:1/b/c; proxy_pass http://a/$uri; } }";
        let expected = "server { location / { proxy_pass http://a/b; \
                        if ($x) { proxy_pass http://a; } } \
                        location ~ x { proxy_pass http://a:1; proxy_pass http://a/$uri; } }";
        assert_eq!(checked(text), expected);
    }

    #[test]
    fn a_table_has_each_key_once() {
        let text = "map $uri $a { default 1; GET a; get b; default 2; }";
        assert_eq!(checked(text), "map $uri $a { default 1; GET a; }");
    }
}
