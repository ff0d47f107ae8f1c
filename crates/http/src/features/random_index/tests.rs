use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::symlink;

use crate::testing::site;

#[test]
fn random_index_answers_with_files_only() {
    let site = site("error_log log; server { location / { random_index on; } }");
    for name in ["a", "b", ".hidden", "d/x"] {
        site.file(name, name);
    }
    let html = site.file("a", "a").parent().unwrap().to_owned();
    symlink("a", html.join("link")).unwrap();
    symlink("none", html.join("dangling")).unwrap();
    fs::create_dir(html.join("empty")).unwrap();
    let seen: HashSet<String> =
        (0..200).map(|_| String::from_utf8(site.get("/").x.request.uri.clone()).unwrap()).collect();
    assert_eq!(seen, HashSet::from(["/a", "/b", "/link"].map(String::from)));
    assert_eq!(site.get("/empty/").status(), 403);
    assert_eq!(site.get("/none/").status(), 404);
    assert_eq!(site.get("/a/").status(), 404);
    symlink("loop", html.join("empty/loop")).unwrap();
    symlink("empty/loop", html.join("loop")).unwrap();
    assert_eq!(site.get("/empty/").status(), 500);
    let html = html.display();
    assert_eq!(
        site.messages("log")[1..],
        [
            format!("[error] opendir() \"{html}/none\" failed (2: No such file or directory)"),
            format!("[error] opendir() \"{html}/a\" failed (20: Not a directory)"),
            format!(
                "[crit] stat() \"{html}/empty/loop\" failed (40: Too many levels of symbolic links)"
            ),
        ]
    );
}
