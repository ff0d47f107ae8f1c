//! nginx.conf: text -> tree with spans -> typed layers.
//!
//! The lower half (lexer, tree, files, diagnostics, formatting) knows nginx's grammar; the upper
//! half (the directive kernel) knows how settings are declared and inherited. Deliberately absent:
//! the meaning of any directive, and sockets. Configuration text is bytes: not every nginx.conf is
//! UTF-8.

pub mod advice;
mod cause;
mod cidr;
mod diagnostic;
mod doc;
mod dump;
mod error;
mod feature;
mod files;
pub mod fmt;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzz;
pub mod kernel;
pub mod known;
pub mod lacking;
mod lexer;
mod lua;
mod parser;
mod registry;
mod sources;
mod subsystem;
pub mod suggest;
mod template;
mod tree;
mod unified_diff;
pub mod units;
mod value;
mod word_set;

pub use cause::SharedCause;
pub use cidr::{Cidr, address, address_port, address_v4};
pub use diagnostic::Diagnostic;
pub use doc::Doc;
pub use dump::dump;
pub use error::{Error, ErrorLevel, Result};
pub use feature::{FeatureName, InstallTarget};
pub use files::{
    Call, Disk, FileError, Files, FilesBelow, MemoryFiles, Recorder, Replay, full_name, has_magic,
};
pub use kernel::{
    Absent, EVENTS, IF_IN_LOCATION, IF_IN_SERVER, Info, Inherited, LIMIT_EXCEPT, LOCATION, Layered,
    Levels, MAIN, SERVER, UPSTREAM, Value, args_of, assign, inherit, row,
};
pub use parser::{
    BLOCKS_DEPTH_MAX, FILE_BYTES_MAX, FILES_MAX, INCLUDE, INCLUDES_DEPTH_MAX, ParsedConfig,
    TEXT_BYTES_MAX, parse,
};
pub use registry::{Load, Registry, bytes_path};
pub use sources::{SourceText, Sources};
pub use subsystem::Subsystem;
pub use template::{Template, TemplatePart, Values, VariableId, VariableNames};
pub use tree::{Directive, FileId, Span, Tree, Word};
pub use unified_diff::unified_diff;
pub use value::{
    Bounded, Buffers, Milliseconds, Number, Offset, Predicates, Present, Seconds, Size,
    SizeTemplate, Text,
};
pub use word_set::add_words;
