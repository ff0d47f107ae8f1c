//! What to type to compare the two servers: the same URL, asked of each by its address.
//!
//! curl connects to another place than the URL says (`--connect-to`), so that both servers see the
//! same name, port and TLS name.

use std::fmt;

use sandbox::{EditableTree, ListenAddress, MovedListen};

/// A URL that both servers answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct UrlComparison {
    name: String,
    port: u16,
    is_tls: bool,
    has_proxy_protocol: bool,
    /// Where the real server is, and where the copy is: `127.0.0.1:80` or `unix:/path`.
    real: String,
    copy: String,
}

#[derive(Default)]
pub(super) struct UrlComparisons {
    pub(super) list: Vec<UrlComparison>,
    /// The names that are regular expressions, for which nothing can be typed.
    pub(super) patterns: Vec<String>,
}

impl UrlComparisons {
    /// One for each name and port, in the order of the configuration; for addresses whose servers
    /// have no name, one that reaches their default server.
    pub(super) fn of(tree: &EditableTree, moved: &[MovedListen]) -> Self {
        let mut comparisons = Self::default();
        let is_v6 = |listen: &&MovedListen| listen.to.starts_with('[');
        let is_unix = |listen: &&MovedListen| matches!(listen.from, ListenAddress::Unix(_));
        let is_udp = |listen: &&MovedListen| matches!(listen.from, ListenAddress::Udp(_));
        let mut listens: Vec<&MovedListen> =
            moved.iter().filter(|listen| listen.is_http && !is_udp(listen)).collect();
        // Of several addresses with a URL, the first is asked.
        listens.sort_by_key(|listen| (is_unix(listen), is_v6(listen)));
        for name in names(tree) {
            let Some(typed) = typed(&name) else {
                comparisons.patterns.push(name);
                continue;
            };
            let has = |listen: &&&MovedListen| listen.names.contains(&name);
            listens.iter().filter(has).for_each(|listen| comparisons.add(&typed, listen));
        }
        for listen in listens {
            let new = UrlComparison::new("localhost", listen);
            if !comparisons.list.iter().any(|known| known.has_port_of(&new)) {
                comparisons.add("localhost", listen);
            }
        }
        comparisons
    }

    fn add(&mut self, name: &str, listen: &MovedListen) {
        let new = UrlComparison::new(name, listen);
        let is_same = |known: &&UrlComparison| known.url() == new.url();
        // An address of its own may have other servers for the name.
        if !self
            .list
            .iter()
            .any(|known| is_same(&known) && (known.real == new.real || is_any(listen)))
        {
            self.list.push(new);
        }
    }
}

/// Whether it listens on all addresses of the machine, or on a Unix socket.
fn is_any(listen: &MovedListen) -> bool {
    match &listen.from {
        ListenAddress::Tcp(port) => port.ip().is_some_and(|ip| ip.is_unspecified()),
        _ => true,
    }
}

/// The names of all servers of `http {}`, each once.
fn names(tree: &EditableTree) -> Vec<String> {
    let mut names = Vec::new();
    for line in tree.lines() {
        if line.is_in(&["http", "server"]) && line.directive.is("server_name") {
            for name in line.directive.arguments().map(str::to_lowercase) {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
    }
    names
}

/// The name as a client may say it; `None`: it is a regular expression.
fn typed(name: &str) -> Option<String> {
    if name.starts_with('~') {
        return None;
    }
    let name = match (name.strip_prefix("*."), name.strip_suffix(".*")) {
        (Some(domain), _) => format!("any.{domain}"),
        (_, Some(host)) => format!("{host}.test"),
        _ => name.trim_start_matches('.').to_owned(),
    };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-".contains(&byte);
    // `_` and the empty name are those of a server for all others.
    let is_name = !name.is_empty() && name.bytes().all(is_plain);
    Some(if is_name { name } else { "localhost".to_owned() })
}

impl UrlComparison {
    fn new(name: &str, listen: &MovedListen) -> Self {
        let default_port = if listen.is_tls { 443 } else { 80 };
        Self {
            name: name.to_owned(),
            port: listen.from.port().unwrap_or(default_port),
            is_tls: listen.is_tls,
            has_proxy_protocol: listen.has_proxy_protocol,
            real: reached(&listen.from),
            copy: listen.to.clone(),
        }
    }

    fn has_port_of(&self, other: &Self) -> bool {
        (self.port, self.is_tls) == (other.port, other.is_tls)
    }

    fn url(&self) -> String {
        let (scheme, default_port) = if self.is_tls { ("https", 443) } else { ("http", 80) };
        match self.port == default_port {
            true => format!("{scheme}://{}/", self.name),
            false => format!("{scheme}://{}:{}/", self.name, self.port),
        }
    }

    fn curl(&self, to: &str) -> String {
        // A certificate that a client would refuse is compared all the same.
        let options = if self.is_tls { "-sSik" } else { "-sSi" };
        let proxied = if self.has_proxy_protocol { " --haproxy-protocol" } else { "" };
        let way = match to.strip_prefix("unix:") {
            Some(path) => format!("--unix-socket {path}"),
            None => format!("--connect-to {}:{}:{to}", self.name, self.port),
        };
        format!("curl {options}{proxied} {way} {}", self.url())
    }
}

/// The address at which a client on this machine reaches the real server.
fn reached(address: &ListenAddress) -> String {
    let ListenAddress::Tcp(port) = address else { return address.to_string() };
    match port.host.as_str() {
        "*" => format!("127.0.0.1:{}", port.port),
        "[::]" => format!("[::1]:{}", port.port),
        _ => address.to_string(),
    }
}

/// The commands, a line each.
impl fmt::Display for UrlComparison {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "  {} > nginx.reply", self.curl(&self.real))?;
        writeln!(out, "  {} > weir.reply", self.curl(&self.copy))?;
        writeln!(out, "  diff nginx.reply weir.reply")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::net::SocketAddr;
    use std::path::Path;

    use conf::MemoryFiles;
    use sandbox::{Sandbox, SandboxPlaces, TEMPORARY_FOLDERS};

    use super::*;

    fn comparisons(servers: &str) -> UrlComparisons {
        let mut files = MemoryFiles::default().with("/c", format!("http {{ {servers} }}"));
        let tree = EditableTree::read(Path::new("/c"), &mut files).unwrap();
        let new = |from: ListenAddress| {
            let v6 = from.to_string().starts_with("[::]");
            let host = if v6 { "[::1]" } else { "127.0.0.1" };
            let port = from.port().unwrap() + 8000;
            (from, format!("{host}:{port}").parse::<SocketAddr>().unwrap())
        };
        let ports: BTreeMap<_, _> =
            sandbox::addresses(&tree, 80).unwrap().into_iter().map(new).collect();
        let places = SandboxPlaces {
            folder: Path::new("/tmp/t"),
            prefix: None,
            default_port: 80,
            logs_by_default: true,
            keeps_ports: true,
            temporary_folders: &TEMPORARY_FOLDERS,
        };
        let copy = Sandbox::new(&tree, places, &ports).unwrap();
        UrlComparisons::of(&tree, &copy.moved)
    }

    /// The first of the commands of each comparison, without what is always the same.
    fn of_the_copy(servers: &str) -> Vec<String> {
        let list = comparisons(servers).list;
        let line = |of: &UrlComparison| of.curl(&of.copy)["curl ".len()..].to_owned();
        list.iter().map(line).collect()
    }

    #[test]
    fn each_name_is_asked_for_at_each_port() {
        let comparisons = comparisons(
            "server { listen 443 ssl; listen [::]:443 ssl; server_name www.example.com; }",
        );
        assert_eq!(
            comparisons.list.iter().map(UrlComparison::to_string).collect::<Vec<_>>(),
            ["  curl -sSik --connect-to www.example.com:443:127.0.0.1:443 \
                https://www.example.com/ > nginx.reply\n\
             \x20 curl -sSik --connect-to www.example.com:443:127.0.0.1:8443 \
                https://www.example.com/ > weir.reply\n\
             \x20 diff nginx.reply weir.reply\n"]
        );
        assert_eq!(
            of_the_copy(
                "server { listen [::]:80; listen 80; listen 8081 proxy_protocol; server_name a b; }
                 server { listen 443 ssl; server_name B c; }"
            ),
            [
                "-sSi --connect-to a:80:127.0.0.1:8080 http://a/",
                "-sSi --haproxy-protocol --connect-to a:8081:127.0.0.1:16081 http://a:8081/",
                "-sSi --connect-to b:80:127.0.0.1:8080 http://b/",
                "-sSi --haproxy-protocol --connect-to b:8081:127.0.0.1:16081 http://b:8081/",
                "-sSik --connect-to b:443:127.0.0.1:8443 https://b/",
                "-sSik --connect-to c:443:127.0.0.1:8443 https://c/",
            ]
        );
    }

    #[test]
    fn addresses_without_a_name_are_asked_for_their_default_server() {
        assert_eq!(
            of_the_copy(
                "server { listen unix:/run/a; server_name a; } server { listen [::]:80; }
                 server { listen 10.0.0.1:81; } server { listen 127.0.0.1:82; server_name _; }"
            ),
            [
                "-sSi --unix-socket /tmp/t/0.sock http://a/",
                "-sSi --connect-to localhost:82:127.0.0.1:8082 http://localhost:82/",
                "-sSi --connect-to localhost:81:127.0.0.1:8081 http://localhost:81/",
            ]
        );
    }

    #[test]
    fn names_of_all_kinds_are_typed_as_a_client_may_say_them() {
        for (name, expected) in [
            ("a.test", Some("a.test")),
            ("*.a.test", Some("any.a.test")),
            (".a.test", Some("a.test")),
            ("www.a.*", Some("www.a.test")),
            ("_", Some("localhost")),
            ("", Some("localhost")),
            ("$hostname", Some("localhost")),
            ("a;b", Some("localhost")),
            ("~^a$", None),
        ] {
            assert_eq!(typed(name).as_deref(), expected, "{name}");
        }
        let comparisons = comparisons("server { listen 80; server_name ~^a$ a; }");
        assert_eq!((comparisons.list.len(), &*comparisons.patterns[0]), (1, "~^a$"));
    }
}
