//! `error_page` and its companions: replies instead of built-in pages.
//!
//! [`crate::answer`] applies them.

mod directive;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use conf::Result;

use crate::site::LocationBuilder;
use crate::site::policy::{ErrorPage, ErrorPages};

conf::directives! {
    in MAIN | SERVER | LOCATION;

    /// Answers these statuses with another resource: a path, which is processed as an internal
    /// redirect, a `@name`, or a URL to redirect to. With `=` the response has the status of that
    /// resource, with `=CODE` this status.
    ///
    /// Syntax: CODE... [=[CODE]] URI
    ///
    /// ```nginx
    /// error_page 404 /404.html;
    /// error_page 500 502 503 504 =503 /sorry.html;
    /// ```
    error_page + IF_IN_LOCATION: Vec<ErrorPage>,
    /// Whether an error during the processing of `error_page` is handled by `error_page` again.
    ///
    /// ```nginx
    /// recursive_error_pages on;
    /// ```
    recursive_error_pages: bool = "off",
    /// Whether built-in error pages are padded to 512 bytes for old browsers.
    msie_padding: bool = "on",
    /// Whether Internet Explorer gets a page that refreshes itself instead of a redirect.
    msie_refresh: bool = "off",
    /// Whether missing files are logged in the error log.
    ///
    /// ```nginx
    /// location = /favicon.ico {
    ///     log_not_found off;
    ///     access_log off;
    /// }
    /// ```
    log_not_found: bool = "on",
}

/// Passes the settings to the core.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    location.core.error_pages = ErrorPages {
        pages: conf.error_page.clone().into(),
        recursive: conf.recursive_error_pages,
        msie_padding: conf.msie_padding,
        msie_refresh: conf.msie_refresh,
        // Set by `grpc`.
        of_grpc: false,
    };
    location.core.log_not_found = conf.log_not_found;
    Ok(())
}
