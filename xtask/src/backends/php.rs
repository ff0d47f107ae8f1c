//! PHP behind php-fpm: what every server is asked for, and what only FastCGI has.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::checks::BackendCheck;
use super::notes::Notes;
use crate::php_fpm::{self, PhpFpm};
use crate::project;
use crate::running::Running;

/// Requests on one connection to php-fpm.
const KEPT: usize = 50;

/// How long a line may take to come to the error log.
const LOG_MAX: Duration = Duration::from_secs(5);

/// What was done, and how long it took.
pub(super) fn play(weir: &Path, bytes: u64) -> Result<Vec<String>, String> {
    let fpm = PhpFpm::start(&php_fpm::program()?)?;
    let running = Running::start(weir, 1, &configuration(&fpm))?;
    let check = BackendCheck { address: running.address, bytes };
    let php = PhpCheck { check: &check, running: &running, socket: fpm.socket() };
    let mut notes = Notes::new();
    notes.note("parameters", php.parameters())?;
    notes.note("path info", php.path_info())?;
    notes.note("form", php.form())?;
    notes.note("kept connection to php-fpm", php.kept_connection())?;
    notes.note("stderr", php.stderr())?;
    notes.note("fatal error", php.fatal_error())?;
    notes.note("missing script", php.missing_script())?;
    check.in_every_way("/forced/range", &mut notes)?;
    Ok(notes.done)
}

fn configuration(fpm: &PhpFpm) -> String {
    let root = project::root().display();
    let address = fpm.address();
    format!(
        "upstream php {{ server {address}; keepalive 1; }}
         include {root}/conf/fastcgi.conf;
         fastcgi_param SCRIPT_FILENAME {root}/conformance/backends/php/index.php;
         fastcgi_param GIVEN \"a value with \\\"quotes\\\"\";
         server {{
             listen ADDRESS;
             client_max_body_size 0;
             fastcgi_keep_conn on;
             location / {{ fastcgi_pass php; }}
             location /streamed/ {{
                 rewrite ^/streamed(/.*)$ $1 break;
                 fastcgi_buffering off;
                 fastcgi_request_buffering off;
                 fastcgi_pass php;
             }}
             location /forced/ {{
                 rewrite ^/forced(/.*)$ $1 break;
                 fastcgi_force_ranges on;
                 fastcgi_pass php;
             }}
             location /fresh/ {{ fastcgi_keep_conn off; fastcgi_pass {address}; }}
             location ~ \\.php(/|$) {{
                 fastcgi_split_path_info ^(.+?\\.php)(/.*)$;
                 include {root}/conf/fastcgi.conf;
                 fastcgi_param SCRIPT_FILENAME {root}/conformance/backends/php/index.php;
                 fastcgi_param DOCUMENT_URI /params;
                 fastcgi_param PATH_INFO $fastcgi_path_info;
                 fastcgi_pass php;
             }}
             location = /missing {{
                 include {root}/conf/fastcgi.conf;
                 fastcgi_param SCRIPT_FILENAME /nowhere/missing.php;
                 fastcgi_pass php;
             }}
         }}"
    )
}

struct PhpCheck<'a> {
    check: &'a BackendCheck,
    running: &'a Running,
    socket: std::path::PathBuf,
}

impl PhpCheck<'_> {
    fn parameters(&self) -> Result<(), String> {
        let address = self.check.address;
        let expected = [
            ("REQUEST_METHOD", "GET"),
            ("REMOTE_ADDR", "127.0.0.1"),
            ("SERVER_PROTOCOL", "HTTP/1.1"),
            ("SERVER_PORT", &address.port().to_string()),
            ("REQUEST_SCHEME", "http"),
            ("HTTPS", "(none)"),
            ("GIVEN", "a value with \"quotes\""),
            ("HTTP_HOST", "h"),
            ("HTTP_X_A", "b"),
            ("CONTENT_LENGTH", ""),
        ];
        let names: Vec<_> = expected.iter().map(|(name, _)| *name).collect();
        let lines: String =
            expected.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
        let line = format!("GET /params?names={}", names.join("+"));
        self.expect(&line, "X-A: b\r\n", "", 200, &lines)
    }

    fn path_info(&self) -> Result<(), String> {
        let line = "GET /shop.php/orders/17?names=PATH_INFO+QUERY_STRING+REQUEST_URI";
        let query = "names=PATH_INFO+QUERY_STRING+REQUEST_URI";
        let uri = format!("/shop.php/orders/17?{query}");
        let lines = format!("PATH_INFO=/orders/17\nQUERY_STRING={query}\nREQUEST_URI={uri}\n");
        self.expect(line, "", "", 200, &lines)
    }

    /// A form with a file, as a browser sends it.
    fn form(&self) -> Result<(), String> {
        let file = "f".repeat(100_000);
        let disposition = "Content-Disposition: form-data; name=";
        let body = format!(
            "--cut\r\n{disposition}\"text\"\r\n\r\nsome text\r\n\
             --cut\r\n{disposition}\"file\"; filename=\"a.txt\"\r\n\r\n{file}\r\n--cut--\r\n"
        );
        let fields = format!(
            "Content-Type: multipart/form-data; boundary=cut\r\nContent-Length: {}\r\n",
            body.len()
        );
        self.expect("POST /post", &fields, &body, 200, "some text a.txt 100000\n")
    }

    /// One connection serves many requests, and none is left over where they are not kept.
    fn kept_connection(&self) -> Result<(), String> {
        let mut seen = BTreeSet::new();
        for _ in 0..KEPT {
            self.expect("GET /hello", "", "", 200, "hello\n")?;
            seen.extend(connected(&self.socket)?);
        }
        if seen.len() != 1 {
            return Err(format!("{KEPT} requests on {} connections", seen.len()));
        }
        self.expect("GET /fresh/hello", "", "", 200, "hello\n")?;
        match connected(&self.socket)? == seen {
            true => Ok(()),
            false => Err("a connection was kept without fastcgi_keep_conn".into()),
        }
    }

    fn stderr(&self) -> Result<(), String> {
        self.expect("GET /stderr", "", "", 200, "said\n")?;
        self.await_log("FastCGI sent in stderr: \"PHP message: a message of the script\"")
    }

    fn fatal_error(&self) -> Result<(), String> {
        self.expect("GET /fatal", "", "", 500, "")?;
        self.await_log("PHP Fatal error:  Uncaught Error: Call to undefined function")
    }

    fn missing_script(&self) -> Result<(), String> {
        self.expect("GET /missing", "", "", 404, "File not found.\n")?;
        self.await_log("FastCGI sent in stderr: \"Primary script unknown\"")
    }

    fn expect(
        &self,
        line: &str,
        fields: &str,
        body: &str,
        status: u16,
        expected: &str,
    ) -> Result<(), String> {
        let mut peer = self.check.open()?;
        peer.write(format!("{line} HTTP/1.1\r\nHost: h\r\n{fields}\r\n{body}").as_bytes())?;
        let (head, body) = peer.reply()?;
        let body = String::from_utf8_lossy(&body);
        match head.starts_with(&format!("HTTP/1.1 {status} ")) && body == expected {
            true => Ok(()),
            false => Err(format!("{line}: {head}\r\n{body}\nexpected {status} and {expected}")),
        }
    }

    fn await_log(&self, words: &str) -> Result<(), String> {
        let end = Instant::now() + LOG_MAX;
        while !self.running.log().contains(words) {
            if Instant::now() > end {
                return Err(format!("no {words:?} in the log:\n{}", self.running.log()));
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

/// The inodes of the connections that php-fpm has accepted on this socket and not closed.
fn connected(socket: &Path) -> Result<BTreeSet<String>, String> {
    /// States of a socket in /proc/net/unix.
    const CONNECTED: &str = "03";
    let table = fs::read_to_string("/proc/net/unix").map_err(|err| err.to_string())?;
    let path = socket.display().to_string();
    let inode = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        let is_ours = words.last() == Some(&path.as_str()) && words.get(5) == Some(&CONNECTED);
        is_ours.then(|| words[6].to_owned())
    };
    Ok(table.lines().filter_map(inode).collect())
}
