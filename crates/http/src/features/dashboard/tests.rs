use super::page::{DashboardPage, hash};
use super::squeeze::squeeze;
use crate::testing::{refusal, site};

/// The most bytes of the page.
const PAGE_BYTES_MAX: usize = 64 * 1024;

const SITE: &str = "server { location /dashboard/ { dashboard; } location /open { dashboard; } }";

fn page() -> String {
    String::from_utf8(DashboardPage::shared().text.to_vec()).unwrap()
}

/// The text of an element without attributes.
fn inside<'a>(page: &'a str, tag: &str) -> &'a str {
    let (_, rest) = page.split_once(&format!("<{tag}>")).unwrap();
    rest.split_once(&format!("</{tag}>")).unwrap().0
}

#[test]
fn the_page_is_answered_with_fields_that_protect_it() {
    let site = site(SITE);
    let answer = site.get("/dashboard/");
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.body(), page());
    for (name, value) in [
        ("Content-Type", "text/html; charset=utf-8"),
        ("Cache-Control", "no-cache"),
        ("X-Content-Type-Options", "nosniff"),
        ("X-Frame-Options", "DENY"),
        ("Referrer-Policy", "no-referrer"),
        ("Cross-Origin-Resource-Policy", "same-origin"),
    ] {
        assert_eq!(answer.field(name).as_deref(), Some(value), "{name}");
    }
}

#[test]
fn the_policy_allows_only_this_script_and_this_style() {
    let policy = site(SITE).get("/dashboard/").field("Content-Security-Policy").unwrap();
    let page = page();
    assert!(policy.starts_with("default-src 'none'; "), "{policy}");
    for (source, tag) in [("script-src", "script"), ("style-src", "style")] {
        let allowed = format!("{source} '{}';", hash(inside(&page, tag)));
        assert!(policy.contains(&allowed), "{allowed} in {policy}");
        // A second element would not be allowed to do anything.
        assert_eq!(page.matches(&format!("<{tag}")).count(), 1, "{tag}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
}

#[test]
fn the_page_is_small_and_needs_nothing_else() {
    let page = page();
    assert!(page.len() <= PAGE_BYTES_MAX, "{} bytes", page.len());
    for part in ["src=", "url(", "@import", "style=", "innerHTML", "document.write", "eval("] {
        assert!(!page.contains(part), "{part}");
    }
    // A name of XML, not an address.
    let addresses = page.replace("http://www.w3.org/2000/svg", "");
    assert!(!addresses.contains("http://") && !addresses.contains("https://"));
}

#[test]
fn the_page_is_answered_with_304_to_those_who_have_it() {
    let site = site(SITE);
    let tag = site.get("/dashboard/").field("ETag").unwrap();
    let again = site.get_with("/dashboard/", &format!("If-None-Match: {tag}\n"));
    assert_eq!(again.status(), 304);
    assert!(again.field("Content-Security-Policy").is_some());
}

#[test]
fn a_location_answers_its_page_and_its_data() {
    let site = site(SITE);
    for (path, status) in [
        ("/dashboard/", 200),
        ("/dashboard/data", 200),
        ("/dashboard/data/", 200),
        ("/dashboard/data/http/requests", 200),
        ("/dashboard/data/connections/active", 200),
        ("/dashboard/data/nothing", 404),
        ("/dashboard/data2", 404),
        ("/dashboard/other", 404),
        ("/dashboard", 301),
        ("/open", 200),
        ("/open/", 200),
        ("/open/data", 200),
        ("/opendata", 404),
        ("/open2", 404),
    ] {
        assert_eq!(site.get(path).status(), status, "{path}");
    }
}

#[test]
fn the_data_are_not_kept() {
    let answer = site(SITE).get("/dashboard/data");
    assert_eq!(answer.field("Content-Type").as_deref(), Some("application/json"));
    assert_eq!(answer.field("Cache-Control").as_deref(), Some("no-store"));
    assert_eq!(answer.field("X-Content-Type-Options").as_deref(), Some("nosniff"));
    for part in ["{\"weir\":{", "\"now_at\":", "\"http\":{\"requests\":{\"total\":"] {
        assert!(answer.body().contains(part), "{part} in {}", answer.body());
    }
}

#[test]
fn only_get_and_head_are_answered() {
    let site = site(SITE);
    for path in ["/dashboard/", "/dashboard/data"] {
        assert_eq!(site.send(&format!("HEAD {path} HTTP/1.0\n\n")).status(), 200);
        for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
            assert_eq!(site.send(&format!("{method} {path} HTTP/1.0\n\n")).status(), 405, "{path}");
        }
    }
}

#[test]
fn the_root_may_be_a_dashboard() {
    let site = site("server { location / { dashboard; } }");
    assert_eq!(site.get("/").status(), 200);
    assert_eq!(site.get("/data").status(), 200);
    assert_eq!(site.get("/other").status(), 404);
}

#[test]
fn a_dashboard_needs_a_prefix_and_is_not_inherited() {
    assert_eq!(
        refusal("server { location ~ ^/d { dashboard; } }"),
        "\"dashboard\" needs a location with a prefix:1"
    );
    assert!(refusal("server { dashboard; }").contains("not allowed here"));
    assert!(refusal("server { location / { dashboard on; } }").contains("number of arguments"));
    let site = site("server { location /a { dashboard; location /a/b { } } }");
    assert_eq!(site.get("/a/b").status(), 404);
}

#[test]
fn squeezing_keeps_strings_and_line_ends() {
    let text = "// A comment.\n\n  const a = 'b = c' + `d, ${e} \\` f`;\n  return { a };\n";
    let squeezed = squeeze(text, b"={};+,");
    assert_eq!(squeezed, "const a='b = c'+`d, ${e} \\` f`;return{a};");
    assert_eq!(squeeze("a :hover { b: c }", b"{};"), "a :hover{b: c}\n");
    assert_eq!(squeeze("a = b\n(c)\nd(\ne\n)", b"="), "a=b\n(c)\nd(e\n)\n");
}
