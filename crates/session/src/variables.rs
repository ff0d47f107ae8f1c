//! Variables: what their names mean.
//!
//! A name is resolved once, at load, to a getter by number. Getters append to a buffer, so reading
//! a variable into a log line copies it once. Those whose answer must not change within an exchange
//! are kept with it. The built-in variables are handed in as tables ([`BuiltIns`]); what the
//! configuration defines (`map`, `set`, named groups) is collected while it is read.

use std::collections::HashMap;
use std::marker::PhantomData;

use conf::lacking::{self, Class};
use conf::{Directive, Error, Load, Result, Span, VariableId, Word, suggest};

use crate::decimal;

/// How many variables may be computed within each other; one more is taken for a cycle.
pub const DEPTH_MAX: u8 = 100;

/// Appends the variable's value; false where it has none.
pub type Getter<X> = Box<dyn Fn(&mut X, &mut Vec<u8>) -> bool + Send + Sync>;

/// What `set` does instead of giving the variable a value.
pub type Setter<X> = fn(&mut X, &[u8]);

/// A variable.
pub struct Variable<X> {
    /// Its name, once it is resolved.
    pub name: Box<[u8]>,
    /// How to get it.
    pub get: Getter<X>,
    /// Whether the first answer holds for the whole session.
    pub cached: bool,
}

impl<X> Variable<X> {
    /// A variable that is computed at every reading.
    pub fn fresh(get: impl Fn(&mut X, &mut Vec<u8>) -> bool + Send + Sync + 'static) -> Self {
        Self { name: Box::default(), get: Box::new(get), cached: false }
    }

    /// A variable that is computed once in a session.
    pub fn cached(get: impl Fn(&mut X, &mut Vec<u8>) -> bool + Send + Sync + 'static) -> Self {
        Self { cached: true, ..Self::fresh(get) }
    }
}

/// The tables of built-in variables, handed in before anything is read.
pub struct BuiltIns<X: 'static>(Vec<VariableTable<X>>);

/// The built-in variables of a module.
pub struct VariableTable<X: 'static> {
    /// nginx's name of the module.
    module: &'static str,
    rows: &'static [BuiltIn<X>],
}

// Derived, they would ask the same of `X`.
impl<X> Clone for VariableTable<X> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<X> Copy for VariableTable<X> {}

impl<X: 'static> VariableTable<X> {
    /// The variables of the module that nginx calls `module`.
    pub const fn new(module: &'static str, rows: &'static [BuiltIn<X>]) -> Self {
        Self { module, rows }
    }

    /// What the reference says of each.
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

/// What the reference says of a built-in variable.
#[derive(Clone, Copy, Debug)]
pub struct VariableDoc {
    /// The name, or how the names begin.
    pub name: &'static str,
    /// Whether the name only begins the names of many.
    pub is_prefix: bool,
    /// A sentence.
    pub text: &'static str,
    /// The module that it belongs to in nginx, if nginx has it.
    pub module: Option<&'static str>,
    /// Whether `set` and `map` may give it another value.
    pub changeable: bool,
}

impl<X> Default for BuiltIns<X> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// A built-in variable.
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
    /// For all names that begin so: what follows is its argument.
    Prefix(fn(Box<[u8]>) -> Getter<X>),
}

impl<X: 'static> BuiltIn<X> {
    const fn new(name: &'static str, docs: &'static str, get: Get<X>) -> Self {
        let (set, changeable, cached, is_in_nginx) = (None, false, false, true);
        Self { name, docs, is_in_nginx, get, set, changeable, cached }
    }

    /// A variable that is computed at every reading; `docs` is its sentence in the reference.
    pub const fn fresh(
        name: &'static str,
        docs: &'static str,
        get: fn(&mut X, &mut Vec<u8>) -> bool,
    ) -> Self {
        Self::new(name, docs, Get::Plain(get))
    }

    /// A variable that is computed once in a session.
    pub const fn cached(
        name: &'static str,
        docs: &'static str,
        get: fn(&mut X, &mut Vec<u8>) -> bool,
    ) -> Self {
        Self { cached: true, ..Self::fresh(name, docs, get) }
    }

    /// All variables whose names begin with this one.
    pub const fn prefix(
        name: &'static str,
        docs: &'static str,
        get: fn(Box<[u8]>) -> Getter<X>,
    ) -> Self {
        Self::new(name, docs, Get::Prefix(get))
    }

    /// nginx's sources do not have it.
    pub const fn not_in_nginx(self) -> Self {
        Self { is_in_nginx: false, ..self }
    }

    /// Each of a prefix's variables is computed once in a session.
    pub const fn cached_each(self) -> Self {
        Self { cached: true, ..self }
    }

    /// `set` and `map` may give it another value.
    pub const fn changeable(self) -> Self {
        Self { changeable: true, ..self }
    }

    /// `set` does this.
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
        Variable { name: Box::default(), get, cached: self.cached }
    }
}

impl<X: 'static> BuiltIns<X> {
    fn rows(&self) -> impl Iterator<Item = &'static BuiltIn<X>> {
        self.0.iter().flat_map(|table| table.rows)
    }

    /// The names, without those that only begin a name.
    fn names<'n>(&self) -> impl Iterator<Item = &'n str> {
        let rows = self.rows();
        rows.filter(|row| matches!(row.get, Get::Plain(_))).map(|row| row.name)
    }

    /// Adds tables.
    pub fn add(&mut self, tables: &[VariableTable<X>]) {
        self.0.extend_from_slice(tables);
    }

    fn plain(&self, name: &[u8]) -> Option<&'static BuiltIn<X>> {
        self.rows().find(|row| matches!(row.get, Get::Plain(_)) && row.name.as_bytes() == name)
    }

    /// The longest prefix that the name begins with.
    fn prefix(&self, name: &[u8]) -> Option<&'static BuiltIn<X>> {
        let prefixes = self.rows().filter(|row| row.is_prefix_of(name));
        prefixes.max_by_key(|row| row.name.len())
    }
}

/// Variables that the configuration defines, by name in lower case.
pub struct Defined<X> {
    computed: HashMap<Box<[u8]>, Variable<X>>,
    /// Those that only `set` gives a value: any other meaning of the name comes first.
    set: HashMap<Box<[u8]>, Variable<X>>,
}

impl<X> Default for Defined<X> {
    fn default() -> Self {
        Self { computed: HashMap::new(), set: HashMap::new() }
    }
}

/// A name that the configuration may define.
pub struct Claimed<X>(Box<[u8]>, PhantomData<fn(X)>);

/// The name that an argument has after its `$`, unless it belongs to the program.
pub fn claim<X: 'static>(word: &Word, from: &Directive, load: &mut Load<'_>) -> Result<Claimed<X>> {
    claim_name(name(word, from)?, from, load)
}

/// Defines a variable, as `map` and its like do. The last definition of a name holds.
pub fn define<X: 'static>(name: Claimed<X>, variable: Variable<X>, load: &mut Load<'_>) {
    load.registry.of::<Defined<X>>().computed.insert(name.0, variable);
}

/// Defines the variable of a named group: it has a value once its pattern has matched.
pub fn define_captured<X: 'static>(
    name: &[u8],
    from: &Directive,
    load: &mut Load<'_>,
) -> Result<()> {
    let name = claim_name::<X>(name, from, load)?;
    define(name, Variable::fresh(|_, _| false), load);
    Ok(())
}

/// Defines the variable that `set` and its like name, unless it has another meaning, and says how
/// to set it; `unset` makes what it is until then.
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

/// The name that an argument has after its `$`.
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

/// Gives every name that the configuration mentions its getter.
pub fn resolve<X: 'static>(load: &mut Load<'_>) -> Result<Vec<Variable<X>>> {
    let mut defined = std::mem::take(load.registry.of::<Defined<X>>());
    let names = std::mem::take(&mut load.names);
    let built_ins = std::mem::take(load.registry.of::<BuiltIns<X>>());
    let mut variables = Vec::new();
    for (name, at) in names.mentions() {
        let variable = variable(name, at, &mut defined, &built_ins, load);
        // What is only checked is not run.
        variables.push(load.tolerate(variable)?.unwrap_or(Variable::fresh(|_, _| false)));
    }
    load.names = names;
    Ok(variables)
}

/// nginx names no line for an unknown variable; we mark the first mention.
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

/// A variable whose values only an ignored directive would have set: whatever another line says it
/// is, that is not all.
fn forgotten(name: &[u8], ignored: &Directive) -> Error {
    let shown = String::from_utf8_lossy(name);
    let why = format!("variable \"{shown}\" is set by \"{}\", which is ignored", ignored.name);
    ignored.error(format!("{why}; its value cannot be trusted")).lacks(Class::Variable)
}

/// The variable that was probably meant.
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

/// A value that is there.
pub fn some(out: &mut Vec<u8>, value: &[u8]) -> bool {
    out.extend_from_slice(value);
    true
}

/// A value that may not be there.
pub fn maybe(out: &mut Vec<u8>, value: Option<&[u8]>) -> bool {
    out.extend_from_slice(value.unwrap_or_default());
    value.is_some()
}

/// A number.
pub fn number(out: &mut Vec<u8>, value: u64) -> bool {
    decimal::write(value, out);
    true
}
