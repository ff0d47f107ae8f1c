//! The text of `weir COMMAND --help`, taken apart: man pages and completions are made of it.
//!
//! A help text has paragraphs, headings that end in a colon, and under a heading entries: two
//! columns with two or more spaces between them. What is indented deeper continues an entry.

use std::path::Path;
use std::process::Command;

use crate::project;

/// A help text.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct HelpText {
    /// The forms of the command.
    pub(crate) usage: Vec<String>,
    pub(crate) parts: Vec<HelpPart>,
}

#[derive(Debug, PartialEq)]
pub(crate) enum HelpPart {
    Paragraph(String),
    /// Without its colon.
    Heading(String),
    Entry {
        term: String,
        text: String,
    },
}

/// An option of a command.
#[derive(Debug, PartialEq)]
pub(crate) struct HelpOption {
    /// `-c`, `--connections`.
    pub(crate) names: Vec<String>,
    /// The name of its value, if it takes one.
    pub(crate) value: Option<String>,
    pub(crate) text: String,
}

/// The deepest indentation of an entry; that of a long option without a letter.
const ENTRY_INDENT_MAX: usize = 6;

impl HelpText {
    /// The help of a command, which the program itself prints.
    pub(crate) fn of(program: &Path, command: &str) -> Result<Self, String> {
        let mut weir = Command::new(program);
        let text = project::output(weir.args(command.split_whitespace()).arg("--help"))?;
        let help = Self::parse(&String::from_utf8_lossy(&text));
        match help.usage.is_empty() {
            false => Ok(help),
            true => Err(format!("the help of \"weir {command}\" does not begin with its usage")),
        }
    }

    pub(crate) fn parse(text: &str) -> Self {
        let mut help = Self::default();
        let mut lines = text.lines().peekable();
        if let Some(first) = lines.next_if(|line| line.starts_with("Usage: ")) {
            help.usage.push(first["Usage: ".len()..].to_owned());
            while let Some(more) = lines.next_if(|line| line.starts_with("       ")) {
                help.usage.push(more.trim().to_owned());
            }
        }
        let mut is_continued = false;
        while let Some(line) = lines.next() {
            let is_indented = |line: &&str| line.starts_with(' ');
            match line {
                "" => is_continued = false,
                _ if is_indented(&line) => help.indented(line),
                _ if line.ends_with(':') && lines.peek().is_some_and(is_indented) => {
                    help.parts.push(HelpPart::Heading(line.trim_end_matches(':').to_owned()));
                }
                _ => {
                    match help.parts.last_mut() {
                        Some(HelpPart::Paragraph(text)) if is_continued => join(text, line),
                        _ => help.parts.push(HelpPart::Paragraph(line.to_owned())),
                    }
                    is_continued = true;
                }
            }
        }
        help
    }

    fn indented(&mut self, line: &str) {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        let is_entry = indent == 2 || indent <= ENTRY_INDENT_MAX && text.starts_with("--");
        match self.parts.last_mut() {
            Some(HelpPart::Entry { text: before, .. }) if !is_entry => join(before, text),
            _ => {
                let (term, text) = text.split_once("  ").unwrap_or((text, ""));
                let (term, text) = split_long_option(term, text.trim_start());
                self.parts.push(HelpPart::Entry { term, text });
            }
        }
    }

    /// The options of the command.
    pub(crate) fn options(&self) -> Vec<HelpOption> {
        let entries = self.entries("Options");
        entries.filter(|(term, _)| term.starts_with('-') && *term != "--").map(option).collect()
    }

    /// The first words of the entries under "Commands".
    pub(crate) fn commands(&self) -> Vec<(String, String)> {
        let first = |term: &str| term.split(' ').next().unwrap_or_default().to_owned();
        self.entries("Commands").map(|(term, text)| (first(term), text.to_owned())).collect()
    }

    fn entries(&self, heading: &str) -> impl Iterator<Item = (&str, &str)> {
        let mut inside = false;
        self.parts.iter().filter_map(move |part| match part {
            HelpPart::Heading(text) => {
                inside = text == heading;
                None
            }
            HelpPart::Entry { term, text } if inside => Some((&**term, &**text)),
            _ => None,
        })
    }
}

/// `--pause TIME/PERIOD respond ...`: an entry that has room for one space only.
fn split_long_option(term: &str, text: &str) -> (String, String) {
    let mut words = term.splitn(3, ' ');
    match (words.next(), words.next(), words.next()) {
        (Some(name), Some(value), Some(rest)) if text.is_empty() && name.starts_with("--") => {
            (format!("{name} {value}"), rest.to_owned())
        }
        _ => (term.to_owned(), text.to_owned()),
    }
}

fn join(text: &mut String, more: &str) {
    if !text.is_empty() {
        text.push(' ');
    }
    text.push_str(more.trim());
}

fn option((term, text): (&str, &str)) -> HelpOption {
    let mut names = Vec::new();
    let mut value = None;
    for form in term.split(", ") {
        let end = form.find([' ', '[']).unwrap_or(form.len());
        names.push(form[..end].to_owned());
        value = Some(form[end..].trim_start().to_owned()).filter(|value| !value.is_empty());
    }
    HelpOption { names, value, text: text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Usage: weir x [OPTIONS]
       weir x y

Does
things.

Commands:
  set NAME VALUE...
           sets it
  get      gets it

Options:
  -c, --count N    a count,
                   or two
      --fast       fast
      --pause A/B  pause
      --wait[=T]   wait
      --error-status STATUS code
  -h, --help       print this help

Exit code: 0.
";

    #[test]
    fn a_help_text_is_taken_apart() {
        let help = HelpText::parse(TEXT);
        assert_eq!(help.usage, ["weir x [OPTIONS]", "weir x y"]);
        assert_eq!(help.parts[0], HelpPart::Paragraph("Does things.".into()));
        assert_eq!(help.parts.last(), Some(&HelpPart::Paragraph("Exit code: 0.".into())));
        let command = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        assert_eq!(help.commands(), [command("set", "sets it"), command("get", "gets it")]);
    }

    #[test]
    fn options_have_names_values_and_texts() {
        let options = HelpText::parse(TEXT).options();
        let shown = options.iter().map(|option| {
            let value = option.value.as_deref().unwrap_or("-");
            format!("{} {value} {}", option.names.join("|"), option.text)
        });
        let expected = [
            "-c|--count N a count, or two",
            "--fast - fast",
            "--pause A/B pause",
            "--wait [=T] wait",
            "--error-status STATUS code",
            "-h|--help - print this help",
        ];
        assert_eq!(shown.collect::<Vec<_>>(), expected);
    }
}
