//! What is answered instead of a status's built-in page.

use conf::Template;

/// What a location does about errors.
#[derive(Default)]
pub(crate) struct ErrorPages {
    pub(crate) pages: Box<[ErrorPage]>,
    /// Whether an error in what a page led to is led elsewhere, too.
    pub(crate) recursive: bool,
    pub(crate) msie_padding: bool,
    pub(crate) msie_refresh: bool,
}

impl ErrorPages {
    /// The page of a status.
    pub(crate) fn page(&self, status: u16) -> Option<&ErrorPage> {
        self.pages.iter().find(|page| page.is_for(status))
    }
}

/// One line of `error_page`.
#[derive(Clone)]
pub(crate) struct ErrorPage {
    pub(crate) statuses: Vec<u16>,
    /// The status to answer with; 0: what the target answers; `None`: the status it is about.
    pub(crate) overwrite: Option<u16>,
    /// A path, `@name` or a URL.
    pub(crate) target: Template,
}

impl ErrorPage {
    pub(crate) fn is_for(&self, status: u16) -> bool {
        self.statuses.contains(&status)
    }
}
