//! Conditions on requests as variables: each is a `map` whose value is 1 or 0.

use std::collections::BTreeMap;

use super::ConfText;
use super::text::{quoted, regex_of};
use crate::plan::names::field_variable;

/// Regular expressions match the whole value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RequestCondition {
    Method(String),
    Path {
        pattern: String,
        is_caseless: bool,
    },
    Field {
        name: String,
        pattern: String,
    },
    /// The first argument of this name. `text` is decoded.
    Argument {
        name: String,
        value: ArgumentValue,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ArgumentValue {
    Text(String),
    Pattern(String),
}

impl RequestCondition {
    pub(crate) fn field(name: &str, text: &str) -> Self {
        Self::Field { name: name.to_ascii_lowercase(), pattern: regex_of(text) }
    }

    pub(crate) fn field_matching(name: &str, pattern: &str) -> Self {
        Self::Field { name: name.to_ascii_lowercase(), pattern: format!("(?:{pattern})") }
    }

    pub(crate) fn argument(name: &str, text: &str) -> Self {
        Self::Argument { name: name.to_owned(), value: ArgumentValue::Text(text.to_owned()) }
    }

    pub(crate) fn argument_matching(name: &str, pattern: &str) -> Self {
        let value = ArgumentValue::Pattern(pattern.to_owned());
        Self::Argument { name: name.to_owned(), value }
    }
}

/// The conditions of all servers, each with one variable.
#[derive(Default)]
pub(super) struct ConditionVariables {
    numbers: BTreeMap<RequestCondition, usize>,
    text: ConfText,
}

impl ConditionVariables {
    pub(super) fn variable(&mut self, condition: &RequestCondition) -> String {
        let next = self.numbers.len() + 1;
        let number = *self.numbers.entry(condition.clone()).or_insert(next);
        if number == next {
            self.define(condition, number);
        }
        format!("$condition_{number}")
    }

    pub(super) fn into_text(self) -> ConfText {
        self.text
    }

    fn define(&mut self, condition: &RequestCondition, number: usize) {
        match condition {
            RequestCondition::Method(method) => {
                self.map("$request_method", number, &format!("~^{}\\z", regex_of(method)));
            }
            RequestCondition::Path { pattern, is_caseless } => {
                let tilde = if *is_caseless { "~*" } else { "~" };
                self.map("$uri", number, &format!("{tilde}{pattern}"));
            }
            RequestCondition::Field { name, pattern } => {
                self.map(&field_variable(name), number, &format!("~^{pattern}\\z"));
            }
            RequestCondition::Argument { name, value: ArgumentValue::Text(text) } => {
                let pattern = format!("{}{}(?:&|\\z)", before_value(name), encoded_or_not(text));
                self.map("$args", number, &format!("~{pattern}"));
            }
            RequestCondition::Argument { name, value: ArgumentValue::Pattern(pattern) } => {
                let argument = format!("$argument_{number}");
                let whole = format!("~{}(?<argument_{number}_value>[^&]*+)", before_value(name));
                self.text.block(format!("map $args {argument}"), |text| {
                    text.line("default \"\"");
                    // The sign tells an empty argument from one that is missing.
                    text.line(format!("{} \"=$argument_{number}_value\"", quoted(&whole)));
                });
                self.map(&argument, number, &format!("~^=(?:{pattern})\\z"));
            }
        }
    }

    fn map(&mut self, subject: &str, number: usize, pattern: &str) {
        self.text.block(format!("map {subject} $condition_{number}"), |text| {
            text.line("default 0");
            text.line(format!("{} 1", quoted(pattern)));
        });
    }
}

/// Everything up to the value of the first argument of this name.
fn before_value(name: &str) -> String {
    let name = encoded_or_not(name);
    format!("^(?:(?!{name}=)[^&]*+&)*+{name}=")
}

/// An expression that matches a text whether or not a client encodes the characters that may be.
fn encoded_or_not(text: &str) -> String {
    let mut out = String::new();
    let mut buffer = [0; 4];
    for character in text.chars() {
        if character.is_ascii_alphanumeric() || "-_".contains(character) {
            out.push(character);
            continue;
        }
        let bytes = character.encode_utf8(&mut buffer).bytes();
        let encoded: String = bytes.map(|byte| format!("%(?i:{byte:02x})")).collect();
        match character {
            ' ' => out.push_str(&format!("(?:{encoded}|\\+)")),
            '&' | '#' | '+' | '%' => out.push_str(&encoded),
            other => {
                out.push_str(&format!("(?:{encoded}|{})", regex_of(&other.to_string())));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(name: &str, text: &str, arguments: &str) -> bool {
        let pattern = format!("{}{}(?:&|\\z)", before_value(name), encoded_or_not(text));
        pcre2::bytes::Regex::new(&pattern).unwrap().is_match(arguments.as_bytes()).unwrap()
    }

    #[test]
    fn the_first_argument_of_a_name_decides() {
        assert!(holds("animal", "whale", "animal=whale"));
        assert!(holds("animal", "whale", "a=1&animal=whale&b"));
        assert!(holds("animal", "whale", "animal=whale&animal=cow"));
        assert!(!holds("animal", "whale", "animal=cow&animal=whale"));
        assert!(!holds("animal", "whale", "animal=whales"));
        assert!(!holds("animal", "whale", "xanimal=whale"));
        assert!(!holds("animal", "whale", "Animal=whale"));
        assert!(!holds("animal", "whale", ""));
    }

    #[test]
    fn an_argument_may_be_encoded() {
        for sent in ["q=a%20b", "q=a+b"] {
            assert!(holds("q", "a b", sent), "{sent}");
        }
        for sent in ["q=a@b", "q=a%40b"] {
            assert!(holds("q", "a@b", sent), "{sent}");
        }
        assert!(holds("q", "a&b", "q=a%26b"));
        assert!(!holds("q", "a&b", "q=a&b"));
        assert!(holds("q", "ä", "q=%C3%A4") && holds("q", "ä", "q=%c3%a4"));
        assert!(!holds("q", "a.b", "q=axb"));
    }

    #[test]
    fn a_condition_has_one_variable() {
        let mut variables = ConditionVariables::default();
        let first = variables.variable(&RequestCondition::field("X-A", "1"));
        let second = variables.variable(&RequestCondition::field("x-a", "2"));
        assert_ne!(first, second);
        assert_eq!(variables.variable(&RequestCondition::field("x-A", "1")), first);
        let text = variables.into_text();
        assert_eq!(
            text.as_str().lines().take(4).collect::<Vec<_>>(),
            ["map $http_x_a $condition_1 {", "    default 0;", "    \"~^1\\\\z\" 1;", "}"]
        );
    }
}
