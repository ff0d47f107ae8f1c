//! `compare --access`: every access rule, by every way into a location, before every content.
//!
//! A cell of the table is a location tree of its own; all cells of a rule are one configuration.
//! Only what decides about access is compared: the status, and what reached the backend. The
//! tables hold no expectations: the reference is the expectation.

mod contents;
mod rules;
mod ways;

use super::case::Case;
use contents::{CONTENTS, CellContent};
use rules::{ACCESS_RULES, TableRule};
use ways::{WAYS, WayIn};

/// What all cells of a rule share: the ways need a server that answers everything, and names
/// another location where its URI says so.
const SERVERS: &str = "
limit_req_zone $request_uri zone=requests:1m rate=1r/m;
limit_conn_zone $http_x_held zone=held:1m;
root %%DIR%%/html;
proxy_http_version 1.1;
proxy_set_header Connection \"\";
server {
    listen 127.0.0.1:%%PORT2%%;
    access_log off;
    location ~ ^/accel(.+)$ { add_header X-Accel-Redirect $1; return 200; }
    location /404/ { return 404; }
    location / { return 200 outer; }
}
server {
    listen 127.0.0.1:%%PORT%%;
    access_log off;
    fastcgi_param METHOD $request_method;
    scgi_param METHOD $request_method;
    uwsgi_param METHOD $request_method;
    uwsgi_param END end;
    set $memcached_key key;
    location = /auth {
        internal;
        if ($http_x_key = open) { return 200; }
        if ($http_x_key = shut) { return 401; }
        return 403;
    }
    location /held/ { limit_conn held 1; proxy_pass http://127.0.0.1:%%PORT%%/; }
";

/// `u` has the password `p`.
const FILES: &str = "}\n--- files\nusers: u:\\{PLAIN\\}p\\n\n";

/// A configuration for each rule that has `word` in its name, or for all.
pub(super) fn cases(word: &str) -> Result<Vec<Case>, String> {
    ACCESS_RULES.iter().filter(|rule| rule.name.contains(word)).map(case).collect()
}

/// Whether a line of a transcript says how a request fared.
pub(super) fn decides(line: &str) -> bool {
    const MARKS: [&str; 4] = ["HTTP/", "WWW-Authenticate: ", "backend: ", "connect"];
    MARKS.iter().any(|mark| line.starts_with(mark))
}

fn case(rule: &TableRule) -> Result<Case, String> {
    let mut config = SERVERS.to_owned();
    let mut files = FILES.to_owned();
    let mut requests = "--- requests\n".to_owned();
    let mut titles = Vec::new();
    let cells = WAYS.iter().flat_map(|way| CONTENTS.iter().map(move |content| (way, content)));
    for (number, (way, content)) in cells.filter(|(way, content)| way.takes(content)).enumerate() {
        let cell = TableCell { number, rule, way, content };
        config += &cell.locations();
        files += &cell.files();
        requests += content.script;
        for request in rule.requests {
            requests += &cell.request(request);
            titles.push(format!("{} / {} / {}: {request}", rule.name, way.name, content.name));
        }
    }
    let name = format!("access-{}", rule.name.replace(' ', "-"));
    let mut case = Case::parse(name, &[config, files, requests].concat())?;
    for (request, title) in case.requests.iter_mut().zip(titles) {
        request.title = title;
    }
    Ok(case)
}

/// One rule, one way in, one content.
struct TableCell<'a> {
    number: usize,
    rule: &'a TableRule,
    way: &'a WayIn,
    content: &'a CellContent,
}

impl TableCell<'_> {
    fn locations(&self) -> String {
        let text = self.way.locations.replace("RULE", self.rule.directives);
        self.filled(&text.replace("CONTENT", self.content.directives)) + "\n"
    }

    /// What the locations read: a file wherever a URI may lead.
    fn files(&self) -> String {
        self.filled("html/CELL/x: file\\n\nhtml/in/CELL/x: file\\n\n")
    }

    /// `METHOD [?ARGS] [| FIELD]...` as a line of a case.
    fn request(&self, request: &str) -> String {
        let (method, rest) = request.split_once(' ').unwrap_or((request, ""));
        let (args, fields) = match rest.strip_prefix('/') {
            Some(rest) => rest.split_once(' ').unwrap_or((rest, "")),
            None => ("", rest),
        };
        let held = if fields.contains("X-Held: twice") { "/held" } else { "" };
        self.filled(&format!("{method} {held}{}{args} {fields}", self.way.target))
            .trim_end()
            .to_owned()
            + "\n"
    }

    fn filled(&self, text: &str) -> String {
        text.replace("CELL", &format!("c{}", self.number)).replace("TAIL", self.content.tail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_is_asked_every_request_of_its_rule() {
        let cells: usize = WAYS
            .iter()
            .map(|way| CONTENTS.iter().filter(|content| way.takes(content)).count())
            .sum();
        for (case, rule) in cases("").unwrap().iter().zip(ACCESS_RULES) {
            assert_eq!(case.requests.len(), cells * rule.requests.len(), "{}", rule.name);
        }
    }

    #[test]
    fn no_placeholder_is_left() {
        for case in cases("").unwrap() {
            for word in ["RULE", "CONTENT;", "CELL", "TAIL"] {
                assert!(!case.config.contains(word), "{}: {word}", case.name);
            }
        }
    }
}
