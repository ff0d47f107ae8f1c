//! Properties that hold for any input, as functions that panic if they do not hold.
//!
//! The fuzz targets (`fuzz/`) and the test of their seeds share them; they are not part of the
//! crate's interface.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;

use conf::MemoryFiles;
use sandbox::EditableTree;

use crate::profile::{self, FrameTree, ProfileScale, parsers};
use crate::study::{BackendAddress, RowSetting, Study, StudyPlaces};
use crate::tune::{TunedServer, candidates};

/// Every row of an accepted study has a level for each factor and a complete configuration; a study
/// survives writing and reading.
pub fn lab_study(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(study) = Study::parse("study", text) else { return };
    let factors: BTreeSet<&str> = study.factors.keys().map(String::as_str).collect();
    for row in &study.rows {
        let levels = study.levels(row);
        assert_eq!(levels.keys().copied().collect::<BTreeSet<_>>(), factors);
        let listen = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 80);
        let backends = vec![BackendAddress::of_http(listen); study.backend.count];
        let places = StudyPlaces {
            listen,
            listen_tls: listen,
            dir: "/srv",
            backends: &backends,
            processors: 1,
        };
        let text = study.configuration(row, places);
        assert!(row.direct || !text.contains("%%"), "{text}");
        RowSetting::of(&study, row).expect("it was checked");
    }
    let written = toml::to_string(&study).expect("it was read");
    let again = Study::parse("study", &written).expect("what was written");
    assert_eq!(toml::to_string(&again).expect("it was read"), written);
}

/// A configuration survives writing and reading, with and without each candidate.
pub fn tune_tree(input: &[u8]) {
    const FILE: &str = "/etc/nginx/nginx.conf";
    let read = |text: &[u8]| {
        let mut files = MemoryFiles::default().with(FILE, text);
        EditableTree::read(Path::new(FILE), &mut files)
    };
    let Ok(tree) = read(input) else { return };
    let same = |tree: &EditableTree| {
        let written = tree.write();
        let again = read(&written).expect("what was written");
        assert!(again == *tree, "{}", String::from_utf8_lossy(&written));
    };
    same(&tree);
    for server in [TunedServer::Weir, TunedServer::Nginx(1, 22, 1)] {
        candidates(&tree, server).iter().for_each(|candidate| same(&candidate.apply(&tree).0));
    }
}

/// A request that an agent would carry out survives writing and reading, and is one line.
pub fn agent_request(input: &[u8]) {
    let Ok(line) = std::str::from_utf8(input) else { return };
    let Some(written) = crate::agent::accepts(line) else { return };
    assert!(!written.contains('\n'), "{written}");
    assert_eq!(crate::agent::accepts(&written).as_ref(), Some(&written));
}

/// The output of perf(1) is read to profiles that are complete and small enough to be walked.
pub fn perf_script(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let profile = parsers::stacks(&text);
    for stack in &profile.stacks {
        assert!(stack.samples > 0 && !stack.frames.is_empty());
        assert!(stack.frames.iter().all(|index| *index < profile.functions.len()));
    }
    let tree = FrameTree::of(None, &profile);
    assert_eq!(tree.root.samples, [0, profile.samples()]);
    let scale = ProfileScale::of(&profile, 1.0);
    assert!(profile::differing((&profile, scale), (&profile, scale)).is_empty());
    assert!(parsers::locks(&text).seconds >= 0.0);
    assert!(parsers::counts(&text).values().all(|count| *count >= 0.0));
}

#[cfg(test)]
mod tests {
    fn seeds_of(target: &str, check: fn(&[u8])) {
        let fuzz = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/");
        for seed in std::fs::read_dir(fuzz.to_owned() + target).expect("there are seeds") {
            check(&std::fs::read(seed.expect("a file").path()).expect("a seed"));
        }
    }

    #[test]
    fn seeds_hold_the_properties() {
        for (_, text) in crate::study::BUILT_IN {
            super::lab_study(text.as_bytes());
        }
        seeds_of("lab_study", super::lab_study);
        seeds_of("tune_tree", super::tune_tree);
        seeds_of("agent_request", super::agent_request);
        seeds_of("perf_script", super::perf_script);
    }
}
