//! Settings for pages of statuses.

use conf::Template;

#[derive(Default)]
pub(crate) struct ErrorPages {
    pub(crate) pages: Box<[ErrorPage]>,
    /// Whether an error while a page is produced has a page as well.
    pub(crate) recursive: bool,
    pub(crate) msie_padding: bool,
    pub(crate) msie_refresh: bool,
    /// Whether calls of gRPC are answered with a status of gRPC instead of a built-in page.
    pub(crate) of_grpc: bool,
}

impl ErrorPages {
    pub(crate) fn page(&self, status: u16) -> Option<&ErrorPage> {
        self.pages.iter().find(|page| page.is_for(status))
    }
}

/// One line of `error_page`.
#[derive(Clone)]
pub(crate) struct ErrorPage {
    pub(crate) statuses: Vec<u16>,
    /// The status to answer with; 0: the status of the target; `None`: the original status.
    pub(crate) overwrite: Option<u16>,
    /// A path, `@name` or a URL.
    pub(crate) target: Template,
}

impl ErrorPage {
    pub(crate) fn is_for(&self, status: u16) -> bool {
        self.statuses.contains(&status)
    }
}
