//! Requests that curl makes: over TLS, and with HTTP/2.

use std::io::Write;
use std::process::{Command, Stdio};

use super::case::{CurlFront, CurlRequest};
use super::client::{self, ConnectionReplies};

/// How long it may take, in seconds.
const SECONDS_MAX: &str = "8";

/// What curl found when nothing was wrong.
const FINE: &str = "0";

/// Has curl ask the server on `port`.
pub(super) fn play(asked: &CurlRequest, port: u16) -> Result<ConnectionReplies, String> {
    let mut curl = command(asked, port).spawn().map_err(|e| format!("curl: {e}"))?;
    if let Some(mut input) = curl.stdin.take() {
        // A server may refuse and close before it has read everything.
        let _ = input.write_all(&asked.body);
    }
    let output = curl.wait_with_output().map_err(|e| format!("curl: {e}"))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let (port, code) = said.split_once(' ').ok_or_else(|| format!("curl: {said}"))?;
    let port = port.parse().map_err(|_| format!("curl: {said}"))?;
    let replies = client::split(output.stdout, asked.method == "HEAD");
    let ending = if code == FINE { "(curl: fine)" } else { "(curl: failed)" };
    Ok(ConnectionReplies { replies, ending, port })
}

fn command(asked: &CurlRequest, port: u16) -> Command {
    let (scheme, version) = match asked.front {
        CurlFront::Tls => ("https", "--http1.1"),
        CurlFront::TlsHttp2 => ("https", "--http2"),
        CurlFront::Http2 => ("http", "--http2-prior-knowledge"),
    };
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--include", "--insecure", "--raw", "--path-as-is", "--globoff"]);
    curl.args(["--noproxy", "*", "--max-time", SECONDS_MAX, version]);
    curl.args(["--write-out", "%{stderr}%{local_port} %{exitcode}"]);
    curl.args(["--connect-to", &format!("::127.0.0.1:{port}")]);
    match (&*asked.method, asked.body.is_empty()) {
        ("HEAD", true) => curl.arg("--head"),
        (method, _) => curl.args(["--request", method]),
    };
    if !asked.body.is_empty() {
        curl.args(["--data-binary", "@-"]);
    }
    for field in &asked.fields {
        curl.args(["--header", field]);
    }
    let target = &asked.target;
    curl.arg(format!("{scheme}://localhost:{port}{target}"));
    curl.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    curl
}
