//! "did you mean": the known name that a word was probably meant to be.
//!
//! The distance counts added, missing, replaced and swapped letters, regardless of case. A long
//! word may have more mistakes than a short one.

/// Longer words are not misspelt names.
const NAME_BYTES_MAX: usize = 64;
/// The largest distance at which a long name is suggested.
const DISTANCE_MAX: usize = 3;
/// A name may have one mistake, and one more for each group of this many letters.
const BYTES_PER_MISTAKE: usize = 4;

/// The name nearest to a word, if any is near enough; of equally near ones the first.
pub fn nearest<'a>(word: &[u8], names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > NAME_BYTES_MAX {
        return None;
    }
    let most = (word.len() / BYTES_PER_MISTAKE).clamp(1, DISTANCE_MAX);
    names
        .into_iter()
        .filter(|name| name.len().abs_diff(word.len()) <= most && name.len() > most)
        .map(|name| (distance(word, name.as_bytes()), name))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// The line to show below the error.
pub fn did_you_mean(name: &str) -> String {
    format!("did you mean \"{name}\"?")
}

/// The distance of Damerau and Levenshtein, without moving a letter twice.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut before: Vec<usize>;
    let mut last: Vec<usize> = vec![];
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let swapped = |j: usize| i > 0 && j > 0 && same(a[i], b[j - 1]) && same(a[i - 1], b[j]);
        before = last;
        last = row;
        row = vec![i + 1];
        for j in 0..b.len() {
            let replaced = last[j] + usize::from(!same(a[i], b[j]));
            let mut least = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if swapped(j) {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
    }
    row[b.len()]
}

fn same(a: u8, b: u8) -> bool {
    a.eq_ignore_ascii_case(&b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known;

    fn of_all(word: &str) -> Option<&'static str> {
        nearest(word.as_bytes(), known::all().iter().map(|known| known.name))
    }

    #[test]
    fn typing_errors_are_recognised() {
        let cases = [
            ("lisen", "listen"),
            ("lsiten", "listen"),
            ("Listen", "listen"),
            ("proxy_pas", "proxy_pass"),
            ("proxypass", "proxy_pass"),
            ("server_names", "server_name"),
            ("worker_process", "worker_processes"),
            ("keep_alive_timeout", "keepalive_timeout"),
            ("proxy-set-header", "proxy_set_header"),
            ("acces_log", "access_log"),
            ("evnets", "events"),
        ];
        for (word, name) in cases {
            assert_eq!(of_all(word), Some(name), "{word}");
        }
    }

    #[test]
    fn unrelated_words_get_no_suggestion() {
        for word in ["", "a", "xy", "foo", "frobnicate", "content_by_lua_block", "more_set_headers"]
        {
            assert_eq!(of_all(word), None, "{word}");
        }
        assert_eq!(of_all(&"listen".repeat(100)), None);
    }

    #[test]
    fn the_distance_counts_each_mistake_once() {
        let cases = [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("abc", "abc", 0),
            ("abc", "ABC", 0),
            ("abc", "acb", 1),
            ("abc", "ab", 1),
            ("abc", "abcd", 1),
            ("abc", "axc", 1),
            ("ca", "abc", 3),
            ("kitten", "sitting", 3),
        ];
        for (a, b, expected) in cases {
            assert_eq!(distance(a.as_bytes(), b.as_bytes()), expected, "{a} {b}");
            assert_eq!(distance(b.as_bytes(), a.as_bytes()), expected, "{b} {a}");
        }
    }
}
