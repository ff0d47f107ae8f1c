//! The lines in which two transcripts differ, and nothing around them.

/// `- ` lines of `left` and `+ ` lines of `right` that the longest common subsequence leaves over.
pub(super) fn diff(left: &[String], right: &[String]) -> Vec<String> {
    if left == right {
        return vec![];
    }
    let common = common_lengths(left, right);
    let (mut l, mut r) = (0, 0);
    let mut out = Vec::new();
    while l < left.len() || r < right.len() {
        let same = l < left.len() && r < right.len() && left[l] == right[r];
        if same {
            (l, r) = (l + 1, r + 1);
        } else if r == right.len() || (l < left.len() && common[l + 1][r] >= common[l][r + 1]) {
            out.push(marked('-', &left[l]));
            l += 1;
        } else {
            out.push(marked('+', &right[r]));
            r += 1;
        }
    }
    out
}

/// An empty line is a mark alone, since editors drop a space at the end.
fn marked(mark: char, line: &str) -> String {
    format!("{mark} {line}").trim_end().to_owned()
}

/// How many lines `left[l..]` and `right[r..]` have in common, for every `l` and `r`.
fn common_lengths(left: &[String], right: &[String]) -> Vec<Vec<u32>> {
    let mut lengths = vec![vec![0; right.len() + 1]; left.len() + 1];
    for l in (0..left.len()).rev() {
        for r in (0..right.len()).rev() {
            lengths[l][r] = match left[l] == right[r] {
                true => lengths[l + 1][r + 1] + 1,
                false => lengths[l + 1][r].max(lengths[l][r + 1]),
            };
        }
    }
    lengths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.chars().map(String::from).collect()
    }

    #[test]
    fn only_what_differs_is_left() {
        assert!(diff(&lines("abc"), &lines("abc")).is_empty());
        assert_eq!(diff(&lines("abcd"), &lines("axcde")), ["- b", "+ x", "+ e"]);
        assert_eq!(diff(&lines("ab"), &[]), ["- a", "- b"]);
        assert_eq!(diff(&[], &lines("a")), ["+ a"]);
        assert_eq!(diff(&[], &[String::new()]), ["+"]);
    }
}
