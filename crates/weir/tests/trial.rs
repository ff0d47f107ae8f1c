//! `weir trial` as a program, beside a server of the same configuration.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use net::testing::tls::{ECDSA_CERTIFICATE, ECDSA_KEY, TlsClient};
use testing::{
    Folder, PATIENCE, Server, body, complaint, connect, eventually, free_address, in_time, is_root,
    kill,
};

/// Small, so that it is a port, whatever the system chose before.
const OFFSET: u16 = 4000;
/// Who the program runs as where the tests run as root.
const NOBODY: u32 = 65534;
/// The last line that a trial prints before it is let alone.
const LAST_LINE: &str = "Date and Server always differ.";

/// An address of the configuration in its copy.
fn moved(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip(), address.port() + OFFSET)
}

struct Trial {
    child: Child,
    /// What it has printed.
    said: String,
}

impl Trial {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let said = in_time("greeting", move || {
            let mut said = String::new();
            for line in lines.map_while(Result::ok) {
                said = said + &line + "\n";
                if line == LAST_LINE {
                    return said;
                }
            }
            panic!("the trial has ended: {said}")
        });
        Self { child, said }
    }

    fn folder(&self) -> PathBuf {
        let line = self.said.lines().find(|line| line.starts_with("  /"));
        line.expect("a folder").trim().into()
    }

    fn read(&self, end: &str) -> String {
        let files = fs::read_dir(self.folder()).unwrap().flatten().map(|entry| entry.path());
        let mut files = files.filter(|path| path.to_string_lossy().ends_with(end));
        fs::read_to_string(files.next().expect("a file")).unwrap()
    }

    /// Ends it as its terminal would.
    fn end(mut self, signal: &str) {
        kill(self.child.id() as i32, signal);
        let status = eventually("end of a trial", || self.child.try_wait().unwrap());
        assert!(status.success(), "{status}");
    }

    #[track_caller]
    fn assert_says(&self, text: &str) {
        assert!(self.said.contains(text), "{text}\n{}", self.said);
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            kill(self.child.id() as i32, "TERM");
            let _ = self.child.wait();
        }
    }
}

fn trial(folder: &Folder, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.arg("trial").arg("-c").arg(folder.join("nginx.conf")).arg("-p").arg(folder);
    command.arg("--offset").arg(OFFSET.to_string()).args(words);
    command
}

/// The same as a user who is not root: the one who runs the tests, or nobody.
fn ordinary(folder: &Folder, words: &[&str]) -> Command {
    let mut command = trial(folder, words);
    if is_root() {
        let program = folder.join("weir");
        // Another process copies it: open for writing, it could be inherited by other tests.
        let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_weir")).arg(&program).status();
        assert!(copied.unwrap().success());
        let mut as_nobody = Command::new(program);
        as_nobody.args(command.get_args()).uid(NOBODY).gid(NOBODY);
        command = as_nobody;
    }
    command.env_clear();
    command
}

fn failed(command: Command) -> String {
    let output: Output = testing::output(command);
    assert_eq!(output.status.code(), Some(1), "{}", complaint(&output));
    complaint(&output)
}

fn exchange(mut stream: impl Read + Write, request: &str) -> String {
    stream.write_all(request.as_bytes()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    reply
}

fn get(stream: impl Read + Write, path: &str) -> String {
    exchange(stream, &format!("GET {path} HTTP/1.0\r\nHost: www.test\r\n\r\n"))
}

/// Root's workers would become nobody, who may not read the test's files.
fn user() -> &'static str {
    if is_root() { "user root;" } else { "" }
}

/// A server that runs, with sites in included files and all kinds of addresses.
struct Site {
    server: Server,
    plain: SocketAddr,
    tls: SocketAddr,
    tcp: SocketAddr,
    udp: SocketAddr,
}

impl Site {
    fn start() -> Self {
        let [plain, tls, tcp, udp] = [(); 4].map(|()| free_address());
        let server = Server::start_with(|folder, _| {
            for name in ["sites", "tls", "public", "public/dir"] {
                fs::create_dir(folder.join(name)).unwrap();
            }
            folder.write("tls/site.crt", ECDSA_CERTIFICATE);
            folder.write("tls/site.key", ECDSA_KEY);
            folder.write("public/page", "a page");
            let dir = folder.display();
            folder.write(
                "nginx.conf",
                format!(
                    "{} worker_processes 1; pid nginx.pid; error_log error.log info; daemon off;
                     events {{}} http {{ access_log logs/site.log; include sites/*.conf; }}
                     stream {{ server {{ listen {tcp}; return tcp:$server_port; }}
                         server {{ listen {udp} udp; return udp:$server_port; }} }}",
                    user()
                ),
            );
            folder.write(
                "sites/a.conf",
                format!(
                    "server {{ listen {plain}; listen unix:{dir}/site.sock; server_name www.test;
                         root public; location = /port {{ return 200 $server_port; }} }}
                     server {{ listen {tls} ssl; server_name *.secure.test;
                         ssl_certificate tls/site.crt; ssl_certificate_key tls/site.key;
                         return 200 $scheme:$server_port; }}"
                ),
            );
        });
        server.await_log("start worker process ", 1);
        Self { server, plain, tls, tcp, udp }
    }
}

fn datagram(to: SocketAddr) -> String {
    let socket = UdpSocket::bind((to.ip(), 0)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.send_to(b"?", to).unwrap();
    let mut buffer = [0; 100];
    let (length, from) = socket.recv_from(&mut buffer).unwrap();
    assert_eq!(from, to);
    String::from_utf8_lossy(&buffer[..length]).into_owned()
}

#[test]
fn the_copy_answers_as_the_server_does() {
    let site = Site::start();
    let folder = &site.server.folder;
    let trial = Trial::start(trial(folder, &[]));
    let plain = moved(site.plain);
    assert_eq!(body(&get(connect(&plain), "/page")), "a page");
    assert_eq!(body(&get(connect(&plain), "/port")), site.plain.port().to_string());
    let redirect = get(connect(&plain), "/dir");
    let location = format!("Location: http://www.test:{}/dir/\r\n", site.plain.port());
    assert!(redirect.contains(&location), "{redirect}");
    let stream = TlsClient::new().connect("a.secure.test", connect(&moved(site.tls)));
    assert_eq!(body(&get(stream, "/")), format!("https:{}", site.tls.port()));
    let tcp = exchange(connect(&moved(site.tcp)), "");
    assert_eq!(tcp, format!("tcp:{}", site.tcp.port()));
    assert_eq!(datagram(moved(site.udp)), format!("udp:{}", site.udp.port()));
    let socket = trial.said.lines().find_map(|line| line.split_once("site.sock  ->  unix:"));
    let socket = socket.expect("the copy of the socket").1;
    assert_eq!(body(&get(UnixStream::connect(socket).unwrap(), "/page")), "a page");
    trial.end("INT");
}

#[test]
fn a_trial_leaves_the_servers_files_unchanged() {
    let site = Site::start();
    let folder = &site.server.folder;
    let get_of_server = || body(&get(connect(&site.plain), "/page")).to_owned();
    assert_eq!(get_of_server(), "a page");
    let lines = |name: &str| folder.read(name).lines().count();
    eventually("a line of the server", || (lines("logs/site.log") == 1).then_some(()));
    let (log, pid) = (folder.read("error.log"), folder.read("nginx.pid"));
    let trial = Trial::start(trial(folder, &[]));
    assert_eq!(body(&get(connect(&moved(site.plain)), "/page")), "a page");
    let requests = || trial.read("-logs-site.log").contains("GET /page HTTP/1.0");
    eventually("a line of the trial", || requests().then_some(()));
    assert!(trial.read("-error.log").contains("start worker process"));
    assert_eq!((lines("logs/site.log"), folder.read("error.log")), (1, log));
    assert_eq!(folder.read("nginx.pid"), pid);
    let own = trial.folder();
    assert_eq!(fs::metadata(own.join("nginx.conf")).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(get_of_server(), "a page");
    trial.end("INT");
    assert!(!own.exists(), "{}", own.display());
    assert!(folder.join("site.sock").exists());
    assert_eq!((get_of_server(), folder.read("nginx.pid")), ("a page".to_owned(), pid));
}

#[test]
fn the_commands_to_compare_are_printed() {
    let site = Site::start();
    let trial = Trial::start(trial(&site.server.folder, &[]));
    let Site { plain, tls, .. } = site;
    let (port, new) = (plain.port(), moved(plain));
    let url = format!("http://www.test:{port}/");
    trial.assert_says(&format!(
        "  curl -sSi --connect-to www.test:{port}:{plain} {url} > nginx.reply\n  \
         curl -sSi --connect-to www.test:{port}:{new} {url} > weir.reply\n  \
         diff nginx.reply weir.reply\n"
    ));
    let (port, new) = (tls.port(), moved(tls));
    trial.assert_says(&format!(
        "curl -sSik --connect-to any.secure.test:{port}:{new} https://any.secure.test:{port}/"
    ));
    trial.assert_says(&format!("  ->  {}  (stream)\n", moved(site.tcp)));
    assert!(!trial.said.contains("Backends"), "{}", trial.said);
    trial.end("INT");
}

/// A terminal that is closed sends HUP.
#[test]
fn a_trial_ends_with_its_terminal_and_keep_leaves_its_folder() {
    let folder = Folder::new();
    let address = free_address();
    for (words, master) in [(&["--keep"][..], "on"), (&[], "off")] {
        let http = format!("http {{ server {{ listen {address}; return 200 ok; }} }}");
        folder.write("nginx.conf", format!("master_process {master}; events {{}} {http}"));
        let trial = Trial::start(trial(&folder, words));
        assert_eq!(body(&get(connect(&moved(address)), "/")), "ok");
        let own = trial.folder();
        trial.end("HUP");
        assert_eq!(own.exists(), !words.is_empty());
        let _ = fs::remove_dir_all(own);
    }
}

#[test]
fn files_that_the_user_may_not_read_are_told_in_one_message() {
    let folder = Folder::new();
    let address = free_address();
    for name in ["sites", "private"] {
        fs::create_dir(folder.join(name)).unwrap();
    }
    let conf = "events {}\nhttp {\ninclude sites/*.conf;\ninclude private/*.conf;\n}\n";
    folder.write("nginx.conf", conf);
    folder.write("options.conf", "ssl_protocols TLSv1.3;");
    folder.write("site.crt", ECDSA_CERTIFICATE);
    folder.write("site.key", ECDSA_KEY);
    let site = format!(
        "server {{\nlisten {address} ssl;\ninclude options.conf;\nssl_certificate site.crt;\n\
         ssl_certificate_key site.key;\nreturn 200 ok;\n}}\n"
    );
    folder.write("sites/a.conf", &site);
    let deny = |name: &str, mode| {
        fs::set_permissions(folder.join(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    let denied = ["site.key", "options.conf", "private"];
    denied.iter().for_each(|name| deny(name, 0o000));
    let told = failed(ordinary(&folder, &[]));
    let dir = folder.display();
    let program = if is_root() { format!("{dir}/weir") } else { env!("CARGO_BIN_EXE_weir").into() };
    assert_eq!(
        told,
        format!(
            "weir: trial: this user may not read these files of the configuration:\n      \
             {dir}/options.conf\n      {dir}/private\n      \
             {dir}/site.key (ssl_certificate_key in {dir}/sites/a.conf:5)\n      \
             run \"sudo {program} trial -c {dir}/nginx.conf\"\n"
        )
    );
    denied.iter().for_each(|name| deny(name, 0o755));
    let trial = Trial::start(ordinary(&folder, &[]));
    let stream = TlsClient::new().connect("a.test", connect(&moved(address)));
    assert_eq!(body(&get(stream, "/")), "ok");
    trial.end("INT");
}

#[test]
fn an_ordinary_user_is_told_of_sockets_and_needs_no_user() {
    let folder = Folder::new();
    let address = free_address();
    fs::create_dir(folder.join("private")).unwrap();
    let dir = folder.display().to_string();
    folder.write(
        "nginx.conf",
        format!(
            "user somebody-else; events {{}} http {{ server {{ listen {address};
             location / {{ fastcgi_pass unix:{dir}/private/php.sock; }}
             location /ok {{ return 200 ok; }} }} }}"
        ),
    );
    let mode = fs::Permissions::from_mode(0o000);
    fs::set_permissions(folder.join("private"), mode).unwrap();
    let trial = Trial::start(ordinary(&folder, &[]));
    assert_eq!(body(&get(connect(&moved(address)), "/ok")), "ok");
    trial.assert_says("Backends receive the trial's requests");
    trial.assert_says(&format!("This user may not connect to {dir}/private/php.sock: requests\n"));
    trial.end("TERM");
    let mode = fs::Permissions::from_mode(0o700);
    fs::set_permissions(folder.join("private"), mode).unwrap();
}

#[test]
fn workers_end_when_a_trial_is_killed() {
    let folder = Folder::new();
    let address = free_address();
    let server = format!("server {{ listen {address}; return 200 ok; }}");
    folder.write("nginx.conf", format!("events {{}} http {{ {server} }}"));
    let mut trial = Trial::start(trial(&folder, &[]));
    let own = trial.folder();
    assert_eq!(body(&get(connect(&moved(address)), "/")), "ok");
    trial.child.kill().unwrap();
    trial.child.wait().unwrap();
    eventually("end of the worker process", || TcpStream::connect(moved(address)).err());
    // Nobody was left to remove it.
    fs::remove_dir_all(own).unwrap();
}

#[test]
fn ports_that_are_taken_or_do_not_exist_are_told() {
    let folder = Folder::new();
    let address = free_address();
    let conf = |address: &str| {
        folder.write(
            "nginx.conf",
            format!("events {{}} http {{ server {{ listen {address}; return 200 ok; }} }}"),
        );
    };
    conf(&address.to_string());
    let _holder = TcpListener::bind(moved(address)).unwrap();
    let told = failed(trial(&folder, &[]));
    let new = moved(address);
    let first = format!(
        "weir: trial: {new}, where the copy of {address} would listen, is in use\n      \
         {new}: process "
    );
    assert!(told.starts_with(&first), "{told}");
    assert!(told.ends_with("\n      use --offset NUMBER to have other ports\n"), "{told}");
    conf("60000");
    assert_eq!(
        failed(trial(&folder, &["--offset", "8000"])),
        "weir: trial: there is no port 68000 for *:60000\n      \
         use --offset with a number of at most 5535\n"
    );
}

#[test]
fn errors_name_lines_of_the_original_configuration() {
    let folder = Folder::new();
    let address = free_address();
    let conf = |line: &str| {
        let server = format!("server {{\nlisten {address};\n{line}\nreturn 200 ok; }}");
        folder.write("nginx.conf", format!("{} events {{}}\nhttp {{\n{server} }}", user()));
    };
    let place = format!("{}/nginx.conf", folder.display());
    conf("frob on;");
    let told = failed(trial(&folder, &[]));
    assert!(told.contains(&format!("unknown directive \"frob\" in {place}:5")), "{told}");
    assert!(!told.contains("weir-trial-"), "{told}");
    conf("brotli on;");
    let told = failed(trial(&folder, &[]));
    assert!(told.contains(&format!("in {place}:5")), "{told}");
    let lenient = Trial::start(trial(&folder, &["--lenient"]));
    assert_eq!(body(&get(connect(&moved(address)), "/")), "ok");
    lenient.end("INT");
    let lua = "content_by_lua_block { ngx.say('}') }";
    folder.write(
        "nginx.conf",
        format!("{} events {{}} http {{ server {{ listen {address}; {lua} }} }}", user()),
    );
    let lenient = Trial::start(trial(&folder, &["--lenient"]));
    let reply = get(connect(&moved(address)), "/");
    assert!(reply.starts_with("HTTP/1.1 503 "), "{reply}");
    lenient.end("INT");
    folder.write("nginx.conf", "events {}");
    let told = failed(trial(&folder, &[]));
    assert_eq!(told, "weir: trial: no server of the configuration listens\n");
    let told = failed(trial(&folder, &["--ofset", "1"]));
    assert!(told.contains("did you mean \"--offset\"?"), "{told}");
    let told = failed(trial(&folder, &["other.conf"]));
    assert!(told.contains("did you mean \"-c other.conf\"?"), "{told}");
}
