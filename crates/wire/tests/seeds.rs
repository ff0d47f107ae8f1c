//! Every fuzz seed passes its target's check, so findings stay fixed without a fuzzer.

use std::fs;
use std::path::Path;

#[test]
fn seeds_pass() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    for (target, check) in wire::fuzz::CHECKS {
        let mut count = 0;
        for entry in fs::read_dir(seeds.join(target)).expect(target) {
            let path = entry.expect(target).path();
            println!("{}", path.display());
            check(&fs::read(&path).expect("a readable seed"));
            count += 1;
        }
        assert!(count > 0, "{target} has no seeds");
    }
}
