//! Properties that hold for any input, as functions that panic if they do not hold.
//!
//! The fuzz target (`fuzz/`) and the test of its seeds share them; they are not part of the crate's
//! interface.

use conf::{MemoryFiles, Subsystem};

use crate::api::{GroupRules, ServersPath, SpecPatch};
use crate::balance::RefusedParameters;
use crate::roster::{GroupChange, Roster, ServerOperation};

/// A server that the API accepts, alone or as a list, is one `server` line of a state file with the
/// same words, and survives as bytes. The first byte chooses the subsystem.
pub fn server_parameters(input: &[u8]) {
    let (first, body) = input.split_first().unwrap_or((&0, b""));
    let subsystem = if first & 1 == 0 { Subsystem::Http } else { Subsystem::Stream };
    // Anything may be a path or a change, and neither panics.
    let _ = (ServersPath::parse(input), GroupChange::from_bytes(input));
    let Ok(patch) = SpecPatch::from_json(body, subsystem) else { return };
    let rules = GroupRules {
        state: None,
        text: 0,
        refused: RefusedParameters::default(),
        resolves: true,
        needs_port: subsystem == Subsystem::Stream,
    };
    let mut roster = Roster::default();
    let Ok(operation) = rules.add(&roster, &patch) else { return };
    let change = GroupChange { subsystem, group: (*b"a").into(), operation };
    assert_eq!(GroupChange::from_bytes(&change.to_bytes()).as_ref(), Some(&change));
    let list = [b"[", body, b"]"].concat();
    let listed = rules.listed(&list, subsystem, &roster).expect("a list of one such server");
    assert!(roster.apply(&change.operation));
    assert_eq!(listed.0, roster);
    let again = rules.listed(&list, subsystem, &roster).expect("the same list");
    assert_eq!((again.0.lines(), again.1.unchanged), (roster.lines(), 1));
    let ServerOperation::Add { spec, .. } = change.operation else { return };
    let mut files = MemoryFiles::default().with("/state", roster.to_text());
    let (_, tree) = conf::parse(b"/state", b"/", None, &mut files).into_result();
    let tree = tree.expect("what was written is a configuration");
    let [line] = &tree.root[..] else { panic!("{} lines", tree.root.len()) };
    assert_eq!((&*line.name.text, &*line.args[0].text), (&b"server"[..], spec.text()));
    if let Some(route) = &spec.terms.route {
        let route = [b"route=", &route[..]].concat();
        assert!(line.args.iter().any(|word| *word.text == *route));
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_holds_for_the_seeds_and_their_beginnings() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/server_parameters");
        let seeds = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let seeds: Vec<_> = seeds.map(|path| std::fs::read(path).unwrap()).collect();
        assert!(seeds.len() > 3);
        for seed in &seeds {
            (0..=seed.len()).for_each(|end| super::server_parameters(&seed[..end]));
        }
    }
}
