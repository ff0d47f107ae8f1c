//! What the gateway protocols (FastCGI, SCGI, uwsgi) have in common: a request is a list of
//! variables, as CGI (RFC 3875) has them, and its fields are among them.
//!
//! Each protocol writes variables its own way ([`Pairs`]), with the length of a value before the
//! value. A value is rendered where it belongs and its length filled in afterwards, so that nothing
//! is copied. The head of a reply is [`crate::reply::FieldParser`]'s to parse.

use alloc::vec::Vec;

/// A variable that a protocol cannot carry: too long, or with a byte that would end it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidVariable;

/// How a protocol writes variables.
pub trait Pairs {
    /// Begins the variable `name`. The value is to follow where `out` ends then, which is returned.
    fn open(name: &[u8], out: &mut Vec<u8>) -> usize;

    /// The variable's value, from `value` on, is complete. `name`: how many bytes its name has.
    fn close(name: usize, value: usize, out: &mut Vec<u8>) -> Result<(), InvalidVariable>;
}

/// Writes a variable whose value is there.
pub fn write<P: Pairs>(
    name: &[u8],
    value: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), InvalidVariable> {
    let start = P::open(name, out);
    out.extend_from_slice(value);
    P::close(name.len(), start, out)
}

/// Appends the name of the variable that a field of a request is: `HTTP_ACCEPT_LANGUAGE`.
pub fn field_variable(field: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"HTTP_");
    out.extend(field.iter().map(|&byte| variable_byte(byte)));
}

/// Whether a field is the variable with this name after `HTTP_`.
pub fn is_field_variable(field: &[u8], variable: &[u8]) -> bool {
    field.len() == variable.len()
        && field
            .iter()
            .zip(variable)
            .all(|(&own, &other)| variable_byte(own) == other.to_ascii_uppercase())
}

fn variable_byte(byte: u8) -> u8 {
    match byte {
        b'-' => b'_',
        _ => byte.to_ascii_uppercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_variables() {
        for (field, variable) in [("Accept-Language", "ACCEPT_LANGUAGE"), ("x_Y-1", "X_Y_1")] {
            let mut name = Vec::new();
            field_variable(field.as_bytes(), &mut name);
            assert_eq!(name, [b"HTTP_", variable.as_bytes()].concat());
            assert!(is_field_variable(field.as_bytes(), variable.as_bytes()));
            assert!(is_field_variable(field.as_bytes(), variable.to_lowercase().as_bytes()));
            assert!(!is_field_variable(&field.as_bytes()[1..], variable.as_bytes()));
        }
        // nginx's comparison, too: a hyphen in a variable's name is no underscore.
        assert!(!is_field_variable(b"X-Y", b"X-Y"));
    }
}
