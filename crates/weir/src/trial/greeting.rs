//! The text that a trial prints once it serves.

use std::fmt::Write as _;
use std::path::Path;

use sandbox::{EditableTree, Sandbox};

use super::compare::UrlComparisons;
use super::folder::TrialFolder;
use super::readable;
use crate::config_origin::ConfigOrigin;

/// The most comparisons to print.
const COMPARISONS_MAX: usize = 20;

pub(super) fn text(
    origin: &ConfigOrigin,
    tree: &EditableTree,
    copy: &Sandbox,
    folder: &TrialFolder,
) -> String {
    let conf = conf::bytes_path(&origin.conf);
    let mut out = format!(
        "A copy of {} runs on loopback addresses until you press Ctrl-C:\n\n",
        conf.display()
    );
    addresses(copy, &mut out);
    files(copy, folder, &mut out);
    notes(conf, tree, copy, &mut out);
    comparisons(tree, copy, &mut out);
    out
}

/// Writing to a string does not fail.
macro_rules! line {
    ($out:expr, $($text:tt)*) => { let _ = writeln!($out, $($text)*); };
}

fn addresses(copy: &Sandbox, out: &mut String) {
    let from: Vec<String> = copy.moved.iter().map(|listen| listen.from.to_string()).collect();
    let width = from.iter().map(String::len).max().unwrap_or_default();
    for (from, listen) in from.iter().zip(&copy.moved) {
        let stream = if listen.is_http { "" } else { "  (stream)" };
        line!(out, "  {from:width$}  ->  {}{stream}", listen.to);
    }
}

fn files(copy: &Sandbox, folder: &TrialFolder, out: &mut String) {
    let end = if folder.is_kept() { "is kept" } else { "is removed at the end (--keep keeps it)" };
    line!(out, "\nIts logs and temporary files are in a folder that {end}:");
    line!(out, "  {}", folder.path().display());
    let main = copy.tree.root.iter().find(|line| line.is("error_log"));
    if let Some(log) = main.map(|line| line.argument()).filter(|log| log.starts_with('/')) {
        line!(out, "Its errors, from another terminal:");
        line!(out, "  tail -f {log}");
    }
}

fn notes(conf: &Path, tree: &EditableTree, copy: &Sandbox, out: &mut String) {
    let before = out.len();
    if passes(tree) {
        line!(out, "Backends receive the trial's requests: send only those that change nothing.");
    }
    let sockets = denied_sockets(&copy.tree);
    if !sockets.is_empty() {
        line!(out, "This user may not connect to {}: requests", sockets.join(", "));
        line!(out, "passed there are answered with 502. Run \"{}\".", readable::as_root(conf));
    }
    for note in &copy.notes {
        line!(out, "{note}");
    }
    if out.len() > before {
        out.insert(before, '\n');
    }
}

fn passes(tree: &EditableTree) -> bool {
    tree.lines().iter().any(|line| line.directive.name().ends_with("_pass"))
}

/// The Unix sockets of backends that this user is not allowed to connect to.
fn denied_sockets(tree: &EditableTree) -> Vec<String> {
    let mut denied = Vec::new();
    for line in tree.lines().into_iter().map(|line| line.directive) {
        if !line.name().ends_with("_pass") && !line.is("server") {
            continue;
        }
        let Some((_, path)) = line.argument().split_once("unix:") else { continue };
        let path = path.split(':').next().unwrap_or(path);
        let is_denied = net::file::may_write(Path::new(path))
            .is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied);
        if is_denied && !denied.iter().any(|known| known == path) {
            denied.push(path.to_owned());
        }
    }
    denied
}

fn comparisons(tree: &EditableTree, copy: &Sandbox, out: &mut String) {
    let UrlComparisons { list, patterns } = UrlComparisons::of(tree, &copy.moved);
    let Some(first) = list.first() else { return };
    line!(out, "\nTo compare it with the server that runs, type in another terminal:\n");
    let _ = write!(out, "{first}");
    for comparison in list.iter().skip(1).take(COMPARISONS_MAX - 1) {
        let _ = write!(out, "\n{comparison}");
    }
    line!(out, "");
    if list.len() > COMPARISONS_MAX {
        let more = list.len() - COMPARISONS_MAX;
        line!(out, "Use the same commands for {more} other names and ports.");
    }
    if !patterns.is_empty() {
        line!(out, "For {}, use a name that matches.", patterns.join(", "));
    }
    line!(out, "Date and Server always differ.");
}
