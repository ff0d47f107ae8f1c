//! Two profiles as one tree of calls, with the samples of both.

use std::collections::BTreeMap;

use super::stacks::FRAMES_MAX;
use super::{ProfileRecord, ProfiledFunction};

/// The tree; its root is the first function that does not call a single other one all the time.
pub(crate) struct FrameTree<'r> {
    pub(crate) root: FrameNode<'r>,
}

/// A function in the place where a chain of others calls it.
#[derive(Default)]
pub(crate) struct FrameNode<'r> {
    /// `None` for the root of several.
    pub(crate) function: Option<&'r ProfiledFunction>,
    /// The samples in it and in what it calls, of the baseline and of the row.
    pub(crate) samples: [u64; 2],
    /// By name.
    pub(crate) children: Vec<FrameNode<'r>>,
}

/// A node while samples are added.
#[derive(Default)]
struct GrowingNode<'r> {
    samples: [u64; 2],
    children: BTreeMap<&'r ProfiledFunction, GrowingNode<'r>>,
}

impl<'r> FrameTree<'r> {
    /// The tree of a baseline (or of nothing) and a row.
    pub(crate) fn of(baseline: Option<&'r ProfileRecord>, row: &'r ProfileRecord) -> Self {
        let mut growing = GrowingNode::default();
        for (side, profile) in [baseline, Some(row)].into_iter().enumerate() {
            for (profile, stack) in
                profile.iter().flat_map(|of| of.stacks.iter().map(move |stack| (of, stack)))
            {
                let frames = profile.frames(stack).take(FRAMES_MAX);
                growing.add(side, stack.samples, frames);
            }
        }
        let mut root = growing.grown(None);
        while let [only] = &mut root.children[..]
            && only.samples == root.samples
        {
            root = std::mem::take(only);
        }
        Self { root }
    }
}

impl<'r> GrowingNode<'r> {
    fn add(
        &mut self,
        side: usize,
        samples: u64,
        frames: impl Iterator<Item = &'r ProfiledFunction>,
    ) {
        let mut node = self;
        node.samples[side] = node.samples[side].saturating_add(samples);
        for function in frames {
            node = node.children.entry(function).or_default();
            node.samples[side] = node.samples[side].saturating_add(samples);
        }
    }

    fn grown(self, function: Option<&'r ProfiledFunction>) -> FrameNode<'r> {
        let children = self.children.into_iter();
        let children = children.map(|(function, node)| node.grown(Some(function))).collect();
        FrameNode { function, samples: self.samples, children }
    }
}

#[cfg(test)]
mod tests {
    use super::super::parsers;
    use super::*;

    fn text(node: &FrameNode<'_>) -> String {
        let name = node.function.map_or("all", |of| of.name.as_str());
        let [before, after] = node.samples;
        let children: Vec<String> = node.children.iter().map(text).collect();
        format!("{name} {before}/{after} ({})", children.join(", "))
    }

    #[test]
    fn two_profiles_are_one_tree() {
        let baseline =
            "\t9 copy (/a)\n\t8 send (/a)\n\t1 main (/a)\n\n\t9 read (/a)\n\t1 main (/a)\n";
        let row = "\t8 send (/a)\n\t1 main (/a)\n\n\t9 page (/a)\n\t8 send (/a)\n\t1 main (/a)\n";
        let (baseline, row) = (parsers::stacks(baseline), parsers::stacks(row));
        let tree = FrameTree::of(Some(&baseline), &row);
        let expected = "main 2/2 (read 1/0 (), send 1/2 (copy 1/0 (), page 0/1 ()))";
        assert_eq!(text(&tree.root), expected);
        let alone = FrameTree::of(None, &row);
        assert_eq!(text(&alone.root), "send 0/2 (page 0/1 ())");
    }

    #[test]
    fn a_damaged_record_is_a_smaller_tree() {
        let mut profile = parsers::stacks("\t9 copy (/a)\n\t1 main (/a)\n");
        profile.functions.clear();
        assert_eq!(text(&FrameTree::of(None, &profile).root), "all 0/1 ()");
    }
}
