//! A command, as shells complete it.

use crate::help_text::HelpOption;

/// A command and what may follow it.
pub(super) struct CompletedCommand {
    /// Empty: `weir` itself. `lab run` has two words.
    pub(super) path: String,
    pub(super) options: Vec<HelpOption>,
    /// The commands that may follow, each with a line about it.
    pub(super) commands: Vec<(String, String)>,
}

/// What the value of an option is.
pub(super) enum OptionValue {
    Nothing,
    File,
    Folder,
    /// One of these words.
    Words(Vec<String>),
    Other,
}

impl HelpOption {
    pub(super) fn kind(&self) -> OptionValue {
        let Some(value) = &self.value else { return OptionValue::Nothing };
        let has = |words: &[&str]| words.iter().any(|word| value.contains(word));
        match () {
            // Its value is optional, and joined by an equals sign.
            () if value.starts_with('[') => OptionValue::Nothing,
            () if value == "SIGNAL" => OptionValue::Words(listed(&self.text)),
            () if has(&["DIR", "PREFIX"]) && value != "DIRECTIVES" => OptionValue::Folder,
            () if has(&["FILE", "PATH", "SOCKET"]) => OptionValue::File,
            () => OptionValue::Other,
        }
    }

    pub(super) fn is_repeatable(&self) -> bool {
        self.text.contains("repeat")
    }
}

/// The words of a list behind a colon, which an opening parenthesis ends.
fn listed(text: &str) -> Vec<String> {
    let (_, list) = text.split_once(": ").unwrap_or_default();
    let list = list.split('(').next().unwrap_or_default();
    list.split(',').map(|word| word.trim().to_owned()).collect()
}
