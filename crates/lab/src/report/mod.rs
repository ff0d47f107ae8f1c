//! What a study has found, for people: in a terminal, and as Markdown.

pub(crate) mod markdown;
mod table;
pub(crate) mod text;
