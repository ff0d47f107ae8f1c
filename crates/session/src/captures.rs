//! The groups of the last regular expression that matched.

/// What a regular expression captured: one copy of the subject and byte ranges into it.
#[derive(Default)]
pub struct Captures {
    /// The subject.
    pub subject: Vec<u8>,
    /// Start and end of every group, the whole match first; `None` where it took no part.
    pub groups: Vec<Option<(u32, u32)>>,
}

impl Captures {
    /// The bytes of a group.
    pub fn group(&self, number: usize) -> Option<&[u8]> {
        let (start, end) = (*self.groups.get(number)?)?;
        self.subject.get(start as usize..end as usize)
    }
}
