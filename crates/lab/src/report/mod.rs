//! What a study has found, for people: in a terminal, as Markdown, and as one HTML page.

mod date;
pub(crate) mod html;
pub(crate) mod markdown;
mod table;
pub(crate) mod text;
