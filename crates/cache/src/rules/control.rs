//! `Cache-Control`, read as a list of directives (RFC 9111, section 5.2).
//!
//! Of a directive that is repeated, the first counts. A number that cannot be read is 0, so that
//! what it was about is stale (section 4.2.1).

/// The largest number of seconds: larger ones are as good as this.
pub const SECONDS_MAX: i64 = u32::MAX as i64;

/// A directive: its name as sent, and its argument without quotes; `None`: it has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlDirective<'t> {
    pub name: &'t [u8],
    pub argument: Option<&'t [u8]>,
}

/// A directive of replies that has no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyWord {
    NoStore,
    NoCache,
    Private,
    Public,
    MustRevalidate,
    ProxyRevalidate,
    MustUnderstand,
}

/// The directives of a reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplyControl {
    /// The words that were said, as bits.
    words: u8,
    pub max_age_s: Option<i64>,
    pub s_maxage_s: Option<i64>,
    /// `stale-while-revalidate`
    pub updating_s: Option<i64>,
    /// `stale-if-error`
    pub error_s: Option<i64>,
    /// The names in `no-cache="..."` and `private="..."`, each with a comma behind it.
    withheld: Vec<u8>,
}

/// The directives of the values of a field, each of which is a list.
pub fn directives(list: &[u8]) -> impl Iterator<Item = ControlDirective<'_>> {
    let mut rest = list;
    std::iter::from_fn(move || {
        loop {
            if rest.is_empty() {
                return None;
            }
            let (item, after) = split_item(rest);
            rest = after;
            if let item @ [_, ..] = item.trim_ascii() {
                return Some(ControlDirective::of(item));
            }
        }
    })
}

/// The part before the first comma that is not within quotes, and the rest.
fn split_item(list: &[u8]) -> (&[u8], &[u8]) {
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, byte) in list.iter().enumerate() {
        match byte {
            _ if std::mem::take(&mut is_escaped) => {}
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            b',' if !is_quoted => return (&list[..at], &list[at + 1..]),
            _ => {}
        }
    }
    (list, b"")
}

impl<'t> ControlDirective<'t> {
    fn of(item: &'t [u8]) -> Self {
        let Some(equals) = item.iter().position(|byte| *byte == b'=') else {
            return Self { name: item, argument: None };
        };
        let (name, argument) = (item[..equals].trim_ascii(), &item[equals + 1..]);
        let quoted = argument.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\""));
        Self { name, argument: Some(quoted.unwrap_or(argument)) }
    }

    pub fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }

    /// The argument as a number of seconds.
    pub fn seconds(&self) -> i64 {
        self.argument.and_then(delta_seconds).unwrap_or(0)
    }
}

/// A number of seconds as fields have them (RFC 9111, section 1.2.2).
pub fn delta_seconds(text: &[u8]) -> Option<i64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0, |number: i64, byte| {
        let digit = byte.is_ascii_digit().then(|| i64::from(byte - b'0'))?;
        Some((number * 10 + digit).min(SECONDS_MAX))
    })
}

impl ReplyWord {
    fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl ReplyControl {
    /// Adds a value of the field.
    pub fn add(&mut self, value: &[u8]) {
        for directive in directives(value) {
            self.add_directive(&directive);
        }
    }

    fn add_directive(&mut self, directive: &ControlDirective<'_>) {
        let seconds = directive.seconds();
        if directive.is("max-age") {
            self.max_age_s.get_or_insert(seconds);
        } else if directive.is("s-maxage") {
            self.s_maxage_s.get_or_insert(seconds);
        } else if directive.is("stale-while-revalidate") {
            self.updating_s.get_or_insert(seconds);
        } else if directive.is("stale-if-error") {
            self.error_s.get_or_insert(seconds);
        } else {
            self.say(directive.name, directive.argument.unwrap_or_default());
        }
    }

    /// Adds a directive without a number. `no-cache` and `private` with names are about these
    /// fields only.
    pub(super) fn say(&mut self, name: &[u8], names: &[u8]) {
        const WORDS: [(&str, ReplyWord); 7] = [
            ("no-store", ReplyWord::NoStore),
            ("no-cache", ReplyWord::NoCache),
            ("private", ReplyWord::Private),
            ("public", ReplyWord::Public),
            ("must-revalidate", ReplyWord::MustRevalidate),
            ("proxy-revalidate", ReplyWord::ProxyRevalidate),
            ("must-understand", ReplyWord::MustUnderstand),
        ];
        let of_name = |(word, _): &&(&str, _)| name.eq_ignore_ascii_case(word.as_bytes());
        let Some((_, word)) = WORDS.iter().find(of_name) else { return };
        if matches!(word, ReplyWord::NoCache | ReplyWord::Private) && !names.is_empty() {
            self.withheld.extend_from_slice(names);
            self.withheld.push(b',');
        } else {
            self.words |= word.bit();
        }
    }

    pub fn says(&self, word: ReplyWord) -> bool {
        self.words & word.bit() != 0
    }

    /// The seconds a shared cache may use the reply, if a directive says it.
    pub fn lifetime_s(&self) -> Option<i64> {
        self.s_maxage_s.or(self.max_age_s)
    }

    /// Whether an expired reply may not be used without asking the server.
    pub fn forbids_stale(&self) -> bool {
        use ReplyWord::{MustRevalidate, NoCache, ProxyRevalidate};
        [MustRevalidate, NoCache, ProxyRevalidate].iter().any(|word| self.says(*word))
            || self.s_maxage_s.is_some()
    }

    /// Whether the reply to a request with `Authorization` may be stored (section 3.5).
    pub fn allows_authorized(&self) -> bool {
        self.says(ReplyWord::Public)
            || self.says(ReplyWord::MustRevalidate)
            || self.s_maxage_s.is_some()
    }

    /// Whether the field is only for the client that asked.
    pub fn withholds(&self, name: &[u8]) -> bool {
        let mut names = self.withheld.split(|byte| *byte == b',');
        names.any(|own| !own.is_empty() && own.trim_ascii().eq_ignore_ascii_case(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[&str]) -> ReplyControl {
        let mut control = ReplyControl::default();
        values.iter().for_each(|value| control.add(value.as_bytes()));
        control
    }

    #[test]
    fn lifetimes() {
        for (value, expected) in [
            ("max-age=5", Some(5)),
            ("MAX-AGE=\"5\"", Some(5)),
            ("max-age=003600", Some(3600)),
            ("max-age=5, max-age=6", Some(5)),
            ("s-maxage=6, max-age=5", Some(6)),
            ("max-age=99999999999999999999", Some(SECONDS_MAX)),
            ("max-age='3600'", Some(0)),
            ("max-age=3600.5", Some(0)),
            ("max-age= 3600", Some(0)),
            ("max-age", Some(0)),
            ("max-age=-1", Some(0)),
            ("xmax-age=5", None),
            ("extension=\"max-age=3600\"", None),
            ("extension=\"a\\\", max-age=3600\"", None),
            ("extension=\"max-age=3600\", max-age=1", Some(1)),
            (",, max-age=1", Some(1)),
            ("", None),
        ] {
            assert_eq!(of(&[value]).lifetime_s(), expected, "{value}");
        }
        assert_eq!(of(&["max-age=1", "max-age=1800"]).lifetime_s(), Some(1));
    }

    #[test]
    fn words_are_found_in_any_case_and_whole() {
        let control = of(&["No-StOrE, unprivate", "foo, must-revalidate"]);
        assert!(control.says(ReplyWord::NoStore) && control.says(ReplyWord::MustRevalidate));
        assert!(!control.says(ReplyWord::Private));
        assert!(control.forbids_stale() && control.allows_authorized());
        assert!(of(&["proxy-revalidate"]).forbids_stale());
        assert!(!of(&["proxy-revalidate"]).allows_authorized());
        assert!(!of(&["max-age=1"]).forbids_stale());
    }

    #[test]
    fn named_fields_are_withheld_and_the_rest_is_not() {
        let control = of(&["no-cache=\"a, B\", private=Set-Cookie"]);
        assert!(!control.says(ReplyWord::NoCache) && !control.says(ReplyWord::Private));
        for (name, expected) in
            [("A", true), ("b", true), ("set-cookie", true), ("c", false), ("", false)]
        {
            assert_eq!(control.withholds(name.as_bytes()), expected, "{name}");
        }
        let unclear = of(&["private=\"\""]);
        assert!(unclear.says(ReplyWord::Private));
    }
}
