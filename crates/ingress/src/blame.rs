//! Which objects are at fault when the server refuses a configuration.
//!
//! Many errors name the file. Others do not, such as an unknown variable: then the objects that
//! have changed are left out by halves, until the configuration is good without the rest.

use std::collections::BTreeSet;

use crate::plan::{leave_out, owner};
use crate::{PlannedFiles, ResourceRef};

/// The most configurations that are tried.
const TRIES_MAX: usize = 32;

/// The objects whose own files an error names: files of the folder, or of a copy that was checked.
pub(crate) fn named(error: &str, folder: &str) -> BTreeSet<ResourceRef> {
    let in_folder = |rest: &str| {
        let file = rest.strip_prefix('/')?.split([':', '"', ' ']).next()?;
        owner(file.trim_start_matches(".check/"))
    };
    error.split(folder).skip(1).filter_map(in_folder).collect()
}

/// The objects without which `is_good` accepts the files, among those whose files differ from what
/// is in use. Empty: they are not at fault.
pub(crate) fn search<'u>(
    files: &PlannedFiles,
    in_use: impl Fn(&str) -> Option<&'u Vec<u8>>,
    is_good: impl FnMut(&PlannedFiles) -> bool,
) -> BTreeSet<ResourceRef> {
    let changed = files.iter().filter(|(name, content)| in_use(name) != Some(content));
    let suspects: BTreeSet<_> = changed.filter_map(|(name, _)| owner(name)).collect();
    let suspects: Vec<_> = suspects.into_iter().collect();
    let mut search = FaultSearch { files, is_good, tries: 0 };
    if suspects.is_empty() || !search.is_good_without(&suspects) {
        return BTreeSet::new();
    }
    search.narrow(&suspects, &[]).into_iter().collect()
}

struct FaultSearch<'f, F> {
    files: &'f PlannedFiles,
    is_good: F,
    tries: usize,
}

impl<F: FnMut(&PlannedFiles) -> bool> FaultSearch<'_, F> {
    fn is_good_without(&mut self, objects: &[ResourceRef]) -> bool {
        if self.tries == TRIES_MAX {
            return false;
        }
        self.tries += 1;
        let mut files = self.files.clone();
        leave_out(&mut files, |object| objects.contains(object));
        (self.is_good)(&files)
    }

    /// Which of the suspects are at fault, if all is good without them and `others`.
    fn narrow(&mut self, suspects: &[ResourceRef], others: &[ResourceRef]) -> Vec<ResourceRef> {
        if suspects.len() == 1 || self.tries == TRIES_MAX {
            return suspects.to_vec();
        }
        let (first, second) = suspects.split_at(suspects.len() / 2);
        let without_second = [second, others].concat();
        if self.is_good_without(&without_second) {
            return self.narrow(second, others);
        }
        let found = self.narrow(first, &without_second);
        let without_found = [&*found, others].concat();
        if self.is_good_without(&without_found) {
            return found;
        }
        [&*found, &self.narrow(second, &without_found)].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ResourceKey, ResourceKind};

    fn route(number: usize) -> ResourceRef {
        let key = ResourceKey { namespace: "a".to_owned(), name: format!("r{number:02}") };
        (ResourceKind::HttpRoute, key)
    }

    fn files(count: usize, bad: &[usize]) -> PlannedFiles {
        let content = |number| if bad.contains(&number) { b"bad".to_vec() } else { Vec::new() };
        let file = |number| format!("routes/httproute.a.r{number:02}/rule-1.conf");
        (0..count).map(|number| (file(number), content(number))).collect()
    }

    fn found(count: usize, bad: &[usize]) -> (BTreeSet<ResourceRef>, usize) {
        let mut tries = 0;
        let is_good = |files: &PlannedFiles| {
            tries += 1;
            files.values().all(|content| content != b"bad")
        };
        (search(&files(count, bad), |_| None, is_good), tries)
    }

    #[test]
    fn only_what_is_at_fault_is_found() {
        for bad in [&[3][..], &[0], &[15], &[0, 15], &[2, 3], &[0, 7, 8]] {
            let (found, tries) = found(16, bad);
            assert_eq!(found, bad.iter().copied().map(route).collect(), "{bad:?}");
            assert!(tries <= TRIES_MAX, "{bad:?}: {tries}");
        }
    }

    #[test]
    fn a_long_search_blames_more_than_needed() {
        let bad: Vec<_> = (0..64).filter(|number| number % 2 == 0).collect();
        let (found, tries) = found(64, &bad);
        assert!(bad.iter().all(|number| found.contains(&route(*number))));
        assert_eq!(tries, TRIES_MAX);
    }

    #[test]
    fn what_is_in_use_is_not_at_fault() {
        let all = files(4, &[1]);
        let is_good = |files: &PlannedFiles| files.values().all(|content| content != b"bad");
        assert_eq!(search(&all, |name| all.get(name), is_good), BTreeSet::new());
        assert_eq!(search(&all, |_| None, |_| false), BTreeSet::new());
    }

    #[test]
    fn an_error_names_files() {
        let error = "[emerg] a in /w/.check/routes/ingress.a.b/path-1.conf:3; [emerg] b in \
                     /w/.check/servers/80._.conf:1; [emerg] c in \
                     /w/routes/httproute.a.c/rule-1.conf:9";
        let kinds: Vec<_> = named(error, "/w").into_iter().map(|(kind, _)| kind).collect();
        assert_eq!(kinds, [ResourceKind::HttpRoute, ResourceKind::Ingress]);
        assert!(named("/w/x in /etc/passwd:1", "/w").is_empty());
    }
}
