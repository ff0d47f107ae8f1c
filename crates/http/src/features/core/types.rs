//! `types` and `default_type`: MIME types by file name extension.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use conf::{Absent, Directive, Load, Result, Value};

/// MIME types by extension, lower-cased.
#[derive(Clone, Default)]
pub struct Types(HashMap<Box<[u8]>, Arc<[u8]>>);

/// One MIME type.
#[derive(Clone)]
pub struct Type(pub Arc<[u8]>);

impl Value for Type {
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        Ok(Self(from.arg(0).text[..].into()))
    }
}

impl Value for Types {
    const ARGS: RangeInclusive<usize> = 0..=0;
    const BLOCK: bool = true;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let mut types = Self::default();
        types.repeat(from, load)?;
        Ok(types)
    }
    fn repeat(&mut self, from: &Directive, _: &mut Load<'_>) -> Result<()> {
        for line in from.block.iter().flatten() {
            let content_type: Arc<[u8]> = line.name.text[..].into();
            for extension in &line.args {
                self.0.insert(extension.text.to_ascii_lowercase().into(), content_type.clone());
            }
        }
        Ok(())
    }
}

/// nginx knows three extensions before it is told any.
impl Absent for Types {
    fn absent() -> Self {
        let known = [("html", "text/html"), ("gif", "image/gif"), ("jpg", "image/jpeg")];
        Self(known.map(|(ext, name)| (ext.as_bytes().into(), name.as_bytes().into())).into())
    }
}

impl Types {
    /// The type for a path, by what follows the last dot of its last part.
    pub fn of(&self, path: &[u8]) -> Option<&Arc<[u8]>> {
        let name = &path[memchr::memrchr(b'/', path).map_or(0, |at| at + 1)..];
        let extension = &name[memchr::memrchr(b'.', name).filter(|at| *at > 0)? + 1..];
        match self.0.get(extension) {
            None if extension.iter().any(u8::is_ascii_uppercase) => {
                self.0.get(&extension.to_ascii_lowercase()[..])
            }
            found => found,
        }
    }
}
