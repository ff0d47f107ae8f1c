//! The texts that a configuration was read from.

use std::borrow::Cow;
use std::ops::Index;
use std::sync::Arc;

use crate::{FileId, Span};

#[derive(Clone, Debug)]
pub struct SourceText {
    /// The file as it was opened; `None` for the argument of `-g`.
    pub path: Option<Box<[u8]>>,
    pub text: Arc<[u8]>,
}

impl SourceText {
    /// Its name in messages.
    pub fn name(&self) -> Cow<'_, str> {
        self.path.as_deref().map_or("command line".into(), String::from_utf8_lossy)
    }
}

/// Every text read, in the order of reading, each once.
#[derive(Clone, Debug, Default)]
pub struct Sources(Vec<SourceText>);

impl Sources {
    pub fn add(&mut self, source: SourceText) -> FileId {
        self.0.push(source);
        FileId(u32::try_from(self.0.len() - 1).expect("fewer files than FILES_MAX"))
    }

    pub fn iter(&self) -> impl Iterator<Item = &SourceText> {
        self.0.iter()
    }

    pub fn source(&self, id: FileId) -> Option<&SourceText> {
        self.0.get(id.0 as usize)
    }

    /// The bytes of a span, as written.
    pub fn raw(&self, span: Span) -> &[u8] {
        let text = self.source(span.file).map_or(&[][..], |source| &source.text);
        text.get(span.start as usize..span.end as usize).unwrap_or_default()
    }

    /// The place of a span in nginx's words: ` in FILE:LINE` or ` in command line`.
    pub fn place(&self, span: Span) -> String {
        match self.source(span.file) {
            Some(source @ SourceText { path: Some(_), .. }) => {
                format!(" in {}:{}", source.name(), span.line)
            }
            Some(source) => format!(" in {}", source.name()),
            None => String::new(),
        }
    }
}

impl Index<FileId> for Sources {
    type Output = SourceText;

    fn index(&self, id: FileId) -> &SourceText {
        &self.0[id.0 as usize]
    }
}
