//! Maps the path of an exchange to a file.

mod listing;
mod open;

use observe::{Level, Text};

pub(crate) use listing::{list, without_slash};
use open::verdict;
pub(crate) use open::{content_size_max, log_failed, open, read, refuse, test, test_directory};

use crate::exchange::Exchange;
use crate::site::policy::{Root, StandsFor};

impl Exchange {
    /// Appends the path of the requested file (`$request_filename`). Returns false, and logs why,
    /// if there is none.
    #[must_use]
    pub fn append_path(&mut self, out: &mut Vec<u8>) -> bool {
        let generation = self.generation.clone();
        generation.location(self.location).core.root().append_path(self, out)
    }

    /// Appends the directory of the files (`$document_root`).
    pub fn append_document_root(&mut self, out: &mut Vec<u8>) {
        let generation = self.generation.clone();
        generation.location(self.location).core.root().append_directory(self, out);
    }

    /// Sets the reply's content type by the extension of the path, unless a backend that redirected
    /// here has set it.
    pub fn set_content_type_of_uri(&mut self) {
        if !self.reply.content_type.is_empty() {
            return;
        }
        let here = &self.generation.location(self.location).core;
        let content_type = here.types.of(&self.request.uri).unwrap_or(&here.default_type);
        self.reply.set_content_type(content_type);
    }
}

impl Root {
    /// Appends the directory (`$document_root`).
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

    /// Appends the path of the file for the exchange's path. Returns false, and logs why, if a
    /// rewrite has removed the location's name, which `alias` replaces.
    #[must_use]
    pub fn append_path(&self, x: &mut Exchange, out: &mut Vec<u8>) -> bool {
        if !self.may_be_used(x) {
            return false;
        }
        self.append_directory(x, out);
        out.extend_from_slice(&x.request.uri[self.skipped(x)..]);
        true
    }

    /// Whether the directory can be used: after `rewrite ... break`, `alias` has no prefix to
    /// replace.
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

    /// The number of bytes at the beginning of the path that the directory replaces.
    fn skipped(&self, x: &Exchange) -> usize {
        match &self.stands_for {
            StandsFor::Nothing => 0,
            StandsFor::Name(name) => name.len().min(x.request.uri.len()),
            StandsFor::Path if x.add_uri_to_alias => 0,
            StandsFor::Path => x.request.uri.len(),
        }
    }
}
