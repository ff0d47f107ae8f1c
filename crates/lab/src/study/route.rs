//! Options of a route that a study may set.

/// Each has a value.
const OPTIONS: [&str; 6] = ["quickack", "initcwnd", "initrwnd", "rto_min", "advmss", "mtu"];

/// Checks options such as `quickack 1 initcwnd 20`.
pub(super) fn options(text: &str) -> Result<String, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_plain = |value: &str| value.chars().all(|c| c.is_ascii_alphanumeric());
    for pair in words.chunks(2) {
        match pair {
            [name, value] if OPTIONS.contains(name) && is_plain(value) => {}
            _ => {
                return Err(format!(
                    "\"{}\" is no option of a route: it must be one of {}, with a value",
                    pair.join(" "),
                    OPTIONS.join(", ")
                ));
            }
        }
    }
    Ok(words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_options_with_values_are_accepted() {
        let options = |text| options(text).unwrap_or_else(|error| error);
        assert_eq!(options(" quickack 1   initcwnd 20"), "quickack 1 initcwnd 20");
        assert_eq!(options(""), "");
        for text in ["quickack", "via 10.0.0.1", "mtu 1;x", "mtu 1 lock"] {
            assert!(options(text).contains("is no option of a route"), "{text}");
        }
    }
}
