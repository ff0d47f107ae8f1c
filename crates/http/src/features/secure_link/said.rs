//! What a block says of links. The kinds exclude each other, and so does what is inherited.

use conf::{Absent, Directive, Load, Result, Template, Value};

/// Of `secure_link`, `secure_link_md5` and `secure_link_secret`.
#[derive(Clone, Default)]
pub struct SecureLinkLines {
    pub(super) link: Option<Template>,
    pub(super) words: Option<Template>,
    pub(super) secret: Option<Box<[u8]>>,
}

impl Absent for SecureLinkLines {
    fn absent() -> Self {
        Self::default()
    }
}

impl Value for SecureLinkLines {
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let mut said = Self::default();
        said.repeat(from, load)?;
        Ok(said)
    }
    fn repeat(&mut self, from: &Directive, load: &mut Load<'_>) -> Result<()> {
        let is_duplicate = match &*from.name.text {
            b"secure_link" => self.link.replace(Template::parse(from, load)?).is_some(),
            b"secure_link_md5" => self.words.replace(Template::parse(from, load)?).is_some(),
            _ => self.secret.replace(from.arg(0).text.clone()).is_some(),
        };
        if is_duplicate { Err(from.refuse("is duplicate")) } else { Ok(()) }
    }
    fn complete(&mut self, outer: &Self) {
        if self.secret.is_some() {
            return;
        }
        self.link = self.link.take().or_else(|| outer.link.clone());
        self.words = self.words.take().or_else(|| outer.words.clone());
        if self.link.is_none() && self.words.is_none() {
            self.secret.clone_from(&outer.secret);
        }
    }
}
