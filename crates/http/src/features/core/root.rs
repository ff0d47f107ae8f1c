//! `root` and `alias`: two names for one slot, the way from a path to a file.

use conf::{Directive, Load, Result, Template, Value};

use crate::exchange::Exchange;

/// Where files are.
#[derive(Clone)]
pub struct Root {
    directory: Template,
    /// The bytes of the location's name that the directory stands for; 0 with `root`.
    alias: bool,
}

impl Value for Root {
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let alias = &*from.name.text == b"alias";
        let word = from.arg(0);
        let relative = !matches!(word.text.first(), Some(b'/' | b'$'));
        let mut text = Vec::new();
        if relative {
            text.extend_from_slice(load.prefix.as_os_str().as_encoded_bytes());
            if !text.ends_with(b"/") {
                text.push(b'/');
            }
        }
        text.extend_from_slice(&word.text);
        if !alias && text.ends_with(b"/") {
            text.pop();
        }
        Ok(Self { directory: Template::from_bytes(&text, word, from, load)?, alias })
    }

    fn repeat(&mut self, from: &Directive, load: &mut Load<'_>) -> Result<()> {
        let again = Self::parse(from, load)?;
        let (first, second) = (name(self.alias), name(again.alias));
        if first == second {
            return Err(from.refuse("is duplicate"));
        }
        Err(from.error(format!(
            "\"{second}\" directive is duplicate, \"{first}\" directive was specified earlier"
        )))
    }
}

fn name(alias: bool) -> &'static str {
    if alias { "alias" } else { "root" }
}

impl Root {
    /// Appends the directory alone.
    pub fn append_directory(&self, x: &mut Exchange, out: &mut Vec<u8>) {
        match self.directory.as_fixed() {
            Some(directory) => out.extend_from_slice(directory),
            None => self.directory.render(x, out),
        }
    }

    /// Appends the path of the file that the exchange's path names.
    pub fn append_path(&self, x: &mut Exchange, out: &mut Vec<u8>) {
        self.append_directory(x, out);
        let skip = if self.alias { x.location().name.len().min(x.request.uri.len()) } else { 0 };
        out.extend_from_slice(&x.request.uri[skip..]);
    }
}
