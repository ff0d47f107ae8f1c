//! WebSocket: Debian's `websockets` for Python at both ends.

use std::path::Path;

use crate::backends::program::{self, RunningBackend};
use crate::stream_server::ServedStream;
use crate::{packages, project};

/// Debian's, which has Debian's modules.
const PYTHON: &str = "/usr/bin/python3";

pub(super) fn run(weir: &Path) -> Result<String, String> {
    packages::need_python(&[("websockets", "python3-websockets")])?;
    let folder = project::root().join("conformance/protocols");
    let backend = RunningBackend::start(&[PYTHON, "websocket_server.py"], &folder)?;
    let lines = format!("server {{ listen LISTEN; proxy_pass 127.0.0.1:{}; }}", backend.port);
    let server = ServedStream::start(weir, "", &lines)?;
    let url = format!("ws://127.0.0.1:{}/", server.port);
    program::finish(&[PYTHON, "websocket_client.py"], &url, &folder)?;
    Ok("texts and 4 MB there and back, a ping, a close".into())
}
