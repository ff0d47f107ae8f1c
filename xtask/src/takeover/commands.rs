//! The commands of a document: fenced blocks, each after a comment that names its step.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// How a step is named: `<!-- step: takeover -->`.
const BEGIN: &str = "<!-- step: ";
const END: &str = " -->";
const FENCE: &str = "```";

/// A document's commands by step.
pub(super) struct Commands(BTreeMap<String, Vec<String>>);

impl Commands {
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let text = fs::read_to_string(path).map_err(|err| format!("{}: {err}", path.display()))?;
        Ok(Self::parse(&text))
    }

    fn parse(text: &str) -> Self {
        let mut steps: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut step = None;
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if let Some(name) = line.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(END)) {
                step = Some(name.to_owned());
            } else if line.starts_with(FENCE) {
                let block = lines.by_ref().take_while(|line| *line != FENCE);
                let block: Vec<_> = block.map(str::to_owned).collect();
                if let Some(step) = step.take() {
                    steps.entry(step).or_default().extend(block);
                }
            }
        }
        Self(steps)
    }

    pub(super) fn steps(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    pub(super) fn of(&self, step: &str) -> Result<&[String], String> {
        let lines = self.0.get(step).filter(|lines| !lines.is_empty());
        Ok(lines.ok_or_else(|| format!("the document has no step \"{step}\""))?)
    }
}

/// A command with the paths of the installation in a folder, by whoever runs this.
pub(super) fn here(line: &str, folder: &Path) -> String {
    let folder = folder.display().to_string();
    let mut line = line.replace("sudo ", "");
    for (installed, own) in [
        ("/usr/sbin/", format!("{folder}/sbin/")),
        ("/usr/local/bin/", format!("{folder}/sbin/")),
        ("/run/", format!("{folder}/")),
    ] {
        line = line.replace(installed, &own);
    }
    let test = format!("{folder}/sbin/nginx -p {folder} -c nginx.conf -e error.log -t");
    if line == "nginx -t" { test } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_blocks_with_a_step_are_commands() {
        let text = "<!-- step: one -->\n```sh\na\nb\n```\n```sh\nc\n```\n<!-- step: two -->\ntext\n\
                    ```sh\nd\n```\n";
        let commands = Commands::parse(text);
        assert_eq!(commands.of("one").unwrap(), ["a", "b"]);
        assert_eq!(commands.of("two").unwrap(), ["d"]);
        assert!(commands.of("three").is_err());
    }

    #[test]
    fn paths_are_those_of_the_folder() {
        let here = |line| here(line, Path::new("/f"));
        assert_eq!(here("sudo mv /usr/sbin/nginx /x"), "mv /f/sbin/nginx /x");
        assert_eq!(here("sudo kill -USR2 $(cat /run/nginx.pid)"), "kill -USR2 $(cat /f/nginx.pid)");
        assert_eq!(here("sudo nginx -t"), "/f/sbin/nginx -p /f -c nginx.conf -e error.log -t");
    }
}
