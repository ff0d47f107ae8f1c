//! Programs that read their standard input to its end: compressors and digests.

use std::io::Write;
use std::process::{Command, Stdio};
use std::thread;

/// What a program makes of `input`.
pub(super) fn filter(program: &str, args: &[&str], input: &[u8]) -> Result<Vec<u8>, String> {
    let fail = |err: std::io::Error| format!("{program}: {err}");
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(fail)?;
    let mut stdin = child.stdin.take().ok_or("standard input is piped")?;
    // It may write before it has read everything.
    let output = thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input));
        child.wait_with_output()
    });
    let output = output.map_err(fail)?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(format!("{program}: {}", output.status))
}

/// Compressed by gzip, without a name or a time.
pub(super) fn gzip(input: &[u8]) -> Result<Vec<u8>, String> {
    filter("gzip", &["-9", "--no-name"], input)
}

/// Compressed by one thread of xz: more would cut the input by their number.
pub(super) fn xz(input: &[u8]) -> Result<Vec<u8>, String> {
    filter("xz", &["-6", "--threads=1"], input)
}

/// The digest, in hexadecimal, by `md5sum` or `sha256sum`.
pub(super) fn digest(program: &str, input: &[u8]) -> Result<String, String> {
    let line = filter(program, &[], input)?;
    let text = String::from_utf8_lossy(&line);
    let digest = text.split_whitespace().next().ok_or_else(|| format!("{program}: no digest"))?;
    Ok(digest.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_larger_than_a_pipe_passes() {
        let input = vec![b'x'; 1 << 20];
        assert_eq!(filter("cat", &[], &input), Ok(input));
    }

    #[test]
    fn a_failing_program_is_named() {
        assert!(filter("false", &[], b"").unwrap_err().contains("false"));
    }

    #[test]
    fn a_digest_is_the_first_word() {
        let empty = "d41d8cd98f00b204e9800998ecf8427e";
        assert_eq!(digest("md5sum", b""), Ok(empty.to_owned()));
    }
}
