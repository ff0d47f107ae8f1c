//! `*_cache_purge`: purging by requests, in the forms of NGINX Plus and of the module
//! ngx_cache_purge, and by tag.
//!
//! A request that purges is answered once the purge is on disk. Deliberately absent: what a purge
//! does to files and fills (`cache::purge`).

use std::sync::Arc;

use cache::purge::tags::tags;
use cache::{CacheKey, PurgeRule};
use conf::Result;
use net::{LentFuture, offload};
use observe::{Errno, Level};
use wire::json;

use super::job::unix_ns;
use super::path::CacheStore;
use super::purge_lines::{CachePurge, PurgeMethod, TagPurge};
use crate::exchange::{Body, Exchange, Flow};
use crate::site::LocationBuilder;
use crate::status_page;

/// The most tags of one request.
pub(super) const TAGS_MAX: usize = 1000;

/// `cache_purge_response_type`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum PurgeReplyForm {
    #[default]
    Html,
    Json,
    Xml,
    Text,
}

/// The purge that a request to a cached location asks for.
pub(super) enum PurgeWanted {
    /// Its key, answered as NGINX Plus does.
    Key,
    /// Its key, or everything, answered as ngx_cache_purge does.
    OfModule { is_about_all: bool },
}

/// Says that a location's own line lets everybody purge, if it does.
pub(super) fn check(purge: &CachePurge, place: &mut LocationBuilder<'_, '_>) {
    if let CachePurge::Method(PurgeMethod { from: None, line, .. }) = purge {
        place.needs_access_rules_or(line.clone(), "add \"from ADDRESS ...\"");
    }
}

/// Has the requests of a location purge, if it is one for that.
pub(super) fn install(
    by_key: Option<&CachePurge>,
    by_tag: Option<&TagPurge>,
    place: &mut LocationBuilder<'_, '_>,
) -> Result<()> {
    if let Some(CachePurge::Separate(purge)) = by_key
        && purge.is_of(place)
    {
        let (store, purge) = (purge.open(place)?, purge.clone());
        let name = purge.line.name.to_string();
        place.exclusive(&name, move |x| {
            let (store, key) = (store.clone(), CacheKey::new(&x.render(&purge.what)));
            Flow::wait(move |x| LentFuture::new(purge_as_module(x, store, key, false)))
        });
    }
    if let Some(TagPurge(purge)) = by_tag
        && purge.is_of(place)
    {
        let (store, purge) = (purge.open(place)?, purge.clone());
        if store.tags.is_empty() {
            let zone = String::from_utf8_lossy(&purge.zone);
            let error = purge.line.error(format!("the cache \"{zone}\" has no tags"));
            return Err(error.help("add \"tags=Surrogate-Key,Cache-Tag\" to its path"));
        }
        let name = purge.line.name.to_string();
        place.exclusive(&name, move |x| {
            let (store, names) = (store.clone(), x.render(&purge.what));
            Flow::wait(move |x| LentFuture::new(purge_tags(x, store, names)))
        });
    }
    Ok(())
}

impl PurgeWanted {
    /// What a request purges; `Err`: it may not. `None`: nothing.
    pub(super) fn by(purge: Option<&CachePurge>, x: &mut Exchange) -> Result<Option<Self>, Flow> {
        match purge {
            Some(CachePurge::When(when)) if when.any(x) => Ok(Some(Self::Key)),
            Some(CachePurge::Method(purge)) if *x.request.method_name() == *purge.method => {
                if !purge.allows(x) {
                    x.log(Level::Error, format_args!("purging forbidden by rule"));
                    return Err(Flow::Status(403));
                }
                Ok(Some(Self::OfModule { is_about_all: purge.is_about_all }))
            }
            _ => Ok(None),
        }
    }

    /// Purges, and answers.
    pub(super) async fn answer(
        self,
        x: &mut Exchange,
        store: Arc<CacheStore>,
        key: CacheKey,
    ) -> Flow {
        match self {
            Self::Key => purge_as_plus(x, store, key).await,
            Self::OfModule { is_about_all } => purge_as_module(x, store, key, is_about_all).await,
        }
    }
}

async fn purge_as_plus(x: &mut Exchange, store: Arc<CacheStore>, key: CacheKey) -> Flow {
    let rule = PurgeRule::of_key(key.text());
    let is_key = rule.key().is_some();
    match purge(x, store, vec![rule]).await {
        Ok(false) if is_key => Flow::Status(404),
        Ok(_) => no_content(x),
        Err(flow) => flow,
    }
}

async fn purge_as_module(
    x: &mut Exchange,
    store: Arc<CacheStore>,
    key: CacheKey,
    is_about_all: bool,
) -> Flow {
    let rule = match is_about_all {
        true => PurgeRule::all(),
        false => PurgeRule::of_key(key.text()),
    };
    let is_key = rule.key().is_some();
    match purge(x, store, vec![rule]).await {
        Ok(false) if is_key => Flow::Status(412),
        Ok(_) => {
            let form = x.location().core.own.find::<PurgeReplyForm>().copied().unwrap_or_default();
            let (kind, text) = form.page(key.text());
            status_page::text(x, 200, kind, text)
        }
        Err(flow) => flow,
    }
}

async fn purge_tags(x: &mut Exchange, store: Arc<CacheStore>, names: Vec<u8>) -> Flow {
    let rules: Vec<_> = tags(&names).map(|tag| PurgeRule::Tag(tag.into())).collect();
    if rules.is_empty() || rules.len() > TAGS_MAX {
        x.log(Level::Info, format_args!("client named {} tags to purge", rules.len()));
        return Flow::Status(400);
    }
    match purge(x, store, rules).await {
        Ok(_) => no_content(x),
        Err(flow) => flow,
    }
}

/// Purges on another thread, which waits for the disk. Returns whether a key had a file.
async fn purge(
    x: &mut Exchange,
    store: Arc<CacheStore>,
    rules: Vec<PurgeRule>,
) -> Result<bool, Flow> {
    let zone = store.zone.clone();
    let purged = offload(move || zone.purge(rules, unix_ns())).await;
    purged.map_err(|error| {
        let (path, errno) = (store.zone.journal_path(), Errno(&error));
        let what = "the purge will be forgotten when the process ends";
        x.log(
            Level::Alert,
            format_args!("write() to \"{}\" failed{errno}: {what}", path.display()),
        );
        Flow::Status(500)
    })
}

fn no_content(x: &mut Exchange) -> Flow {
    x.reply.status = 204;
    x.reply.body = Body::Empty;
    Flow::Done
}

impl PurgeReplyForm {
    /// The type of a page about a purged key, and the page.
    fn page(self, key: &[u8]) -> (&'static [u8], Vec<u8>) {
        let shown = String::from_utf8_lossy(key);
        match self {
            Self::Html => {
                let key = escaped(&shown);
                let page = format!(
                    "<!doctype html>\n<title>Purged</title>\n<p>Key: {key}</p>\n\
                     <p>Status: purged</p>\n"
                );
                (b"text/html", page.into_bytes())
            }
            Self::Json => {
                let mut page = b"{\"Key\":".to_vec();
                json::write_text(key, &mut page);
                page.extend_from_slice(b",\"Status\":\"purged\"}\n");
                (b"application/json", page)
            }
            Self::Xml => {
                let key = escaped(&shown);
                let page = format!(
                    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
                     <status><Key>{key}</Key><Status>purged</Status></status>\n"
                );
                (b"text/xml", page.into_bytes())
            }
            Self::Text => (b"text/plain", format!("Key: {shown}\nStatus: purged\n").into_bytes()),
        }
    }
}

/// A text within HTML or XML, without characters that neither may have.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for one in text.chars() {
        match one {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            one if one.is_control() => escaped.push('\u{fffd}'),
            one => escaped.push(one),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_quote_the_key() {
        for (form, expected) in [
            (PurgeReplyForm::Html, "<p>Key: h/&lt;a&gt;&quot;&amp;\u{fffd}</p>"),
            (PurgeReplyForm::Xml, "<Key>h/&lt;a&gt;&quot;&amp;\u{fffd}</Key>"),
            (PurgeReplyForm::Json, r#"{"Key":"h/<a>\"&\n","Status":"purged"}"#),
            (PurgeReplyForm::Text, "Key: h/<a>\"&\n\nStatus: purged\n"),
        ] {
            let page = String::from_utf8(form.page(b"h/<a>\"&\n").1).unwrap();
            assert!(page.contains(expected), "{page}");
        }
    }
}
