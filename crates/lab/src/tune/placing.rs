//! The processors of a copy's workers. taskset alone does not keep workers on them: `auto` counts
//! all processors of the machine, and `worker_cpu_affinity` chooses among all of them.

use sandbox::EditableTree;

/// Makes a copy use the servers' processors only.
pub(super) fn place(tree: &mut EditableTree, cores: &[usize]) {
    let count = cores.len().to_string();
    tree.root.iter_mut().for_each(|line| {
        if line.is("worker_processes") && line.argument() == "auto" {
            line.words[1] = count.clone().into_bytes();
        } else if line.is("worker_cpu_affinity") {
            // The real server's masks may include other processors.
            line.words.truncate(1);
            line.words.extend([b"auto".to_vec(), mask(cores).into_bytes()]);
        }
    });
}

/// A mask with one digit per processor, the first on the right.
fn mask(cores: &[usize]) -> String {
    let last = cores.iter().copied().max().unwrap_or_default();
    let bit = |core| if cores.contains(&core) { '1' } else { '0' };
    (0..=last).rev().map(bit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::tree;

    #[test]
    fn copies_stay_on_the_servers_processors() {
        let mut copy = tree("worker_processes auto;\nworker_cpu_affinity 0001 0010;\nevents {}");
        place(&mut copy, &[0, 2, 3]);
        let written = String::from_utf8(copy.write()).unwrap();
        assert!(written.contains("worker_processes 3;"), "{written}");
        assert!(written.contains("worker_cpu_affinity auto 1101;"), "{written}");
        let mut copy = tree("worker_processes 2;\nevents {}");
        place(&mut copy, &[0]);
        assert!(String::from_utf8(copy.write()).unwrap().contains("worker_processes 2;"));
    }
}
