//! Reports of a study's results: in a terminal, as Markdown with a file for each chart, and as one
//! HTML page.

pub(crate) mod charts;
mod date;
pub(crate) mod html;
mod latency;
pub(crate) mod markdown;
mod markup;
mod table;
pub(crate) mod text;
pub(crate) mod why;
