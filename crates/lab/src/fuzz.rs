//! Properties that hold for any input, as functions that panic if they do not.
//!
//! Shared by the fuzz target (`fuzz/`) and by the test that runs its seeds; not part of the crate's
//! interface.

use std::collections::BTreeSet;

use crate::study::{Study, StudyPlaces};

/// A study that is accepted has a configuration for each row, whose levels are all known.
pub fn lab_study(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(study) = Study::parse("study", text) else { return };
    let factors: BTreeSet<&str> = study.factors.keys().map(String::as_str).collect();
    for row in &study.rows {
        let levels = study.levels(row);
        assert_eq!(levels.keys().copied().collect::<BTreeSet<_>>(), factors);
        study.configuration(row, StudyPlaces { port: 80, dir: "/srv", backends: &[] });
    }
    let written = toml::to_string(&study).expect("it was read");
    let again = Study::parse("study", &written).expect("what was written");
    assert_eq!(toml::to_string(&again).expect("it was read"), written);
}

#[cfg(test)]
mod tests {
    #[test]
    fn seeds() {
        for (_, text) in crate::study::BUILT_IN {
            super::lab_study(text.as_bytes());
        }
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/lab_study");
        for seed in std::fs::read_dir(folder).expect("there are seeds") {
            super::lab_study(&std::fs::read(seed.expect("a file").path()).expect("a seed"));
        }
    }
}
