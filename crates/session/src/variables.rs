//! Variables: resolving their names, and computing their values.
//!
//! A name is resolved once, at load, to a getter with a number. Getters append to a buffer, so
//! reading a variable into a log line copies its value once. Values that must not change within an
//! exchange are kept with it. The built-in variables come in tables ([`BuiltIns`]); variables that
//! the configuration defines (`map`, `set`, named groups) are collected while it is read.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::Arc;

use conf::lacking::{self, Class};
use conf::{Directive, Error, Load, Result, Span, VariableId, Word, suggest};

use crate::decimal;

/// The most variables computed as part of each other; a deeper nesting counts as a cycle.
pub const DEPTH_MAX: u8 = 100;

/// Appends the variable's value; false if it has none.
pub type Getter<X> = Box<dyn Fn(&mut X, &mut Vec<u8>) -> bool + Send + Sync>;

/// The effect of `set` on the variable, in place of storing a value.
pub type Setter<X> = fn(&mut X, &[u8]);

/// The way to a value that is one of several texts, and depends on another text alone.
pub trait TextChoice: Send + Sync {
    /// The variable that is the other text; `None`: it is more than one variable.
    fn source(&self) -> Option<VariableId>;
    /// The value for a text.
    fn choose(&self, text: &[u8]) -> &[u8];
}

pub struct Variable<X> {
    /// The name, set when it is resolved.
    pub name: Box<[u8]>,
    /// How the value is chosen from a source text, for callers that have that text already.
    pub choice: Option<Arc<dyn TextChoice>>,
    /// The getter of the value.
    pub get: Getter<X>,
    /// Whether the first value is kept for the whole session.
    pub cached: bool,
}

impl<X> Variable<X> {
    /// A variable that is computed at each reading.
    pub fn fresh(get: impl Fn(&mut X, &mut Vec<u8>) -> bool + Send + Sync + 'static) -> Self {
        Self { name: Box::default(), choice: None, get: Box::new(get), cached: false }
    }

    /// A variable that is computed once per session.
    pub fn cached(get: impl Fn(&mut X, &mut Vec<u8>) -> bool + Send + Sync + 'static) -> Self {
        Self { cached: true, ..Self::fresh(get) }
    }
}

/// The tables of built-in variables, added before the configuration is read.
pub struct BuiltIns<X: 'static>(Vec<VariableTable<X>>);

/// The built-in variables of a module.
pub struct VariableTable<X: 'static> {
    /// nginx's name of the module.
    module: &'static str,
    rows: &'static [BuiltIn<X>],
}

// Derived implementations would require the same of `X`.
impl<X> Clone for VariableTable<X> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<X> Copy for VariableTable<X> {}

impl<X: 'static> VariableTable<X> {
    /// The variables of the module with nginx's name `module`.
    pub const fn new(module: &'static str, rows: &'static [BuiltIn<X>]) -> Self {
        Self { module, rows }
    }

    /// The entries of the variables in the reference.
    pub fn docs(self) -> impl Iterator<Item = VariableDoc> {
        self.rows.iter().map(move |row| VariableDoc {
            name: row.name,
            is_prefix: matches!(row.get, Get::Prefix(_)),
            text: row.docs,
            module: row.is_in_nginx.then_some(self.module),
            changeable: row.changeable,
        })
    }
}

/// The entry of a built-in variable in the reference.
#[derive(Clone, Copy, Debug)]
pub struct VariableDoc {
    /// The name, or the prefix of the names.
    pub name: &'static str,
    /// Whether the name is a prefix.
    pub is_prefix: bool,
    /// A sentence about the variable.
    pub text: &'static str,
    /// The variable's module in nginx; `None` if nginx does not have the variable.
    pub module: Option<&'static str>,
    /// Whether `set` and `map` can change the value.
    pub changeable: bool,
}

impl<X> Default for BuiltIns<X> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

pub struct BuiltIn<X> {
    name: &'static str,
    /// A sentence for the reference.
    docs: &'static str,
    is_in_nginx: bool,
    get: Get<X>,
    set: Option<Setter<X>>,
    changeable: bool,
    cached: bool,
}

enum Get<X> {
    Plain(fn(&mut X, &mut Vec<u8>) -> bool),
    /// The getter for all names with this prefix; the rest of the name is its argument.
    Prefix(fn(Box<[u8]>) -> Getter<X>),
}

impl<X: 'static> BuiltIn<X> {
    const fn new(name: &'static str, docs: &'static str, get: Get<X>) -> Self {
        let (set, changeable, cached, is_in_nginx) = (None, false, false, true);
        Self { name, docs, is_in_nginx, get, set, changeable, cached }
    }

    /// A variable that is computed at each reading; `docs` is its sentence in the reference.
    pub const fn fresh(
        name: &'static str,
        docs: &'static str,
        get: fn(&mut X, &mut Vec<u8>) -> bool,
    ) -> Self {
        Self::new(name, docs, Get::Plain(get))
    }

    /// A variable that is computed once per session.
    pub const fn cached(
        name: &'static str,
        docs: &'static str,
        get: fn(&mut X, &mut Vec<u8>) -> bool,
    ) -> Self {
        Self { cached: true, ..Self::fresh(name, docs, get) }
    }

    /// All variables whose names begin with `name`.
    pub const fn prefix(
        name: &'static str,
        docs: &'static str,
        get: fn(Box<[u8]>) -> Getter<X>,
    ) -> Self {
        Self::new(name, docs, Get::Prefix(get))
    }

    /// Marks the variable as absent from nginx.
    pub const fn not_in_nginx(self) -> Self {
        Self { is_in_nginx: false, ..self }
    }

    /// Makes each variable of a prefix be computed once per session.
    pub const fn cached_each(self) -> Self {
        Self { cached: true, ..self }
    }

    /// Allows `set` and `map` to change the value.
    pub const fn changeable(self) -> Self {
        Self { changeable: true, ..self }
    }

    /// Makes `set` call a function instead of storing the value.
    pub const fn set_by(self, set: Setter<X>) -> Self {
        Self { set: Some(set), changeable: true, ..self }
    }

    fn is_prefix_of(&self, name: &[u8]) -> bool {
        matches!(self.get, Get::Prefix(_)) && name.starts_with(self.name.as_bytes())
    }

    fn variable(&self, name: &[u8]) -> Variable<X> {
        let get: Getter<X> = match self.get {
            Get::Plain(get) => Box::new(get),
            Get::Prefix(get) => get(name[self.name.len()..].into()),
        };
        Variable { name: Box::default(), choice: None, get, cached: self.cached }
    }
}

impl<X: 'static> BuiltIns<X> {
    fn rows(&self) -> impl Iterator<Item = &'static BuiltIn<X>> {
        self.0.iter().flat_map(|table| table.rows)
    }

    /// The names, without prefixes.
    fn names<'n>(&self) -> impl Iterator<Item = &'n str> {
        let rows = self.rows();
        rows.filter(|row| matches!(row.get, Get::Plain(_))).map(|row| row.name)
    }

    pub fn add(&mut self, tables: &[VariableTable<X>]) {
        self.0.extend_from_slice(tables);
    }

    fn plain(&self, name: &[u8]) -> Option<&'static BuiltIn<X>> {
        self.rows().find(|row| matches!(row.get, Get::Plain(_)) && row.name.as_bytes() == name)
    }

    /// The longest prefix of the name.
    fn prefix(&self, name: &[u8]) -> Option<&'static BuiltIn<X>> {
        let prefixes = self.rows().filter(|row| row.is_prefix_of(name));
        prefixes.max_by_key(|row| row.name.len())
    }
}

/// Variables that the configuration defines, by name in lower case.
pub struct Defined<X> {
    computed: HashMap<Box<[u8]>, Variable<X>>,
    /// Variables of `set` without any other meaning, which would take precedence.
    set: HashMap<Box<[u8]>, Variable<X>>,
}

impl<X> Default for Defined<X> {
    fn default() -> Self {
        Self { computed: HashMap::new(), set: HashMap::new() }
    }
}

/// A name that the configuration may define.
pub struct Claimed<X>(Box<[u8]>, PhantomData<fn(X)>);

/// The name after the `$` of an argument; an error if it is a built-in variable that cannot be
/// changed.
pub fn claim<X: 'static>(word: &Word, from: &Directive, load: &mut Load<'_>) -> Result<Claimed<X>> {
    claim_name(name(word, from)?, from, load)
}

/// Defines a variable, for `map` and similar directives. The last definition of a name applies.
pub fn define<X: 'static>(name: Claimed<X>, variable: Variable<X>, load: &mut Load<'_>) {
    load.registry.of::<Defined<X>>().computed.insert(name.0, variable);
}

/// Defines the variable of a named group, which has a value once its pattern has matched.
pub fn define_captured<X: 'static>(
    name: &[u8],
    from: &Directive,
    load: &mut Load<'_>,
) -> Result<()> {
    let name = claim_name::<X>(name, from, load)?;
    define(name, Variable::fresh(|_, _| false), load);
    Ok(())
}

/// Defines the variable of `set` and similar directives, unless the name has another meaning, and
/// returns how to set it; `unset` makes the variable's getter for the time before.
pub fn define_set<X: 'static>(
    word: &Word,
    from: &Directive,
    load: &mut Load<'_>,
    unset: impl FnOnce(&[u8]) -> Variable<X>,
) -> Result<(VariableId, Option<Setter<X>>)> {
    let Claimed(name, _) = claim::<X>(word, from, load)?;
    let id = load.names.number(&name, Some(word.span));
    let set = built_ins::<X>(load).plain(&name).and_then(|row| row.set);
    let defined = &mut load.registry.of::<Defined<X>>().set;
    defined.entry(name).or_insert_with_key(|name| unset(name));
    Ok((id, set))
}

/// The name after the `$` of an argument.
pub fn name<'w>(word: &'w Word, from: &Directive) -> Result<&'w [u8]> {
    match &*word.text {
        [b'$', name @ ..] if !name.is_empty() => Ok(name),
        _ => Err(from.error_at(word, format!("invalid variable name \"{word}\""))),
    }
}

fn built_ins<'l, X: 'static>(load: &'l mut Load<'_>) -> &'l BuiltIns<X> {
    load.registry.of()
}

fn claim_name<X: 'static>(
    name: &[u8],
    from: &Directive,
    load: &mut Load<'_>,
) -> Result<Claimed<X>> {
    let lower: Box<[u8]> = name.to_ascii_lowercase().into();
    match built_ins::<X>(load).plain(&lower) {
        Some(row) if !row.changeable => {
            let shown = String::from_utf8_lossy(name);
            Err(from.error(format!("the duplicate \"{shown}\" variable")))
        }
        _ => Ok(Claimed(lower, PhantomData)),
    }
}

/// Resolves each name in the configuration to its getter.
pub fn resolve<X: 'static>(load: &mut Load<'_>) -> Result<Vec<Variable<X>>> {
    let mut defined = std::mem::take(load.registry.of::<Defined<X>>());
    let names = std::mem::take(&mut load.names);
    let built_ins = std::mem::take(load.registry.of::<BuiltIns<X>>());
    let mut variables = Vec::new();
    for (name, at) in names.mentions() {
        let variable = variable(name, at, &mut defined, &built_ins, load);
        // A configuration that is only checked is never run, so any getter will do.
        variables.push(load.tolerate(variable)?.unwrap_or(Variable::fresh(|_, _| false)));
    }
    load.names = names;
    Ok(variables)
}

/// nginx reports no line for an unknown variable; we mark its first use.
fn variable<X: 'static>(
    name: &[u8],
    at: Option<Span>,
    defined: &mut Defined<X>,
    built_ins: &BuiltIns<X>,
    load: &Load<'_>,
) -> Result<Variable<X>> {
    if let Some(ignored) = load.forgotten.get(name) {
        return Err(forgotten(name, ignored));
    }
    let found = (defined.computed.remove(name))
        .or_else(|| built_ins.plain(name).map(|row| row.variable(name)))
        .or_else(|| built_ins.prefix(name).map(|row| row.variable(name)))
        .or_else(|| defined.set.remove(name));
    match found {
        Some(variable) => Ok(Variable { name: name.into(), ..variable }),
        None => {
            let shown = String::from_utf8_lossy(name);
            let error = Error::bare(format!("unknown \"{shown}\" variable"));
            let mut error = error.guess(nearest(name, defined, built_ins));
            if let Some(row) = lacking::of_variable(name) {
                let module = row.module;
                error = error.help(format!(
                    "it belongs to {module}, which this version of weir does not support"
                ));
                error = error.lacks(Class::Variable);
            }
            Err(at.map_or(error.clone(), |span| error.marked(span)))
        }
    }
}

/// The error for a variable that an ignored directive sets: its value is incomplete even if another
/// line defines it as well.
fn forgotten(name: &[u8], ignored: &Directive) -> Error {
    let shown = String::from_utf8_lossy(name);
    let why = format!("variable \"{shown}\" is set by \"{}\", which is ignored", ignored.name);
    ignored.error(format!("{why}; its value cannot be trusted")).lacks(Class::Variable)
}

/// The existing variable with the most similar name.
fn nearest<X: 'static>(
    name: &[u8],
    defined: &Defined<X>,
    built_ins: &BuiltIns<X>,
) -> Option<String> {
    let own = defined.computed.keys().chain(defined.set.keys());
    let own = own.filter_map(|name| std::str::from_utf8(name).ok());
    let meant = suggest::nearest(name, built_ins.names().chain(own))?;
    Some(format!("${meant}"))
}

/// Appends a value that exists.
pub fn some(out: &mut Vec<u8>, value: &[u8]) -> bool {
    out.extend_from_slice(value);
    true
}

/// Appends a value if it exists.
pub fn maybe(out: &mut Vec<u8>, value: Option<&[u8]>) -> bool {
    out.extend_from_slice(value.unwrap_or_default());
    value.is_some()
}

pub fn number(out: &mut Vec<u8>, value: u64) -> bool {
    decimal::write(value, out);
    true
}
