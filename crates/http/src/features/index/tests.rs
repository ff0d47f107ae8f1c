use std::fs;

use crate::testing::{refusal, site};

#[test]
fn the_first_existing_file_answers() {
    let site = site("server { index one.html two.html; index $arg_name; }");
    site.file("a/two.html", "two");
    site.file("a/three", "three");
    site.file("b/one.html", "one");
    site.file("b/two.html", "two");
    assert_eq!(site.get("/a/").body(), "two");
    assert_eq!(site.get("/b/").body(), "one");
    fs::remove_file(site.file("a/two.html", "")).unwrap();
    assert_eq!(site.get("/a/?name=three").body(), "three");
    assert_eq!(site.get("/a/?name=none").status(), 403);
}

#[test]
fn the_redirect_keeps_the_arguments_and_chooses_a_location() {
    let site = site(
        "server { location = /index.html { return 200 $uri?$args; }
                  location /abs/ { index none /to; } location = /to { return 200 $uri?$args; }
                  location /var/ { index $arg_to; } }",
    );
    site.file("index.html", "");
    site.file("abs/x", "");
    assert_eq!(site.get("/?a=b").body(), "/index.html?a=b");
    assert_eq!(site.get("/abs/?a=b").body(), "/to?a=b");
    assert_eq!(site.get("/var/?to=/to").body(), "/to?to=/to");
}

#[test]
fn other_methods_and_paths_are_left_to_other_handlers() {
    let site = site("server { }");
    site.file("index.html", "content");
    let status = |head: &str| site.send(&format!("{head} HTTP/1.1\nHost: h\n\n")).status();
    assert_eq!(status("HEAD /"), 200);
    assert_eq!(status("POST /"), 405);
    assert_eq!(status("PUT /"), 405);
    assert_eq!(status("GET /index.htm"), 404);
}

#[test]
fn with_alias() {
    let site = site(
        "server { location /x/ { alias html/d/; } location /y { alias html/d; }
                  location /z/ { alias html/d; } }",
    );
    site.file("d/index.html", "content");
    assert_eq!(site.get("/x/").body(), "content");
    assert_eq!(site.get("/y/").body(), "content");
    // nginx looks for `html/dindex.html`.
    site.file("dindex.html", "beside");
    assert_eq!(site.get("/z/").body(), "beside");
}

#[test]
fn missing_files_and_directories_have_different_errors() {
    let site = site(
        "error_log log; index one two;
         server { location /quiet/ { log_not_found off; }
                  location /cached/ { open_file_cache max=9; open_file_cache_errors on; } }",
    );
    let html = site.file("file", "").parent().unwrap().to_owned();
    site.file("empty/x", "");
    site.file("cached/x", "");
    for (target, status) in [
        ("/empty/", 403),
        ("/none/", 404),
        ("/quiet/", 404),
        ("/file/", 404),
        ("/cached/", 403),
        ("/cached/none/", 404),
        ("/cached/", 403),
    ] {
        assert_eq!(site.get(target).status(), status, "{target}");
    }
    let html = html.display();
    assert_eq!(
        site.messages("log"),
        [
            format!("[error] directory index of \"{html}/empty/\" is forbidden"),
            format!("[error] \"{html}/none/one\" is not found (2: No such file or directory)"),
            format!("[error] \"{html}/file/one\" is not found (20: Not a directory)"),
            format!("[error] directory index of \"{html}/cached/\" is forbidden"),
            format!(
                "[error] \"{html}/cached/none/one\" is not found (2: No such file or directory)"
            ),
            format!("[error] directory index of \"{html}/cached/\" is forbidden"),
        ]
    );
}

#[test]
fn refused_symbolic_links_are_errors() {
    let site = site("server { disable_symlinks on from=$document_root; }");
    let target = site.file("real", "content");
    fs::create_dir(target.with_file_name("d")).unwrap();
    std::os::unix::fs::symlink("../real", target.with_file_name("d").join("index.html")).unwrap();
    assert_eq!(site.get("/d/").status(), 403);
    assert_eq!(site.get("/real").status(), 200);
}

#[test]
fn names_are_checked() {
    assert_eq!(refusal("index '';"), "index \"\" in \"index\" directive is invalid:1");
    let site = site("index /a b;\nindex c /d;\nindex e;");
    assert_eq!(site.warnings, ["only the last index in \"index\" directive should be absolute:1"]);
}
