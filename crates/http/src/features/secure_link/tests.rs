use md5::{Digest, Md5};
use wire::base64;

use crate::testing::{refusal, refused, site};

/// The MD5 of a text in base64 for URLs.
fn digest(text: &str) -> String {
    let mut out = Vec::new();
    base64::encode(&Md5::digest(text), &mut out);
    String::from_utf8(out).unwrap().replace('+', "-").replace('/', "_")
}

fn hexadecimal(text: &str) -> String {
    Md5::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

const ANSWER: &str = "return 200 <$secure_link|$secure_link_expires>;";

#[test]
fn links_of_words() {
    let site = site(&format!(
        "server {{
             secure_link $arg_h,$arg_e; secure_link_md5 secret$uri$arg_e;
             location / {{ {ANSWER} }}
             location /forever {{ secure_link $arg_h; {ANSWER} }}
         }}"
    ));
    let ask = |path: &str, digest: &str, ends: &str| {
        site.get(&format!("{path}?h={digest}&e={ends}")).body()
    };
    let (later, long_ago) = ("4102444800", "1000000000");
    assert_eq!(ask("/a", &digest("secret/a4102444800"), later), "<1|4102444800>");
    assert_eq!(
        ask("/a", digest("secret/a4102444800").trim_end_matches('='), later),
        "<1|4102444800>"
    );
    assert_eq!(ask("/a", &digest("secret/a1000000000"), long_ago), "<0|1000000000>");
    assert_eq!(ask("/b", &digest("secret/a4102444800"), later), "<|4102444800>");
    assert_eq!(ask("/a", "", later), "<|4102444800>");
    assert_eq!(ask("/a", &format!("{}=", digest("secret/a4102444800")), later), "<|4102444800>");
    assert_eq!(ask("/a", &digest("secret/a"), ""), "<|>");
    assert_eq!(ask("/a", &digest("secret/a0"), "0"), "<|>");
    assert_eq!(ask("/a", &digest("secret/a1x"), "1x"), "<|>");
    assert_eq!(ask("/forever", &digest("secret/forever"), ""), "<1|>");
    assert_eq!(ask("/forever", &digest("secret"), ""), "<|>");
}

#[test]
fn links_of_a_secret() {
    let site = site(&format!("server {{ secure_link_secret key; {ANSWER} }}"));
    let ask = |path: &str| site.get(path).body();
    let of = |rest: &str| hexadecimal(&format!("{rest}key"));
    assert_eq!(ask(&format!("/p/{}/rest", of("rest"))), "<rest|>");
    assert_eq!(ask(&format!("/p/{}/a/b?c=d", of("a/b?c=d"))), "<a/b?c=d|>");
    assert_eq!(ask(&format!("/p/{}/rest", of("rest").to_uppercase())), "<rest|>");
    for bad in [
        format!("/p/{}/other", of("rest")),
        format!("/p/{}/", of("")),
        format!("/p/{}", of("")),
        format!("/p/{}0/rest", of("rest")),
        format!("/p/{}/rest", &of("rest")[1..]),
        format!("/p/{}z/rest", &of("rest")[1..]),
        format!("/{}/rest", of("rest")),
        "/".into(),
    ] {
        assert_eq!(ask(&bad), "<|>", "{bad}");
    }
}

#[test]
fn each_kind_replaces_the_other_of_an_outer_block() {
    let site = site(&format!(
        "server {{
             secure_link_secret key;
             location / {{ secure_link $arg_h; {ANSWER}
                 location /words {{ secure_link_md5 w; {ANSWER}
                     location /words/secret {{ secure_link_secret key; {ANSWER} }}
                 }}
             }}
             location /silent {{ {ANSWER} }}
         }}"
    ));
    let rest = hexadecimal("restkey");
    assert_eq!(site.get(&format!("/silent/{rest}/rest")).body(), "<rest|>");
    assert_eq!(site.get(&format!("/p/{rest}/rest")).body(), "<|>");
    assert_eq!(site.get(&format!("/words?h={}", digest("w"))).body(), "<1|>");
    let rest = hexadecimal("x/restkey");
    assert_eq!(site.get(&format!("/words/{rest}/x/rest")).body(), "<|>");
}

#[test]
fn invalid_directives_are_refused() {
    let twice = "\"secure_link_md5\" directive is duplicate:1";
    refused("secure_link_md5 a; secure_link_md5 a;", twice);
    let mixed =
        "\"secure_link_secret\" cannot be mixed with \"secure_link\" and \"secure_link_md5\"";
    // Versions before 1.31 report the line where `http` ends.
    assert_eq!(refusal("server { secure_link a; secure_link_secret b; }"), mixed);
    assert_eq!(refusal("server { secure_link_secret b; secure_link_md5 a; }"), mixed);
}
