//! The bounds of a document.

/// What a document may have at most.
#[derive(Clone, Copy, Debug)]
pub struct JsonLimits {
    pub bytes_max: usize,
    /// Lists and objects inside each other. The parser's stack grows with it.
    pub depth_max: u8,
    /// Values of all kinds, those inside lists and objects included. A value takes up to a few
    /// hundred bytes of memory, however short its text.
    pub values_max: usize,
}
