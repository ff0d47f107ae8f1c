//! The options of `weir load` that a study may set.

/// Options with a value.
const WITH_VALUE: [&str; 17] = [
    "-H",
    "-m",
    "-b",
    "--body",
    "--body-file",
    "--list",
    "--per-connection",
    "--pipeline",
    "--streams",
    "--slow",
    "--weights",
    "--timeout",
    "--tls",
    "--ciphers",
    "--groups",
    "--alpn",
    "--sni",
];
const ALONE: [&str; 2] = ["--h2", "--resume"];

/// Splits a level into words: at blanks, outside of quotes.
pub(super) fn words(text: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in text.chars() {
        match quote {
            Some(end) if c == end => quote = None,
            None if c == '"' || c == '\'' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        return Err(format!("{text}: a quote is not closed"));
    }
    words.extend(word);
    Ok(words)
}

/// The first problem: an option that the lab sets itself, or none.
pub(crate) fn problem(words: &[String]) -> Option<String> {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let has_value = WITH_VALUE.contains(&word.as_str());
        if !has_value && !ALONE.contains(&word.as_str()) {
            let (alone, known) = (ALONE.join(" "), WITH_VALUE.join(" "));
            return Some(format!(
                "load.options has {word}, but may have {alone}, and with a value {known}"
            ));
        }
        if has_value && words.next().is_none() {
            return Some(format!("load.options: {word} requires a value"));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_split_outside_of_quotes() {
        let split = |text| words(text).map(|words| words.join("|"));
        assert_eq!(split(" --h2  --streams 32 ").as_deref(), Ok("--h2|--streams|32"));
        assert_eq!(split("-H 'A: b c' -b \"\"").as_deref(), Ok("-H|A: b c|-b|"));
        assert_eq!(split("").as_deref(), Ok(""));
        assert!(split("-H 'A").is_err());
    }

    #[test]
    fn options_that_the_lab_sets_are_refused() {
        let told = |text| problem(&words(text).unwrap()).unwrap_or_default();
        assert_eq!(told("--h2 -H a:b --list %%dir%%/vary.list"), "");
        assert!(told("-c5").starts_with("load.options has -c5, but may have --h2 --resume,"));
        assert!(told("--h2 http://127.0.0.1:1/").contains("has http://127.0.0.1:1/"));
        assert_eq!(told("--h2 --streams"), "load.options: --streams requires a value");
    }
}
