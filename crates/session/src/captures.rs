//! The groups of the last regular expression that matched.

/// The captures of a regular expression: one copy of the subject and byte ranges into it.
#[derive(Default)]
pub struct Captures {
    pub subject: Vec<u8>,
    /// Start and end of each group, the whole match first; `None` for a group outside the match.
    pub groups: Vec<Option<(u32, u32)>>,
}

impl Captures {
    pub fn group(&self, number: usize) -> Option<&[u8]> {
        let (start, end) = (*self.groups.get(number)?)?;
        self.subject.get(start as usize..end as usize)
    }
}
