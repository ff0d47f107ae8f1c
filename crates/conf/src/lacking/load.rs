//! Handles directives that no feature has, while a configuration is read.

use super::{Class, Lack, LackingRow, arguments, of, third_party};
use crate::known::{self, DirectiveSupport};
use crate::{Directive, Error, Load, Result, Word, suggest};

/// The block that contains a directive.
#[derive(Clone, Copy)]
pub struct EnclosingBlock<'a> {
    /// Its name in nginx's table: `http`, `if-in-location`.
    pub context: &'a str,
    /// All its lines.
    pub lines: &'a [Directive],
}

pub struct LinePart {
    /// The text to report: `resolver ... status_zone=`.
    pub what: Box<str>,
    /// The module that has it; empty if unknown.
    pub module: &'static str,
    pub class: Class,
}

impl Load<'_> {
    /// Handles a directive that no feature has: unknown, misplaced, or unsupported. A directive
    /// without effect passes after its arguments are checked as nginx does. One with an effect is
    /// an error, or in lenient mode a warning; it is then the last of [`lacks`](Load::lacks), and
    /// the result is true.
    pub fn without_feature(&mut self, line: &Directive, block: EnclosingBlock<'_>) -> Result<bool> {
        let known = known::find(&line.name.text);
        if known.is_empty() {
            let Some(row) = third_party(&line.name.text) else {
                return Err(self.unknown(line, block));
            };
            if WITHOUT_REQUESTS.contains(&block.context) && row.class.is_enforced() {
                return Err(line.misplaced());
            }
            return self.without(line, row, |load| load.of_third_party(line, row));
        }
        let Some(known) = known.iter().find(|known| known.allowed_in(block.context)) else {
            return Err(line.misplaced());
        };
        arguments::check(known, line, block.lines, self)?;
        if let DirectiveSupport::Obsolete { .. } = known.standing {
            self.warn(line.error(known.warning().unwrap_or_default()));
            return Ok(false);
        }
        let row = of(known).unwrap_or(&NEW);
        self.without(line, row, |_| missing(line, row.class))
    }

    fn without(
        &mut self,
        line: &Directive,
        row: &'static LackingRow,
        refuse: impl FnOnce(&Self) -> Error,
    ) -> Result<bool> {
        let lack = Lack {
            what: line.name.to_string().into(),
            module: row.module,
            class: row.class,
            active: row.of.is_empty() && !row.is_inert(&line.args),
            of: row.of,
            instead: row.class.instead(),
            at: line.end,
        };
        if lack.active && !self.lenient {
            return Err(refuse(self));
        }
        self.forget_variables(line, row);
        if lack.active && !self.checking {
            let missing = match third_party(&line.name.text) {
                Some(row) => belongs(line, row),
                None => missing(line, row.class).message,
            };
            self.warn(line.error(format!("{missing}: {}", lack.instead)));
        }
        self.lacks.push(lack);
        Ok(true)
    }

    /// Handles a part of a line that Weir lacks, although it has the directive. In lenient mode,
    /// the line or that part of it is ignored, with a warning.
    pub fn without_part(&mut self, line: &Directive, part: LinePart, error: Error) -> Result<()> {
        let LinePart { what, module, class } = part;
        if !self.lenient {
            return Err(error.help(advice(class)).lacks(class));
        }
        let instead = class.instead();
        if !self.checking {
            let message = format!("{}: {instead}", error.message);
            self.warn(Error { message, ..error });
        }
        let at = line.end;
        self.lacks.push(Lack { what, module, class, active: true, of: "", instead, at });
        Ok(())
    }

    /// Records the variables that an ignored line would have set. A line that uses one would see it
    /// empty, and might allow what should be denied.
    fn forget_variables(&mut self, line: &Directive, row: &LackingRow) {
        let mut forget = |word: &Word| {
            if let Some(name) = word.text.strip_prefix(b"$") {
                let name: Box<[u8]> = name.to_ascii_lowercase().into();
                self.forgotten.entry(name).or_insert_with(|| line.clone());
            }
        };
        for column in row.defines.split(',') {
            match column.parse::<usize>() {
                Ok(number) => line.args.get(number - 1).into_iter().for_each(&mut forget),
                Err(_) if column == "block" => {
                    let lines = line.block.iter().flatten();
                    lines.map(|inner| &inner.name).for_each(&mut forget);
                }
                Err(_) => {}
            }
        }
    }

    /// Refuses a directive of a module that is not part of nginx. If the program is called `nginx`,
    /// nginx's message comes first.
    fn of_third_party(&self, line: &Directive, row: &LackingRow) -> Error {
        let error = match self.as_nginx {
            true => {
                let unknown = format!("unknown directive \"{}\"", line.name);
                let of = row.module;
                line.error(unknown).help(format!(
                    "it belongs to {of}, which this version of weir does not support"
                ))
            }
            false => line.error(belongs(line, row)).help(advice(row.class)),
        };
        error.lacks(row.class)
    }

    fn unknown(&self, line: &Directive, block: EnclosingBlock<'_>) -> Error {
        let name = &line.name.text;
        let error = line.error(format!("unknown directive \"{}\"", line.name));
        if let Some(advice) = known::removed(name) {
            return error.help(advice);
        }
        let here = known::all().iter().filter(|known| known.allowed_in(block.context));
        match suggest::nearest(name, here.map(|known| known.name)) {
            Some(meant) => error.help(suggest::did_you_mean(meant)),
            None => {
                let help = error.help.or_else(|| elsewhere(name)).or_else(|| cut_off(line, block));
                Error { help, ..error }
            }
        }
    }

    /// Continues after an error if the whole configuration is being checked; the error is kept for
    /// the report.
    pub fn tolerate<T>(&mut self, read: Result<T>) -> Result<Option<T>> {
        match read {
            Ok(value) => Ok(Some(value)),
            Err(error) if self.checking => {
                self.errors.push(error);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// Blocks that contain no request in the access and content phases.
const WITHOUT_REQUESTS: [&str; 4] = ["main", "events", "upstream", "if-in-server"];

/// The class of a directive of nginx that the table lacks: the most severe one.
static NEW: LackingRow = LackingRow {
    module: "nginx",
    name: "*",
    class: Class::Protection,
    inert: "",
    of: "",
    defines: "",
};

/// The name of a directive in other blocks that was probably meant.
fn elsewhere(name: &[u8]) -> Option<String> {
    let meant = suggest::nearest(name, known::all().iter().map(|known| known.name))?;
    let places = known::places(meant.as_bytes())?;
    Some(format!("{} It is allowed in {places}", suggest::did_you_mean(meant)))
}

/// Advice about a line that is the rest of the value before it: in
/// `add_header A max-age=1; preload;` the value was meant to contain the `;`.
fn cut_off(line: &Directive, block: EnclosingBlock<'_>) -> Option<String> {
    let at = line.name.span;
    let before = block.lines.iter().rfind(|other| {
        (other.end.file, other.end.line) == (at.file, at.line) && other.end.end <= at.start
    });
    let before = before.filter(|other| other.block.is_none() && !other.args.is_empty())?;
    Some(format!("if it belongs to \"{}\", quote the value: it contains \";\"", before.name))
}

fn missing(line: &Directive, class: Class) -> Error {
    line.error(format!("directive \"{}\" is not supported by this version of weir", line.name))
        .help(advice(class))
        .lacks(class)
}

fn belongs(line: &Directive, row: &LackingRow) -> String {
    let (name, of) = (&line.name, row.module);
    format!("directive \"{name}\" belongs to {of}, which this version of weir does not support")
}

fn advice(class: Class) -> String {
    match class {
        Class::Behavior | Class::Performance | Class::Metadata | Class::Nothing => {
            "use --lenient to ignore it".into()
        }
        class => format!("use --lenient to start anyway: {}", class.instead()),
    }
}
