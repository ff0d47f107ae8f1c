use crate::testing::{refusal, site};

/// The path of the file for a request.
fn path(server: &str, target: &str) -> String {
    let mut x = site(&format!("server {{ {server} }}")).get(target).x;
    let mut path = Vec::new();
    assert!(x.append_path(&mut path));
    String::from_utf8(path).unwrap()
}

#[test]
fn root_comes_before_the_path() {
    let cases = [
        ("root /a;", "/a/x/y"),
        ("root /a/;", "/a/x/y"),
        ("root /a//;", "/a//x/y"),
        ("root /;", "/x/y"),
        ("root /a/$host;", "/a/localhost/x/y"),
        ("root /a/$arg_none/;", "/a//x/y"),
        ("root /$host$uri;", "/localhost/x/y/x/y"),
        ("root /a; location /x { root /b; }", "/b/x/y"),
        ("root /a; location /x { if ($host) { root /b; } }", "/b/x/y"),
    ];
    for (server, expected) in cases {
        assert_eq!(path(server, "/x/y"), expected, "{server}");
    }
}

#[test]
fn relative_paths_are_below_the_prefix() {
    let site = site(
        "server { location /a { root files; } location /b { root $arg_root; }
                  location /c { root \"\"; } }",
    );
    site.file("../files/a", "a");
    site.file("../b", "b");
    site.file("../c", "c");
    assert_eq!(site.get("/a").body(), "a");
    assert_eq!(site.get("/b?root=html/../files/..").body(), "b");
    assert_eq!(site.get("/b?root=").body(), "b");
    assert_eq!(site.get("/c").body(), "c");
}

#[test]
fn alias_replaces_the_name() {
    let cases = [
        ("location /x/ { alias /a/; }", "/a/y"),
        ("location /x { alias /a; }", "/a/y"),
        ("location /x { alias /a/; }", "/a//y"),
        ("location = /x/y { alias /a/z; }", "/a/z"),
        ("location ^~ /x/ { alias /$host/; }", "/localhost/y"),
        ("location ~ ^/(.)/(.*)$ { alias /a/$2/$1; }", "/a/y/x"),
        ("location ~ y$ { alias /a; }", "/a"),
        ("location /x/ { alias /a/; location /x/y { } }", "/a/y"),
        ("location /x/ { alias /a/; if ($host) { set $z 1; } }", "/a/y"),
        ("location /x/ { alias /a/; location /x/y { alias /b; } }", "/b"),
        ("location /x/ { alias /a/; location ~ y { } }", "/a/y"),
    ];
    for (server, expected) in cases {
        assert_eq!(path(server, "/x/y"), expected, "{server}");
    }
}

#[test]
fn alias_fails_after_the_name_was_rewritten() {
    let site = site(
        "error_log log; server { location /x/ { rewrite ^ /other break; alias /a/; }
                  location /r/ { rewrite ^ /other break; root /a/; } }",
    );
    assert_eq!(site.get("/x/y").status(), 500);
    assert_eq!(site.get("/r/y").status(), 404);
    assert_eq!(
        site.messages("log")[0],
        "[alert] \"alias\" cannot be used in location \"/x/\" where URI was rewritten"
    );
}

#[test]
fn invalid_directives_are_refused() {
    let cases = [
        ("root a; root b;", "\"root\" directive is duplicate"),
        (
            "location / { root a; alias b; }",
            "\"alias\" directive is duplicate, \"root\" directive was specified earlier",
        ),
        (
            "location / { alias a; root b; }",
            "\"root\" directive is duplicate, \"alias\" directive was specified earlier",
        ),
        ("location / { alias a; alias b; }", "\"alias\" directive is duplicate"),
        ("alias a;", "\"alias\" directive is not allowed here"),
        (
            "location @a { alias a; }",
            "the \"alias\" directive cannot be used inside the named location",
        ),
        (
            "root $document_root;",
            "the $document_root variable cannot be used in the \"root\" directive",
        ),
        (
            "location / { alias /a${realpath_root}; }",
            "the $realpath_root variable cannot be used in the \"alias\" directive",
        ),
    ];
    for (server, message) in cases {
        assert_eq!(refusal(&format!("server {{ {server} }}")), format!("{message}:1"));
    }
}
