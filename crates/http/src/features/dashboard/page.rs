//! The page: one text, put together once, and its fixed fields.

use std::sync::{Arc, LazyLock};

use wire::base64;

use super::squeeze::squeeze;
use crate::exchange::{Bytes, Exchange, Flow};

const PAGE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/style.css");
const SCRIPT: &str = concat!(
    include_str!("page/data.js"),
    include_str!("page/draw.js"),
    include_str!("page/model.js"),
    include_str!("page/warnings.js"),
    include_str!("page/parts.js"),
    include_str!("page/now.js"),
    include_str!("page/sites.js"),
    include_str!("page/more.js"),
    include_str!("page/main.js"),
);

/// What may stand without a space beside it.
const IN_STYLE: &[u8] = b"{};:,";
const IN_SCRIPT: &[u8] = b"{}()[]=,;:<>?+*&|!";

pub(super) struct DashboardPage {
    pub(super) text: Arc<[u8]>,
    etag: Vec<u8>,
    policy: Vec<u8>,
}

impl DashboardPage {
    pub(super) fn shared() -> &'static Self {
        static PAGE: LazyLock<DashboardPage> = LazyLock::new(DashboardPage::new);
        &PAGE
    }

    fn new() -> Self {
        let style = squeeze(STYLE, IN_STYLE);
        let script = squeeze(SCRIPT, IN_SCRIPT);
        let policy = format!(
            "default-src 'none'; script-src '{}'; style-src '{}'; img-src data:; \
             connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
             require-trusted-types-for 'script'",
            hash(&script),
            hash(&style),
        );
        let text = PAGE.replace("STYLE", &style).replace("SCRIPT", &script);
        let etag = format!("\"{}\"", &hash(&text)["sha256-".len()..][..22]);
        Self { text: text.into_bytes().into(), etag: etag.into(), policy: policy.into() }
    }

    pub(super) fn answer(&self, x: &mut Exchange) -> Flow {
        x.reply.status = 200;
        x.reply.set_content_type(b"text/html");
        x.reply.charset.extend_from_slice(b"utf-8");
        let fields: [(&[u8], &[u8]); 5] = [
            (b"ETag", &self.etag),
            (b"Cache-Control", b"no-cache"),
            (b"Content-Security-Policy", &self.policy),
            (b"X-Frame-Options", b"DENY"),
            (b"Referrer-Policy", b"no-referrer"),
        ];
        fields.iter().for_each(|(name, value)| x.reply.fields.append(name, value));
        x.reply.set_bytes(Bytes::Shared(self.text.clone()));
        Flow::Done
    }
}

/// A source of a content security policy.
pub(super) fn hash(text: &str) -> String {
    let mut digits = Vec::new();
    base64::encode(&net::sha256(text.as_bytes()), &mut digits);
    format!("sha256-{}", String::from_utf8_lossy(&digits))
}
