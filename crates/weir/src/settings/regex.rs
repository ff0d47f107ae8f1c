//! `pcre_jit`.

use std::sync::Arc;

use conf::Result;

use super::Settings;

conf::directives! {
    in MAIN;
    /// Whether patterns are compiled to machine code. Here they always are where PCRE can.
    pcre_jit: bool = "off",
}

/// Nothing to hand over.
pub fn install(_: &Arc<Conf>, _: &mut Settings) -> Result<()> {
    Ok(())
}
