//! Programs that requests run, and errors in nginx's words.

use crate::testing::{TestAnswer, refused, site};

/// The reply of a location with these lines: the status, and the body or the `Location`.
fn run(lines: &str, target: &str) -> String {
    let text = format!("server {{ location / {{ {lines} }} }}");
    brief(&site(&text).get(target))
}

fn brief(answer: &TestAnswer) -> String {
    match answer.field("Location") {
        Some(location) => format!("{} {location}", answer.status()),
        None if answer.status() >= 400 => answer.status().to_string(),
        None => format!("{} {}", answer.status(), answer.body()),
    }
}

#[test]
fn returns() {
    let table = [
        ("return 200 a$uri;", "200 a/x"),
        ("return 200;", "200 "),
        ("return 404 text;", "404"),
        ("return 404;", "404"),
        ("return 301 /to$uri;", "301 /to/x"),
        ("return 307 $args;", "307 a=b"),
        ("return http://a$uri;", "302 http://a/x"),
        ("return https://a;", "302 https://a"),
        ("return 306 text;", "306 text"),
    ];
    for (lines, expected) in table {
        assert_eq!(run(lines, "/x?a=b"), expected, "{lines}");
    }
}

#[test]
fn return_with_text_is_the_reply_itself() {
    let site = site("server { error_page 404 /e; location / { return 404 text; } }");
    let answer = site.get("/a.html");
    assert_eq!((answer.status(), answer.body().as_str()), (404, "text"));
    assert_eq!(answer.field("Content-Type").as_deref(), Some("text/html"));
}

#[test]
fn return_444_says_nothing() {
    assert!(!site("server { return 444; }").get("/").replied);
}

#[test]
fn rewrites() {
    let show = "return 200 $uri?$args;";
    let table = [
        // The client's arguments are appended, unless the replacement ends in a question mark.
        ("rewrite ^/x(.*) /y$1;", "200 /y1?a=b"),
        ("rewrite ^/x(.*) /y$1?c=d;", "200 /y1?c=d&a=b"),
        ("rewrite ^/x(.*) /y$1?c=d?;", "200 /y1?c=d"),
        ("rewrite ^/x(.*) /y$1?;", "200 /y1?"),
        ("rewrite ^/x(.*) /y$1??;", "200 /y1?"),
        ("rewrite ^/x(.*) /y?$args$1?;", "200 /y?a=b1"),
        ("rewrite ^/no /y;", "200 /x1?a=b"),
        // Each rewrite applies to the result of the one before.
        ("rewrite ^/x(.*) /y$1; rewrite ^/y(.*) /z$1;", "200 /z1?a=b"),
        ("rewrite /x /y break;", "404"),
        ("rewrite /x http://h/?c;", "302 http://h/?c&a=b"),
        ("rewrite /x https://h/;", "302 https://h/?a=b"),
        ("rewrite /x https://h/? permanent;", "301 https://h/"),
        ("rewrite /x(.) /y$1 redirect;", "302 /y1?a=b"),
        ("rewrite /x(.) /y$1 permanent;", "301 /y1?a=b"),
        ("rewrite ^ $arg_a;", "200 b?a=b"),
        ("rewrite ^ $arg_none;", "500"),
        ("rewrite ^ $arg_none? redirect;", "302 "),
        ("rewrite ^ ?x;", "500"),
    ];
    for (lines, expected) in table {
        assert_eq!(run(&format!("{lines} {show}"), "/x1?a=b"), expected, "{lines}");
    }
}

#[test]
fn last_chooses_the_location_again() {
    let site = site(
        "server {
             location /a { rewrite ^/a(.*) /b$1 last; return 200 a; }
             location /b { return 200 b$uri; }
             location /plain { rewrite ^ /b; }
             location /cycle { rewrite ^ /cycle; }
         }",
    );
    assert_eq!(brief(&site.get("/a/x")), "200 b/b/x");
    assert_eq!(brief(&site.get("/plain")), "200 b/b");
    assert_eq!(brief(&site.get("/cycle")), "500");
}

#[test]
fn ten_rewrites_are_enough() {
    let site = site(
        "error_log log;
         server {
             location / { rewrite ^/x(x*)$ /$1 last; return 200 $uri; }
             location /page { return 200 page; }
             location /cycle { error_page 500 /page; rewrite ^ /cycle; }
             location /more { error_page 500 /more; recursive_error_pages on; rewrite ^ /more; }
         }",
    );
    assert_eq!(brief(&site.get("/xxxxxxxxxx")), "200 /");
    assert_eq!(brief(&site.get("/xxxxxxxxxxx")), "500");
    let cycle = "[error] rewrite or internal redirection cycle while";
    assert_eq!(site.messages("log"), [format!("{cycle} processing \"/\"")]);
    // An error page would be one more redirect.
    assert!(site.get("/cycle").body().contains("500 Internal Server Error"));
    assert_eq!(brief(&site.get("/more")), "500");
}

#[test]
fn break_keeps_the_location() {
    let site = site(
        "server {
             location /a { rewrite ^ /b; break; return 200 a; }
             location /b { return 200 b; }
             location /c { rewrite ^ /b; rewrite ^ /d/file break; return 200 c; }
         }",
    );
    site.file("b", "file b");
    site.file("d/file", "file d");
    assert_eq!(brief(&site.get("/a")), "200 file b");
    assert_eq!(brief(&site.get("/c")), "200 file d");
}

#[test]
fn the_servers_own_lines_run_first() {
    let site = site(
        "server {
             set $s server;
             rewrite ^/old /new;
             if ($arg_stop) { return 200 stopped$arg_stop; }
             if ($arg_go) { set $s if; break; }
             set $s after$s;
             location /new { return 200 $s$uri; }
             location /old { return 200 old; }
         }",
    );
    assert_eq!(brief(&site.get("/old")), "200 afterserver/new");
    assert_eq!(brief(&site.get("/old?stop=1")), "200 stopped1");
    assert_eq!(brief(&site.get("/old?go=1")), "200 if/new");
    // Without a location, they are not run again.
    assert_eq!(brief(&site.get("/other")), "404");
}

#[test]
fn conditions() {
    let table = [
        ("$arg_a", "/x?a=1", true),
        ("$arg_a", "/x?a=0", false),
        ("$arg_a", "/x?a=00", true),
        ("$arg_a", "/x?a=", false),
        ("$arg_a", "/x", false),
        (" $arg_a ", "/x?a=1", true),
        ("$arg_a = b", "/x?a=b", true),
        ("$arg_a = b", "/x?a=B", false),
        ("$arg_a = $arg_b", "/x?a=b&b=b", true),
        ("$arg_a = $arg_b", "/x?a=b&b=bb", false),
        ("$arg_a != b", "/x?a=b", false),
        ("$arg_a != \"\"", "/x?a=b", true),
        ("$arg_a ~ ^b", "/x?a=bc", true),
        ("$arg_a ~ ^b", "/x?a=BC", false),
        ("$arg_a ~* ^b", "/x?a=BC", true),
        ("$arg_a !~ ^b", "/x?a=bc", false),
        ("$arg_a !~* ^b", "/x?a=BC", false),
        ("$arg_a !~* ^b", "/x?a=c", true),
        ("$uri ~ \"^/(x)$\"", "/x", true),
    ];
    for (condition, target, expected) in table {
        let lines = format!("if ({condition}) {{ return 200 yes; }} return 200 no;");
        let answer = run(&lines, target);
        assert_eq!(answer == "200 yes", expected, "{condition} {target} {answer}");
    }
}

#[test]
fn file_tests() {
    let site = site(
        "server { location / {
             set $r '';
             if (-f $document_root$uri) { set $r ${r}f; }
             if (!-f $document_root$uri) { set $r ${r}!f; }
             if (-d $document_root$uri) { set $r ${r}d; }
             if (!-d $document_root$uri) { set $r ${r}!d; }
             if (-e $document_root$uri) { set $r ${r}e; }
             if (!-e $document_root$uri) { set $r ${r}!e; }
             if (-x $document_root$uri) { set $r ${r}x; }
             if (!-x $document_root$uri) { set $r ${r}!x; }
             return 200 $r;
         } }",
    );
    site.file("dir/file", "");
    assert_eq!(brief(&site.get("/dir/file")), "200 f!de!x");
    assert_eq!(brief(&site.get("/dir")), "200 !fdex");
    assert_eq!(brief(&site.get("/none")), "200 !f!d!e!x");
    assert_eq!(brief(&site.get("/dir/file/below")), "200 !f!d!e!x");
}

#[test]
fn the_settings_of_the_last_true_if_apply() {
    let site = site(
        "server { location / {
             root outer;
             if ($arg_a) { root a; }
             if ($arg_b) { root b; }
             return 200 $document_root;
         } }",
    );
    let folder = |target: &str| {
        let body = site.get(target).body();
        body.rsplit('/').next().unwrap().to_owned()
    };
    assert_eq!(folder("/f"), "outer");
    assert_eq!(folder("/f?a=1"), "a");
    assert_eq!(folder("/f?a=1&b=1"), "b");
    assert_eq!(folder("/f?b=1"), "b");
}

#[test]
fn programs_are_not_inherited() {
    let site = site(
        "server { location / {
             return 200 outer;
             location /in { root html; location ~ x { return 200 inner; } }
         } }",
    );
    site.file("in", "file");
    assert_eq!(brief(&site.get("/")), "200 outer");
    assert_eq!(brief(&site.get("/in")), "200 file");
    assert_eq!(brief(&site.get("/inx")), "200 inner");
}

#[test]
fn groups_of_the_last_match() {
    let table = [
        ("if ($uri ~ (.)$) { } return 200 $1;", "200 1"),
        // A failed match clears the groups, a successful one replaces them.
        ("rewrite ^/(.) /$1; rewrite /(no) /; return 200 [$1];", "200 []"),
        ("rewrite ^/(.) /$1; rewrite . /z; return 200 [$1];", "200 []"),
        ("if ($uri ~ (.)$) { } if ($uri ~ (no)) { } return 200 [$1];", "200 []"),
        ("if ($uri ~ (.)$) { } if ($uri !~ ^/(.)) { } return 200 [$1];", "200 [x]"),
        ("if ($uri ~ (y)?(.)$) { } return 200 [$1$2$3];", "200 [1]"),
        ("rewrite ^/(?<name>x) /n; return 200 $name$1$uri;", "200 xx/n"),
        ("if ($uri ~ (?<a>y)|(?<b>x)) { } return 200 [$a][$b];", "200 [][x]"),
        ("if ($uri ~ (?<a>.)$) { set $a set; } return 200 $a;", "200 set"),
        ("set $a set; if ($uri ~ (?<a>.)$) { } return 200 $a;", "200 1"),
        ("set $a set; if ($uri ~ (?<a>no)) { } return 200 $a;", "200 set"),
    ];
    for (lines, expected) in table {
        assert_eq!(run(lines, "/x1"), expected, "{lines}");
    }
}

#[test]
fn groups_of_locations_and_names() {
    let site = site(
        "server { server_name a.org; return 200 default; }
         server {
             server_name ~^(?<sub>.+)\\.b\\.org$ www.b.org;
             location ~ ^/(?<first>[^/]+)/(.*) { return 200 $sub|$first|$1|$2; }
             location / { return 200 $sub|$1; }
         }",
    );
    let ask = |host: &str, path: &str| {
        brief(&site.send(&format!("GET {path} HTTP/1.1\nHost: {host}\n\n")))
    };
    assert_eq!(ask("x.b.org", "/p/q/r"), "200 x|p|p|q/r");
    assert_eq!(ask("x.b.org", "/p"), "200 x|x");
    assert_eq!(ask("www.b.org", "/p"), "200 |");
    assert_eq!(ask("a.org", "/p/q"), "200 default");
}

#[test]
fn groups_are_escaped_if_the_path_was() {
    let table = [
        ("rewrite ^/(.*) /y?a=$1; return 200 $uri?$args;", "/a&b", "200 /y?a=a&b"),
        ("rewrite ^/(.*) /y/$1?a=$1; return 200 $uri?$args;", "/a+b", "200 /y/a+b?a=a%2Bb"),
        ("rewrite ^/(.*) http://h/$1?a=$1;", "/a+b", "302 http://h/a+b?a=a%2Bb"),
        ("rewrite ^/(.*) /$1 redirect;", "/a+b", "302 /a+b"),
        // Until a rewrite has matched, the values of `set` and `if` are escaped as well.
        ("if ($uri ~ (.*)) { } set $a $1; return 200 $a;", "/a+b", "200 /a%2Bb"),
        ("rewrite (.*) /c; set $a $1; return 200 $a;", "/a+b", "200 /a+b"),
        ("if ($uri ~ (.*)) { } return 200 $1;", "/a+b", "200 /a+b"),
    ];
    for (lines, target, expected) in table {
        assert_eq!(run(lines, target), expected, "{lines}");
    }
}

#[test]
fn set() {
    let table = [
        ("set $a 1; set $b $a$a; set $a 2; return 200 $a$b;", "200 211"),
        ("set $A 1; return 200 $a;", "200 1"),
        ("set $args c=d; return 200 $args$is_args$arg_c$arg_a;", "200 c=d?d"),
        ("set $args ''; return 200 [$args$is_args];", "200 []"),
        ("set $http_x 1; return 200 $http_x;", "200 1"),
        ("return 200 [$http_x_y]; set $http_x_y 1;", "200 []"),
    ];
    for (lines, expected) in table {
        assert_eq!(run(lines, "/x?a=b"), expected, "{lines}");
    }
}

#[test]
fn a_prefix_variable_keeps_its_value_until_set_runs() {
    let site = site(
        "server {
             location /a { return 200 $http_x; }
             location /b { set $http_x set; return 200 $http_x; }
         }",
    );
    assert_eq!(brief(&site.get_with("/a", "X: sent\n")), "200 sent");
    assert_eq!(brief(&site.get_with("/b", "X: sent\n")), "200 set");
}

#[test]
fn unset_variables() {
    let site = site(
        "error_log log warn;
         server {
             location /a { return 200 [$x$x]; }
             location /b { uninitialized_variable_warn off; return 200 [$x]; }
             location /c { set $x 1; return 200 [$x]; }
         }",
    );
    assert_eq!(brief(&site.get("/a")), "200 []");
    assert_eq!(brief(&site.get("/b")), "200 []");
    assert_eq!(brief(&site.get("/c")), "200 [1]");
    assert_eq!(site.messages("log"), ["[warn] using uninitialized \"x\" variable"]);
}

#[test]
fn rewrite_log() {
    let site = site(
        "error_log log notice;
         server {
             location / {
                 rewrite_log on;
                 rewrite no /;
                 if ($uri ~ x) { }
                 rewrite ^ /y?a=b last;
             }
             location /y { rewrite ^ /z; rewrite_log on; return 200; }
             location /r { rewrite_log on; rewrite ^ http://h/; }
             location /quiet { rewrite ^ http://h/; }
         }",
    );
    site.get("/x?c=d");
    site.get("/r");
    site.get("/quiet");
    let expected = [
        r#"[notice] "no" does not match "/x""#,
        r#"[notice] "x" matches "/x""#,
        r#"[notice] "^" matches "/x""#,
        r#"[notice] rewritten data: "/y", args: "a=b&c=d""#,
        r#"[notice] "^" matches "/y""#,
        r#"[notice] rewritten data: "/z", args: "a=b&c=d""#,
        r#"[notice] "^" matches "/r""#,
        r#"[notice] rewritten redirect: "http://h/""#,
    ];
    assert_eq!(site.messages("log"), expected);
}

#[test]
fn invalid_directives_are_refused_in_nginx_words() {
    let table = [
        ("return x;", "invalid return code \"x\""),
        ("return 1000;", "invalid return code \"1000\""),
        ("return /x;", "invalid return code \"/x\""),
        ("return http://a b;", "invalid return code \"http://a\""),
        ("return;", "invalid number of arguments in \"return\" directive"),
        ("rewrite a;", "invalid number of arguments in \"rewrite\" directive"),
        ("rewrite a \"\";", "empty replacement"),
        ("rewrite a b c;", "invalid parameter \"c\""),
        ("rewrite ( b;", "pcre2_compile() failed: missing closing parenthesis in \"(\""),
        (
            "rewrite a** b;",
            "pcre2_compile() failed: quantifier does not follow a repeatable item \
             in \"a**\" at \"*\"",
        ),
        ("rewrite a $;", "invalid variable name"),
        ("set x 1;", "invalid variable name \"x\""),
        ("set $ 1;", "invalid variable name \"$\""),
        ("set $uri 1;", "the duplicate \"uri\" variable"),
        ("set $a ${b;", "the closing bracket in \"b\" variable is missing"),
        ("rewrite (?<host>a) b;", "the duplicate \"host\" variable"),
        ("break x;", "invalid number of arguments in \"break\" directive"),
        ("if ($a);", "directive \"if\" has no opening \"{\""),
        ("if $a { }", "invalid condition \"$a\""),
        ("if ($a { }", "invalid condition \"$a\""),
        ("if ($a = b { }", "invalid condition \"b\""),
        ("if ( { }", "invalid condition \"(\""),
        ("if (a) { }", "invalid condition \"a\""),
        ("if ( ) { }", "invalid condition \")\""),
        ("if () { }", "invalid condition \")\""),
        ("if ($) { }", "invalid condition \"$\""),
        ("if ($a =) { }", "invalid condition \"$a\""),
        ("if ($a == b) { }", "unexpected \"==\" in condition"),
        ("if ($a = b c) { }", "invalid condition \"$a\""),
        ("if (-f) { }", "invalid condition \"-f\""),
        ("if (-y a) { }", "invalid condition \"-y\""),
        ("if (-f a b) { }", "invalid condition \"-f\""),
        ("if (a) { if (b) { } }", "invalid condition \"a\""),
        ("if (-e a) { if (-e b) { } }", "\"if\" directive is not allowed here"),
        ("if (-e a) { root a; location a { } }", "\"location\" directive is not allowed here"),
    ];
    for (line, expected) in table {
        refused(&format!("server {{\n location / {{\n {line}\n}} }}"), &format!("{expected}:3"));
    }
}

#[test]
fn errors_without_a_line_are_reported() {
    refused("server { return 200 $a; }", "unknown \"a\" variable");
    refused("server { return 200 ${1}; }", "unknown \"1\" variable");
    refused("server { if ($1 = a) { } }", "unknown \"1\" variable");
    refused("server { if ($http = a) { } }", "unknown \"http\" variable");
}

#[test]
fn values_over_the_total_limit_are_an_error() {
    // 64 bytes, doubled 16 times, exceed the limit of an exchange's values in tests.
    let double = "set $a \"$a$a\"; ".repeat(16);
    let site = site(&format!(
        "error_log e.log; server {{ location / {{ set $a {}; {double} return 200 ok; }}
         location /named {{ set $a {}; {double} if ($a ~ (?<b>.+)) {{ return 200 ok; }} }} }}",
        "x".repeat(64),
        "x".repeat(6),
    ));
    assert_eq!(site.get("/").status(), 500);
    assert_eq!(site.get("/named").status(), 500);
    let log = site.log("e.log");
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines.len(), 2, "{log}");
    for (line, name) in lines.iter().zip(["a", "b"]) {
        let said = format!("the values of variables are too long to set \"{name}\"");
        assert!(line.contains(&said), "{line}");
    }
}
