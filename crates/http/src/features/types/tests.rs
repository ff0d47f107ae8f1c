use crate::testing::{refusal, site};

/// The content type of a file with that name.
fn content_type(http: &str, name: &str) -> String {
    let site = site(&format!("{http} server {{ }}"));
    site.file(name, "");
    site.get(&format!("/{name}")).field("Content-Type").unwrap_or_default()
}

#[test]
fn three_extensions_are_predefined() {
    for (name, expected) in [
        ("a.html", "text/html"),
        ("a.GIF", "image/gif"),
        ("a.b.jpg", "image/jpeg"),
        ("a.b", "text/plain"),
        ("html", "text/plain"),
        (".html", "text/plain"),
        ("a.", "text/plain"),
        ("d.html/a", "text/plain"),
    ] {
        assert_eq!(content_type("", name), expected, "{name}");
    }
}

#[test]
fn types_by_extension() {
    let http = "types { a/b x Y z; c/d w; } default_type e/f;";
    for (name, expected) in
        [("n.x", "a/b"), ("n.y", "a/b"), ("n.Z", "a/b"), ("n.w", "c/d"), ("n.html", "e/f")]
    {
        assert_eq!(content_type(http, name), expected, "{name}");
    }
    assert_eq!(content_type("types { } default_type '';", "a.html"), "");
}

#[test]
fn an_inner_block_replaces_the_types_and_adds_to_its_own() {
    let site = site(
        "types { a/a x; } types { b/b y; }
         server { location /i/ { types { c/c x; } types_hash_max_size 2048; } }",
    );
    for name in ["n.x", "n.y", "i/n.x", "i/n.y"] {
        site.file(name, "");
    }
    let content_type = |target: &str| site.get(target).field("Content-Type").unwrap();
    assert_eq!(content_type("/n.x"), "a/a");
    assert_eq!(content_type("/n.y"), "b/b");
    assert_eq!(content_type("/i/n.x"), "c/c");
    assert_eq!(content_type("/i/n.y"), "text/plain");
}

#[test]
fn a_repeated_extension_causes_a_warning() {
    let site = site("types {\n a/a x;\n b/b w X;\n} server { }");
    site.file("n.x", "");
    assert_eq!(site.get("/n.x").field("Content-Type").unwrap(), "b/b");
    assert_eq!(
        site.warnings,
        ["duplicate extension \"x\", content type: \"b/b\", previous content type: \"a/a\":3"]
    );
}

#[test]
fn a_block_within_types_is_refused() {
    assert_eq!(refusal("types {\n a/b x {\n }\n}"), "unexpected \"{\":2");
}
