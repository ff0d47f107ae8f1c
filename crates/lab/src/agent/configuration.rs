//! What the configuration of a server on an agent may contain.
//!
//! It listens where the agent says, writes in its folder, and brings no code of its own. This
//! bounds mistakes and what a stolen token is worth. A configuration is not harmless for that: the
//! server reads what its user may read and connects to what its machine can reach.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use conf::{Call, FileError, Files};
use net::system;
use sandbox::{EditableDirective, EditableTree, ListenAddress};

use crate::run::part::ServerOrder;
use crate::study::StudyPlaces;

/// Directives that run code, read further files, or act outside of the folder.
const REFUSED: [&str; 13] = [
    "daemon",
    "dav_methods",
    "debug_points",
    "env",
    "google_perftools_profiles",
    "include",
    "load_module",
    "pid",
    "ssl_engine",
    "user",
    "working_directory",
    "worker_rlimit_core",
    "worker_rlimit_nofile",
];
/// Beginnings and ends of the names of such directives.
const REFUSED_BEGINNINGS: [&str; 3] = ["js_", "lua_", "perl"];
const REFUSED_ENDS: [&str; 2] = ["_store", "_perl"];

/// Directives whose first word is a file or folder, and ends of such names.
const FILES: [&str; 5] = ["access_log", "alias", "error_log", "lock_file", "root"];
const FILES_ENDS: [&str; 2] = ["_cache_path", "_temp_path"];
/// Words that stand for no file there.
const NO_FILES: [&str; 3] = ["/dev/null", "off", "stderr"];

/// The most worker processes.
const WORKERS_MAX: u32 = 1024;
/// An address of documentation (RFC 5737), which no machine has.
const STAND_IN: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

/// Checks a configuration before its blanks are filled.
pub(super) fn check(order: &ServerOrder) -> Result<(), String> {
    // The name is random, so that a configuration can name the folder only as %%dir%%.
    let dir = format!("/weir-lab-agent-{:x}", system::random());
    let places = StudyPlaces {
        listen: SocketAddrV4::new(STAND_IN, 1),
        listen_tls: SocketAddrV4::new(STAND_IN, 2),
        dir: &dir,
        backends: &[],
        processors: 1,
    };
    let file = PathBuf::from(&dir).join("server.conf");
    let mut files = OnlyFile { path: &file, text: places.fill(&order.text) };
    EditableTree::read(&file, &mut files)
        .and_then(|tree| checked(&tree, &dir))
        .map_err(|why| format!("the agent refuses {}", why.replace(&dir, "%%dir%%")))
}

fn checked(tree: &EditableTree, dir: &str) -> Result<(), String> {
    sandbox::refuse_unknown(tree)
        .and_then(|()| tree.root.iter().try_for_each(|line| directive(line, dir)))
        .and_then(|()| listens(tree))
        .and_then(|()| named_files(tree, dir))
}

/// The configuration, which includes no others.
struct OnlyFile<'f> {
    path: &'f Path,
    text: String,
}

impl OnlyFile<'_> {
    const DENIED: i32 = 13;
}

impl Files for OnlyFile<'_> {
    fn read(&mut self, path: &[u8]) -> Result<Arc<[u8]>, FileError> {
        match path == self.path.as_os_str().as_encoded_bytes() {
            true => Ok(self.text.as_bytes().into()),
            false => Err(FileError { call: Call::Open, errno: Self::DENIED }),
        }
    }

    fn glob(&mut self, _: &[u8]) -> Result<Vec<Box<[u8]>>, FileError> {
        Err(FileError { call: Call::Glob, errno: Self::DENIED })
    }
}

/// All servers listen at the blanks.
fn listens(tree: &EditableTree) -> Result<(), String> {
    for address in sandbox::addresses(tree, 80)? {
        let is_blank = matches!(&address, ListenAddress::Tcp(port) | ListenAddress::Udp(port)
            if port.ip() == Some(STAND_IN.into()) && (1..=2).contains(&port.port));
        if !is_blank {
            return Err(format!("to listen on {address}, which is not %%listen%%"));
        }
    }
    Ok(())
}

fn directive(line: &EditableDirective, dir: &str) -> Result<(), String> {
    let (name, place) = (line.name(), &line.place);
    let begins = REFUSED_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning));
    let ends = REFUSED_ENDS.iter().any(|end| name.ends_with(end)) || name.contains("_by_lua");
    if REFUSED.contains(&name) || begins || ends {
        return Err(format!("{place}: {name}"));
    }
    if line.arguments().any(|word| word.contains("unix:") || word.starts_with("syslog:")) {
        return Err(format!("{place}: {}", line.shown()));
    }
    let names_file = FILES.contains(&name) || FILES_ENDS.iter().any(|end| name.ends_with(end));
    if names_file && !NO_FILES.contains(&line.argument()) && !is_own(line.argument(), dir) {
        return Err(format!("{place}: {name} {} is not in %%dir%%", line.argument()));
    }
    let workers = line.argument().parse().unwrap_or(0);
    if name == "worker_processes" && workers > WORKERS_MAX {
        return Err(format!("{place}: more than {WORKERS_MAX} worker processes"));
    }
    line.inner().iter().try_for_each(|line| directive(line, dir))
}

/// Certificates and the like.
fn named_files(tree: &EditableTree, dir: &str) -> Result<(), String> {
    let foreign = sandbox::named_files(tree).into_iter();
    match foreign.into_iter().find(|file| !is_own(&file.path.to_string_lossy(), dir)) {
        Some(file) => {
            let (place, name, path) = (file.place, file.directive, file.path.display());
            Err(format!("{place}: {name} {path} is not in %%dir%%"))
        }
        None => Ok(()),
    }
}

/// Whether a path is below the folder, where relative ones begin. What a variable stands for is not
/// known.
fn is_own(word: &str, dir: &str) -> bool {
    let climbs = word.split('/').any(|part| part == "..");
    let is_below = !word.starts_with('/') || Path::new(word).starts_with(dir);
    is_below && !climbs && !word.contains('$')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::part::PartPlace;

    fn refusal(http: &str) -> String {
        let order = ServerOrder {
            program: "weir".to_owned(),
            text: format!("worker_processes 1; events {{ }} {http}"),
            listen: Ipv4Addr::LOCALHOST,
            tls: false,
            processors: 0,
            place: PartPlace::Anywhere,
            counted: Vec::new(),
        };
        check(&order).err().unwrap_or_default()
    }

    #[test]
    fn the_configurations_of_built_in_studies_are_accepted() {
        for (name, text) in crate::study::BUILT_IN {
            let study = crate::study::Study::parse(name, text).unwrap();
            let back = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 9), 80);
            let back = crate::study::BackendAddress::of_http(back);
            for row in study.rows.iter().filter(|row| !row.direct) {
                let text = study.text(row, &vec![back; study.backend.count]);
                let order = ServerOrder {
                    program: "weir".to_owned(),
                    text,
                    listen: Ipv4Addr::LOCALHOST,
                    tls: false,
                    processors: 0,
                    place: PartPlace::Whole,
                    counted: Vec::new(),
                };
                assert_eq!(check(&order), Ok(()), "{name}");
            }
        }
    }

    #[test]
    fn a_configuration_stays_in_its_folder_and_at_its_address() {
        let server =
            |inner: &str| refusal(&format!("http {{ server {{ listen %%listen%%; {inner} }} }}"));
        assert_eq!(server("root %%dir%%; access_log logs/a; error_log stderr;"), "");
        assert_eq!(server("ssl_certificate server.crt; location / { alias %%dir%%/logs/; }"), "");
        for (inner, part) in [
            ("root /etc;", "root /etc is not in %%dir%%"),
            ("root %%dir%%/../x;", "root %%dir%%/../x is not in"),
            ("root %%dir%%/$arg_a;", "is not in"),
            ("location / { alias /; }", "alias / is not in"),
            ("access_log /etc/cron.d/x;", "access_log /etc/cron.d/x is not in"),
            ("access_log syslog:server=10.0.0.1;", "access_log syslog:"),
            ("proxy_temp_path ../x;", "proxy_temp_path ../x is not in"),
            ("ssl_certificate_key /etc/key;", "ssl_certificate_key /etc/key is not in"),
            ("auth_basic_user_file /etc/shadow;", "auth_basic_user_file /etc/shadow"),
            ("listen 80;", "to listen on *:80, which is not %%listen%%"),
            ("listen unix:/tmp/x;", "unix:/tmp/x"),
            ("location / { proxy_pass http://unix:/var/run/docker.sock; }", "docker.sock"),
            ("include /etc/passwd;", "passwd"),
            ("dav_methods PUT;", "dav_methods"),
            ("proxy_store on;", "proxy_store"),
            ("content_by_lua_file x;", "content_by_lua_file"),
            ("location / { js_content a; }", "js_content"),
            ("if ($a) { root /; }", "root / is not in"),
        ] {
            let told = server(inner);
            assert!(told.contains(part), "{inner}: {told}");
        }
    }

    #[test]
    fn a_configuration_brings_no_code_and_no_user() {
        for (text, part) in [
            ("load_module x.so;", "load_module"),
            ("user root;", "user"),
            ("env A=b;", "env"),
            ("include *.conf;", "*.conf"),
            ("http { map $a $b { include x*; } }", "x*"),
            ("http { server { } }", "to listen on *:80"),
            ("stream { server { listen 53 udp; } }", "to listen on *:53 udp"),
            ("rtmp { }", "rtmp"),
            ("http {", "unexpected end of file"),
        ] {
            let told = refusal(text);
            assert!(told.contains(part), "{text}: {told}");
        }
        let many = "worker_processes 100000;";
        assert!(refusal(many).contains("more than 1024 worker processes"));
    }
}
