//! Pages about the program for those who ask at the control socket, where there is no location: the
//! same content as those of `api`, `prometheus` and `stub_status`.
//!
//! | path | page |
//! |---|---|
//! | `/` | the versions of the API |
//! | `/9/...` | the API of NGINX Plus |
//! | `/tree/...` | Weir's own tree: Angie's, with what only Weir has |
//! | `/metrics` | that of `prometheus` |
//! | `/stub_status` | the counters of `stub_status` as JSON |

use ::session::status::shapes::{Shape, own};
use metrics::CounterTotals;
use metrics::tree::{JsonPage, PathPart, find};
use wire::uri::{Unescape, unescape};

use crate::features::api::plus::{self, PlusPage, PlusQuery, Refused};
use crate::features::prometheus;
use crate::status_page::parts;

const JSON: &[u8] = b"application/json";

/// A page with its status and its type.
pub struct ControlPage {
    pub status: u16,
    pub content_type: &'static [u8],
    pub text: Vec<u8>,
}

/// The page at a path, which may have percent escapes. Counting begins with the first call, unless
/// the configuration has a page of its own.
pub fn control_page(path: &[u8], args: &[u8], request_id: &[u8]) -> ControlPage {
    ::session::status::count_always();
    let mut decoded = Vec::new();
    unescape(Unescape::All, path, &mut decoded);
    page(&parts(&decoded), args).unwrap_or_else(|refused| ControlPage {
        status: refused.status,
        content_type: JSON,
        text: refused.to_json(request_id),
    })
}

fn page(path: &[&[u8]], args: &[u8]) -> Result<ControlPage, Refused> {
    let json = |text| Ok(ControlPage { status: 200, content_type: JSON, text });
    match path {
        [] => json(plus::versions()),
        [b"metrics"] => {
            let (content_type, text) = (prometheus::TEXT_TYPE, prometheus::text());
            Ok(ControlPage { status: 200, content_type, text })
        }
        [b"stub_status"] => json(counters()),
        [b"tree", below @ ..] => {
            let is_extended = true;
            match find(own(b"unix:", Shape { is_extended, ..Shape::default() }), below) {
                Some(PathPart::Tree(tree)) => json(JsonPage::new(tree).text()),
                Some(PathPart::Value(text)) => json(text),
                None => Err(plus::not_found("path not found", "PathNotFound")),
            }
        }
        [version, path @ ..] if version.iter().all(u8::is_ascii_digit) => {
            plus::check_version(version)?;
            match plus::read(&PlusQuery { path, args, address: b"unix:" })? {
                PlusPage::Tree(tree) => json(JsonPage::new(tree).text()),
                PlusPage::Text(text) => json(text),
            }
        }
        _ => Err(plus::not_found("path not found", "PathNotFound")),
    }
}

fn counters() -> Vec<u8> {
    let CounterTotals { accepts, handled, requests, active, reading, writing, waiting } =
        CounterTotals::now();
    let json = format!(
        "{{\"active\":{active},\"accepts\":{accepts},\"handled\":{handled},\
         \"requests\":{requests},\"reading\":{reading},\"writing\":{writing},\
         \"waiting\":{waiting}}}"
    );
    json.into_bytes()
}
