//! Bodies with `Content-Encoding: gzip` are compared by what is in them: two compressors that do
//! the same do not give the same bytes.

use std::io::Write;
use std::process::{Command, Stdio};
use std::thread;

/// What is compressed in `body`, by gzip itself, and a line that says so where it is broken: what
/// stands before the breach is kept. `None` where nothing is compressed, or no gzip is installed.
pub(super) fn expanded(body: &[u8]) -> Option<(Vec<u8>, Option<String>)> {
    if body.is_empty() {
        return None;
    }
    let mut gzip = Command::new("gzip");
    gzip.arg("-dc").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut gzip = gzip.spawn().ok()?;
    let mut stdin = gzip.stdin.take()?;
    let output = thread::scope(|scope| {
        // It may stop reading where it finds nothing to expand.
        scope.spawn(move || stdin.write_all(body));
        gzip.wait_with_output()
    });
    let output = output.ok()?;
    let broken = (!output.status.success()).then(|| "(no end of gzip)".to_owned());
    Some((output.stdout, broken))
}

#[cfg(test)]
mod tests {
    use super::expanded;

    /// `hi`, compressed.
    const HI: &[u8] = b"\x1f\x8b\x08\0\0\0\0\0\x02\x03\xcb\xc8\x04\0\xac\x2a\x93\xd8\x02\0\0\0";

    #[test]
    fn what_is_in_it() {
        assert_eq!(expanded(HI), Some((b"hi".to_vec(), None)));
        let (text, broken) = expanded(&HI[..HI.len() - 4]).unwrap();
        assert_eq!((&text[..], broken.is_some()), (&b"hi"[..], true));
        assert!(expanded(b"hi").unwrap().1.is_some());
        assert_eq!(expanded(b""), None);
    }
}
