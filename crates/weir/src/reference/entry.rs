//! Supported and unsupported directives, from the tables.

use std::collections::BTreeMap;

use conf::known::{self, KnownDirective};
use conf::{Doc, Info, Levels};

use crate::settings;

/// A directive of one subsystem. Another entry may have the same name: `keepalive_timeout` in a
/// location and in an upstream are two entries.
pub struct DirectiveEntry {
    pub name: String,
    pub info: &'static Info,
    pub doc: Doc,
    /// The contexts where it is allowed.
    contexts: Vec<Context>,
}

/// A kind of block.
#[derive(Clone, Copy)]
struct Context {
    level: Levels,
    /// Its name in the reference.
    word: &'static str,
    /// Its name in nginx's table.
    in_table: &'static str,
}

const fn context(level: Levels, word: &'static str, in_table: &'static str) -> Context {
    Context { level, word, in_table }
}

/// The blocks outside of `http {}`.
const OWN: [Context; 2] =
    [context(conf::MAIN, "main", "main"), context(conf::EVENTS, "events", "events")];

const HTTP: [Context; 7] = [
    context(conf::MAIN, "http", "http"),
    context(conf::SERVER, "server", "server"),
    context(conf::LOCATION, "location", "location"),
    context(conf::IF_IN_SERVER, "if in server", "if-in-server"),
    context(conf::IF_IN_LOCATION, "if in location", "if-in-location"),
    context(conf::LIMIT_EXCEPT, "limit_except", "limit_except"),
    context(conf::UPSTREAM, "upstream", "upstream"),
];

const STREAM: [Context; 3] = [
    context(conf::MAIN, "stream", "stream"),
    context(conf::SERVER, "stream server", "stream-server"),
    context(conf::UPSTREAM, "stream upstream", "stream-upstream"),
];

/// The context of directives that the grammar itself has.
const ANYWHERE: Context = context(conf::MAIN, "any", "any");

impl DirectiveEntry {
    fn new(prefix: &str, info: &'static Info, contexts: &[Context]) -> Self {
        let name = format!("{prefix}{}", info.name);
        let allowed = contexts.iter().filter(|context| info.levels.has(context.level));
        Self { name, info, doc: info.doc(), contexts: allowed.copied().collect() }
    }

    /// The same setting of another family, with a reference to the one documented under `model`.
    fn after(mut self, model: &str, prefix: &str) -> Self {
        if model == prefix {
            return self;
        }
        let own = |text: &String| text.replace(model, prefix);
        let text = format!("As `{model}{}`, for `{prefix}pass`.", self.info.name);
        self.doc = Doc {
            paragraphs: vec![text],
            default: self.doc.default.as_ref().map(own),
            example: Vec::new(),
            differs: Vec::new(),
            ..self.doc
        };
        self
    }

    /// The directives of `upstream` blocks are the same in both subsystems.
    fn with_stream_upstreams(mut self) -> Self {
        let is_same =
            |(_, row): (&str, &Info)| row.levels.has(conf::UPSTREAM) && row.name == self.name;
        if self.info.levels.has(conf::UPSTREAM) && stream::directives().any(is_same) {
            self.contexts.push(STREAM[2]);
        }
        self
    }

    /// Its order among entries of its name: those of `stream {}` last, outer blocks first.
    fn rank(&self) -> (bool, u32) {
        let is_of_stream = self.contexts.iter().all(|context| context.word.starts_with("stream"));
        (is_of_stream, self.info.levels.0.trailing_zeros())
    }

    /// Its contexts, with commas between.
    pub fn contexts(&self) -> String {
        self.contexts.iter().map(|context| context.word).collect::<Vec<_>>().join(", ")
    }

    /// Its syntax, a line for each form.
    pub fn syntax(&self) -> Vec<String> {
        let end = if self.info.block { " { ... }" } else { ";" };
        let forms: Vec<&str> = match &self.doc.syntax[..] {
            [] => vec![self.info.syntax],
            forms => forms.iter().map(String::as_str).collect(),
        };
        let written = |form: &&str| format!("{} {form}", self.name).trim_end().to_owned() + end;
        forms.iter().map(written).collect()
    }

    /// Its default in nginx's notation, if it has one.
    pub fn default(&self) -> Option<&str> {
        self.doc.default.as_deref().or(Some(self.info.default).filter(|text| !text.is_empty()))
    }

    /// Its row in nginx's table, if nginx has it.
    pub fn in_nginx(&self) -> Option<&'static KnownDirective> {
        let known = known::find(self.name.as_bytes());
        known.iter().find(|known| self.contexts.iter().any(|c| known.allowed_in(c.in_table)))
    }
}

/// The contexts of an nginx directive, separated by commas, with their names in the reference.
pub fn contexts_of(known: &KnownDirective) -> String {
    known.contexts.replace(',', ", ").replace('-', " ")
}

/// All entries by name; those of one name in the order of [`DirectiveEntry::rank`].
pub fn all() -> BTreeMap<String, Vec<DirectiveEntry>> {
    let rows = |tables: &'static [(&str, &'static str, &'static [Info])]| {
        tables.iter().flat_map(|(_, prefix, rows)| rows.iter().map(move |row| (*prefix, row)))
    };
    let blocks = |rows: &'static [Info]| rows.iter().map(|row| ("", row));
    let own = rows(settings::TABLES).chain(blocks(settings::BLOCKS));
    let own = own.map(|(prefix, row)| DirectiveEntry::new(prefix, row, &OWN));
    let http = http::TABLES.iter().flat_map(|(module, prefix, rows)| {
        rows.iter()
            .map(move |row| DirectiveEntry::new(prefix, row, &HTTP).after(model(module), prefix))
    });
    let http = http
        .chain(blocks(http::BLOCKS).map(|(prefix, row)| DirectiveEntry::new(prefix, row, &HTTP)));
    let http = http.map(DirectiveEntry::with_stream_upstreams);
    let stream = stream::directives().filter(|(_, row)| !row.levels.has(conf::UPSTREAM));
    let stream = stream.chain(blocks(stream::BLOCKS));
    let stream = stream.map(|(prefix, row)| DirectiveEntry::new(prefix, row, &STREAM));
    let include = conf::INCLUDE.iter().map(|row| DirectiveEntry::new("", row, &[ANYWHERE]));

    let mut all: BTreeMap<String, Vec<DirectiveEntry>> = BTreeMap::new();
    for entry in own.chain(http).chain(stream).chain(include) {
        all.entry(entry.name.clone()).or_default().push(entry);
    }
    all.values_mut().for_each(|entries| entries.sort_by_key(DirectiveEntry::rank));
    all
}

/// The prefix under which a module that is mounted several times is documented.
fn model(module: &str) -> &'static str {
    http::TABLES.iter().find(|(name, ..)| *name == module).map_or("", |(_, prefix, _)| prefix)
}

/// All directives that a configuration can use: [`all`] without those that are always rejected.
pub fn supported() -> BTreeMap<String, Vec<DirectiveEntry>> {
    let mut all = all();
    all.values_mut().for_each(|entries| entries.retain(|entry| entry.doc.refused.is_none()));
    all.retain(|_, entries| !entries.is_empty());
    all
}

/// The directives of nginx that are not supported, sorted by name.
pub fn missing() -> Vec<&'static KnownDirective> {
    let all = all();
    let taken = |known: &KnownDirective| {
        let entries = all.get(known.name).into_iter().flatten();
        entries.flat_map(|entry| &entry.contexts).any(|c| known.allowed_in(c.in_table))
    };
    known::all().iter().filter(|known| !taken(known)).collect()
}

/// Directives that are declared only to be refused.
pub fn refused() -> Vec<DirectiveEntry> {
    let entries = all().into_values().flatten();
    entries.filter(|entry| entry.doc.refused.is_some()).collect()
}
