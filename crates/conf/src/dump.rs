//! The text of `nginx -T`: every file as it is, each once, in the order of reading.

use crate::{SourceText, Sources};

/// The files, each with nginx's header line above and an empty line below. The argument of `-g` is
/// not a file, so it is left out.
pub fn dump(sources: &Sources) -> Vec<u8> {
    let mut out = Vec::new();
    for SourceText { path, text } in sources.iter() {
        if let Some(path) = path {
            out.extend([b"# configuration file ", &path[..], b":\n", text, b"\n"].concat());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryFiles, parse};

    #[test]
    fn files_come_verbatim_once_and_in_the_order_of_reading() {
        let mut files = MemoryFiles::default()
            .with("/c/nginx.conf", "include a;\ninclude b;\ninclude a;\n")
            .with("/c/a", "x; # no line feed")
            .with("/c/b", b"\xff;\r\n");
        let parsed = parse(b"/c/nginx.conf", b"/c/", Some(b"include b;"), &mut files);
        let expected = [
            &b"# configuration file /c/b:\n\xff;\r\n\n"[..],
            b"# configuration file /c/nginx.conf:\ninclude a;\ninclude b;\ninclude a;\n\n",
            b"# configuration file /c/a:\nx; # no line feed\n",
        ];
        let text = dump(&parsed.sources);
        assert_eq!(text.escape_ascii().to_string(), expected.concat().escape_ascii().to_string());
    }
}
