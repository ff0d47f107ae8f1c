//! `pcre_jit`.

use std::sync::Arc;

use conf::Result;

use super::ProgramSettings;

conf::directives! {
    in MAIN;
    /// Whether regular expressions are compiled to machine code.
    ///
    /// Differs: no effect; they always are if PCRE2 supports it.
    pcre_jit: bool = "off",
}

pub fn install(_: &Arc<Conf>, _: &mut ProgramSettings) -> Result<()> {
    Ok(())
}
