//! `root` and `alias`: two names for one slot, the way from a path to a file.
//!
//! Deliberately absent: the file system. A path is text here, whatever it leads to.

use std::sync::Arc;

use conf::{Directive, Load, Result, Template, Value};
use observe::{Level, Text};

use crate::exchange::Exchange;
use crate::site::{BlockContext, Place};

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

/// Hands the way to the core.
pub fn install(conf: &Arc<Conf>, place: &mut Place<'_, '_>) -> Result<()> {
    place.core.root = Some(conf.root.clone());
    Ok(())
}

/// Where files are.
#[derive(Clone)]
pub struct Root {
    directory: Template,
    /// What completes a directory that begins with a variable and turns out to be relative.
    prefix: Arc<[u8]>,
    stands_for: StandsFor,
}

/// Which part of a path the directory takes the place of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StandsFor {
    /// `root`: none, the path follows it.
    Nothing,
    /// `alias`: the location's name.
    Name(Box<[u8]>),
    /// `alias` in a location with a regular expression: the whole path.
    Path,
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

/// The variables that are computed from this directive cannot stand in it.
fn refuse_own_value(variable: &str, from: &Directive) -> Result<()> {
    let text = &from.arg(0).text;
    let stands = |spelling: String| memchr::memmem::find(text, spelling.as_bytes()).is_some();
    if stands(format!("${variable}")) || stands(format!("${{{variable}}}")) {
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

impl Root {
    /// Appends the directory: `$document_root`.
    pub fn append_directory(&self, x: &mut Exchange, out: &mut Vec<u8>) {
        if let Some(directory) = self.directory.as_fixed() {
            return out.extend_from_slice(directory);
        }
        let start = out.len();
        self.directory.render(x, out);
        if out.get(start) != Some(&b'/') {
            out.splice(start..start, self.prefix.iter().copied());
        }
    }

    /// Appends the path of the file that the exchange's path names; false, with a line in the log,
    /// where it names none: the location's name is no longer in it.
    #[must_use]
    pub fn append_path(&self, x: &mut Exchange, out: &mut Vec<u8>) -> bool {
        if !self.may_be_used(x) {
            return false;
        }
        self.append_directory(x, out);
        out.extend_from_slice(&x.request.uri[self.skipped(x)..]);
        true
    }

    /// `alias` in a location that was left by `rewrite ... break` has lost what it stands for.
    pub fn may_be_used(&self, x: &Exchange) -> bool {
        if self.stands_for == StandsFor::Nothing || x.request.valid_location {
            return true;
        }
        let name = Text(&x.location().name);
        let message =
            format_args!("\"alias\" cannot be used in location \"{name}\" where URI was rewritten");
        x.log(Level::Alert, message);
        false
    }

    /// Which part of a path the directory takes the place of.
    pub fn stands_for(&self) -> &StandsFor {
        &self.stands_for
    }

    /// How many bytes of the path the directory takes the place of.
    fn skipped(&self, x: &Exchange) -> usize {
        match &self.stands_for {
            StandsFor::Nothing => 0,
            StandsFor::Name(name) => name.len().min(x.request.uri.len()),
            StandsFor::Path if x.add_uri_to_alias => 0,
            StandsFor::Path => x.request.uri.len(),
        }
    }
}

#[cfg(test)]
mod tests;
