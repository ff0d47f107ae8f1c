//! `addition`: adds the replies of subrequests before and after a reply's body.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use conf::{Result, Text};

use crate::exchange::{BodyError, BodyFilter, Chunk, Exchange, Filtered, PieceQueue};
use crate::mime_types::MimeTypes;
use crate::site::LocationBuilder;

conf::directives! {
    in MAIN | SERVER | LOCATION;

    /// Adds what a subrequest to this path answers before the body of a response. An empty string
    /// cancels the directive of an outer block.
    ///
    /// Syntax: URI
    ///
    /// Differs: what is added is recoded together with the response (`charset`); nginx recodes it
    /// by the charset of its own location.
    ///
    /// ```nginx
    /// add_before_body /head.html;
    /// ```
    add_before_body: Option<Text>,
    /// Adds what a subrequest to this path answers after the body of a response. An empty string
    /// cancels the directive of an outer block.
    ///
    /// Syntax: URI
    ///
    /// ```nginx
    /// add_after_body /foot.html;
    /// ```
    add_after_body: Option<Text>,
    /// The MIME types, besides `text/html`, of responses to which text is added. `*` means all.
    ///
    /// Syntax: TYPE...
    ///
    /// ```nginx
    /// addition_types text/plain;
    /// ```
    addition_types: Option<MimeTypes>,
}

/// Filters replies to the client only, so that nothing is added to the replies of subrequests.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    if conf.before().is_empty() && conf.after().is_empty() {
        return Ok(());
    }
    let conf = conf.clone();
    location.main_filter(move |x| {
        if x.reply.status == 200 && conf.types().has(&x.reply.content_type) {
            x.reply.forget_bytes_of_body();
            x.reply.filter_body(Addition { conf: conf.clone(), has_begun: false });
        }
        Filtered::Pass
    });
    Ok(())
}

impl Conf {
    fn before(&self) -> &[u8] {
        self.add_before_body.as_ref().map_or(b"", |uri| &uri.0)
    }

    fn after(&self) -> &[u8] {
        self.add_after_body.as_ref().map_or(b"", |uri| &uri.0)
    }

    /// The types; the default is `text/html` only.
    fn types(&self) -> &MimeTypes {
        const HTML: &MimeTypes = &MimeTypes::html();
        self.addition_types.as_ref().unwrap_or(HTML)
    }
}

struct Addition {
    conf: Arc<Conf>,
    has_begun: bool,
}

impl BodyFilter for Addition {
    fn push(
        &mut self,
        x: &mut Exchange,
        piece: Option<Chunk>,
        out: &mut PieceQueue,
    ) -> std::result::Result<(), BodyError> {
        if !std::mem::replace(&mut self.has_begun, true) {
            add(self.conf.before(), x, out)?;
        }
        let is_end = piece.is_none();
        out.pass(piece);
        if is_end { add(self.conf.after(), x, out) } else { Ok(()) }
    }

    fn reads_bytes(&self) -> bool {
        false
    }
}

fn add(uri: &[u8], x: &mut Exchange, out: &mut PieceQueue) -> std::result::Result<(), BodyError> {
    if !uri.is_empty() {
        let subrequest = x.subrequest(uri, b"").ok_or(BodyError::Subrequest)?;
        out.insert(subrequest.into_body());
    }
    Ok(())
}
