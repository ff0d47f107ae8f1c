//! What must hold for any input, as functions that panic where it does not.
//!
//! Shared by the fuzz targets (`fuzz/`) and by the tests that run their seeds; not part of the
//! crate's interface.

use crate::results::json;

/// Whatever is read as results is written as a text that is read as the same.
pub fn load_json(input: &[u8]) {
    let Ok(runs) = json::read(input) else { return };
    let text = json::write(&runs);
    let again = json::read(text.as_bytes()).expect("what was written");
    assert_eq!(json::write(&again), text);
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    /// Findings stay fixed without a fuzzer at hand.
    #[test]
    fn seeds_pass() {
        let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/load_json");
        let mut read = 0;
        for entry in fs::read_dir(seeds).unwrap() {
            let seed = fs::read(entry.unwrap().path()).unwrap();
            super::load_json(&seed);
            read += usize::from(crate::results::json::read(&seed).is_ok());
        }
        assert!(read > 1, "seeds that are results");
    }
}
