//! Samples with stacks in the output of `perf script -F event,ip,sym,dso`, folded: equal stacks
//! become one with a count.
//!
//! ```text
//! cpu-clock:ppp:
//!         ffffffff8200fbeb tcp_sendmsg_locked ([kernel.kallsyms])
//!                   7c11df net::stream::Stream::poll_write (/usr/bin/weir)
//! ```

use std::collections::BTreeMap;

use super::record::{KERNEL, ProfileRecord, ProfiledFunction, ProfiledStack};

/// The most frames of a stack and the longest name; the rest is cut off. Trees of stacks are walked
/// recursively.
pub(super) const FRAMES_MAX: usize = 256;
const NAME_BYTES_MAX: usize = 200;

/// The name of a function without a symbol, and the module of code without a file.
const UNKNOWN: &str = "[unknown]";

/// The folded samples; the fields about counts stay empty.
pub(crate) fn read(script: &str) -> ProfileRecord {
    let mut folding = Folding::default();
    let mut event = String::new();
    for line in script.lines() {
        match line.strip_prefix('\t') {
            Some(line) => folding.sample.extend(frame(line)),
            None if line.trim().is_empty() => folding.end_sample(),
            None => event = event_name(line),
        }
    }
    folding.end_sample();
    let Folding { functions, stacks, .. } = folding;
    let mut names: Vec<(ProfiledFunction, usize)> = functions.into_iter().collect();
    names.sort_by_key(|(_, index)| *index);
    let functions = names.into_iter().map(|(function, _)| function).collect();
    let stack = |(frames, samples)| ProfiledStack { frames, samples };
    let stacks = stacks.into_iter().map(stack).collect();
    ProfileRecord { event, functions, stacks, ..ProfileRecord::default() }
}

#[derive(Default)]
struct Folding {
    functions: BTreeMap<ProfiledFunction, usize>,
    stacks: BTreeMap<Vec<usize>, u64>,
    /// The frames of the sample that is being read, from its leaf on.
    sample: Vec<ProfiledFunction>,
}

impl Folding {
    fn end_sample(&mut self) {
        let mut sample = std::mem::take(&mut self.sample);
        // Frames of no file are what is left where a stack could not be followed. As a leaf it
        // is code of its own.
        let mut place = 0;
        sample.retain(|function| {
            place += 1;
            place == 1 || function.module != UNKNOWN
        });
        if sample.is_empty() {
            return;
        }
        sample.reverse();
        sample.truncate(FRAMES_MAX);
        let mut index = |function: ProfiledFunction| {
            let next = self.functions.len();
            *self.functions.entry(function).or_insert(next)
        };
        let frames: Vec<usize> = sample.into_iter().map(&mut index).collect();
        *self.stacks.entry(frames).or_default() += 1;
    }
}

/// `cpu-clock:ppp:` without modifiers.
fn event_name(line: &str) -> String {
    let word = line.split_whitespace().next().unwrap_or_default();
    cut(word.split(':').next().unwrap_or_default())
}

/// `ADDRESS FUNCTION (FILE)`
fn frame(line: &str) -> Option<ProfiledFunction> {
    let (address, rest) = line.trim_start().split_once(' ')?;
    let address = u64::from_str_radix(address, 16).ok()?;
    let (name, file) = rest.trim_end().strip_suffix(')')?.rsplit_once(" (")?;
    let module = match file {
        UNKNOWN => UNKNOWN.to_owned(),
        // The kernel has the upper half of all addresses.
        _ if address >> 63 == 1 => KERNEL.to_owned(),
        _ => cut(file.rsplit('/').next().unwrap_or_default()),
    };
    // A function without a symbol has the name of its file.
    let name =
        if name == UNKNOWN { format!("[{}]", module.trim_matches(['[', ']'])) } else { cut(name) };
    Some(ProfiledFunction { name, module })
}

fn cut(name: &str) -> String {
    name[..name.floor_char_boundary(NAME_BYTES_MAX)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = "\
cpu-clock:ppp:
\tffffffff8200fbeb tcp_sendmsg_locked ([kernel.kallsyms])
\tffffffffc0ddbb00 veth_xmit ([veth])
\t          7c11df <a::B as c::D<E, F>>::poll (flush) (/usr/bin/weir)
\t           891f4 start_thread (/usr/lib/libc.so.6)
\tffffffffffffffff [unknown] ([unknown])

cpu-clock:ppp:
\t           4e039 [unknown] (/usr/sbin/nginx)
\t           891f4 start_thread (/usr/lib/libc.so.6)

cpu-clock:ppp:
\t           4e044 [unknown] (/usr/sbin/nginx)
\t           891f4 start_thread (/usr/lib/libc.so.6)
";

    fn folded(script: &str) -> Vec<(String, u64)> {
        let profile = read(script);
        let line = |stack: &ProfiledStack| {
            let names = profile.frames(stack).map(|of| format!("{} {}", of.module, of.name));
            (names.collect::<Vec<_>>().join("; "), stack.samples)
        };
        let mut all: Vec<_> = profile.stacks.iter().map(line).collect();
        all.sort();
        all
    }

    #[test]
    fn equal_stacks_are_one() {
        let long = "libc.so.6 start_thread; weir <a::B as c::D<E, F>>::poll (flush); \
                    kernel veth_xmit; kernel tcp_sendmsg_locked";
        let expected = [("libc.so.6 start_thread; nginx [nginx]", 2), (long, 1)];
        assert_eq!(folded(SCRIPT), expected.map(|(stack, count)| (stack.to_owned(), count)));
        assert_eq!((&*read(SCRIPT).event, read(SCRIPT).samples()), ("cpu-clock", 3));
    }

    #[test]
    fn code_without_a_file_counts_where_it_was_seen() {
        let script = "cycles:\n\t7f0000000000 [unknown] ([unknown])\n\t1 main (/a)\n";
        assert_eq!(folded(script), [("a main; [unknown] [unknown]".to_owned(), 1)]);
    }

    #[test]
    fn other_text_is_skipped() {
        for script in ["", "\n\n", "\tx y (z)\n", "\t12 f\n", "\t12\n", "cycles:\n\n", "\t (a)\n"] {
            assert_eq!(folded(script), [], "{script:?}");
        }
    }

    #[test]
    fn long_names_and_deep_stacks_are_cut() {
        let name = "\u{e9}".repeat(150);
        let script = format!("\t1 {name} (/a)\n").repeat(FRAMES_MAX + 9);
        let profile = read(&script);
        assert_eq!(profile.stacks[0].frames.len(), FRAMES_MAX);
        assert_eq!(profile.functions[0].name.len(), NAME_BYTES_MAX);
    }
}
