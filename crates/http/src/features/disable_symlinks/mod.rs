//! `disable_symlinks`: which symbolic links are followed to a file.
//!
//! `net::file` checks the components of a path; `paths` finds the beginning that is not checked.

use std::ops::RangeInclusive;
use std::sync::Arc;

use conf::{Directive, Load, Result, Template, Value};

use crate::files::Links;
use crate::site::LocationBuilder;

conf::directives! {
    in MAIN | SERVER | LOCATION;

    /// Denies access to files behind symbolic links: all links, or those whose owner differs from
    /// the file's. `from=` exempts the beginning of the path.
    ///
    /// Syntax: off
    /// Syntax: on | if_not_owner [from=STRING]
    ///
    /// ```nginx
    /// disable_symlinks if_not_owner from=$document_root;
    /// ```
    disable_symlinks: SymlinkRule = "off",
}

/// Passes the settings to the core.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    location.core.files.links = conf.disable_symlinks.links;
    location.core.files.links_from.clone_from(&conf.disable_symlinks.from);
    Ok(())
}

/// `off`, `on` or `if_not_owner`, and `from=`.
#[derive(Clone)]
struct SymlinkRule {
    links: Links,
    from: Option<Template>,
}

impl Value for SymlinkRule {
    const ARGS: RangeInclusive<usize> = 1..=2;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let (mut links, mut trusted) = (None, None);
        for word in &from.args {
            match &*word.text {
                b"off" => links = Some(Links::Follow),
                b"on" => links = Some(Links::Refuse),
                b"if_not_owner" => links = Some(Links::IfNotOwner),
                text => {
                    let Some(path) = text.strip_prefix(b"from=") else {
                        let message = format!("invalid parameter \"{word}\"");
                        return Err(from.error_at(word, message));
                    };
                    trusted = Some(Template::from_bytes(path, word, from, load)?);
                }
            }
        }
        let Some(links) = links else {
            let must = "must have \"off\", \"on\" or \"if_not_owner\" parameter";
            return Err(from.error(format!("\"{}\" {must}", from.name)));
        };
        if let [first, second] = &from.args[..] {
            if trusted.is_none() {
                let message = format!("duplicate parameters \"{first} {second}\"");
                return Err(from.error(message));
            }
            if links == Links::Follow {
                return Err(from.error("\"from=\" cannot be used with \"off\" parameter"));
            }
        }
        Ok(Self { links, from: trusted })
    }
}

#[cfg(test)]
mod tests;
