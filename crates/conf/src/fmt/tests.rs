use super::*;

fn formatted(text: &str) -> String {
    String::from_utf8(format(text.as_bytes()).unwrap()).unwrap()
}

#[test]
fn a_configuration_gets_the_layout_of_nginxs_docs() {
    let text = "\n\nuser  www-data;worker_processes auto;\n\n\n\nevents{worker_connections 768;}\n\
        http\n{\n\n    server { listen 80\tdefault_server  ;\n\n\n  location / { } }\n\n}\n\n\n";
    let expected = "\
user www-data;
worker_processes auto;

events {
    worker_connections 768;
}
http {
    server {
        listen 80 default_server;

        location / {
        }
    }
}
";
    assert_eq!(formatted(text), expected);
}

#[test]
fn comments_stay_where_they_are() {
    let text = "#top\n\n\n  # of a\na;# at a  \n\
        b {# at b\n\n # in b\n\n c;\n# end of b\n\n} # after b\n\
        d # one\n 1\n# two\n 2 # three\n;\n\
        e # four\n{ }\n#last";
    let expected = "\
#top

# of a
a; # at a
b { # at b
    # in b

    c;
    # end of b
} # after b
d # one
    1
    # two
    2 # three
    ;
e # four
{
}
#last
";
    assert_eq!(formatted(text), expected);
}

#[test]
fn words_stay_as_written() {
    let text =
        "a 'b'  \"c\\\"d\"  e\\ f ${g}h  \"i\nj\" \\\n k#l;if ($m = \"n\"){o ''  ;}if( \"p\" ) {}";
    let expected = "a 'b' \"c\\\"d\" e\\ f ${g}h \"i\nj\" \\\n k#l;
if ($m = \"n\") {
    o '';
}
if( \"p\" ) {
}
";
    assert_eq!(formatted(text), expected);
}

#[test]
fn line_breaks_between_arguments_stay() {
    let text =
        "log_format main '$remote_addr - '\n                '\"$request\"'\n  ;\na\n{\nb\n\nc;}";
    let expected = "\
log_format main '$remote_addr - '
    '\"$request\"';
a {
    b
        c;
}
";
    assert_eq!(formatted(text), expected);
}

#[test]
fn every_kind_of_line_end_becomes_a_line_feed() {
    assert_eq!(formatted("a;\r\n\r\n# b\r\n\"c\r\nd\" e;\r\n"), "a;\n\n# b\n\"c\r\nd\" e;\n");
    assert_eq!(formatted("a;\rb;"), "a;\nb;\n");
}

#[test]
fn an_empty_text_stays_empty() {
    assert_eq!(formatted(""), "");
    assert_eq!(formatted(" \n\r\n"), "");
    assert_eq!(formatted("#"), "#\n");
}

#[test]
fn invalid_configurations_are_refused() {
    for text in ["a", "a {", "}", "a; ;", "a \"b\"c;"] {
        assert!(format(text.as_bytes()).is_err(), "{text}");
    }
}

#[test]
fn the_longest_word_stays_readable() {
    for text in [format_args!("{} {{}}", "a".repeat(4094)).to_string(), "a".repeat(4095) + "{}"] {
        assert!(parse_alone(formatted(&text).as_bytes()).is_ok());
    }
    let comment = "#".repeat(4096);
    assert!(parse_alone(comment.as_bytes()).is_ok());
    let refused = format(comment.as_bytes()).unwrap_err();
    assert_eq!(refused.message, "formatting would change what this file means");
}

#[test]
fn includes_are_not_followed() {
    assert_eq!(formatted("include  none;"), "include none;\n");
}
