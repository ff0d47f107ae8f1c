//! `cache_purge_response_type`: how purges are answered in the forms of the module ngx_cache_purge.
//! Purging itself is `backend::cache::purge`.

use std::sync::Arc;

use conf::{Directive, Load, Result, Value};

use crate::backend::cache::PurgeReplyForm;
use crate::site::LocationBuilder;

conf::directives! {
    in MAIN | SERVER | LOCATION;

    /// The form of the response to a request that has purged a key as the module ngx_cache_purge
    /// does.
    ///
    /// Syntax: html | json | xml | text
    /// Differs: not in nginx's sources; as in ngx_cache_purge.
    ///
    /// ```nginx
    /// cache_purge_response_type json;
    /// ```
    cache_purge_response_type: PurgeReplyForm = "html",
}

impl Value for PurgeReplyForm {
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        match &*from.arg(0).text {
            b"html" => Ok(Self::Html),
            b"json" => Ok(Self::Json),
            b"xml" => Ok(Self::Xml),
            b"text" => Ok(Self::Text),
            _ => {
                let word = from.arg(0);
                let error = from.error_at(word, format!("invalid value \"{word}\""));
                Err(error.help("expected one of html, json, xml, text"))
            }
        }
    }
}

/// Keeps the form where a purge finds it.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    if conf.cache_purge_response_type != PurgeReplyForm::default() {
        location.core.own.add(conf.cache_purge_response_type);
    }
    Ok(())
}
