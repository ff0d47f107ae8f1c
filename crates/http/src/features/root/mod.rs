//! `root` and `alias`: two directives for one setting, the mapping of paths to files.
//!
//! Deliberately absent: the file system. Paths are only text here.

use std::sync::Arc;

use conf::{Directive, Load, Result, Template, Value};

use crate::site::policy::{Root, StandsFor};
use crate::site::{BlockContext, LocationBuilder};

conf::directives! {
    also {
        /// The directory, or with a regular expression the file, that takes the place of the
        /// location's path. With `location /img/ { alias /srv/pictures/; }` the file of
        /// `/img/a.png` is `/srv/pictures/a.png`. End both with a slash or neither.
        ///
        /// Syntax: PATH
        ///
        /// ```nginx
        /// location /img/ {
        ///     alias /srv/pictures/;
        /// }
        /// ```
        alias(1..=1) in LOCATION => root;
    }

    in MAIN | SERVER | LOCATION;

    /// The directory that the request's path is appended to.
    ///
    /// Syntax: PATH
    ///
    /// ```nginx
    /// root /var/www/html;
    /// ```
    root + IF_IN_LOCATION: Root = "html",
}

/// Passes the setting to the core.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    location.core.root = Some(conf.root.clone());
    Ok(())
}

impl Value for Root {
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let word = from.arg(0);
        let stands_for = match (&*from.name.text, load.registry.of::<BlockContext>()) {
            (b"alias", BlockContext::Prefix(name)) => StandsFor::Name(name.clone()),
            (b"alias", BlockContext::Pattern) => StandsFor::Path,
            (b"alias", BlockContext::Named) => {
                let message = "the \"alias\" directive cannot be used inside the named location";
                return Err(from.error(message));
            }
            _ => StandsFor::Nothing,
        };
        for name in ["document_root", "realpath_root"] {
            refuse_own_value(name, from)?;
        }
        let prefix: Arc<[u8]> = with_slash(load.prefix.as_os_str().as_encoded_bytes()).into();
        let mut text = match word.text.first() {
            Some(b'/' | b'$') => Vec::new(),
            _ => prefix.to_vec(),
        };
        let is_root = stands_for == StandsFor::Nothing;
        text.extend_from_slice(match &*word.text {
            [directory @ .., b'/'] if is_root => directory,
            directory => directory,
        });
        let directory = Template::from_bytes(&text, word, from, load)?;
        Ok(Self { directory, prefix, stands_for })
    }

    fn repeat(&mut self, from: &Directive, _: &mut Load<'_>) -> Result<()> {
        let first = if self.stands_for == StandsFor::Nothing { "root" } else { "alias" };
        if *from.name.text == *first.as_bytes() {
            return Err(from.refuse("is duplicate"));
        }
        let second = &from.name;
        Err(from.error(format!(
            "\"{second}\" directive is duplicate, \"{first}\" directive was specified earlier"
        )))
    }
}

/// Rejects the variables that depend on this directive.
fn refuse_own_value(variable: &str, from: &Directive) -> Result<()> {
    let text = &from.arg(0).text;
    let contains = |spelling: String| memchr::memmem::find(text, spelling.as_bytes()).is_some();
    if contains(format!("${variable}")) || contains(format!("${{{variable}}}")) {
        return Err(from.error(format!(
            "the ${variable} variable cannot be used in the \"{}\" directive",
            from.name
        )));
    }
    Ok(())
}

fn with_slash(path: &[u8]) -> Vec<u8> {
    let mut path = path.to_vec();
    if !path.ends_with(b"/") {
        path.push(b'/');
    }
    path
}

#[cfg(test)]
mod tests;
