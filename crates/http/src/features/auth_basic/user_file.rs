//! `auth_basic_user_file`: lines of `name:password[:comment]`.
//!
//! As in nginx, the file is read at every request, so that a change has an immediate effect. The
//! cache of contents (`files`) serves it as long as a stat shows no change.

use std::io;

use conf::{Directive, Load, Result, Template, Value};
use observe::Level;

use crate::exchange::Exchange;
use crate::files::PathError;
use crate::paths;

/// The path, which may depend on variables.
#[derive(Clone)]
pub struct UserFile {
    path: Template,
    /// The prefix of a relative path.
    prefix: Box<[u8]>,
}

impl Value for UserFile {
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let path = Template::parse(from, load)?;
        // The prefix of an empty name ends in a slash.
        let prefix = load.conf_path(b"").into_os_string().into_encoded_bytes().into();
        Ok(Self { path, prefix })
    }
}

/// The result of looking a user up.
pub(super) struct UserEntry {
    /// The stored password; `None` for an unknown user.
    pub(super) kept: Option<Box<[u8]>>,
    pub(super) path: Vec<u8>,
}

impl UserFile {
    /// Looks a user up. `Err` is the status to answer with, after logging why.
    pub(super) fn find(&self, x: &mut Exchange, user: &[u8]) -> Result<UserEntry, u16> {
        let path = conf::full_name(&self.prefix, &x.render(&self.path));
        match paths::read(x, &path, SIZE_MAX) {
            Ok(content) => Ok(UserEntry { kept: line_of(user, &content).map(Box::from), path }),
            Err(failed) => Err(refuse(x, &path, &failed)),
        }
    }
}

const SIZE_MAX: u64 = 64 * 1024 * 1024;

fn refuse(x: &Exchange, path: &[u8], failed: &PathError) -> u16 {
    let not_found = failed.error.kind() == io::ErrorKind::NotFound;
    let (level, status) = if not_found { (Level::Error, 403) } else { (Level::Crit, 500) };
    paths::log_failed(x, level, path, failed);
    status
}

/// The password in the first line of the user.
fn line_of<'c>(user: &[u8], content: &'c [u8]) -> Option<&'c [u8]> {
    if matches!(user, [b'#' | b'\r' | b'\n', ..]) {
        return None;
    }
    content.split(|byte| *byte == b'\n').find_map(|line| {
        let kept = line.strip_prefix(user)?.strip_prefix(b":")?;
        let end = kept.iter().position(|byte| matches!(byte, b'\r' | b':'));
        Some(&kept[..end.unwrap_or(kept.len())])
    })
}

#[cfg(test)]
mod tests {
    use super::line_of;

    #[test]
    fn lines() {
        let content =
            b"# a comment:x\na:1\n\nab:2:comment\r\nb:3\r\na:4\n#c:5\n e:6\nf\ng:\nlast:7";
        let of = |user: &str| line_of(user.as_bytes(), content).map(String::from_utf8_lossy);
        for (user, kept) in [
            ("a", Some("1")),
            ("ab", Some("2")),
            ("b", Some("3")),
            ("#c", None),
            ("# a comment", None),
            ("c", None),
            ("e", None),
            (" e", Some("6")),
            ("f", None),
            ("g", Some("")),
            ("last", Some("7")),
            ("las", None),
            ("\n", None),
        ] {
            assert_eq!(of(user).as_deref(), kept, "{user:?}");
        }
    }
}
