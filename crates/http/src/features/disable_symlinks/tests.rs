use std::os::unix::fs::symlink;

use crate::testing::{refusal, site};

#[test]
fn links_by_location() {
    let site = site(
        "disable_symlinks off; server {
             location /on/ { alias html/; disable_symlinks on from=$document_root; }
             location /owner/ { alias html/; disable_symlinks if_not_owner from=$document_root; }
         }",
    );
    let path = site.file("a", "a");
    symlink("a", path.with_file_name("link")).unwrap();
    symlink("/etc", path.with_file_name("etc")).unwrap();
    let status = |target: &str| site.get(target).status();
    for _ in 0..3 {
        assert_eq!(status("/link"), 200);
        assert_eq!((status("/on/a"), status("/on/link")), (200, 403));
        assert_eq!((status("/owner/a"), status("/owner/link")), (200, 200));
        // As in nginx, a link in the path is reported as "not a directory".
        assert_eq!((status("/etc/passwd"), status("/on/etc/passwd")), (200, 404));
    }
}

#[test]
fn invalid_directives_are_refused() {
    for (text, message) in [
        ("yes", "invalid parameter \"yes\""),
        ("from=/a", "\"disable_symlinks\" must have \"off\", \"on\" or \"if_not_owner\" parameter"),
        ("on if_not_owner", "duplicate parameters \"on if_not_owner\""),
        ("off from=/a", "\"from=\" cannot be used with \"off\" parameter"),
        ("on from=$", "invalid variable name"),
    ] {
        assert_eq!(refusal(&format!("disable_symlinks {text};")), format!("{message}:1"));
    }
}
