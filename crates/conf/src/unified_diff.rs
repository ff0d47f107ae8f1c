//! The difference of two texts in the format of `diff -u` and `patch`.

/// The number of unchanged lines around a change.
const CONTEXT: usize = 3;
/// Above this product of old and new lines, the changed part is shown as wholly replaced.
const CELLS_MAX: usize = 1 << 24;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineEdit {
    Kept,
    Removed,
    Added,
}

/// The changes that turn `old` into `new`, below the names of the two; empty if they are the same.
pub fn unified_diff(names: [&str; 2], old: &[u8], new: &[u8]) -> Vec<u8> {
    let lines = |text| <[u8]>::split_inclusive(text, |byte| *byte == b'\n').collect::<Vec<_>>();
    let (old, new) = (lines(old), lines(new));
    let edits = edits(&old, &new);
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(first) = edits[at..].iter().position(|edit| *edit != LineEdit::Kept) {
        if out.is_empty() {
            out.extend_from_slice(format!("--- {}\n+++ {}\n", names[0], names[1]).as_bytes());
        }
        let start = (at + first).saturating_sub(CONTEXT).max(at);
        let end = hunk_end(&edits, at + first);
        write_hunk(&old, &new, &edits, start..end, &mut out);
        at = end;
    }
    out
}

/// The end of the hunk that begins with this change. Changes that are close share a hunk.
fn hunk_end(edits: &[LineEdit], first: usize) -> usize {
    let mut last = first;
    for (index, edit) in edits.iter().enumerate().skip(first) {
        match edit {
            LineEdit::Kept if index > last + 2 * CONTEXT => break,
            LineEdit::Kept => {}
            _ => last = index,
        }
    }
    (last + 1 + CONTEXT).min(edits.len())
}

fn write_hunk(
    old: &[&[u8]],
    new: &[&[u8]],
    edits: &[LineEdit],
    hunk: std::ops::Range<usize>,
    out: &mut Vec<u8>,
) {
    let count = |edits: &[LineEdit], other| edits.iter().filter(|edit| **edit != other).count();
    let of_old = |edits| count(edits, LineEdit::Added);
    let of_new = |edits| count(edits, LineEdit::Removed);
    let (before, within) = (&edits[..hunk.start], &edits[hunk]);
    let (mut old_at, mut new_at) = (of_old(before), of_new(before));
    let range = |start: usize, count: usize| match count {
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        _ => format!("{},{count}", start + 1),
    };
    let (old_range, new_range) = (range(old_at, of_old(within)), range(new_at, of_new(within)));
    out.extend_from_slice(format!("@@ -{old_range} +{new_range} @@\n").as_bytes());
    for edit in within {
        let (mark, line) = match edit {
            LineEdit::Kept => (b' ', old[old_at]),
            LineEdit::Removed => (b'-', old[old_at]),
            LineEdit::Added => (b'+', new[new_at]),
        };
        old_at += usize::from(*edit != LineEdit::Added);
        new_at += usize::from(*edit != LineEdit::Removed);
        out.push(mark);
        out.extend_from_slice(line);
        if !line.ends_with(b"\n") {
            out.extend_from_slice(b"\n\\ No newline at end of file\n");
        }
    }
}

/// The fewest edits, removed lines before added ones.
fn edits(old: &[&[u8]], new: &[&[u8]]) -> Vec<LineEdit> {
    let same = |pair: &(&&[u8], &&[u8])| pair.0 == pair.1;
    let start = old.iter().zip(new).take_while(same).count();
    let (old, new) = (&old[start..], &new[start..]);
    let end = old.iter().rev().zip(new.iter().rev()).take_while(same).count();
    let (old, new) = (&old[..old.len() - end], &new[..new.len() - end]);
    let mut edits = vec![LineEdit::Kept; start];
    if old.len().saturating_mul(new.len()) > CELLS_MAX {
        edits.extend(old.iter().map(|_| LineEdit::Removed));
        edits.extend(new.iter().map(|_| LineEdit::Added));
    } else {
        changes(old, new, &mut edits);
    }
    edits.extend(std::iter::repeat_n(LineEdit::Kept, end));
    edits
}

/// Appends the edits of the changed part, by the longest common subsequence.
fn changes(old: &[&[u8]], new: &[&[u8]], edits: &mut Vec<LineEdit>) {
    let width = new.len() + 1;
    // The number of lines that the rests of both texts have in common.
    let mut common = vec![0_u32; (old.len() + 1) * width];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i * width + j] = match old[i] == new[j] {
                true => common[(i + 1) * width + j + 1] + 1,
                false => common[(i + 1) * width + j].max(common[i * width + j + 1]),
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < old.len() || j < new.len() {
        let edit = if i < old.len() && j < new.len() && old[i] == new[j] {
            LineEdit::Kept
        } else if j == new.len()
            || i < old.len() && common[(i + 1) * width + j] >= common[i * width + j + 1]
        {
            LineEdit::Removed
        } else {
            LineEdit::Added
        };
        i += usize::from(edit != LineEdit::Added);
        j += usize::from(edit != LineEdit::Removed);
        edits.push(edit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(old: &str, new: &str) -> String {
        String::from_utf8(unified_diff(["a", "a (formatted)"], old.as_bytes(), new.as_bytes()))
            .unwrap()
    }

    const HEAD: &str = "--- a\n+++ a (formatted)\n";

    #[test]
    fn equal_texts_have_no_difference() {
        assert_eq!(diff("", "") + &diff("a\nb", "a\nb"), "");
    }

    #[test]
    fn a_change_is_shown_with_three_lines_around_it() {
        let expected = "@@ -3,7 +3,7 @@\n 3\n 4\n 5\n-6\n+six\n 7\n 8\n 9\n";
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n";
        assert_eq!(diff(old, &old.replace('6', "six")), format!("{HEAD}{expected}"));
    }

    #[test]
    fn distant_changes_have_separate_hunks() {
        let old: String = (0..20).map(|n| format!("line {n}\n")).collect();
        let near = old.replace("line 2\n", "").replace("line 8\n", "eight\n");
        assert_eq!(diff(&old, &near).matches("@@ -").count(), 1);
        let far = old.replace("line 2\n", "").replace("line 12\n", "");
        assert_eq!(diff(&old, &far).matches("@@ -").count(), 2);
        assert!(diff(&old, &far).contains("@@ -10,7 +9,6 @@\n"));
    }

    #[test]
    fn empty_texts_and_missing_line_ends() {
        assert_eq!(diff("", "a\n"), format!("{HEAD}@@ -0,0 +1 @@\n+a\n"));
        assert_eq!(diff("a\n", ""), format!("{HEAD}@@ -1 +0,0 @@\n-a\n"));
        let end = "\\ No newline at end of file\n";
        assert_eq!(diff("a", "a\n"), format!("{HEAD}@@ -1 +1 @@\n-a\n{end}+a\n"));
    }

    #[test]
    fn texts_too_large_to_compare_are_replaced() {
        let lines = |mark: &str| (0..5000).map(|n| format!("{mark}{n}\n")).collect::<String>();
        let shown = diff(&lines("a"), &lines("b"));
        assert!(shown.contains("@@ -1,5000 +1,5000 @@\n-a0\n"));
    }
}
