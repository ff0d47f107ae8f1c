//! The programs that can load a row's server.

use serde::{Deserialize, Serialize};

/// A load generator.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) enum GeneratorKind {
    #[default]
    #[serde(rename = "weir load")]
    WeirLoad,
    #[serde(rename = "wrk")]
    Wrk,
    #[serde(rename = "ab")]
    Ab,
    #[serde(rename = "h2load")]
    H2load,
}

impl GeneratorKind {
    const ALL: [Self; 4] = [Self::WeirLoad, Self::Wrk, Self::Ab, Self::H2load];

    /// Its name, which is that of the program unless it is this one.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::WeirLoad => "weir load",
            Self::Wrk => "wrk",
            Self::Ab => "ab",
            Self::H2load => "h2load",
        }
    }

    /// Whether it is another program.
    pub(crate) fn is_foreign(self) -> bool {
        self != Self::WeirLoad
    }

    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|kind| kind.name() == text);
        known.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("\"{text}\" is no generator: {names}")
        })
    }
}
