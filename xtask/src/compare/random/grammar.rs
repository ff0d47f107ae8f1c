//! A grammar of weighted alternatives, and the texts that a seeded generator makes of it.
//!
//! A line is `NAME [WEIGHT] [>=VERSION] = TEXT`; lines with the same name are alternatives, and
//! `NAME anew ...` forgets those before it. In a text, `<NAME>` stands for one of them,
//! `<NAME*2-5>` for two to five, `<nl>` for a line end and `<lt>` for `<`.

use std::collections::BTreeMap;

use statistics::SplitMix;

/// From this depth on, the alternative with the fewest names is chosen, so that every text ends.
const DEPTH_MAX: usize = 12;

/// The alternatives of every name.
#[derive(Clone, Debug, Default)]
pub(super) struct Grammar(BTreeMap<String, Vec<Alternative>>);

#[derive(Clone, Debug)]
struct Alternative {
    weight: usize,
    parts: Vec<Part>,
}

#[derive(Clone, Debug)]
enum Part {
    Text(String),
    Name { name: String, least: usize, most: usize },
}

impl Grammar {
    /// Adds the lines of `text`, without those that need a later version than `version`.
    pub(super) fn add(&mut self, text: &str, version: &str) -> Result<(), String> {
        for (number, line) in text.lines().enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            self.line(line, version).map_err(|e| format!("{}: {e}: {line}", number + 1))?;
        }
        Ok(())
    }

    fn line(&mut self, line: &str, version: &str) -> Result<(), String> {
        let (head, text) = line.split_once(" = ").ok_or("no \" = \"")?;
        let mut words = head.split(' ');
        let name = words.next().unwrap_or_default();
        let mut weight = 1;
        for word in words {
            match word.strip_prefix(">=") {
                Some(since) if numbers(since) > numbers(version) => return Ok(()),
                Some(_) => {}
                None if word == "anew" => drop(self.0.remove(name)),
                None => weight = word.parse().map_err(|_| format!("\"{word}\" is no weight"))?,
            }
        }
        let alternative = Alternative { weight, parts: parts(text)? };
        self.0.entry(name.to_owned()).or_default().push(alternative);
        Ok(())
    }

    /// A name in a text that no line defines.
    pub(super) fn undefined(&self) -> Option<&str> {
        let parts = self.0.values().flatten().flat_map(|alternative| &alternative.parts);
        let mut names = parts.filter_map(|part| match part {
            Part::Name { name, .. } => Some(name.as_str()),
            Part::Text(_) => None,
        });
        names.find(|name| !self.0.contains_key(*name))
    }

    /// One of the texts that `name` stands for.
    pub(super) fn text(&self, name: &str, random: &mut SplitMix) -> String {
        let mut out = String::new();
        self.expand(name, 0, random, &mut out);
        out
    }

    fn expand(&self, name: &str, depth: usize, random: &mut SplitMix, out: &mut String) {
        let Some(alternative) = self.choose(name, depth, random) else { return };
        for part in &alternative.parts {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Name { name, least, most } => {
                    for _ in 0..least + random.below(most - least + 1) {
                        self.expand(name, depth + 1, random, out);
                    }
                }
            }
        }
    }

    fn choose(&self, name: &str, depth: usize, random: &mut SplitMix) -> Option<&Alternative> {
        let alternatives = self.0.get(name)?;
        if depth >= DEPTH_MAX {
            return alternatives.iter().min_by_key(|alternative| alternative.parts.len());
        }
        let mut at = random.below(alternatives.iter().map(|a| a.weight).sum());
        alternatives.iter().find(|alternative| {
            let found = at < alternative.weight;
            at = at.saturating_sub(alternative.weight);
            found
        })
    }
}

fn numbers(version: &str) -> Vec<u32> {
    version.split('.').filter_map(|number| number.parse().ok()).collect()
}

fn parts(mut text: &str) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    while let Some((before, rest)) = text.split_once('<') {
        let (inner, rest) = rest.split_once('>').ok_or("no > after <")?;
        parts.push(Part::Text(before.to_owned()));
        parts.push(reference(inner)?);
        text = rest;
    }
    parts.push(Part::Text(text.to_owned()));
    Ok(parts)
}

fn reference(inner: &str) -> Result<Part, String> {
    match inner {
        "nl" => return Ok(Part::Text("\n".to_owned())),
        "lt" => return Ok(Part::Text("<".to_owned())),
        _ => {}
    }
    let (name, count) = inner.split_once('*').unwrap_or((inner, "1-1"));
    let bounds = count.split_once('-').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    match bounds {
        Some((least, most)) if least <= most => {
            Ok(Part::Name { name: name.to_owned(), least, most })
        }
        _ => Err(format!("<{inner}> is no <NAME*LEAST-MOST>")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "# a comment
all = a <b*2-2> <c><nl>z
b 3 = x
b >=1.29.0 = y
c = (<c>)
c = .
";

    fn grammar(version: &str) -> Grammar {
        let mut grammar = Grammar::default();
        grammar.add(SAMPLE, version).unwrap();
        grammar
    }

    #[test]
    fn a_seed_makes_the_same_text_every_time() {
        let text = |seed| grammar("1.31.5").text("all", &mut SplitMix::new(seed));
        assert!((0..50).all(|seed| text(seed) == text(seed)));
        assert!((0..50).any(|seed| text(seed) != text(50)));
        assert!((0..50).all(|seed| text(seed).ends_with("\nz")));
    }

    #[test]
    fn what_the_reference_does_not_know_is_left_out() {
        let any = |version: &str| {
            (0..50).any(|seed| grammar(version).text("b", &mut SplitMix::new(seed)) == "y")
        };
        assert!(any("1.29.0") && any("1.31.5"));
        assert!(!any("1.22.1"));
    }

    #[test]
    fn slips_are_found() {
        for slip in ["a", "a x = b", "a = <b", "a = <b*3-1>", "a = <b*>"] {
            assert!(Grammar::default().add(slip, "1.0").is_err(), "{slip}");
        }
        let mut grammar = Grammar::default();
        grammar.add("a = <b>", "1.0").unwrap();
        assert_eq!(grammar.undefined(), Some("b"));
    }
}
