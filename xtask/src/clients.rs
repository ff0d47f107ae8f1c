//! `xtask clients`: real clients against Weir's TLS and HTTP/2, a line for each.
//!
//! A client is a row in [`CLIENTS`]: a command, and what its output must contain.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::args::Args;
use crate::own_certificate::OwnCertificate;
use crate::running::Running;
use crate::{packages, project};

pub(crate) const HELP: &str = "real clients against TLS and HTTP/2

Usage: cargo xtask clients [--weir PATH] [--only NAME] [--strict]

  --weir PATH   the program under test; built where none is named
  --only NAME   clients whose name contains this
  --strict      what is skipped is a failure

curl, OpenSSL, nghttp2's clients, Chromium, Go and Node. What is missing is installed by apt-get if
that is allowed, except Go and Node. What Weir does not have yet is skipped.
";

/// How long a client may take, in seconds.
const CLIENT_MAX_S: &str = "60";

struct ClientProgram {
    name: &'static str,
    /// The program that has to be there, and Debian's package of it.
    program: &'static str,
    package: &'static str,
    /// The directive without which Weir cannot serve it.
    needs: Option<&'static str>,
    /// A shell command: `$URL`, `$AT` (host and port), `$CA` (the root's file) and `$HERE` (the
    /// folder of clients) are set.
    command: &'static str,
    expects: &'static [(&'static str, usize)],
}

const BODY: &str = "hello from weir";

const fn client(
    name: &'static str,
    program: &'static str,
    package: &'static str,
    command: &'static str,
    expects: &'static [(&'static str, usize)],
) -> ClientProgram {
    ClientProgram { name, program, package, needs: None, command, expects }
}

const fn needs(directive: &'static str, client: ClientProgram) -> ClientProgram {
    ClientProgram { needs: Some(directive), ..client }
}

const fn h2(client: ClientProgram) -> ClientProgram {
    needs(HTTP2, client)
}

const HTTP2: &str = "http2";
const RESUMPTION: &str = "ssl_session_cache";

/// Lines of the server, if Weir has their directives.
const SETTINGS: [(&str, &str); 2] =
    [(HTTP2, "http2 on;"), (RESUMPTION, "ssl_session_cache shared:clients:1m;")];

const CLIENTS: &[ClientProgram] = &[
    client(
        "curl HTTP/1.1",
        "curl",
        "curl",
        "curl -sS --http1.1 --cacert $CA -w '%{http_version} %{num_connects}\\n' $URL $URL",
        &[(BODY, 2), ("1.1 1", 1), ("1.1 0", 1)],
    ),
    h2(client(
        "curl HTTP/2",
        "curl",
        "curl",
        "curl -sS --http2 --cacert $CA -w '%{http_version}\\n' $URL $URL",
        &[(BODY, 2), ("2\n", 2)],
    )),
    client(
        "curl upload",
        "curl",
        "curl",
        "head -c 20000000 /dev/zero | curl -sS --cacert $CA -T - ${URL}upload -w '%{http_code}'",
        &[("204", 1)],
    ),
    client(
        "openssl TLS 1.2",
        "openssl",
        "openssl",
        "openssl s_client -connect $AT -tls1_2 -CAfile $CA -verify_return_error </dev/null",
        &[("Verify return code: 0 (ok)", 1), ("Protocol  : TLSv1.2", 1)],
    ),
    client(
        "openssl TLS 1.3",
        "openssl",
        "openssl",
        "openssl s_client -connect $AT -tls1_3 -CAfile $CA -verify_return_error </dev/null",
        &[("Verify return code: 0 (ok)", 1), ("New, TLSv1.3, ", 1)],
    ),
    // Every connection may come to another worker.
    needs(
        RESUMPTION,
        client(
            "openssl -reconnect",
            "openssl",
            "openssl",
            "for i in 1 2 3 4 5 6; do \
             openssl s_client -connect $AT -tls1_2 -CAfile $CA -reconnect </dev/null; done",
            &[("Reused, TLSv1.2, ", 30)],
        ),
    ),
    client(
        "h2load HTTP/1.1",
        "h2load",
        "nghttp2-client",
        "h2load --h1 -n 2000 -c 20 $URL",
        &[("2000 succeeded, 0 failed", 1)],
    ),
    h2(client(
        "h2load",
        "h2load",
        "nghttp2-client",
        "h2load -n 20000 -c 20 -m 50 $URL",
        &[("20000 succeeded, 0 failed", 1), ("Application protocol: h2", 1)],
    )),
    h2(client(
        "nghttp",
        "nghttp",
        "nghttp2-client",
        "nghttp -v $URL ${URL}a",
        &[("negotiated protocol: h2", 1), (BODY, 2)],
    )),
    client(
        "Chromium",
        "chromium",
        "chromium",
        "D=$(mktemp -d); chromium --headless --no-sandbox --disable-gpu --user-data-dir=$D \
         --ignore-certificate-errors --dump-dom $URL; S=$?; rm -rf $D; exit $S",
        &[(BODY, 1)],
    ),
    client("Go HTTP/1.1", "go", "", "go run $HERE/client.go $URL $CA HTTP/1.1", &[(BODY, 10)]),
    h2(client("Go HTTP/2", "go", "", "go run $HERE/client.go $URL $CA HTTP/2.0", &[(BODY, 10)])),
    client("Node HTTP/1.1", "node", "", "node $HERE/client.js $URL $CA HTTP/1.1", &[(BODY, 10)]),
    h2(client("Node HTTP/2", "node", "", "node $HERE/client.js $URL $CA HTTP/2.0", &[(BODY, 10)])),
];

pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let mut args = Args::new(words);
    let weir = args.option("--weir")?.map(PathBuf::from);
    let only = args.option("--only")?;
    let strict = args.flag("--strict");
    args.end()?;
    let weir = weir.map_or_else(|| project::debug("weir"), Ok)?;
    let server = ClientsServer::start(&weir)?;
    let (mut failed, mut skipped) = (Vec::new(), Vec::new());
    let wanted =
        |client: &&ClientProgram| only.as_deref().is_none_or(|only| client.name.contains(only));
    for client in CLIENTS.iter().filter(wanted) {
        let why = match client.lacks(&server.settings) {
            Some(why) => {
                skipped.push(format!("{}: {why}", client.name));
                format!("skipped: {why}")
            }
            None => match server.play(client) {
                Ok(()) => "ok".to_owned(),
                Err(why) => {
                    failed.push(format!("{}: {why}", client.name));
                    "FAILED".to_owned()
                }
            },
        };
        println!("{:19} {why}", client.name);
    }
    if strict {
        failed.extend(skipped);
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}

/// Whether the program has a directive, by its own reference.
fn has(weir: &Path, directive: &str) -> Result<bool, String> {
    let page = project::output(Command::new(weir).args(["reference", directive]))?;
    Ok(!String::from_utf8_lossy(&page).contains("This version of Weir does not support"))
}

impl ClientProgram {
    /// Why it cannot be run.
    fn lacks(&self, settings: &[&str]) -> Option<String> {
        if let Some(directive) = self.needs.filter(|needed| !settings.contains(needed)) {
            return Some(format!("Weir does not support {directive}"));
        }
        if packages::find(self.program).is_some() {
            return None;
        }
        match self.package {
            "" => Some(format!("{} is not installed", self.program)),
            package => packages::need(&[(self.program, package)]).err(),
        }
    }
}

/// A server with a certificate of its own.
struct ClientsServer {
    running: Running,
    /// The directives of [`SETTINGS`] that it has.
    settings: Vec<&'static str>,
    keys: OwnCertificate,
}

impl ClientsServer {
    fn start(weir: &Path) -> Result<Self, String> {
        let keys = OwnCertificate::new()?;
        let mut settings = Vec::new();
        let mut lines = String::new();
        for (directive, line) in SETTINGS {
            if has(weir, directive)? {
                settings.push(directive);
                lines += line;
            }
        }
        let http = format!(
            "server {{
                 listen ADDRESS ssl;
                 ssl_certificate {};
                 ssl_certificate_key {};
                 {}
                 client_max_body_size 0;
                 location / {{ default_type text/html; return 200 '{BODY}\n'; }}
                 location /upload {{ proxy_pass http://unix:DIR/upload.sock; }}
             }}
             server {{
                 listen unix:DIR/upload.sock;
                 client_max_body_size 0;
                 location / {{ return 204; }}
             }}",
            keys.certificate.display(),
            keys.key.display(),
            lines
        );
        Ok(Self { settings, running: Running::start(weir, 2, &http)?, keys })
    }

    fn play(&self, client: &ClientProgram) -> Result<(), String> {
        let mut command = Command::new("timeout");
        command.args([CLIENT_MAX_S, "sh", "-c", client.command]).stdin(Stdio::null());
        command.env("URL", format!("https://{}/", self.running.address));
        command.env("AT", self.running.address.to_string()).env("CA", &self.keys.certificate);
        command.env("HERE", project::root().join("conformance/clients"));
        let output = command.output().map_err(|err| err.to_string())?;
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        for (words, times) in client.expects {
            let found = text.matches(words).count();
            if found < *times {
                let log = self.running.log();
                return Err(format!("{words:?} {found} times, not {times}\n{text}\n{log}"));
            }
        }
        match output.status.success() {
            true => Ok(()),
            false => Err(format!("{}\n{text}", output.status)),
        }
    }
}
