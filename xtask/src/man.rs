//! `xtask man`: the man pages, from the help of the program and from the reference in docs/.
//!
//! ```text
//! weir COMMAND --help  --> HelpText --.
//! packaging/man/NAME.md --------------+--> ManPage
//! docs/directives.md, variables.md ---'
//! ```

mod markdown;
mod roff;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::args::Args;
use crate::help_text::{HelpPart, HelpText};
use crate::{packages, project};
use markdown::HeadingLevel;
use roff::ManPage;

pub(crate) const HELP: &str = "write the man pages into a folder

Usage: cargo xtask man FOLDER [--program WEIR]

  --program WEIR  ask this weir for its help (default: the one that cargo build makes)
";

/// A page about commands of the program.
struct CommandPage {
    name: &'static str,
    section: &'static str,
    summary: &'static str,
    /// The commands, each with its own help: the first is the page's.
    commands: &'static [&'static str],
}

const PAGES: &[CommandPage] = &[
    CommandPage {
        name: "weir",
        section: "8",
        summary: "web server and proxy that runs nginx's configurations",
        commands: &[""],
    },
    CommandPage {
        name: "weir-load",
        section: "1",
        summary: "measure a server",
        commands: &["load"],
    },
    CommandPage {
        name: "weir-backend",
        section: "1",
        summary: "a backend for tests and measurements",
        commands: &["backend"],
    },
    CommandPage {
        name: "weir-lab",
        section: "1",
        summary: "find what slows a configuration down on this machine",
        commands: &["lab", "lab run", "lab agent", "lab tune", "lab doctor"],
    },
    CommandPage {
        name: "weir-ctl",
        section: "1",
        summary: "look at a running server and change it",
        commands: &["ctl"],
    },
    CommandPage {
        name: "weir-discover",
        section: "1",
        summary: "find servers elsewhere and give them to a running server",
        commands: &["discover"],
    },
    CommandPage {
        name: "weir-ingress",
        section: "1",
        summary: "make a running server the gateway of a Kubernetes cluster",
        commands: &["ingress"],
    },
    CommandPage {
        name: "weir-acme",
        section: "1",
        summary: "show, renew and forget the certificates of a server",
        commands: &["acme"],
    },
    CommandPage {
        name: "weir-top",
        section: "1",
        summary: "show what a running server does",
        commands: &["top"],
    },
    CommandPage {
        name: "weir-trial",
        section: "1",
        summary: "run a copy of a configuration beside the running server",
        commands: &["trial"],
    },
    CommandPage {
        name: "weir-check",
        section: "1",
        summary: "list what a configuration needs and Weir lacks",
        commands: &["check"],
    },
    CommandPage {
        name: "weir-fmt",
        section: "1",
        summary: "format configurations",
        commands: &["fmt"],
    },
    CommandPage {
        name: "weir-reference",
        section: "1",
        summary: "explain directives and variables",
        commands: &["reference"],
    },
];

/// The page about the configuration. Its other name is nginx's.
const CONFIGURATION: &str = "weir-nginx.conf";

/// A man page, by the name of its file.
pub(crate) struct ManFile {
    pub(crate) file: String,
    pub(crate) text: String,
}

pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let mut args = Args::new(words);
    let program = program(&mut args)?;
    let words = args.words()?;
    let [folder] = &words[..] else { return Err("a folder is required".into()) };
    write(Path::new(folder), &pages(&program)?)
}

/// The program that is asked.
pub(crate) fn program(args: &mut Args) -> Result<PathBuf, String> {
    match args.option("--program")? {
        Some(path) => std::path::absolute(&path).map_err(|error| format!("{path}: {error}")),
        None => project::debug("weir"),
    }
}

fn write(folder: &Path, pages: &[ManFile]) -> Result<(), String> {
    let fail = |error| format!("{}: {error}", folder.display());
    fs::create_dir_all(folder).map_err(fail)?;
    pages.iter().try_for_each(|page| fs::write(folder.join(&page.file), &page.text).map_err(fail))
}

/// All pages.
pub(crate) fn pages(program: &Path) -> Result<Vec<ManFile>, String> {
    let date = date()?;
    let mut pages = Vec::new();
    for page in PAGES {
        let file = format!("{}.{}", page.name, page.section);
        pages.push(ManFile { file, text: command_page(page, program, &date)? });
    }
    pages.push(ManFile { file: format!("{CONFIGURATION}.5"), text: configuration_page(&date)? });
    Ok(pages)
}

/// The day of the newest commit, so that a commit has the same pages every day.
fn date() -> Result<String, String> {
    let mut git = Command::new("git");
    git.args(["log", "-1", "--format=%cs"]).current_dir(project::root());
    Ok(String::from_utf8_lossy(&project::output(&mut git)?).trim().to_owned())
}

fn command_page(page: &CommandPage, program: &Path, date: &str) -> Result<String, String> {
    let mut man = ManPage::new(page.name, page.section, date, env!("CARGO_PKG_VERSION"));
    man.name(page.name, page.summary);
    for (at, command) in page.commands.iter().enumerate() {
        let help = HelpText::of(program, command)?;
        if at == 0 {
            man.section("Synopsis");
            man.usage(&help.usage);
            man.section("Description");
            body(&mut man, &help, true);
        } else {
            man.section(&format!("weir {command}"));
            man.usage(&help.usage);
            body(&mut man, &help, false);
        }
    }
    if let Ok(more) = fs::read_to_string(packaging(&format!("man/{}.md", page.name))) {
        markdown::append(&mut man, &more, HeadingLevel::Section);
    }
    man.section("See also");
    man.text(&see_also(page));
    Ok(man.finish())
}

/// The parts of a help text. Headings are sections of the page, or below one.
fn body(man: &mut ManPage, help: &HelpText, are_sections: bool) {
    for part in &help.parts {
        match part {
            HelpPart::Paragraph(text) => match text.strip_prefix("Exit code: ") {
                Some(text) if are_sections => {
                    man.section("Exit status");
                    man.text(text);
                }
                _ => man.paragraph(text),
            },
            HelpPart::Heading(title) if are_sections => man.section(title),
            HelpPart::Heading(title) => man.subsection(title),
            HelpPart::Entry { term, text } => man.item(term, text),
        }
    }
}

fn see_also(page: &CommandPage) -> String {
    let others = PAGES.iter().filter(|other| other.name != page.name);
    let names = others.map(|other| format!("`{}`({})", other.name, other.section));
    names.chain([format!("`{CONFIGURATION}`(5)")]).collect::<Vec<_>>().join(", ")
}

fn configuration_page(date: &str) -> Result<String, String> {
    let read = |page: &str| {
        let path = project::root().join("docs").join(page);
        fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let directives = read("directives.md")?;
    let (introduction, rest) = directives.split_once("\n## By module\n").unwrap_or_default();
    let (_, directives) = rest.split_once("\n## ").ok_or("docs/directives.md has no directives")?;
    let mut man = ManPage::new(CONFIGURATION, "5", date, env!("CARGO_PKG_VERSION"));
    man.name(CONFIGURATION, "the configuration of weir: directives and variables");
    man.section("Description");
    markdown::append(&mut man, introduction, HeadingLevel::Section);
    man.section("Directives");
    markdown::append(&mut man, &format!("## {directives}"), HeadingLevel::Subsection);
    markdown::append(&mut man, &read("variables.md")?, HeadingLevel::Section);
    man.section("See also");
    man.text("`weir`(8), `weir-reference`(1), `weir-check`(1)");
    Ok(man.finish())
}

fn packaging(file: &str) -> PathBuf {
    project::root().join("packaging").join(file)
}

/// Has mandoc and groff read all pages; neither may complain. The names of what is not installed.
pub(crate) fn check(program: &Path) -> Result<Vec<&'static str>, String> {
    let folder = project::root().join("target/man");
    let pages = pages(program)?;
    write(&folder, &pages)?;
    let files: Vec<&str> = pages.iter().map(|page| page.file.as_str()).collect();
    let readers: [(&str, &[&str]); 2] = [
        ("mandoc", &["-T", "lint", "-W", "warning"]),
        ("groff", &["-man", "-ww", "-z", "-T", "utf8"]),
    ];
    let mut missing = Vec::new();
    for (reader, options) in readers {
        match packages::find(reader) {
            Some(path) => {
                complaints(Command::new(path).args(options).args(&files).current_dir(&folder))?
            }
            None => missing.push(reader),
        }
    }
    Ok(missing)
}

/// What a program says must be nothing.
pub(crate) fn complaints(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let said = [output.stdout, output.stderr].concat();
    match output.status.success() && said.is_empty() {
        true => Ok(()),
        false => Err(format!("{command:?}:\n{}", String::from_utf8_lossy(&said).trim_end())),
    }
}
