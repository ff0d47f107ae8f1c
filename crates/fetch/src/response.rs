//! A reply in memory.

use wire::reply::ReplyHead;

#[derive(Debug)]
pub struct FetchResponse {
    /// Its offsets refer to `text`.
    pub(crate) head: ReplyHead,
    pub(crate) text: Vec<u8>,
    pub body: Vec<u8>,
}

impl FetchResponse {
    /// The status, which is final: at least 200.
    pub fn status(&self) -> u16 {
        self.head.status
    }

    /// The value of the first field with that name, ignoring case.
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        let is_it = |(other, _): &(&[u8], &[u8])| other.eq_ignore_ascii_case(name.as_bytes());
        self.fields().find(is_it).map(|(_, value)| value)
    }

    /// Names and values of all fields, in order.
    pub fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let lines = self.head.fields.iter();
        lines.map(|field| (field.name.of(&self.text), field.value.of(&self.text)))
    }
}
