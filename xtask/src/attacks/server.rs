//! The server under attack.

use std::path::Path;

use crate::own_certificate::OwnCertificate;
use crate::running::Running;

/// Starts it with one worker, which also listens on `other.sock` for the other client.
pub(super) fn start(program: &Path, keys: &OwnCertificate, tls: bool) -> Result<Running, String> {
    let (parameter, directives) =
        if tls { (" ssl", keys.directives()) } else { ("", String::new()) };
    let http = format!(
        "error_log DIR/error.log info;
         server {{
             listen ADDRESS{parameter}; listen unix:DIR/other.sock; http2 on; {directives}
             send_timeout 1s; keepalive_requests 1000000; client_max_body_size 0;
             location / {{ default_type text/plain; return 200 hello\\n; }}
             location /large {{ alias DIR/large; }}
         }}"
    );
    let server = Running::start(program, 1, &http)?;
    let large = server.file("large");
    std::fs::write(&large, vec![b'x'; 1 << 20]).map_err(|err| err.to_string())?;
    Ok(server)
}
