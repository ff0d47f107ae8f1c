//! The end of a command without success.

use std::fmt;

/// Why the program ends without success: the text of the error.
#[derive(Debug, PartialEq, Eq)]
pub enum CommandError {
    /// The command line is wrong, or the run was not possible, or had no reply.
    Error(String),
    /// The run has broken an expectation.
    Broken(String),
}

impl CommandError {
    /// The program's exit code.
    pub fn code(&self) -> u8 {
        match self {
            Self::Error(_) => 1,
            Self::Broken(_) => 3,
        }
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Error(text) | Self::Broken(text)) = self;
        f.write_str(text)
    }
}

impl From<String> for CommandError {
    fn from(text: String) -> Self {
        Self::Error(text)
    }
}
