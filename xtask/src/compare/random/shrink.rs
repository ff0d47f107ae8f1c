//! Makes a differing case as small as it can be found to be within a number of tries.

use super::case::RandomCase;
use super::tree;

/// The most tries for one case: each of them starts both servers.
const TRIES_MAX: usize = 200;

/// The smallest case found for which `differs` still holds. It holds for `case`.
pub(super) fn shrink(case: RandomCase, differs: impl Fn(&RandomCase) -> bool) -> RandomCase {
    let mut search = CaseSearch { best: case, tries: 0, differs };
    search.halve_requests();
    while search.remove_nodes() | search.remove_requests() {}
    search.best
}

struct CaseSearch<F> {
    best: RandomCase,
    tries: usize,
    differs: F,
}

impl<F: Fn(&RandomCase) -> bool> CaseSearch<F> {
    fn accept(&mut self, case: RandomCase) -> bool {
        self.tries += 1;
        let better = self.tries <= TRIES_MAX && (self.differs)(&case);
        if better {
            self.best = case;
        }
        better
    }

    fn halve_requests(&mut self) {
        while self.best.requests.len() > 1 {
            let middle = self.best.requests.len() / 2;
            let (left, right) = self.best.requests.split_at(middle);
            let halves = [left.to_vec(), right.to_vec()];
            let with = |requests| RandomCase { requests, ..self.best.clone() };
            let [left, right] = halves.map(with);
            if !self.accept(left) && !self.accept(right) {
                return;
            }
        }
    }

    /// From the end, so that a block goes before the one around it is tried without it.
    fn remove_nodes(&mut self) -> bool {
        let mut smaller = false;
        for at in (0..tree::count(&self.best.config)).rev() {
            let config = tree::without(&self.best.config, at);
            let case = RandomCase { config, ..self.best.clone() };
            smaller |= case.config != self.best.config && self.accept(case);
        }
        smaller && self.tries < TRIES_MAX
    }

    fn remove_requests(&mut self) -> bool {
        let mut smaller = false;
        for at in (0..self.best.requests.len()).rev() {
            let mut case = self.best.clone();
            case.requests.remove(at);
            smaller |= !case.requests.is_empty() && self.accept(case);
        }
        smaller && self.tries < TRIES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::ConfigNode;
    use super::*;

    #[test]
    fn only_what_the_difference_needs_is_left() {
        let config = "a; server { b; location /x { c; culprit 1; d; } location /y { e; } } f;";
        let requests = (0..9).map(|n| format!("GET /{n}")).collect();
        let config = ConfigNode::parse(config);
        let case = RandomCase { name: "a-1".into(), config, stream: vec![], requests };
        let small = shrink(case, |case| {
            tree::text(&case.config).contains("culprit") && case.requests.contains(&"GET /6".into())
        });
        let expected = "server {\n    location /x {\n        culprit 1;\n    }\n}\n";
        assert_eq!(tree::text(&small.config), expected);
        assert_eq!(small.requests, ["GET /6"]);
    }

    #[test]
    fn a_search_ends() {
        let config = ConfigNode::parse(&"a; ".repeat(5000));
        let case = RandomCase { name: "a-1".into(), config, stream: vec![], requests: vec![] };
        let tries = std::cell::Cell::new(0);
        shrink(case, |_| {
            tries.set(tries.get() + 1);
            true
        });
        assert_eq!(tries.get(), TRIES_MAX);
    }
}
