//! Every command of docs/moving-from-nginx.md, typed by a user with sudo in a Debian root: there,
//! back, and there and back by the other ways that the page has.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use super::commands::Commands;
use super::debian_root::TOOLS;
use super::masters::{Masters, NGINX_ITSELF, WEIR};
use super::patience::{PATIENCE, eventually};
use super::{probes, sites};
use crate::project;
use crate::weir_backend::WeirBackend;

/// Who types; the user of `root.sh`.
const ADMIN: &str = "weir-admin";
/// What a trial prints last.
const TRIAL_SERVES: &str = "Date and Server always differ.";
/// The commands that a diversion of the package's file replaces.
const REPLACED: [&str; 2] = ["sudo mv ", "sudo ln "];

/// Runs all of it, in a root that `root.sh` has made.
pub(super) fn run() -> Result<(), String> {
    project::succeed(Command::new("ip").args(["link", "set", "lo", "up"]))?;
    sites::make()?;
    start_php()?;
    let weir = Path::new("/usr/local/bin/weir");
    let options = ["--whoami", "--upgrade"];
    let _backend = WeirBackend::start(weir, sites::BACKEND_PORT, &options)?;
    project::output(Command::new("service").args(["nginx", "start"]))?;
    let mut page = MovingPage::begin()?;
    page.check_and_try()?;
    page.take_over_and_give_up()?;
    page.there_and_back()?;
    page.with_a_diversion()?;
    page.by_stop_and_start()?;
    page.all_were_typed()?;
    project::output(Command::new("service").args(["nginx", "stop"]))?;
    php_page()
}

/// Starts php-fpm as its unit does: with a socket that has no version in its name.
fn start_php() -> Result<(), String> {
    let version = sites::php_version()?;
    shell(&format!("service php{version}-fpm start"))?;
    let number = version.replace('.', "");
    let pool = format!("/etc/php/{version}/fpm/pool.d/www.conf");
    let helper = "/usr/lib/php/php-fpm-socket-helper install /run/php/php-fpm.sock";
    shell(&format!("{helper} {pool} {number}")).map(drop)
}

/// The page while it is followed.
struct MovingPage {
    commands: Commands,
    typed: BTreeSet<String>,
    masters: Masters,
    /// What nginx has answered.
    expected: Vec<String>,
}

impl MovingPage {
    fn begin() -> Result<Self, String> {
        let commands = Commands::read(&Path::new(TOOLS).join("moving-from-nginx.md"))?;
        let masters = Masters {
            run: "/run".into(),
            error_log: "/var/log/nginx/error.log".into(),
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 80)),
        };
        masters.await_count(1)?;
        masters.await_server(NGINX_ITSELF)?;
        Ok(Self { commands, typed: BTreeSet::new(), masters, expected: probes::replies()? })
    }

    fn check_and_try(&mut self) -> Result<(), String> {
        let checked = self.step("check")?;
        if !checked.contains("supports everything in it") {
            return Err(format!("weir check says:\n{checked}"));
        }
        self.step("test")?;
        self.denied_trial()?;
        let line = self.only_line("trial")?;
        self.compared_trial(&line, &["compare"])?;
        // Where they may be read, root is not needed.
        shell("chmod -R a+rX /etc/nginx/ssl /etc/nginx/htpasswd")?;
        let line = self.only_line("trial as a user")?;
        let said = self.compared_trial(&line, &[])?;
        shell("chmod 700 /etc/nginx/ssl && chmod 640 /etc/nginx/htpasswd")?;
        match said.contains("This user may not connect to /run/php/") {
            true => Ok(()),
            false => Err(format!("nothing is said about the socket of php-fpm:\n{said}")),
        }
    }

    /// A user who may not read the keys is told of them.
    fn denied_trial(&mut self) -> Result<(), String> {
        let line = self.only_line("trial as a user")?;
        println!("$ {line}");
        let output = as_admin(&line).output().map_err(|error| error.to_string())?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let wanted =
            ["/etc/nginx/ssl/example.key", "/etc/nginx/htpasswd", "run \"sudo weir trial -c "];
        match !output.status.success() && wanted.iter().all(|words| said.contains(words)) {
            true => Ok(()),
            false => Err(format!("a user without access is told:\n{said}")),
        }
    }

    /// A trial, the commands of these steps, and all that it prints itself.
    fn compared_trial(&mut self, line: &str, steps: &[&str]) -> Result<String, String> {
        let pid = self.masters.pid("nginx.pid");
        let trial = RunningTrial::start(line)?;
        let own = trial.said.lines().filter(|line| line.starts_with("  curl ")).count();
        if own < 2 * 6 {
            return Err(format!("too few comparisons:\n{}", trial.said));
        }
        let lines = trial
            .said
            .lines()
            .filter(|line| ["  curl ", "  diff "].iter().any(|begin| line.starts_with(begin)));
        let mut lines: Vec<String> = lines.map(|line| line.trim().to_owned()).collect();
        for step in steps {
            lines.extend(self.commands.of(step)?.iter().cloned());
            self.typed.insert((*step).to_owned());
        }
        let is_denied = trial.said.contains("This user may not connect");
        for line in lines {
            compare(&line, is_denied)?;
        }
        let said = trial.end()?;
        if self.masters.pid("nginx.pid") != pid {
            return Err("the trial has changed nginx's pid file".to_owned());
        }
        self.answered_by(NGINX_ITSELF)?;
        Ok(said)
    }

    fn take_over_and_give_up(&mut self) -> Result<(), String> {
        self.step("takeover")?;
        self.masters.await_count(2)?;
        self.step("old workers stop")?;
        self.answered_by(WEIR)?;
        self.step("give up")?;
        self.masters.await_count(1)?;
        self.answered_by(NGINX_ITSELF)
    }

    fn there_and_back(&mut self) -> Result<(), String> {
        self.step("takeover")?;
        self.replaced()?;
        self.step("reload")?;
        self.masters.await_count(1)?;
        self.answered_by(WEIR)?;
        let monitored = self.step("monitor")?;
        if !monitored.contains(" 200\n") || !monitored.contains("nginx") {
            return Err(format!("the commands to monitor show:\n{monitored}"));
        }
        self.step("way back")?;
        self.back()
    }

    fn with_a_diversion(&mut self) -> Result<(), String> {
        self.step("divert")?;
        self.rest_of("takeover")?;
        self.replaced()?;
        // What an update does.
        shell("DEBIAN_FRONTEND=noninteractive dpkg -i /root/nginx_*.deb")?;
        let link = std::fs::read_link("/usr/sbin/nginx").map_err(|error| error.to_string())?;
        if link != Path::new("/usr/local/bin/weir") {
            return Err(format!("the update has replaced the link by {}", link.display()));
        }
        self.answered_by(WEIR)?;
        self.step("end of the diversion")?;
        self.rest_of("way back")?;
        self.back()?;
        let diverted = shell("dpkg-divert --list")?;
        match diverted.contains("/usr/sbin/nginx\n") {
            true => Err(format!("a diversion is left: {diverted}")),
            false => Ok(()),
        }
    }

    fn by_stop_and_start(&mut self) -> Result<(), String> {
        println!("(systemctl is service(8) here: there is no systemd)");
        self.step("stop and start")?;
        self.masters.await_count(1)?;
        self.answered_by(WEIR)?;
        self.step("way back")?;
        self.back()
    }

    /// From two masters to Weir's alone.
    fn replaced(&mut self) -> Result<(), String> {
        self.masters.await_count(2)?;
        self.step("old workers stop")?;
        self.answered_by(WEIR)?;
        self.step("old master ends")?;
        self.masters.await_count(1)?;
        self.answered_by(WEIR)
    }

    /// From two masters to nginx's alone.
    fn back(&mut self) -> Result<(), String> {
        self.masters.await_count(2)?;
        self.step("weir ends")?;
        self.masters.await_count(1)?;
        self.answered_by(NGINX_ITSELF)
    }

    fn answered_by(&self, server: &str) -> Result<(), String> {
        self.masters.await_server(server)?;
        probes::compare(&self.expected, &probes::replies()?)
    }

    /// Types the commands of a step; returns what they have printed.
    fn step(&mut self, step: &str) -> Result<String, String> {
        self.typed.insert(step.to_owned());
        self.commands.of(step)?.iter().map(|line| typed(line)).collect()
    }

    /// The same, without the commands that a diversion replaces.
    fn rest_of(&mut self, step: &str) -> Result<(), String> {
        let lines = self.commands.of(step)?.iter();
        let is_replaced = |line: &&String| REPLACED.iter().any(|begin| line.starts_with(begin));
        lines.filter(|line| !is_replaced(line)).try_for_each(|line| typed(line).map(drop))
    }

    fn only_line(&mut self, step: &str) -> Result<String, String> {
        self.typed.insert(step.to_owned());
        match self.commands.of(step)? {
            [line] => Ok(line.clone()),
            lines => Err(format!("step \"{step}\" has {} commands", lines.len())),
        }
    }

    fn all_were_typed(&self) -> Result<(), String> {
        match self.commands.steps().find(|step| !self.typed.contains(*step)) {
            None => Ok(()),
            Some(step) => Err(format!("step \"{step}\" of the page was not typed")),
        }
    }
}

/// A command of a user who may become root by sudo.
fn as_admin(line: &str) -> Command {
    let mut command = Command::new("timeout");
    let seconds = PATIENCE.as_secs().to_string();
    command.args([&seconds, "su", "-", ADMIN, "-c", line]).stdin(Stdio::null());
    command
}

fn typed(line: &str) -> Result<String, String> {
    println!("$ {line}");
    let output = as_admin(line).output().map_err(|error| format!("su: {error}"))?;
    printed(line, &output, output.status.success())
}

/// What a command has printed; an error if it failed.
fn printed(line: &str, output: &Output, is_good: bool) -> Result<String, String> {
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    match is_good {
        true => Ok(said),
        false => {
            let errors = String::from_utf8_lossy(&output.stderr);
            Err(format!("{line}: {}\n{said}{errors}", output.status))
        }
    }
}

fn shell(line: &str) -> Result<String, String> {
    let output = Command::new("sh").args(["-c", line]).output();
    let output = output.map_err(|error| format!("sh: {error}"))?;
    printed(line, &output, output.status.success())
}

/// A command of a comparison. Of what diff shows, only dates and names of servers may differ. A
/// user who may not connect to php-fpm gets another answer from its site.
fn compare(line: &str, is_denied: bool) -> Result<(), String> {
    println!("$ {line}");
    let output = as_admin(line).output().map_err(|error| format!("su: {error}"))?;
    let is_good = output.status.code() == Some(0)
        || line.starts_with("diff ") && output.status.code() == Some(1);
    let said = printed(line, &output, is_good)?;
    if is_denied && said.contains("502 Bad Gateway") {
        return Ok(());
    }
    match said.lines().find(|line| !may_differ(line)) {
        None => Ok(()),
        Some(_) => Err(format!("the copy answers otherwise:\n{said}")),
    }
}

/// Whether a line of diff's output is one that always differs.
fn may_differ(line: &str) -> bool {
    let is_change = line.starts_with(['<', '>']);
    let text = line.get(2..).unwrap_or_default().to_ascii_lowercase();
    let begins = ["date:", "server:", "content-length:", "<hr><center>"];
    !is_change || begins.iter().any(|begin| text.starts_with(begin))
}

/// A trial in the foreground of a terminal.
struct RunningTrial {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
    said: String,
}

impl RunningTrial {
    fn start(line: &str) -> Result<Self, String> {
        println!("$ {line}");
        let mut command = Command::new("su");
        command.args(["-", ADMIN, "-c", line]).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("su: {error}"))?;
        let mut output = BufReader::new(child.stdout.take().ok_or("no output")?);
        let mut said = String::new();
        while !said.trim_end().ends_with(TRIAL_SERVES) {
            if output.read_line(&mut said).map_err(|error| error.to_string())? == 0 {
                return Err(format!("the trial does not serve:\n{said}"));
            }
        }
        Ok(Self { child, output, said })
    }

    /// Ends it as Ctrl-C does.
    fn end(mut self) -> Result<String, String> {
        let folder = self.said.lines().find_map(|line| line.strip_prefix("  /"));
        let folder = format!("/{}", folder.ok_or("the trial names no folder")?);
        shell(&format!("kill -INT $(cat {folder}/pid)"))?;
        let mut status = None;
        eventually(|| {
            status = self.child.try_wait().ok().flatten();
            status.is_some()
        });
        if !status.is_some_and(|status| status.success()) {
            return Err(format!("the trial ends with {status:?}"));
        }
        let _ = self.output.read_to_string(&mut self.said);
        match Path::new(&folder).exists() {
            true => Err(format!("the trial has left {folder}")),
            false => Ok(self.said.clone()),
        }
    }
}

impl Drop for RunningTrial {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The configuration of docs/fastcgi.md, as it stands there, with Debian's php-fpm.
fn php_page() -> Result<(), String> {
    let read = |name: &str| {
        let path = Path::new(TOOLS).join(name);
        std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let page = read("fastcgi.md")?;
    let text = page.split("```nginx\n").nth(1).and_then(|rest| rest.split("```").next());
    let text = text.ok_or("docs/fastcgi.md has no configuration")?;
    shell("mkdir -p /etc/weir /var/www/site && echo '<?php echo 6 * 7;' >/var/www/site/index.php")?;
    for (name, text) in [("nginx.conf", text), ("fastcgi.conf", &read("fastcgi.conf")?)] {
        std::fs::write(Path::new("/etc/weir").join(name), text).map_err(|e| e.to_string())?;
    }
    typed("sudo weir -c /etc/weir/nginx.conf")?;
    let answer = typed("curl -sS http://127.0.0.1/any/path")?;
    typed("sudo weir -s quit -c /etc/weir/nginx.conf")?;
    match answer == "42" {
        true => Ok(()),
        false => Err(format!("docs/fastcgi.md: PHP answers \"{answer}\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_names_of_servers_may_differ() {
        for line in
            ["2,3c2,3", "---", "< Server: nginx/1.22.1", "> date: Tue", "> Content-Length: 1"]
        {
            assert!(may_differ(line), "{line}");
        }
        for line in ["< HTTP/1.1 200 OK", "> Location: http://a:8080/", "< SERVER_PORT=443"] {
            assert!(!may_differ(line), "{line}");
        }
    }

    /// What is not marked would not be run.
    #[test]
    fn every_command_of_the_page_has_a_step() {
        let path = project::root().join("docs/moving-from-nginx.md");
        let text = std::fs::read_to_string(path).expect("the page");
        let blocks = text.matches("```sh\n").count();
        let steps = Commands::read(&project::root().join("docs/moving-from-nginx.md"));
        assert_eq!(steps.expect("the page").steps().count(), blocks);
        assert!(blocks > 12, "{blocks}");
    }
}
