//! Caches of responses that give clients what was meant for others.
//!
//! Whether a configuration is one of these depends on the application; that it may be is worth a
//! look. A key that cannot tell two responses apart is no error in itself.

use conf::Directive;

use super::scope::ConfigScope;

/// The families of backends that have a cache.
const FAMILIES: [&str; 4] = ["proxy_", "fastcgi_", "uwsgi_", "scgi_"];
/// Variables that tell the hosts of requests apart.
const HOSTS: [&str; 4] = ["host", "http_host", "server_name", "ssl_server_name"];
/// The beginnings of variables that tell users apart.
const USERS: [&str; 5] =
    ["remote_user", "http_authorization", "cookie_", "http_cookie", "ssl_client_"];
/// The most names in a message.
const NAMES_SHOWN: usize = 3;

/// A danger of a cache configuration.
pub struct CacheProblem<'c> {
    pub lines: Vec<&'c Directive>,
    pub what: String,
    pub why: &'static str,
    pub fix: String,
}

/// A block whose requests are answered from a cache.
struct CachedLocation<'c> {
    scope: ConfigScope<'c>,
    family: &'static str,
    /// The line `*_cache`.
    line: &'c Directive,
    server_names: Vec<String>,
}

/// The problems of a configuration's caches.
pub fn cache_problems(root: &[Directive]) -> Vec<CacheProblem<'_>> {
    let cached = CachedLocation::all(root);
    let mut problems: Vec<CacheProblem<'_>> = Vec::new();
    let own = cached.iter().flat_map(|cached| {
        [cached.shares_cookies(), cached.shares_secrets(), cached.mixes_slices()]
    });
    for problem in own.flatten().chain(shared_by_hosts(&cached)) {
        match problems.iter_mut().find(|known| known.what == problem.what) {
            None => problems.push(problem),
            Some(known) => {
                for line in problem.lines {
                    if !known.lines.iter().any(|known| std::ptr::eq(*known, line)) {
                        known.lines.push(line);
                    }
                }
            }
        }
    }
    problems
}

impl<'c> CachedLocation<'c> {
    fn all(root: &'c [Directive]) -> Vec<Self> {
        let http = ConfigScope::of(root).within("http").into_iter();
        http.flat_map(|http| http.within("server")).flat_map(Self::of_server).collect()
    }

    fn of_server(server: ConfigScope<'c>) -> Vec<Self> {
        let names = server.own_all("server_name").flat_map(|line| &line.args);
        let server_names: Vec<_> = names.map(ToString::to_string).collect();
        let mut scopes = Vec::new();
        server.with_locations(&mut scopes);
        let of = |scope: ConfigScope<'c>| {
            let passes = |family: &&str| scope.own(&format!("{family}pass")).is_some();
            let family = FAMILIES.into_iter().find(passes)?;
            let line = scope.setting(&format!("{family}cache"))?;
            let is_off = line.args.first().is_some_and(|word| *word.text == *b"off");
            (!is_off).then(|| Self { scope, family, line, server_names: server_names.clone() })
        };
        scopes.into_iter().filter_map(of).collect()
    }

    fn named(&self, name: &str) -> String {
        format!("{}{name}", self.family)
    }

    /// The key, if it is set.
    fn key(&self) -> Option<String> {
        self.scope.word(&self.named("cache_key"))
    }

    /// Whether the key has a variable whose name is one of these, or begins so if that ends in `_`.
    fn key_has(&self, names: &[&str]) -> bool {
        let key = self.key().unwrap_or_default();
        variables(&key).any(|variable| {
            names.iter().any(|name| match name.ends_with('_') {
                true => variable.starts_with(name),
                false => variable == *name,
            })
        })
    }

    fn problem(
        &self,
        line: &'c Directive,
        what: String,
        why: &'static str,
        fix: String,
    ) -> CacheProblem<'c> {
        CacheProblem { lines: vec![line], what, why, fix }
    }

    fn shares_cookies(&self) -> Option<CacheProblem<'c>> {
        let names = |line: &&Directive, wanted: &str| {
            line.args.iter().any(|word| word.text.eq_ignore_ascii_case(wanted.as_bytes()))
        };
        let lines = self.scope.inherited(&self.named("ignore_headers"));
        let line = lines.into_iter().find(|line| names(line, "Set-Cookie"))?;
        let hidden = self.scope.inherited(&self.named("hide_header"));
        if hidden.iter().any(|line| names(line, "Set-Cookie")) || self.key_has(&USERS) {
            return None;
        }
        let (ignore, hide) = (self.named("ignore_headers"), self.named("hide_header"));
        let what = format!("\"{ignore} Set-Cookie\" stores cookies with responses");
        let why = "every client is given the cookie of the client for which it was fetched";
        Some(self.problem(line, what, why, format!("{hide} Set-Cookie;")))
    }

    fn shares_secrets(&self) -> Option<CacheProblem<'c>> {
        let is_on = |name: &&str| self.scope.word(name).is_some_and(|word| word != "off");
        let check = ["auth_basic", "auth_request"].into_iter().find(is_on)?;
        let bypasses = self.scope.setting(&self.named("cache_bypass")).is_some();
        if self.key_has(&USERS) || bypasses {
            return None;
        }
        let what = format!("responses behind \"{check}\" are cached for all users together");
        let why = "whoever passes the check is given what was fetched for another user";
        let key = self.named("cache_key");
        Some(self.problem(self.line, what, why, format!("{key} with $remote_user, or no cache")))
    }

    fn mixes_slices(&self) -> Option<CacheProblem<'c>> {
        let size = self.scope.word("slice").filter(|size| size != "0")?;
        if self.key_has(&["slice_range"]) {
            return None;
        }
        let what = format!("\"slice {size}\" with a cache key that has no $slice_range");
        let why = "all slices of a response have the same entry";
        let key = self.named("cache_key");
        Some(self.problem(self.line, what, why, format!("{key} with $slice_range")))
    }

    /// Whether the backend is told the host that the client has named.
    fn passes_host(&self) -> bool {
        if self.family != "proxy_" {
            return true;
        }
        self.scope.inherited("proxy_set_header").iter().any(|line| {
            let [name, value] = &line.args[..] else { return false };
            let value = value.to_string();
            name.text.eq_ignore_ascii_case(b"host")
                && variables(&value).any(|variable| HOSTS.contains(&variable))
        })
    }

    /// What all locations have in common that share entries: zone, key and backend.
    fn identity(&self) -> [String; 3] {
        let key = self.key();
        let pass = self.scope.own(&self.named("pass")).and_then(|line| line.args.first());
        let pass = pass.filter(|_| key.is_none()).map(ToString::to_string);
        let zone = self.line.args.first().map(ToString::to_string);
        [zone, key, pass].map(Option::unwrap_or_default)
    }
}

/// Caches whose key does not have the host, although the backend may answer by it.
fn shared_by_hosts<'c>(cached: &[CachedLocation<'c>]) -> Vec<CacheProblem<'c>> {
    let hostless = |cached: &&CachedLocation<'_>| cached.passes_host() && !cached.key_has(&HOSTS);
    let mut groups: Vec<([String; 3], Vec<&CachedLocation<'c>>)> = Vec::new();
    for cached in cached.iter().filter(hostless) {
        let identity = cached.identity();
        match groups.iter_mut().find(|(known, _)| *known == identity) {
            Some((_, group)) => group.push(cached),
            None => groups.push((identity, vec![cached])),
        }
    }
    groups.iter().filter_map(|(_, group)| shared_by(group)).collect()
}

fn shared_by<'c>(group: &[&CachedLocation<'c>]) -> Option<CacheProblem<'c>> {
    let mut names: Vec<&str> =
        group.iter().flat_map(|cached| &cached.server_names).map(String::as_str).collect();
    names.sort_unstable();
    names.dedup();
    if names.len() < 2 {
        return None;
    }
    let shown = names[..names.len().min(NAMES_SHOWN)].join(", ");
    let rest = match names.len().saturating_sub(NAMES_SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(CacheProblem {
        lines: group.iter().map(|cached| cached.line).collect(),
        what: format!("{shown}{rest} share cached responses: the key has no $host"),
        why: "a response to one host is sent to clients of another",
        fix: format!("{}cache_key $scheme$host$request_uri;", group[0].family),
    })
}

/// The names of the variables in a text.
fn variables(text: &str) -> impl Iterator<Item = &str> {
    text.split('$').skip(1).map(|rest| {
        let rest = rest.strip_prefix('{').unwrap_or(rest);
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        &rest[..end.unwrap_or(rest.len())]
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use conf::MemoryFiles;

    use super::*;
    use crate::doctor::configuration::ExaminedConfig;

    /// The problems of a configuration, each with its number of lines.
    fn wrong(http: &str) -> Vec<(String, usize)> {
        let text = format!("events {{}} http {{ {http} }}");
        let mut files = MemoryFiles::default().with("/nginx.conf", &text);
        let conf = ExaminedConfig::read(Path::new("/nginx.conf"), &mut files).unwrap();
        let problems = cache_problems(conf.root()).into_iter();
        problems.map(|problem| (problem.what, problem.lines.len())).collect()
    }

    fn location(lines: &str) -> String {
        format!("server {{ location / {{ proxy_pass http://app; {lines} }} }}")
    }

    #[test]
    fn caches_that_mix_up_clients_are_found() {
        let cookies = "\"proxy_ignore_headers Set-Cookie\" stores cookies with responses";
        let basic = "responses behind \"auth_basic\" are cached for all users together";
        let request = "responses behind \"auth_request\" are cached for all users together";
        let slices = "\"slice 1m\" with a cache key that has no $slice_range";
        for (lines, what) in [
            ("proxy_cache a; proxy_ignore_headers Expires set-cookie;", Some(cookies)),
            ("proxy_cache a; proxy_ignore_headers Expires;", None),
            ("proxy_ignore_headers Set-Cookie;", None),
            ("proxy_cache off; proxy_ignore_headers Set-Cookie;", None),
            ("proxy_cache a; proxy_ignore_headers Set-Cookie; proxy_hide_header Set-Cookie;", None),
            ("proxy_cache a; auth_basic x;", Some(basic)),
            ("proxy_cache a; auth_request /auth;", Some(request)),
            ("proxy_cache a; auth_basic off;", None),
            ("proxy_cache a; auth_basic x; proxy_cache_key $uri${remote_user};", None),
            ("proxy_cache a; auth_basic x; proxy_cache_key $uri$cookie_session;", None),
            ("proxy_cache a; auth_basic x; proxy_cache_bypass $remote_user;", None),
            ("proxy_cache a; slice 1m;", Some(slices)),
            ("proxy_cache a; slice 1m; proxy_cache_key $uri;", Some(slices)),
            ("proxy_cache a; slice 1m; proxy_cache_key $uri$slice_range;", None),
            ("proxy_cache a; slice 0;", None),
        ] {
            let expected: Vec<_> = what.map(|what| (what.to_owned(), 1)).into_iter().collect();
            assert_eq!(wrong(&location(lines)), expected, "{lines}");
        }
    }

    #[test]
    fn hosts_that_share_entries_are_found() {
        let servers = |all: &str, lines: [&str; 2]| {
            let server = |(name, lines): (&str, &str)| {
                format!("server {{ server_name {name}; location / {{ {lines} }} }}")
            };
            wrong(&format!(
                "{all} {}",
                ["a.test", "b.test"].into_iter().zip(lines).map(server).collect::<String>()
            ))
        };
        let shared =
            [("a.test, b.test share cached responses: the key has no $host".to_owned(), 2)];
        let host = "proxy_cache a; proxy_set_header Host $host;";
        let pass = "proxy_pass http://app;";
        assert_eq!(servers(host, [pass, pass]).len(), 1);
        let own = format!("{pass} {host}");
        assert_eq!(servers("", [&own, &own]), shared);
        let keyed = format!("{own} proxy_cache_key $uri;");
        assert_eq!(servers("", [&keyed, &keyed]), shared);
        // The backend cannot tell the hosts apart, or the key does, or nothing is shared.
        let hosted = format!("{own} proxy_cache_key $host$uri;");
        let other = own.replace("app", "other");
        let zone = own.replace("cache a", "cache b");
        for lines in [
            ["proxy_cache a; proxy_pass http://app;", "proxy_cache a; proxy_pass http://app;"],
            [&*hosted, &*hosted],
            [&*own, &*other],
            [&*own, &*zone],
            [&*own, pass],
        ] {
            assert_eq!(servers("", lines), [], "{lines:?}");
        }
        let fastcgi = "fastcgi_pass app; fastcgi_cache a; fastcgi_cache_key $request_uri;";
        assert_eq!(servers("", [fastcgi, fastcgi]), shared);
    }

    #[test]
    fn one_server_with_several_names_shares_entries_too() {
        let names = "server_name a b c d e; proxy_set_header Host $http_host;";
        let text =
            format!("server {{ {names} location / {{ proxy_pass http://x; proxy_cache z; }} }}");
        let what = "a, b, c and 2 more share cached responses: the key has no $host";
        assert_eq!(wrong(&text), [(what.to_owned(), 1)]);
    }
}
