//! mlua's error as one line for the author of the script.

use mlua::{Error, Value};

use crate::script::ScriptError;

/// An error of a function that the script called.
pub(super) fn refuse(message: impl Into<String>) -> Error {
    Error::external(ScriptError::new(message))
}

/// The type of a value, for a message.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Nil => "nil",
        Value::Boolean(_) => "a boolean",
        Value::Integer(_) | Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Table(_) => "a table",
        Value::Function(_) => "a function",
        Value::Thread(_) => "a coroutine",
        _ => "an object",
    }
}

/// The error with the line of the script that is to blame; `name` stands in where none is known.
pub(super) fn shown(name: &str, error: &Error) -> ScriptError {
    let (root, place) = root(error);
    let text = root.to_string();
    let message = match root {
        Error::SyntaxError { message, .. } | Error::RuntimeError(message) => message,
        _ => &text,
    };
    // A message from Lua begins with its place, and ends with how it came there.
    let message = message.split("\nstack traceback:").next().unwrap_or(message);
    let message = match (root, place) {
        (Error::SyntaxError { .. } | Error::RuntimeError(_), _) | (_, None) => message.to_owned(),
        (_, Some(place)) => format!("{place}: {message}"),
    };
    // LuaJIT shortens a long name to "...", and what `error` is told not to place has none.
    match message.starts_with(name) || message.starts_with("...") {
        true => ScriptError::new(message),
        false => ScriptError::new(format!("{name}: {message}")),
    }
}

/// The error that all others are about, and the line of Lua that called what failed.
fn root(error: &Error) -> (&Error, Option<&str>) {
    let mut place = None;
    let mut error = error;
    loop {
        match error {
            Error::CallbackError { traceback, cause } => {
                place = place_in(traceback);
                error = cause;
            }
            Error::WithContext { cause, .. } => error = cause,
            _ => return (error, place),
        }
    }
}

/// `script.lua:12` out of a traceback: the innermost line that is Lua's, and not Lua that mlua
/// has put around the fields of an object.
fn place_in(traceback: &str) -> Option<&str> {
    let lines = traceback.lines().map(str::trim);
    let (place, _) = lines
        .filter(|line| !line.starts_with('[') && !line.starts_with("__mlua"))
        .find_map(|line| line.split_once(": in "))?;
    Some(place)
}
