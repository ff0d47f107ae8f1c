mod across;
mod begin;
mod errors;
mod requests;

use super::*;

fn target() -> ScriptTarget {
    ScriptTarget {
        scheme: "http".into(),
        host: "example.org".into(),
        port: Some(8080),
        path: "/a?b=c".into(),
        method: "GET".into(),
        ..ScriptTarget::default()
    }
}

fn load(source: &str) -> Script {
    Script::load("test.lua", source.as_bytes(), &target()).unwrap()
}

/// A script whose thread has begun.
fn begun(source: &str) -> Script {
    let script = load(source);
    script.init(&arguments()).unwrap();
    script
}

fn arguments() -> Vec<String> {
    ["http://example.org:8080/a?b=c", "one", "two"].map(String::from).to_vec()
}

fn request(script: &Script) -> String {
    let mut out = b"left over".to_vec();
    script.request(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn respond(script: &Script, headers: &[(&str, &str)], body: &[u8]) -> Result<(), ScriptError> {
    let headers = headers.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    script.response(200, headers, body)
}

/// What a global holds.
fn text(script: &Script, name: &str) -> String {
    match script.get(name).unwrap() {
        LuaValue::String(bytes) => String::from_utf8(bytes).unwrap(),
        other => format!("{other:?}"),
    }
}

fn message<T>(result: Result<T, ScriptError>) -> String {
    match result {
        Ok(_) => "no error".into(),
        Err(error) => error.to_string(),
    }
}
