//! Which requests a rule is for, and which of several rules wins.
//!
//! nginx chooses a location by the path alone. For each path at which the choice can change there
//! is a location, and in it the candidates in order: all rules whose path covers it. The first
//! candidate whose conditions hold wins; so a rule that does not match leaves the request to the
//! next best rule, also to one with a shorter path.

use std::cmp::Reverse;

use pcre2::bytes::{Regex, RegexBuilder};

use super::RequestCondition;
use super::text::regex_of;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PathMatch {
    /// This path, decoded.
    Exact(String),
    /// This path, decoded and without a slash at the end (`/` is empty), and all below it.
    Prefix(String),
    /// The decoded path matches this expression.
    Regex { pattern: String, is_caseless: bool },
}

impl PathMatch {
    pub(crate) fn prefix(path: &str) -> Self {
        Self::Prefix(path.trim_end_matches('/').to_owned())
    }

    fn rank(&self) -> (u8, Reverse<usize>) {
        match self {
            Self::Exact(path) => (0, Reverse(path.len())),
            Self::Regex { pattern, .. } => (1, Reverse(pattern.len())),
            Self::Prefix(path) => (2, Reverse(path.len())),
        }
    }
}

/// What decides between rules that match equally well: the older one, then the name, then the
/// order within the object.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Order {
    pub(crate) created: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) rule: usize,
    pub(crate) matching: usize,
}

/// One way to match requests, and the body of the location for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) path: PathMatch,
    pub(crate) conditions: Vec<RequestCondition>,
    pub(crate) order: Order,
    /// The path of the file with the location's directives.
    pub(crate) body: String,
    /// A comment that names the entry.
    pub(crate) title: String,
}

impl Entry {
    /// The smaller one wins.
    fn precedence(&self) -> impl Ord + '_ {
        let count = |kind: fn(&RequestCondition) -> bool| {
            Reverse(self.conditions.iter().filter(|condition| kind(condition)).count())
        };
        let method = count(|condition| matches!(condition, RequestCondition::Method(_)));
        let headers = count(|condition| matches!(condition, RequestCondition::Field { .. }));
        let arguments = count(|condition| matches!(condition, RequestCondition::Argument { .. }));
        (self.path.rank(), method, headers, arguments, &self.order)
    }
}

/// A location's kind and path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    Exact(String),
    Below(String),
    Regex { number: usize, pattern: String, is_caseless: bool },
}

pub(super) struct MatchCandidate<'e> {
    pub(super) entry: &'e Entry,
    /// The conditions that are not implied by the location.
    pub(super) conditions: Vec<RequestCondition>,
}

/// All locations that the entries need, each with its candidates.
pub(super) fn places(entries: &[Entry]) -> Vec<(Place, Vec<MatchCandidate<'_>>)> {
    let mut sorted: Vec<&Entry> = entries.iter().collect();
    sorted.sort_by(|one, other| one.precedence().cmp(&other.precedence()));
    let mut places: Vec<Place> = vec![Place::Below(String::new())];
    for (number, entry) in sorted.iter().enumerate() {
        match &entry.path {
            PathMatch::Exact(path) => places.push(Place::Exact(path.clone())),
            PathMatch::Prefix(path) => {
                if !path.is_empty() {
                    places.push(Place::Exact(path.clone()));
                }
                places.push(Place::Below(path.clone()));
            }
            PathMatch::Regex { pattern, is_caseless } => places.push(Place::Regex {
                number,
                pattern: pattern.clone(),
                is_caseless: *is_caseless,
            }),
        }
    }
    places.sort();
    places.dedup();
    let regexes: Vec<_> = sorted.iter().map(|entry| compiled(&entry.path)).collect();
    let with_candidates = |place: Place| {
        let candidates = candidates(&place, &sorted, &regexes);
        (place, candidates)
    };
    places.into_iter().map(with_candidates).collect()
}

/// Ends with the first one that always matches.
fn candidates<'e>(
    place: &Place,
    sorted: &[&'e Entry],
    regexes: &[Option<Regex>],
) -> Vec<MatchCandidate<'e>> {
    let mut candidates = Vec::new();
    for (number, entry) in sorted.iter().enumerate() {
        let asked = match (place, &regexes[number]) {
            (Place::Exact(path), Some(regex)) => {
                // A match that takes too long is none, as in a location.
                let is_match = regex.is_match(path.as_bytes()).unwrap_or(false);
                is_match.then_some(None)
            }
            _ => path_at(place, number, &entry.path),
        };
        let Some(asked) = asked else { continue };
        let conditions: Vec<_> = asked.into_iter().chain(entry.conditions.clone()).collect();
        let is_last = conditions.is_empty();
        candidates.push(MatchCandidate { entry, conditions });
        if is_last {
            break;
        }
    }
    candidates
}

/// `None`: a request in this location cannot have the path. Otherwise what must be asked to know
/// whether it has.
fn path_at(place: &Place, entry: usize, path: &PathMatch) -> Option<Option<RequestCondition>> {
    let ask =
        |pattern: String, is_caseless| Some(Some(RequestCondition::Path { pattern, is_caseless }));
    match (place, path) {
        (Place::Exact(here), PathMatch::Exact(path)) => (here == path).then_some(None),
        (_, PathMatch::Exact(_)) => None,
        (Place::Exact(here) | Place::Below(here), PathMatch::Prefix(path)) => {
            is_within(here, path).then_some(None)
        }
        (Place::Regex { .. }, PathMatch::Prefix(path)) if path.is_empty() => Some(None),
        (Place::Regex { .. }, PathMatch::Prefix(path)) => {
            ask(format!("^{}(?:/|\\z)", regex_of(path)), false)
        }
        // nginx tries regular expressions before it takes the longest prefix: here none matches.
        (Place::Below(_), PathMatch::Regex { .. }) => None,
        (Place::Regex { number, .. }, PathMatch::Regex { .. }) if *number > entry => None,
        (Place::Regex { number, .. }, PathMatch::Regex { .. }) if *number == entry => Some(None),
        (_, PathMatch::Regex { pattern, is_caseless }) => ask(pattern.clone(), *is_caseless),
    }
}

fn compiled(path: &PathMatch) -> Option<Regex> {
    let PathMatch::Regex { pattern, is_caseless } = path else { return None };
    RegexBuilder::new().caseless(*is_caseless).build(pattern).ok()
}

/// Whether all of a place is below a prefix, by whole segments.
fn is_within(here: &str, prefix: &str) -> bool {
    here.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: PathMatch, conditions: &[RequestCondition], body: &str) -> Entry {
        let order = Order { name: body.to_owned(), ..Order::default() };
        Entry {
            path,
            conditions: conditions.to_vec(),
            order,
            body: body.to_owned(),
            title: String::new(),
        }
    }

    fn shown(entries: &[Entry]) -> Vec<String> {
        let show = |(place, candidates): &(Place, Vec<MatchCandidate<'_>>)| {
            let place = match place {
                Place::Exact(path) => format!("= {path}"),
                Place::Below(path) => format!("{path}/"),
                Place::Regex { pattern, .. } => format!("~ {pattern}"),
            };
            let bodies: Vec<_> = candidates
                .iter()
                .map(|one| format!("{}{}", one.entry.body, "?".repeat(one.conditions.len())))
                .collect();
            format!("{place}: {}", bodies.join(" "))
        };
        places(entries).iter().map(show).collect()
    }

    fn regex(pattern: &str) -> PathMatch {
        PathMatch::Regex { pattern: pattern.to_owned(), is_caseless: false }
    }

    #[test]
    fn a_rule_with_conditions_leaves_the_request_to_shorter_paths() {
        let post = [RequestCondition::Method("POST".to_owned())];
        let entries = [
            entry(PathMatch::prefix("/"), &[], "all"),
            entry(PathMatch::prefix("/a/"), &post, "a-post"),
            entry(PathMatch::Exact("/a".to_owned()), &post, "exact"),
        ];
        assert_eq!(shown(&entries), ["= /a: exact? a-post? all", "/: all", "/a/: a-post? all"]);
    }

    #[test]
    fn more_conditions_win_then_the_order() {
        let field =
            |name: &str| RequestCondition::Field { name: name.to_owned(), pattern: "x".to_owned() };
        let entries = [
            entry(PathMatch::prefix("/"), &[], "c"),
            entry(PathMatch::prefix("/"), &[field("a")], "b"),
            entry(PathMatch::prefix("/"), &[field("a"), field("b")], "a"),
            entry(PathMatch::prefix("/"), &[RequestCondition::Method("GET".to_owned())], "m"),
            entry(PathMatch::prefix("/"), &[], "d"),
        ];
        assert_eq!(shown(&entries), ["/: m? a?? b? c"]);
    }

    #[test]
    fn regular_expressions_win_over_prefixes() {
        let entries = [
            entry(PathMatch::prefix("/a"), &[], "prefix"),
            entry(regex("^/a.*\\z"), &[], "long"),
            entry(regex("^/b\\z"), &[], "short"),
        ];
        assert_eq!(
            shown(&entries),
            ["= /a: long", "/: ", "/a/: prefix", "~ ^/a.*\\z: long", "~ ^/b\\z: short",]
        );
    }

    #[test]
    fn prefixes_are_of_whole_segments() {
        let entries =
            [entry(PathMatch::prefix("/a"), &[], "a"), entry(PathMatch::prefix("/ab"), &[], "ab")];
        assert_eq!(shown(&entries), ["= /a: a", "= /ab: ab", "/: ", "/a/: a", "/ab/: ab"]);
    }
}
