//! Files with a token or a password. They are read for each use, because they are replaced now and
//! then.

use std::path::Path;

/// The text of a file, without the end of its line.
pub fn read_secret(file: &Path) -> Result<String, String> {
    let told = |why: String| format!("{}: {why}", file.display());
    let text = std::fs::read_to_string(file).map_err(|error| told(error.to_string()))?;
    match text.trim_end_matches(['\r', '\n']) {
        secret if secret.bytes().any(|byte| byte.is_ascii_control()) => {
            Err(told("it has more than one line, or a control character".to_owned()))
        }
        secret => Ok(secret.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_one_line() {
        let folder = testing::Folder::new();
        let read = |text: &str| read_secret(&folder.write("secret", text));
        assert_eq!(read("pass word\r\n"), Ok("pass word".to_owned()));
        assert!(read("a\nX-Other: b").unwrap_err().contains("more than one line"));
        assert!(read_secret(Path::new("/none")).unwrap_err().starts_with("/none: "));
    }
}
