//! Why a block of fields was refused.

use core::fmt;

/// Why a block was refused; [`HpackError::ends_connection`] tells the consequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HpackError {
    /// The block ends within a field.
    Truncated,
    /// An integer has more bytes than any length or index needs.
    IntegerTooLong,
    /// An index beyond both tables.
    InvalidIndex,
    /// A string that is not a valid Huffman code.
    InvalidHuffman,
    /// A table larger than the one that was announced.
    TableTooLarge,
    /// A change of the table's size after the block's first field.
    LateSizeUpdate,
    /// Many changes of the table's size in one block.
    TooManySizeUpdates,
    /// A name or value longer than [`super::FieldLimits::string_bytes_max`].
    StringTooLong,
    /// The fields are many times larger than [`super::FieldLimits::bytes_max`].
    Excessive,
    /// More fields than [`super::FieldLimits::fields_max`].
    TooManyFields,
    /// More bytes than [`super::FieldLimits::bytes_max`].
    TooManyBytes,
}

impl HpackError {
    /// Whether the tables of both sides may differ from now on, so that no further block can be
    /// read (COMPRESSION_ERROR), or decoding on would cost too much. After the other errors, the
    /// block was decoded to its end and only its own stream is affected.
    pub fn ends_connection(self) -> bool {
        !matches!(self, HpackError::TooManyFields | HpackError::TooManyBytes)
    }
}

impl fmt::Display for HpackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HpackError::Truncated => "header block ends within a field",
            HpackError::IntegerTooLong => "too long integer in a header block",
            HpackError::InvalidIndex => "invalid header index",
            HpackError::InvalidHuffman => "invalid Huffman code in a header field",
            HpackError::TableTooLarge => "header table size above the limit",
            HpackError::LateSizeUpdate => "header table size update after a field",
            HpackError::TooManySizeUpdates => "too many header table size updates",
            HpackError::StringTooLong => "too large header field",
            HpackError::Excessive => "header fields many times above the limit",
            HpackError::TooManyFields => "too many header fields",
            HpackError::TooManyBytes => "too large header fields",
        })
    }
}

impl core::error::Error for HpackError {}
