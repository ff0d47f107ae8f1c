//! Angie's `/status/`.

use ::session::status::shapes::{Shape, angie, own};
use metrics::tree::{PathPart, find};
use wire::Method;
use wire::json::write_text;

use crate::exchange::{Exchange, Flow};
use crate::status_page::{self, parts, server_address};

/// Answers a request for a path of the tree.
pub(super) fn answer(x: &mut Exchange, path: &[u8]) -> Flow {
    if !matches!(x.request.head.method, Method::Get | Method::Head) {
        let method = x.request.method_name();
        let why = b" method is not allowed for the requested API entity \"";
        let text = [b"The ", method, why, path, b"\"."].concat();
        return error(x, 405, "MethodNotAllowed", &text);
    }
    let shape = Shape {
        is_extended: status_page::argument(x, b"extended").is_some(),
        is_epoch: status_page::argument(x, b"date") == Some(b"epoch"),
    };
    let parts = parts(path);
    let below = parts.split_first().filter(|(first, _)| **first == b"status").map(|(_, rest)| rest);
    let address = server_address(x);
    let tree = if shape.is_extended { own(&address, shape) } else { angie(&address, shape) };
    match below.and_then(|below| find(tree, below)) {
        Some(PathPart::Tree(part)) => status_page::json(x, part),
        Some(PathPart::Value(json)) => status_page::text(x, 200, b"application/json", json),
        None => {
            let text = [b"Requested API entity \"", path, b"\" doesn't exist."].concat();
            error(x, 404, "PathNotFound", &text)
        }
    }
}

fn error(x: &mut Exchange, status: u16, code: &str, description: &[u8]) -> Flow {
    let mut json = format!("{{\"error\":\"{code}\",\"description\":").into_bytes();
    write_text(description, &mut json);
    json.push(b'}');
    status_page::text(x, status, b"application/json", json)
}
