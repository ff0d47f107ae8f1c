//! The configuration in packaging/, as it is installed.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use testing::{Server, is_root};

/// The folders whose files an installation has in /etc/weir.
const FOLDERS: [&str; 2] = ["packaging/etc", "conf"];

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

#[test]
fn the_installed_configuration_serves_its_page_and_the_sites_of_users() {
    let server = Server::start_with(|folder, address| {
        for entry in FOLDERS.iter().flat_map(|name| fs::read_dir(repository(name)).unwrap()) {
            let path = entry.unwrap().path();
            folder.write(path.file_name().unwrap().to_str().unwrap(), fs::read(&path).unwrap());
        }
        let page = fs::read(repository("packaging/html/index.html")).unwrap();
        folder.write("html/index.html", page);
        folder.write("html/a.css", "p {}");
        // All parameter files at once.
        let site = "server {
            listen ADDRESS; server_name b.test; root DIR/html; location /a.css { }
            location /p { include proxy_params; proxy_pass http://127.0.0.1:9; }
            location /f { include fastcgi.conf; fastcgi_pass 127.0.0.1:9; }
            location /g { include fastcgi_params; fastcgi_pass 127.0.0.1:9; }
            location /s { include scgi_params; scgi_pass 127.0.0.1:9; }
            location /u { include uwsgi_params; uwsgi_pass 127.0.0.1:9; }
        }";
        let directory = folder.to_string_lossy();
        let fill = |text: &str| text.replace("ADDRESS", address).replace("DIR", &directory);
        folder.write("conf.d/b.conf", fill(site));
        let user = if is_root() { "user root;" } else { "" };
        let conf = folder.read("nginx.conf");
        let conf = conf.replace("user weir;", user).replace("/run/weir/weir.pid", "DIR/nginx.pid");
        let conf = conf.replace("/run/weir/", "DIR/").replace("/var/log/weir/", "DIR/");
        let conf = conf.replace("/usr/share/weir/", "DIR/").replace("listen 80", "listen ADDRESS");
        folder.write("nginx.conf", fill(&format!("daemon off;\n{conf}")));
    });
    assert!(server.get("/").contains("Weir runs on this machine"));
    let mut css = String::new();
    let mut connection = server.connect();
    connection.write_all(b"GET /a.css HTTP/1.0\r\nHost: b.test\r\n\r\n").unwrap();
    connection.read_to_string(&mut css).unwrap();
    assert!(css.contains("Content-Type: text/css\r\n"), "{css}");
}

#[test]
fn the_types_have_each_ending_once() {
    let types = fs::read_to_string(repository("packaging/etc/mime.types")).unwrap();
    let lines = types.lines().map(str::trim).filter(|line| line.ends_with(';'));
    let mut endings: Vec<&str> =
        lines.flat_map(|line| line.trim_end_matches(';').split_whitespace().skip(1)).collect();
    let count = endings.len();
    endings.sort_unstable();
    endings.dedup();
    assert!(count > 100 && endings.len() == count, "{count}");
}
