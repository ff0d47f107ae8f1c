//! Header fields of a reply: names and values in one piece of memory, in order.

/// The names that the core asks for by themselves; all others are compared as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldName {
    /// `Accept-Ranges`
    AcceptRanges,
    /// `Cache-Control`
    CacheControl,
    /// `Content-Range`
    ContentRange,
    /// `ETag`
    ETag,
    /// `Expires`
    Expires,
    /// `Link`
    Link,
    /// `WWW-Authenticate`
    WwwAuthenticate,
    /// Any other, its name in the text.
    Other,
}

const KNOWN: [(&[u8], FieldName); 7] = [
    (b"Accept-Ranges", FieldName::AcceptRanges),
    (b"Cache-Control", FieldName::CacheControl),
    (b"Content-Range", FieldName::ContentRange),
    (b"ETag", FieldName::ETag),
    (b"Expires", FieldName::Expires),
    (b"Link", FieldName::Link),
    (b"WWW-Authenticate", FieldName::WwwAuthenticate),
];

/// A field: `name: value` stands at these offsets.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// The well-known name.
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
    /// Removes all.
    pub fn clear(&mut self) {
        self.text.clear();
        self.list.clear();
    }

    /// Adds a field after the others.
    pub fn append(&mut self, name: &[u8], value: &[u8]) {
        let (start, known) = (self.text.len() as u32, FieldName::of(name));
        self.text.extend_from_slice(name);
        let colon = self.text.len() as u32;
        self.text.extend_from_slice(b": ");
        self.text.extend_from_slice(value);
        self.list.push(Field { known, start, colon, end: self.text.len() as u32 });
    }

    /// Puts a field in the place of those with the same name.
    pub fn set(&mut self, name: &[u8], value: &[u8]) {
        self.remove(name);
        self.append(name, value);
    }

    /// Removes every field with that name.
    pub fn remove(&mut self, name: &[u8]) {
        let text = &self.text;
        self.list.retain(|field| !field.name_in(text).eq_ignore_ascii_case(name));
    }

    /// The values of the fields with that name.
    pub fn values<'f>(&'f self, name: &'f [u8]) -> impl Iterator<Item = &'f [u8]> {
        self.iter().filter(move |(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, v)| v)
    }

    /// The first value of a well-known field.
    pub fn known(&self, known: FieldName) -> Option<&[u8]> {
        self.list.iter().find(|field| field.known == known).map(|field| field.value_in(&self.text))
    }

    /// Every field: name and value.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.list.iter().map(|field| (field.name_in(&self.text), field.value_in(&self.text)))
    }

    /// Writes the fields as lines.
    pub fn write(&self, out: &mut Vec<u8>) {
        for field in &self.list {
            out.extend_from_slice(&self.text[field.start as usize..field.end as usize]);
            out.extend_from_slice(b"\r\n");
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are none.
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
