//! Lists of servers for `weir ctl servers`.

use std::io::{Read, stdin};

use serde_json::{Value, json};

use super::arguments::parameters;
use crate::messages::{Reported, complain};

/// Reads a list from a file, or from standard input (`-`), as the JSON of a request.
pub(super) fn read(file: &str) -> Result<Value, Reported> {
    let mut text = String::new();
    let read = match file {
        "-" => stdin().read_to_string(&mut text).map(|_| ()),
        _ => std::fs::read_to_string(file).map(|read| text = read),
    };
    read.map_err(|error| complain(format_args!("ctl: {file}: {error}")))?;
    parse(file, &text)
}

fn parse(file: &str, text: &str) -> Result<Value, Reported> {
    if text.trim_start().starts_with('[') {
        return serde_json::from_str(text)
            .map_err(|error| complain(format_args!("ctl: {file}: {error}")));
    }
    let lines = text.lines().map(words).filter(|words| !words.is_empty());
    lines.map(|words| server(&words)).collect::<Result<Vec<_>, _>>().map(Value::Array)
}

/// The words of a line: those of a `server` line of a configuration, or only its arguments.
fn words(line: &str) -> Vec<&str> {
    let line = line.split('#').next().unwrap_or_default().trim().trim_end_matches(';');
    let words: Vec<&str> = line.split_whitespace().collect();
    match &words[..] {
        ["server", rest @ ..] => rest.to_vec(),
        words => words.to_vec(),
    }
}

fn server(words: &[&str]) -> Result<Value, Reported> {
    // A name is always resolved at run time.
    let rest: Vec<&str> = words[1..].iter().copied().filter(|word| *word != "resolve").collect();
    let mut server = parameters(&rest)?;
    server.insert("server".to_owned(), json!(words[0]));
    Ok(Value::Object(server))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_json_or_lines() {
        let lines = "# all\n10.0.0.1:80 weight=2\n\nserver a.test resolve down; # one\n";
        let expected = json!([{"server": "10.0.0.1:80", "weight": 2},
            {"server": "a.test", "down": true}]);
        assert_eq!(parse("f", lines).ok(), Some(expected.clone()));
        assert_eq!(parse("f", &format!(" {expected}")).ok(), Some(expected));
        assert_eq!(parse("f", "").ok(), Some(json!([])));
        for wrong in ["[", "10.0.0.1 wieght=1", "10.0.0.1 weight=x"] {
            assert_eq!(parse("f", wrong).ok(), None, "{wrong}");
        }
    }
}
