//! `types` and `default_type`: MIME types by the extension of a file's name.
//!
//! The table is sorted and searched without copying the extension, ignoring case. The `types_hash_`
//! directives have no effect, because this table needs no size.

use std::ops::RangeInclusive;
use std::sync::Arc;

use conf::{Absent, Directive, Error, Load, Number, Result, Value, Word};

use crate::site::LocationBuilder;
use crate::site::policy::{Types, extension_order};

conf::directives! {
    in MAIN | SERVER | LOCATION;

    /// Maps file name extensions to MIME types. A block in a server or location replaces the
    /// enclosing one.
    ///
    /// Default: html, gif and jpg only
    ///
    /// ```nginx
    /// types {
    ///     text/html html htm;
    ///     text/css css;
    ///     application/javascript js mjs;
    ///     image/svg+xml svg;
    /// }
    /// ```
    types: Types,
    /// The MIME type of files whose extension has none. With an empty value, none is sent.
    ///
    /// Syntax: STRING
    ///
    /// ```nginx
    /// default_type application/octet-stream;
    /// ```
    default_type: Type = "text/plain",
    /// The largest size of nginx's table of types.
    ///
    /// Differs: no effect; the table needs no size. 0 is an error, as in nginx.
    types_hash_max_size: Number = "1024",
    /// The size of a bucket in nginx's table of types.
    ///
    /// Differs: no effect; the table needs no size.
    types_hash_bucket_size: Number = "64",
}

/// Passes the types to the core.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    let _ = conf.types_hash_bucket_size;
    if conf.types_hash_max_size.0 == 0 {
        let message = "could not build types_hash, you should increase types_hash_max_size: 0";
        return Err(Error::bare(message));
    }
    location.core.types = conf.types.clone();
    location.core.default_type = conf.default_type.0.clone();
    Ok(())
}

/// One MIME type.
#[derive(Clone)]
pub struct Type(Arc<[u8]>);

impl Value for Type {
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        Ok(Self(from.arg(0).text[..].into()))
    }
}

impl Value for Types {
    const ARGS: RangeInclusive<usize> = 0..=0;
    const BLOCK: bool = true;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let mut types = Self::default();
        types.repeat(from, load)?;
        Ok(types)
    }
    fn repeat(&mut self, from: &Directive, load: &mut Load<'_>) -> Result<()> {
        for line in from.block.iter().flatten() {
            if line.block.is_some() {
                return Err(line.error("unexpected \"{\""));
            }
            let content_type: Arc<[u8]> = line.name.text[..].into();
            for extension in &line.args {
                self.add(extension, &content_type, line, load);
            }
        }
        Ok(())
    }
}

/// As in nginx, three extensions are predefined.
impl Absent for Types {
    fn absent() -> Self {
        let entry = |extension: &[u8], name: &[u8]| (extension.into(), name.into());
        let sorted = Arc::new(vec![
            entry(b"gif", b"image/gif"),
            entry(b"html", b"text/html"),
            entry(b"jpg", b"image/jpeg"),
        ]);
        Self { sorted }
    }
}

impl Types {
    fn add(
        &mut self,
        extension: &Word,
        content_type: &Arc<[u8]>,
        line: &Directive,
        load: &mut Load<'_>,
    ) {
        let lower = extension.text.to_ascii_lowercase();
        let sorted = Arc::make_mut(&mut self.sorted);
        let at = match sorted.binary_search_by(|(known, _)| extension_order(known, &lower)) {
            Err(at) => return sorted.insert(at, (lower.into(), content_type.clone())),
            Ok(at) => at,
        };
        let previous = std::mem::replace(&mut sorted[at].1, content_type.clone());
        let shown = String::from_utf8_lossy;
        let message = format!(
            "duplicate extension \"{}\", content type: \"{}\", previous content type: \"{}\"",
            shown(&lower),
            shown(content_type),
            shown(&previous)
        );
        load.warn(line.error_at(extension, message));
    }
}

#[cfg(test)]
mod tests;
