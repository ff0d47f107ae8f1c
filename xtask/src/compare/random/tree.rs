//! A generated configuration as a tree, so that it can be thinned out and shrunk.
//!
//! This is no parser of configurations: it knows only the quotes that the grammars use.

/// A directive and, for a block, what is inside.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ConfigNode {
    /// Its words as written.
    pub(super) head: String,
    /// `None` for a directive that ends with `;`.
    pub(super) inside: Option<Vec<ConfigNode>>,
}

/// Directives that may be given several times in a block.
const REPEATABLE: &str = " location if rewrite set return break add_header add_trailer error_page \
    allow deny proxy_set_header server map upstream geo listen limit_req limit_conn \
    auth_request_set \
    proxy_redirect proxy_cookie_path proxy_cookie_domain proxy_cookie_flags proxy_hide_header \
    proxy_pass_header fastcgi_param types include set_real_ip_from access_log log_format \
    split_clients mirror limit_req_zone limit_conn_zone server_name index default \
    proxy_next_upstream fastcgi_hide_header if_modified_since ";

impl ConfigNode {
    /// The nodes of a text whose braces are balanced.
    pub(super) fn parse(text: &str) -> Vec<ConfigNode> {
        nodes(&mut text.chars())
    }

    pub(super) fn name(&self) -> &str {
        self.head.split_whitespace().next().unwrap_or_default()
    }

    fn may_repeat(&self) -> bool {
        let name = self.name();
        name.starts_with(['~', '"', '/', '*', '$']) || REPEATABLE.contains(&format!(" {name} "))
    }
}

fn nodes(chars: &mut std::str::Chars<'_>) -> Vec<ConfigNode> {
    let mut out = Vec::new();
    let mut head = String::new();
    let mut quote = None;
    while let Some(c) = chars.next() {
        let node = |head: &mut String, inside| {
            let head = std::mem::take(head).trim().to_owned();
            ConfigNode { head, inside }
        };
        match (quote, c) {
            (Some(open), _) => {
                quote = Some(open).filter(|&open| open != c);
                head.push(c);
            }
            (None, '"' | '\'') => {
                quote = Some(c);
                head.push(c);
            }
            (None, '{') => {
                let inside = Some(nodes(chars));
                out.push(node(&mut head, inside));
            }
            (None, ';') => out.push(node(&mut head, None)),
            (None, '}') => break,
            _ => head.push(c),
        }
    }
    out
}

/// Leaves out what nginx calls duplicate: directives given once more, and equal blocks.
pub(super) fn without_duplicates(nodes: Vec<ConfigNode>) -> Vec<ConfigNode> {
    let mut kept: Vec<ConfigNode> = Vec::new();
    for mut node in nodes {
        let same = |other: &ConfigNode| match node.inside.is_some() && node.name() != "if" {
            true if node.head == "server" => false,
            true if node.name() == "limit_except" => other.name() == node.name(),
            true => other.head == node.head,
            false => !node.may_repeat() && other.name() == node.name(),
        };
        if kept.iter().any(same) {
            continue;
        }
        let free = matches!(node.name(), "map" | "geo" | "types" | "split_clients" | "upstream");
        node.inside = node.inside.map(|inside| match free {
            true => inside,
            false => without_duplicates(inside),
        });
        kept.push(node);
    }
    kept
}

/// The text again, a directive on each line.
pub(super) fn text(nodes: &[ConfigNode]) -> String {
    let mut out = String::new();
    write(nodes, 0, &mut out);
    out
}

fn write(nodes: &[ConfigNode], depth: usize, out: &mut String) {
    for ConfigNode { head, inside } in nodes {
        let indent = "    ".repeat(depth);
        match inside {
            None => out.push_str(&format!("{indent}{head};\n")),
            Some(inside) => {
                out.push_str(&format!("{indent}{head} {{\n"));
                write(inside, depth + 1, out);
                out.push_str(&format!("{indent}}}\n"));
            }
        }
    }
}

/// How many nodes there are, those inside counted.
pub(super) fn count(nodes: &[ConfigNode]) -> usize {
    nodes.iter().map(|node| 1 + node.inside.as_deref().map_or(0, count)).sum()
}

/// The tree without node number `at`, counted as they are written.
pub(super) fn without(nodes: &[ConfigNode], at: usize) -> Vec<ConfigNode> {
    let mut left = at;
    remove(nodes, &mut left)
}

fn remove(nodes: &[ConfigNode], left: &mut usize) -> Vec<ConfigNode> {
    let mut out = Vec::new();
    for node in nodes {
        let size = count(std::slice::from_ref(node));
        let here = *left;
        *left = left.wrapping_sub(size);
        match here {
            0 => {}
            _ if here < size => {
                let mut within = here - 1;
                let inside = node.inside.as_deref().map(|inside| remove(inside, &mut within));
                out.push(ConfigNode { head: node.head.clone(), inside });
            }
            _ => out.push(node.clone()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "a 1; server { b \"{;}\"; if ($x) { c; } location / { d; d; e; } } f;";

    #[test]
    fn a_text_is_read_and_written() {
        let nodes = ConfigNode::parse(SAMPLE);
        assert_eq!(count(&nodes), 10);
        assert_eq!(ConfigNode::parse(&text(&nodes)), nodes);
    }

    #[test]
    fn every_node_can_be_removed() {
        let nodes = ConfigNode::parse(SAMPLE);
        assert_eq!(text(&without(&nodes, 0)).matches("a 1").count(), 0);
        assert_eq!(count(&without(&nodes, 1)), 2);
        assert_eq!(text(&without(&nodes, 4)).matches('c').count(), 1); // "location"
        for at in 0..count(&nodes) {
            assert!(count(&without(&nodes, at)) < count(&nodes), "{at}");
        }
        assert_eq!(without(&nodes, 99), nodes);
    }

    #[test]
    fn only_what_may_repeat_is_kept_twice() {
        let nodes = without_duplicates(ConfigNode::parse("s { d; d; set $a; set $a; } s { e; }"));
        assert_eq!(text(&nodes), "s {\n    d;\n    set $a;\n    set $a;\n}\n");
    }
}
