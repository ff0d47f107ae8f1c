//! `autoindex`: a path that ends with a slash is answered with a list of that directory.
//!
//! Directories come first; names are sorted by their bytes; hidden files are left out. As in nginx,
//! the length of the list is not announced.

mod entry;
mod html;
mod json;
mod xml;

use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;

use conf::Result;
use net::file::{self, Stat};
use observe::{Level, Text};
use wire::Method;

use crate::exchange::{Body, Bytes, Exchange, Flow};
use crate::features::charset;
use crate::paths;
use crate::site::LocationBuilder;
use entry::ListedEntry;

conf::directives! {
    in MAIN | SERVER | LOCATION;

    /// Whether a request for a directory without an index file is answered with a list of its
    /// files.
    ///
    /// ```nginx
    /// location /files/ {
    ///     autoindex on;
    ///     autoindex_exact_size off;
    /// }
    /// ```
    autoindex: bool = "off",
    /// The format of the list.
    ///
    /// ```nginx
    /// autoindex_format json;
    /// ```
    autoindex_format: Format = "html",
    /// Whether times in an HTML list are local instead of UTC.
    ///
    /// ```nginx
    /// autoindex_localtime on;
    /// ```
    autoindex_localtime: bool = "off",
    /// Whether sizes in an HTML list are exact instead of rounded.
    ///
    /// ```nginx
    /// autoindex_exact_size off;
    /// ```
    autoindex_exact_size: bool = "on",
}

conf::words! {
    /// The form of a list.
    pub enum Format {
        /// A page.
        Html = "html",
        /// An array of objects.
        Json = "json",
        /// The same as the argument of a call.
        Jsonp = "jsonp",
        /// Elements.
        Xml = "xml",
    }
}

/// Adds the content handler if `autoindex` is on.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    if conf.autoindex {
        let conf = conf.clone();
        location.content(move |x| handle(&conf, x));
    }
    Ok(())
}

fn handle(conf: &Conf, x: &mut Exchange) -> Flow {
    let is_get = matches!(x.request.head.method, Method::Get | Method::Head);
    if !is_get || !x.request.uri.ends_with(b"/") {
        return Flow::Next;
    }
    let mut path = x.scratch();
    let answered = match x.append_path(&mut path) {
        true => answer(conf, x, paths::without_slash(&path)),
        false => Err(500),
    };
    x.give_scratch(path);
    match answered {
        Ok(()) => Flow::Done,
        Err(status) => Flow::Status(status),
    }
}

fn answer(conf: &Conf, x: &mut Exchange, directory: &[u8]) -> std::result::Result<(), u16> {
    let callback = match conf.autoindex_format {
        Format::Jsonp => callback(x)?,
        _ => None,
    };
    let entries = entries(x, directory)?;
    let mut text = x.reply.text();
    let content_type: &[u8] = match (conf.autoindex_format, &callback) {
        (Format::Html, _) => {
            let style = html::Style {
                utf8: charset::is_utf8(x),
                local_time: conf.autoindex_localtime,
                exact_size: conf.autoindex_exact_size,
            };
            html::write(&style, &x.request.uri, &entries, &mut text);
            b"text/html"
        }
        (Format::Xml, _) => {
            xml::write(&entries, &mut text);
            x.reply.charset.extend_from_slice(b"utf-8");
            b"text/xml"
        }
        (Format::Json | Format::Jsonp, None) => {
            json::write(&entries, &mut text);
            b"application/json"
        }
        (Format::Json | Format::Jsonp, Some(callback)) => {
            json::write_call(callback, &entries, &mut text);
            b"application/javascript"
        }
    };
    x.reply.status = 200;
    x.reply.set_content_type(content_type);
    x.reply.body = Body::Bytes(Bytes::Owned(text));
    Ok(())
}

/// The longest name of a callback.
const CALLBACK_BYTES_MAX: usize = 128;

/// The argument `callback`, the name of a function. `Err(400)` if it is not a valid name.
fn callback(x: &Exchange) -> std::result::Result<Option<Vec<u8>>, u16> {
    const NAME: &[u8] = b"callback=";
    let args = x.request.args.split(|byte| *byte == b'&');
    let mut values = args.filter_map(|arg| {
        let (name, value) = arg.split_at_checked(NAME.len())?;
        name.eq_ignore_ascii_case(NAME).then_some(value)
    });
    let Some(name) = values.next().filter(|name| !name.is_empty()) else { return Ok(None) };
    let fits = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
    let wrong = match name {
        _ if name.len() > CALLBACK_BYTES_MAX => "too long",
        _ if !name.iter().all(fits) => "invalid",
        _ => return Ok(Some(name.to_vec())),
    };
    x.log(Level::Info, format_args!("client sent {wrong} callback name: \"{}\"", Text(name)));
    Err(400)
}

fn entries(x: &Exchange, directory: &[u8]) -> std::result::Result<Vec<ListedEntry>, u16> {
    let mut entries = Vec::new();
    paths::list(x, directory, |entry| {
        let path = entry.path();
        if let Some(stat) = stat(x, path.as_os_str().as_bytes())? {
            entries.push(ListedEntry { name: entry.file_name().as_bytes().into(), stat });
        }
        Ok(())
    })?;
    entries.sort_unstable_by(|a, b| {
        let directories_first = b.stat.is_directory().cmp(&a.stat.is_directory());
        directories_first.then_with(|| a.name.cmp(&b.name))
    });
    Ok(entries)
}

/// The status of an entry: of the link itself if that is broken; `None` if access is denied, to
/// leave the entry out.
fn stat(x: &Exchange, path: &[u8]) -> std::result::Result<Option<Stat>, u16> {
    let failed = match file::stat(path) {
        Ok(stat) => return Ok(Some(stat)),
        Err(failed) if is_broken_link(&failed) => match file::stat_link(path) {
            Ok(stat) => return Ok(Some(stat)),
            Err(failed) => failed,
        },
        Err(failed) => failed,
    };
    paths::log_failed(x, Level::Crit, path, &failed);
    if failed.call == "stat()" && failed.is_denied() { Ok(None) } else { Err(500) }
}

fn is_broken_link(failed: &file::PathError) -> bool {
    failed.error.kind() == std::io::ErrorKind::NotFound || failed.is_refused_link()
}

#[cfg(test)]
mod tests;
