//! The built-in format `json`: an object per line. A field without a value is left out, so that
//! every line is valid.

use conf::{Load, VariableId};
use observe::{is_plain_json, iso8601_ms, json_text};

use super::logged::{JsonColumn, JsonType, LogVariable, LoggedSession};

pub(super) const NAME: &[u8] = b"json";

/// A field of a line.
pub(super) struct JsonField<X> {
    /// `,"name":`, with the quote before a text.
    start: Box<[u8]>,
    kind: JsonType,
    value: FieldValue<X>,
}

enum FieldValue<X> {
    Own(LogVariable<X>),
    Variable(VariableId),
}

/// The fields after the time.
pub(super) fn fields<X: LoggedSession>(load: &mut Load<'_>) -> Vec<JsonField<X>> {
    X::JSON.iter().map(|column| field(column, load)).collect()
}

/// The first field, which is always there.
pub(super) fn time<X>(_: &X, out: &mut Vec<u8>) {
    out.extend_from_slice(&iso8601_ms(net::clock::unix_ms()));
}

fn field<X: LoggedSession>(
    &JsonColumn { name, kind, variable }: &JsonColumn,
    load: &mut Load<'_>,
) -> JsonField<X> {
    let quote = if kind == JsonType::Text { "\"" } else { "" };
    let own = X::OWN.iter().find(|(own, _)| *own == variable.as_bytes());
    let value = match own {
        Some((_, own)) => FieldValue::Own(*own),
        None => FieldValue::Variable(load.names.number(variable.as_bytes(), None)),
    };
    JsonField { start: format!(",\"{name}\":{quote}").into_bytes().into(), kind, value }
}

impl<X: LoggedSession> JsonField<X> {
    /// Appends the field, if it has a value.
    pub(super) fn write(&self, x: &mut X, out: &mut Vec<u8>) {
        let before = out.len();
        out.extend_from_slice(&self.start);
        let start = out.len();
        let found = match self.value {
            FieldValue::Own(own) => {
                own(x, out);
                true
            }
            FieldValue::Variable(id) => x.variable(id, out),
        };
        let kept = match self.kind {
            _ if !found || out.len() == start => false,
            JsonType::Text => {
                quote(out, start);
                true
            }
            JsonType::Number => keep_number(out, start),
        };
        if !kept {
            out.truncate(before);
        }
    }
}

/// Makes `out` from `start` on the inside of a string, and ends the string. Nearly always there is
/// nothing to escape.
fn quote(out: &mut Vec<u8>, start: usize) {
    if !is_plain_json(&out[start..]) {
        let text = out.split_off(start);
        json_text(&text, out);
    }
    out.push(b'"');
}

/// Leaves the last number of a list like `502, 200 : 204` in `out` from `start` on, as JSON writes
/// it; false if that is no number.
fn keep_number(out: &mut Vec<u8>, start: usize) -> bool {
    let list = &out[start..];
    let last = list.iter().rposition(|byte| *byte == b' ').map_or(0, |space| space + 1);
    let number = &list[last..];
    let whole = number.iter().position(|byte| *byte == b'.').unwrap_or(number.len());
    let is_number = |digits: &[u8]| !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    if !is_number(&number[..whole]) || number.get(whole + 1..).is_some_and(|part| !is_number(part))
    {
        return false;
    }
    let zeros = number[..whole - 1].iter().take_while(|digit| **digit == b'0').count();
    out.drain(start..start + last + zeros);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Option<String> {
        let mut out = format!("\"a\": {text}").into_bytes();
        keep_number(&mut out, 5).then(|| String::from_utf8(out).unwrap())
    }

    #[test]
    fn the_last_number_of_a_list_is_kept() {
        let table = [
            ("200", "200"),
            ("0.001", "0.001"),
            ("502, 200", "200"),
            ("0.100, - : 1.250", "1.250"),
            ("009", "9"),
            ("000", "0"),
            ("00.5", "0.5"),
        ];
        for (list, expected) in table {
            assert_eq!(number(list), Some(format!("\"a\": {expected}")), "{list}");
            let json = number(list).unwrap().replace("\"a\": ", "");
            assert!(json.parse::<f64>().is_ok());
        }
    }

    #[test]
    fn text_is_no_number() {
        for list in ["-", "200, -", "1.", ".5", "1e5", "-1", "1.2.3", "0x1", "200,", " "] {
            assert_eq!(number(list), None, "{list}");
        }
    }
}
