//! A case of a generator.

use statistics::SplitMix;

use super::areas::{self, GrammarArea};
use super::grammar::Grammar;
use super::tree::{self, ConfigNode};
use super::{mutate, valid};

/// How many requests a configuration gets.
const REQUESTS: usize = 12;

/// Of so many cases one has slips in its configuration, which mostly both servers refuse.
const MUTATED_ONE_OF: u64 = 6;

/// A generated configuration and its requests, each as lines of a case.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RandomCase {
    pub(super) name: String,
    pub(super) config: Vec<ConfigNode>,
    pub(super) stream: Vec<ConfigNode>,
    pub(super) requests: Vec<String>,
}

impl RandomCase {
    pub(super) fn generate(area: &GrammarArea, grammar: &Grammar, number: u64) -> RandomCase {
        let name = format!("{}-{number}", area.name);
        let mut random = SplitMix::new(hash(&name));
        let nodes = |text: String| tree::without_duplicates(ConfigNode::parse(&text));
        let mut config = valid::valid(nodes(grammar.text("config", &mut random)));
        let mut stream = valid::valid(nodes(grammar.text("stream", &mut random)));
        if number % MUTATED_ONE_OF == MUTATED_ONE_OF - 1 {
            let changed = if stream.is_empty() { &mut config } else { &mut stream };
            *changed = mutate::mutated(std::mem::take(changed), &mut random);
        }
        let requests = (0..REQUESTS).map(|_| grammar.text("request", &mut random)).collect();
        RandomCase { name, config, stream, requests }
    }

    /// The text of a case file.
    pub(super) fn text(&self) -> String {
        let mut text = format!("{}{}", areas::log_format(), tree::text(&self.config));
        if !self.stream.is_empty() {
            text += &format!("}}\nstream {{\n{}", tree::text(&self.stream));
        }
        text + "--- files\n" + &areas::files() + "--- requests\n" + &self.requests.join("\n") + "\n"
    }
}

/// FNV-1a: neighbouring numbers give seeds far apart.
fn hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}
