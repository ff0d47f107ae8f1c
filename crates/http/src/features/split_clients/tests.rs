//! Shares.

use crate::testing::{refused, site};

#[test]
fn shares_in_order() {
    let site = site(
        "split_clients $arg_a $s { 51.2% one; 10% two more; * three; }
         split_clients $arg_a $half { 50% low; }
         split_clients $arg_a $all { 99.99% most; 0.01% last; }
         server { return 200 $s; }",
    );
    let mut counts = [0; 3];
    for number in 0..1000 {
        let part = match &*site.get(&format!("/?a={number}")).body() {
            "one" => 0,
            "two" => 1,
            _ => 2,
        };
        counts[part] += 1;
    }
    assert!((480..550).contains(&counts[0]) && (70..130).contains(&counts[1]), "{counts:?}");
}

#[test]
fn a_text_outside_all_shares_has_an_empty_value() {
    let site = site("split_clients $arg_a $h { 0.01% low; } server { return 200 [$h]; }");
    assert_eq!(site.get("/?a=1").body(), "[]");
    assert_eq!(site.get("/?a=").body(), "[low]");
}

#[test]
fn invalid_directives_are_refused_in_nginx_words() {
    let table = [
        ("a a { }", "invalid variable name \"a\":1"),
        ("a $a {\n 1 a;\n}", "invalid percent value \"1\":2"),
        ("a $a {\n 0% a;\n}", "invalid percent value \"0%\":2"),
        ("a $a {\n 1.234% a;\n}", "invalid percent value \"1.234%\":2"),
        ("a $a {\n \"\" a;\n}", "invalid percent value \"\":2"),
        ("a $a {\n include a;\n}", "invalid percent value \"include\":2"),
        ("a $a {\n 50% a;\n 50.01% b;\n}", "percent total is greater than 100%:4"),
        ("a $a {\n * a;\n 1% b;\n}", "percent total is greater than 100%:4"),
        ("a $a {\n 1% { }\n}", "unexpected \"{\":2"),
    ];
    for (text, expected) in table {
        refused(&format!("split_clients {text}"), expected);
    }
}
