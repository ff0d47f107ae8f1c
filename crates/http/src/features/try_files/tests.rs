use std::fs;

use crate::testing::{refusal, site};

#[test]
fn the_first_file_answers() {
    let site = site(
        "server { location / { try_files $uri $uri.html /d/ =404; }
                  location /n/ { try_files /n/none /nope =403; }
                  location /d { } }",
    );
    site.file("a", "a");
    site.file("b.html", "b");
    assert_eq!(site.get("/a").body(), "a");
    let answer = site.get("/b");
    assert_eq!(
        (answer.body(), answer.field("Content-Type")),
        ("b".into(), Some("text/html".into()))
    );
    assert_eq!(site.get("/none").status(), 404);
    assert_eq!(site.get("/n/x").status(), 403);
    fs::create_dir(site.file("a", "a").with_file_name("d")).unwrap();
    assert_eq!(site.get("/none").status(), 301);
}

#[test]
fn a_name_with_a_slash_means_a_directory() {
    let site = site("server { try_files $uri $uri/ =404; index i; }");
    site.file("d/i", "index");
    site.file("e", "file");
    assert_eq!(site.get("/d/").body(), "index");
    assert_eq!(site.get("/d").status(), 301);
    assert_eq!(site.get("/e/").status(), 404);
}

#[test]
fn the_last_argument_is_not_looked_up() {
    let site = site(
        "server { location /u { try_files $uri /to?x=$arg_a; }
                  location = /to { return 200 $uri?$args; }
                  location /v { try_files $uri /to; }
                  location /n { try_files $uri @name; }
                  location @name { return 200 \"$uri $is_args$args\"; }
                  location /w { try_files $uri @$arg_to; } }",
    );
    assert_eq!(site.get("/u?a=b").body(), "/to?x=b");
    assert_eq!(site.get("/v?a=b").body(), "/to?");
    assert_eq!(site.get("/n?a=b").body(), "/n ?a=b");
    assert_eq!(site.get("/w?to=name").body(), "/w ?to=name");
    assert_eq!(site.get("/w?to=none").status(), 500);
}

#[test]
fn the_last_path_is_an_internal_redirect() {
    let site = site("server { location / { try_files $uri /index.php; } }");
    site.file("index.php", "php");
    assert_eq!(site.get("/none").body(), "php");
    fs::remove_file(site.file("index.php", "")).unwrap();
    assert_eq!(site.get("/none").status(), 500);
}

#[test]
fn with_alias() {
    let site = site(
        "server { location /x/ { alias html/d/; try_files $uri $uri.html /fixed =404; }
                  location ~ ^/r/(.*)$ { alias html/; try_files d/$1 $1/ =404; } }",
    );
    site.file("d/a", "a");
    site.file("d/b.html", "b");
    site.file("e/x", "");
    assert_eq!(site.get("/x/a").body(), "a");
    assert_eq!(site.get("/x/b").body(), "b");
    assert_eq!(site.get("/x/none").status(), 404);
    site.file("d/fixed", "fixed");
    assert_eq!(site.get("/x/none").body(), "fixed");
    assert_eq!(site.get("/r/a").body(), "a");
    assert_eq!(site.get("/r/none").status(), 404);
}

#[test]
fn try_files_is_not_inherited() {
    let site = site(
        "server { try_files /a =404; location /l { } location /i { try_files /a =404;
                  if ($arg_if) { set $x 1; } } }",
    );
    site.file("a", "a");
    site.file("l/x", "l");
    assert_eq!(site.get("/other").body(), "a");
    assert_eq!(site.get("/l/x").body(), "l");
    assert_eq!(site.get("/i").body(), "a");
    assert_eq!(site.get("/i?if=1").status(), 404);
}

#[test]
fn refused_symbolic_links_are_skipped() {
    let site = site(
        "error_log log; disable_symlinks on from=$document_root;
         server { try_files $uri /b =404; }",
    );
    let path = site.file("b", "b");
    std::os::unix::fs::symlink("b", path.with_file_name("a")).unwrap();
    assert_eq!(site.get("/a").body(), "b");
    let path = path.with_file_name("a");
    assert_eq!(
        site.messages("log"),
        [format!(
            "[crit] openat() \"{}\" failed (40: Too many levels of symbolic links)",
            path.display()
        )]
    );
}

#[test]
fn invalid_directives_are_refused() {
    let cases = [
        ("try_files a;", "invalid number of arguments in \"try_files\" directive"),
        ("try_files a =x;", "invalid code \"=x\""),
        ("try_files a =;", "invalid code \"=\""),
        ("try_files a =1000;", "invalid code \"=1000\""),
        ("try_files a b; try_files a b;", "\"try_files\" directive is duplicate"),
    ];
    for (server, message) in cases {
        assert_eq!(refusal(&format!("server {{ {server} }}")), format!("{message}:1"));
    }
    assert_eq!(refusal("try_files a b;"), "\"try_files\" directive is not allowed here:1");
}
