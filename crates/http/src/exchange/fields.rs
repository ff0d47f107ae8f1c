//! Header fields of a reply: names and values in one piece of memory, in order.

use crate::header_text::{self, Forbidden};

/// The names that the core looks up; all others are compared as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldName {
    AcceptRanges,
    CacheControl,
    ContentEncoding,
    ContentRange,
    ETag,
    Expires,
    LastModified,
    Link,
    ProxyAuthenticate,
    WwwAuthenticate,
    /// Any other, its name in the text.
    Other,
}

const KNOWN: [(&[u8], FieldName); 10] = [
    (b"Accept-Ranges", FieldName::AcceptRanges),
    (b"Cache-Control", FieldName::CacheControl),
    (b"Content-Encoding", FieldName::ContentEncoding),
    (b"Content-Range", FieldName::ContentRange),
    (b"ETag", FieldName::ETag),
    (b"Expires", FieldName::Expires),
    (b"Last-Modified", FieldName::LastModified),
    (b"Link", FieldName::Link),
    (b"Proxy-Authenticate", FieldName::ProxyAuthenticate),
    (b"WWW-Authenticate", FieldName::WwwAuthenticate),
];

/// A field: the offsets of `name: value`.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    pub known: FieldName,
    start: u32,
    colon: u32,
    end: u32,
}

/// Header fields, in order.
#[derive(Default)]
pub struct Fields {
    text: Vec<u8>,
    list: Vec<Field>,
}

impl Fields {
    pub fn clear(&mut self) {
        self.text.clear();
        self.list.clear();
    }

    pub(crate) fn shrink(&mut self) {
        self.text.shrink_to_fit();
        self.list.shrink_to_fit();
    }

    /// The memory that it keeps, in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.text.capacity() + self.list.capacity() * size_of::<Field>()
    }

    /// Adds a field after the others.
    pub fn append(&mut self, name: &[u8], value: &[u8]) {
        let field = self.write_text(name, value);
        self.list.push(field);
    }

    /// Adds a field after the others that lookups by well-known name do not find.
    pub fn append_text(&mut self, name: &[u8], value: &[u8]) {
        let field = self.write_text(name, value);
        self.list.push(Field { known: FieldName::Other, ..field });
    }

    /// Replaces the first field with the same name and removes the others. Without one, adds the
    /// field at the end.
    pub fn set(&mut self, name: &[u8], value: &[u8]) {
        let field = self.write_text(name, value);
        let text = &self.text;
        let is_same = |other: &Field| other.name_in(text).eq_ignore_ascii_case(name);
        let Some(place) = self.list.iter().position(is_same) else {
            return self.list.push(field);
        };
        self.list[place] = field;
        let mut index = 0;
        self.list.retain(|other| {
            index += 1;
            index <= place + 1 || !is_same(other)
        });
    }

    /// Changes the value of the first well-known field of that name, if there is one.
    pub fn set_value(&mut self, known: FieldName, value: &[u8]) {
        let Some(place) = self.list.iter().position(|field| field.known == known) else { return };
        let name = self.list[place].name_in(&self.text).to_vec();
        self.list[place] = self.write_text(&name, value);
    }

    /// Removes every field with that name.
    pub fn remove(&mut self, name: &[u8]) {
        let text = &self.text;
        self.list.retain(|field| !field.name_in(text).eq_ignore_ascii_case(name));
    }

    /// Removes every field whose name begins so.
    pub fn remove_prefixed(&mut self, prefix: &[u8]) {
        let text = &self.text;
        self.list.retain(|field| {
            let start = field.name_in(text).get(..prefix.len());
            !start.is_some_and(|start| start.eq_ignore_ascii_case(prefix))
        });
    }

    /// Removes every field with that well-known name.
    pub fn remove_known(&mut self, known: FieldName) {
        self.list.retain(|field| field.known != known);
    }

    fn write_text(&mut self, name: &[u8], value: &[u8]) -> Field {
        let (start, known) = (self.text.len() as u32, FieldName::of(name));
        self.text.extend_from_slice(name);
        let colon = self.text.len() as u32;
        self.text.extend_from_slice(b": ");
        self.text.extend_from_slice(value);
        Field { known, start, colon, end: self.text.len() as u32 }
    }

    /// The values of the fields with that name.
    pub fn values<'f>(&'f self, name: &'f [u8]) -> impl Iterator<Item = &'f [u8]> {
        self.iter().filter(move |(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, v)| v)
    }

    /// The first value of a well-known field.
    pub fn known(&self, known: FieldName) -> Option<&[u8]> {
        self.list.iter().find(|field| field.known == known).map(|field| field.value_in(&self.text))
    }

    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.list.iter().map(|field| (field.name_in(&self.text), field.value_in(&self.text)))
    }

    /// Makes every value valid for a line, and removes fields for which that is impossible. Returns
    /// the name of the first one removed.
    pub(crate) fn unfold(&mut self) -> Option<Vec<u8>> {
        if header_text::is_clean(&self.text) {
            return None;
        }
        let mut refused = None;
        let fields = std::mem::take(self);
        for (name, value) in fields.iter() {
            let mut value = value.to_vec();
            match header_text::unfold(&mut value, 0) {
                Ok(()) => self.append(name, &value),
                Err(Forbidden) => refused = refused.or_else(|| Some(name.to_vec())),
            }
        }
        refused
    }

    /// Writes the fields as lines.
    pub fn write(&self, out: &mut Vec<u8>) {
        for field in &self.list {
            out.extend_from_slice(&self.text[field.start as usize..field.end as usize]);
            out.extend_from_slice(b"\r\n");
        }
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

impl Field {
    fn name_in<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        &text[self.start as usize..self.colon as usize]
    }

    fn value_in<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        &text[self.colon as usize + 2..self.end as usize]
    }
}

impl FieldName {
    fn of(name: &[u8]) -> Self {
        KNOWN.iter().find(|(text, _)| text.eq_ignore_ascii_case(name)).map_or(Self::Other, |k| k.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(names: &[&str]) -> Fields {
        let mut fields = Fields::default();
        names.iter().for_each(|name| fields.append(name.as_bytes(), b"old"));
        fields
    }

    fn written(fields: &Fields) -> String {
        let mut out = Vec::new();
        fields.write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn set_replaces_the_first_field_and_removes_the_others() {
        let mut fields = fields(&["A", "Cache-Control", "B", "cache-control"]);
        fields.set(b"cache-Control", b"new");
        assert_eq!(written(&fields), "A: old\r\ncache-Control: new\r\nB: old\r\n");
        assert_eq!(fields.known(FieldName::CacheControl), Some(&b"new"[..]));
    }

    #[test]
    fn a_new_field_is_set_at_the_end() {
        let mut fields = fields(&["A"]);
        fields.set(b"ETag", b"\"1\"");
        assert_eq!(written(&fields), "A: old\r\nETag: \"1\"\r\n");
        fields.remove_known(FieldName::ETag);
        assert_eq!(written(&fields), "A: old\r\n");
    }
}
