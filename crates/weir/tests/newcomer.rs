//! The program under its own name, in a project's folder, as an ordinary user: what the greeting
//! advises works, and nothing of the system's is touched.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use testing::{Folder, complaint, connect, eventually, is_root, kill};

/// Who the program runs as where the tests run as root.
const NOBODY: u32 = 65534;

/// A user's home with a project in it.
struct Home {
    folder: Folder,
    program: PathBuf,
}

impl Home {
    fn new() -> Self {
        let folder = Folder::new();
        for name in ["bin", "run", "project", "project/inc", "project/public"] {
            fs::create_dir(folder.join(name)).unwrap();
        }
        let program = if is_root() { copy(&folder) } else { env!("CARGO_BIN_EXE_weir").into() };
        fs::set_permissions(folder.join("run"), fs::Permissions::from_mode(0o700)).unwrap();
        if is_root() {
            for name in ["", "run", "project", "project/inc"] {
                std::os::unix::fs::chown(folder.join(name), Some(NOBODY), Some(NOBODY)).unwrap();
            }
        }
        Self { folder, program }
    }

    fn command(&self, directory: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).current_dir(self.folder.join(directory));
        command.env_clear().env("XDG_RUNTIME_DIR", self.folder.join("run"));
        command.env("HOME", &self.folder);
        if is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    fn run(&self, directory: &str, arguments: &[&str]) -> Output {
        testing::output(self.command(directory, arguments))
    }

    fn good(&self, directory: &str, arguments: &[&str]) {
        // A server in the background keeps standard error.
        let errors = fs::File::create(self.folder.join("errors")).unwrap();
        let mut command = self.command(directory, arguments);
        let status = command.stderr(errors).status().unwrap();
        assert!(status.success(), "{arguments:?}: {}", self.folder.read("errors"));
    }

    /// Every file and directory that there is.
    fn files(&self) -> BTreeSet<PathBuf> {
        let mut files = BTreeSet::new();
        let mut directories = vec![self.folder.to_path_buf()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory).unwrap().flatten() {
                if entry.file_type().unwrap().is_dir() {
                    directories.push(entry.path());
                }
                if entry.file_name() != "errors" {
                    files.insert(entry.path());
                }
            }
        }
        files
    }

    fn pid_files(&self) -> Vec<PathBuf> {
        let is_pid = |path: &PathBuf| path.extension().is_some_and(|end| end == "pid");
        self.files().into_iter().filter(is_pid).collect()
    }

    /// The master's number, once it is written and complete.
    fn pid(&self) -> i32 {
        eventually("a pid file", || {
            let text = fs::read_to_string(self.pid_files().first()?).ok()?;
            text.strip_suffix('\n')?.parse().ok()
        })
    }
}

/// Where the program is, another user may not get. Another process copies it: here, a file that is
/// open for writing could be inherited by the children of other tests, and is then not executed.
fn copy(folder: &Folder) -> PathBuf {
    let program = folder.join("bin/weir");
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_weir")).arg(&program).status();
    assert!(copied.unwrap().success());
    program
}

/// A server of a project that goes when the test ends.
struct Project {
    home: Home,
    address: SocketAddr,
}

impl Project {
    fn new() -> Self {
        let home = Home::new();
        // Let go of again: nobody else asks for this port so soon.
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        home.folder.write("project/my.conf", "events {} http { include inc/*.conf; }");
        home.folder.write("project/public/index.html", "from the project");
        let project = Self { home, address };
        project.serve("return 200 first;");
        project
    }

    fn serve(&self, location: &str) {
        let text = format!(
            "server {{ listen {}; root public; location = /word {{ {location} }}
             location /up {{ client_body_buffer_size 1k; proxy_pass http://{0}/word; }} }}",
            self.address
        );
        self.home.folder.write("project/inc/a.conf", &text);
    }

    fn get(&self, path: &str) -> String {
        use std::io::{Read, Write};
        let mut stream = connect(&self.address);
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        testing::body(&reply).to_owned()
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        for path in self.home.pid_files() {
            let text = fs::read_to_string(path).unwrap_or_default();
            text.trim().parse().into_iter().for_each(|pid| kill(pid, "TERM"));
        }
    }
}

#[test]
fn a_test_of_a_configuration_creates_nothing() {
    let project = Project::new();
    let before = project.home.files();
    let output = project.home.run("project", &["-t", "-c", "my.conf"]);
    let path = project.home.folder.join("project/my.conf");
    let expected = format!(
        "weir: the configuration file {0} syntax is ok\n\
         weir: configuration file {0} test is successful\n",
        path.display()
    );
    assert_eq!(complaint(&output), expected);
    project.home.good("project", &["-t", "-q", "-c", "my.conf", "-g", "error_log new.log;"]);
    assert_eq!(project.home.files(), before);
}

#[test]
fn a_configuration_is_served_and_reloaded_from_anywhere() {
    let project = Project::new();
    let home = &project.home;
    home.good("project", &["-c", "my.conf"]);
    let pid = home.pid();
    assert_eq!(project.get("/"), "from the project", "roots are beside the configuration");
    assert_eq!(project.get("/word"), "first");
    project.serve("return 200 second;");
    home.good("", &["-s", "reload", "-c", "project/my.conf"]);
    eventually("another answer", || (project.get("/word") == "second").then_some(()));
    home.good("project/inc", &["-s", "quit", "-c", "../my.conf"]);
    eventually("the end", || (!Path::new(&format!("/proc/{pid}")).exists()).then_some(()));
    assert!(home.pid_files().is_empty());
    let output = home.run("project", &["-s", "quit", "-c", "my.conf"]);
    assert!(complaint(&output).contains("no server is running with this configuration"));
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_new_binary_finds_what_the_old_one_found() {
    let project = Project::new();
    let home = &project.home;
    home.good("project", &["-c", "./my.conf"]);
    let (old, old_file) = (home.pid(), home.pid_files().remove(0));
    kill(old, "USR2");
    let new = eventually("another master", || Some(home.pid()).filter(|pid| *pid != old));
    kill(old, "QUIT");
    eventually("the old one's end", || {
        (!Path::new(&format!("/proc/{old}")).exists()).then_some(())
    });
    assert_eq!(home.pid_files(), [old_file]);
    project.serve("return 200 renewed;");
    home.good("", &["-s", "reload", "-c", "project/my.conf"]);
    eventually("another answer", || (project.get("/word") == "renewed").then_some(()));
    assert_eq!(home.pid(), new);
}

#[test]
fn two_servers_of_a_user_are_told_apart() {
    let first = Project::new();
    let text = "events {} http { include inc/*.conf; }";
    first.home.folder.write("project/other.conf", text);
    first.home.good("project", &["-c", "my.conf"]);
    first.home.pid();
    let output = first.home.run("project", &["-s", "stop", "-c", "other.conf"]);
    assert_eq!(output.status.code(), Some(1), "that one does not run");
    assert_eq!(first.get("/word"), "first");
}

#[test]
fn errors_go_to_the_terminal_and_say_what_to_change() {
    let project = Project::new();
    let run = |arguments: &[&str]| {
        let output = project.home.run("project", arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        complaint(&output)
    };
    let said = run(&["-t", "-c", "none.conf"]);
    assert!(said.starts_with("weir: [emerg] open() \""), "{said}");
    let said = run(&["-c", "my.conf", "-g", "error_log missing/e.log;"]);
    assert!(said.contains("missing/e.log\" failed (2: No such file or directory)"), "{said}");
    assert!(said.contains("there is no directory"), "{said}");
    let said = run(&["-c", "my.conf", "-g", "pid /proc/x.pid;"]);
    assert!(said.contains("\"pid FILE;\" in the configuration"), "{said}");
}

#[test]
fn a_directory_that_others_may_write_to_is_not_trusted() {
    let project = Project::new();
    let home = &project.home;
    home.good("project", &["-c", "my.conf"]);
    home.pid();
    let own = home.folder.join("run/weir");
    fs::set_permissions(&own, fs::Permissions::from_mode(0o777)).unwrap();
    let output = home.run("project", &["-s", "stop", "-c", "my.conf"]);
    assert!(complaint(&output).contains("must be writable only by user"));
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_taken_address_is_reported_with_its_process() {
    let home = Home::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let output = home.run("project", &["--port", &port.to_string()]);
    let (said, address) = (complaint(&output), format!("127.0.0.1:{port}"));
    let taken = format!("bind() to {address} failed (98: Address already in use)");
    assert_eq!(said.matches(&taken).count(), 1, "{said}");
    // Where the test is root's, a process of root's is none of the user's business.
    let (process, root) = (std::process::id(), is_root());
    let who = if root { "ss -ltnp".into() } else { format!("process {process} ") };
    assert!(said.contains(&format!("      {address}: ")) && said.contains(&who), "{said}");
    assert!(said.contains("\"weir --port "), "{said}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn the_built_in_configuration_can_be_saved_and_run() {
    let project = Project::new();
    let home = &project.home;
    let port = project.address.port().to_string();
    let output = home.run("project", &["-T", "-q", "--port", &port]);
    home.folder.write("project/demo.conf", String::from_utf8(output.stdout).unwrap());
    let errors = fs::File::create(home.folder.join("errors")).unwrap();
    let mut command = home.command("project", &["-c", "demo.conf"]);
    let mut server = testing::Running(command.stderr(errors).spawn().unwrap());
    eventually("an answer", || TcpStream::connect(project.address).ok());
    assert_eq!([project.get("/balanced/"), project.get("/balanced/")].concat(), BOTH);
    assert_eq!(project.get("/favicon.ico"), "");
    kill(home.pid(), "QUIT");
    assert!(server.0.wait().unwrap().success());
    assert_eq!(home.folder.read("errors"), "", "a browser's visit is no error");
}

const BOTH: &str = "blue answered\ngreen answered\n";
