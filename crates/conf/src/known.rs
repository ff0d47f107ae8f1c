//! nginx's directives, including those that Weir lacks.
//!
//! A name in this table that no feature accepts is "not supported by this version" instead of an
//! "unknown directive". The table is `directives.tsv`, taken from nginx 1.31's sources: every
//! module of its open-source tree but the ones for Windows. Deliberately absent: the meaning of
//! directives.

use std::sync::LazyLock;

/// A directive of one of nginx's modules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownDirective {
    pub name: &'static str,
    /// The module, for example `ngx_http_core_module`. Several may have a directive of that name.
    pub module: &'static str,
    /// The contexts in which it is allowed: `main`, `events`, `http`, `server`, `location`,
    /// `upstream`, `if-in-server`, `if-in-location`, `limit_except`, `stream`, `stream-server`,
    /// `stream-upstream`, `mail`, `mail-server` or `any`, separated by commas.
    pub contexts: &'static str,
    /// The number of arguments: `1`, `1|2`, `1+`, `flag(on|off)`, `block(2)`.
    pub args: &'static str,
    /// Its default in nginx's table; empty or `-` if it has none, or if a handler sets it.
    pub default: &'static str,
    /// The words that it accepts, if known, separated by spaces.
    pub values: &'static str,
    /// nginx's function that reads it, which decides on valid arguments.
    pub setter: &'static str,
    /// The macro that nginx must be built with, if any.
    pub build: Option<&'static str>,
    /// Whether nginx discourages it.
    pub standing: DirectiveSupport,
}

/// The status of a directive that nginx accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectiveSupport {
    /// nginx does not discourage it.
    Current,
    /// It works, and nginx recommends another one.
    Deprecated {
        /// The recommended directive.
        instead: &'static str,
    },
    /// It has no effect any more.
    Obsolete {
        /// Its replacement, if any.
        instead: Option<&'static str>,
    },
}

impl KnownDirective {
    /// Whether it is allowed in this context.
    pub fn allowed_in(&self, context: &str) -> bool {
        self.contexts.split(',').any(|allowed| allowed == context || allowed == "any")
    }

    /// nginx's warning about the directive.
    pub fn warning(&self) -> Option<String> {
        let name = self.name;
        match self.standing {
            DirectiveSupport::Current => None,
            DirectiveSupport::Deprecated { instead } => Some(format!(
                "the \"{name}\" directive is deprecated, use the \"{instead}\" directive instead"
            )),
            DirectiveSupport::Obsolete { instead: Some(instead) } => Some(format!(
                "the \"{name}\" directive is obsolete, use the \"{instead}\" directive instead"
            )),
            DirectiveSupport::Obsolete { instead: None } => {
                Some(format!("the \"{name}\" directive is obsolete, ignored"))
            }
        }
    }
}

/// All directives of that name, one for each module that has it; empty if nginx has none.
pub fn find(name: &[u8]) -> &'static [KnownDirective] {
    let from = TABLE.partition_point(|known| known.name.as_bytes() < name);
    let len = TABLE[from..].partition_point(|known| known.name.as_bytes() == name);
    &TABLE[from..from + len]
}

/// The blocks where nginx allows a directive of that name, as advice: `server, location of http`.
/// `None` if nginx has no such directive.
pub fn places(name: &[u8]) -> Option<String> {
    let contexts: Vec<_> = find(name).iter().flat_map(|known| known.contexts.split(',')).collect();
    let of = |subsystem: &str| {
        let is_its = |context: &&&str| subsystem_of(context) == subsystem;
        let mut words: Vec<String> = Vec::new();
        for context in contexts.iter().filter(is_its) {
            let own = context.strip_prefix("stream-").or(context.strip_prefix("mail-"));
            let word = own.unwrap_or(context).replace('-', " ");
            if !words.contains(&word) {
                words.push(word);
            }
        }
        let is_outermost = subsystem.is_empty() || words.iter().any(|word| word == subsystem);
        let list = words.join(", ");
        (!words.is_empty())
            .then(|| if is_outermost { list } else { format!("{list} of {subsystem}") })
    };
    let places: Vec<_> = ["", "http", "stream"].into_iter().filter_map(of).collect();
    if places.is_empty() { of("mail") } else { Some(places.join("; ")) }
}

/// The subsystem of a context; empty for the outermost contexts and for any.
fn subsystem_of(context: &str) -> &'static str {
    match context.split('-').next() {
        Some("main" | "events" | "any") => "",
        Some("stream") => "stream",
        Some("mail") => "mail",
        _ => "http",
    }
}

/// All directives, sorted by name.
pub fn all() -> &'static [KnownDirective] {
    &TABLE
}

/// Advice about a name that nginx has removed and now reports as unknown.
pub fn removed(name: &[u8]) -> Option<&'static str> {
    REMOVED.iter().find(|(old, _)| old.as_bytes() == name).map(|(_, advice)| *advice)
}

const REMOVED: [(&str, &str); 12] = [
    ("auth", r#"it is "pop3_auth" since nginx 0.5.15"#),
    ("fastcgi_redirect_errors", r#"it is "fastcgi_intercept_errors" since nginx 0.3.50"#),
    ("imap", r#"it is "mail" since nginx 0.5.15"#),
    ("limit_zone", r#"it is "limit_conn_zone" since nginx 1.1.8"#),
    ("open_file_cache_retest", r#"it is "open_file_cache_valid" since nginx 0.6.23"#),
    ("optimize_server_names", r#"it was removed in nginx 0.7.1; see "server_name_in_redirect""#),
    ("post_accept_timeout", "it was removed in nginx 0.1.36"),
    ("proxy_redirect_errors", r#"it is "proxy_intercept_errors" since nginx 0.3.50"#),
    ("restrict_host_names", "it was removed in nginx 0.3.28"),
    ("satisfy_any", r#"it is "satisfy any" since nginx 0.6.25"#),
    ("secure_link_expires", "it was removed in nginx 0.8.51"),
    ("ssl", r#"it is "listen ... ssl" since nginx 1.15.0"#),
];

static TABLE: LazyLock<Vec<KnownDirective>> = LazyLock::new(|| {
    let rows = include_str!("../directives.tsv").lines().skip(1);
    let mut table: Vec<_> = rows.map(row).collect();
    table.sort_by_key(|known| known.name);
    table
});

fn row(line: &'static str) -> KnownDirective {
    let mut columns = line.split('\t');
    let mut column = || columns.next().expect("directives.tsv has eleven columns");
    let (module, name, contexts, args) = (column(), column(), column(), column());
    let (default, values, standing, build) = (column(), column(), column(), column());
    let (build, setter) = ((!build.is_empty()).then_some(build), column());
    let standing = self::standing(standing);
    KnownDirective { name, module, contexts, args, default, values, setter, build, standing }
}

fn standing(column: &'static str) -> DirectiveSupport {
    match column.split_once(": ") {
        Some(("deprecated", instead)) => DirectiveSupport::Deprecated { instead },
        Some(("obsolete", instead)) => DirectiveSupport::Obsolete { instead: Some(instead) },
        None if column == "obsolete" => DirectiveSupport::Obsolete { instead: None },
        _ => DirectiveSupport::Current,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTEXTS: [&str; 15] = [
        "any",
        "events",
        "http",
        "if-in-location",
        "if-in-server",
        "limit_except",
        "location",
        "mail",
        "mail-server",
        "main",
        "server",
        "stream",
        "stream-server",
        "stream-upstream",
        "upstream",
    ];

    #[test]
    fn every_row_is_well_formed() {
        assert_eq!(all().len(), 781);
        for known in all() {
            assert!(known.module.starts_with("ngx_"), "{known:?}");
            assert!(known.contexts.split(',').all(|name| CONTEXTS.contains(&name)), "{known:?}");
            let shape = known.args.trim_start_matches("block(").trim_end_matches(')');
            let counts = |count: &str| matches!(count, "0" | "1" | "2" | "3" | "4" | "1+" | "2+");
            assert!(known.args == "flag(on|off)" || shape.split('|').all(counts), "{known:?}");
        }
    }

    #[test]
    fn names_are_found_in_every_module_that_has_them() {
        let modules = |name: &str| -> Vec<_> {
            find(name.as_bytes()).iter().map(|known| known.module).collect()
        };
        assert_eq!(modules("worker_processes"), ["ngx_core_module"]);
        assert_eq!(
            modules("map"),
            ["ngx_http_map_module", "ngx_stream_map_module"],
            "in the order of the table"
        );
        assert_eq!(modules("mail"), ["ngx_mail_module"]);
        for none in ["", "zzz", "listen ", "lsten", "ssl", "~"] {
            assert_eq!(modules(none), [""; 0], "{none:?}");
        }
        let first = all().first().map(|known| known.name);
        assert_eq!(modules(first.unwrap()).len(), 1);
    }

    #[test]
    fn places_name_the_blocks_of_each_subsystem() {
        let cases = [
            ("map", Some("http; stream")),
            ("location", Some("server, location of http")),
            ("listen", Some("server of http; server of stream")),
            ("worker_connections", Some("events")),
            ("user", Some("main")),
            ("proxy_timeout", Some("stream, server")),
            ("error_page", Some("http, server, location, if in location")),
            ("imap_auth", Some("mail, server")),
            ("match", None),
        ];
        for (name, places) in cases {
            assert_eq!(self::places(name.as_bytes()).as_deref(), places, "{name}");
        }
    }

    #[test]
    fn contexts_match_as_whole_words() {
        let [listen] = find(b"listen")
            .iter()
            .filter(|known| known.module.contains("http_core"))
            .collect::<Vec<_>>()[..]
        else {
            panic!("http has one \"listen\"")
        };
        assert!(listen.allowed_in("server"));
        assert!(!listen.allowed_in("stream-server") && !listen.allowed_in("http"));
        assert!(find(b"include")[0].allowed_in("stream-upstream"));
    }

    #[test]
    fn warnings_have_the_words_of_nginx() {
        let warning = |name: &str| find(name.as_bytes())[0].warning();
        assert_eq!(warning("listen"), None);
        assert_eq!(
            warning("http2_push").as_deref(),
            Some(r#"the "http2_push" directive is obsolete, ignored"#)
        );
        assert_eq!(
            warning("http2_idle_timeout").as_deref(),
            Some(concat!(
                r#"the "http2_idle_timeout" directive is obsolete, "#,
                r#"use the "keepalive_timeout" directive instead"#
            ))
        );
        assert_eq!(
            warning("proxy_upstream_buffer").as_deref(),
            Some(concat!(
                r#"the "proxy_upstream_buffer" directive is deprecated, "#,
                r#"use the "proxy_buffer_size" directive instead"#
            ))
        );
    }

    #[test]
    fn removed_directives_are_not_known() {
        for (name, _) in REMOVED {
            assert!(find(name.as_bytes()).is_empty(), "{name}");
            assert!(removed(name.as_bytes()).is_some());
        }
        assert_eq!(removed(b"listen"), None);
    }
}
