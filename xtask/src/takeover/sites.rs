//! Four sites on Debian's nginx, as people have them: PHP with HTTP/2 behind a redirect, a reverse
//! proxy, a site with passwords, and a folder of files. Three have TLS, with a key that only root
//! may read.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use crate::project;

/// Where the proxy's backend listens.
pub(super) const BACKEND_PORT: u16 = 3000;

const SITES: [(&str, &str); 4] = [
    (
        "www",
        "server {
    listen 80;
    listen [::]:80;
    server_name www.example.com example.com;
    return 301 https://www.example.com$request_uri;
}
server {
    listen 443 ssl http2;
    listen [::]:443 ssl http2;
    server_name www.example.com;
    include snippets/tls.conf;
    root /var/www/www;
    index index.php;
    location / {
        try_files $uri $uri/ /index.php?$args;
    }
    location ~ \\.php$ {
        include snippets/fastcgi-php.conf;
        fastcgi_pass unix:/run/php/SOCKET;
    }
}
",
    ),
    (
        "app",
        "map $http_upgrade $connection_upgrade {
    default upgrade;
    '' close;
}
limit_req_zone $binary_remote_addr zone=app:1m rate=100r/s;
upstream app {
    server 127.0.0.1:3000;
}
server {
    listen 80;
    listen 443 ssl;
    server_name app.example.com;
    include snippets/tls.conf;
    location / {
        limit_req zone=app burst=50 nodelay;
        proxy_pass http://app;
        proxy_http_version 1.1;
        proxy_set_header Host $host;
        proxy_set_header Upgrade $http_upgrade;
        proxy_set_header Connection $connection_upgrade;
        proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
        proxy_set_header X-Forwarded-Proto $scheme;
        proxy_set_header X-Forwarded-Port $server_port;
    }
}
",
    ),
    (
        "docs",
        "server { listen 443 ssl; server_name docs.example.com;
    ssl_certificate ssl/example.crt; ssl_certificate_key ssl/example.key;
    auth_basic \"docs\"; auth_basic_user_file /etc/nginx/htpasswd;
    error_log /var/log/nginx/docs.error.log; access_log /var/log/nginx/docs.log;
    root /var/www/docs; }
",
    ),
    (
        "files",
        "server {
    listen 80;
    server_name files.example.com;
    root /var/www/files;
    autoindex on;
    gzip_static on;
}
",
    ),
];

const TLS: &str = "ssl_certificate /etc/nginx/ssl/example.crt;
ssl_certificate_key /etc/nginx/ssl/example.key;
ssl_session_cache shared:TLS:1m;
";

const PHP: &str = "<?php
foreach (['SERVER_PORT', 'SERVER_NAME', 'HTTPS', 'REQUEST_URI', 'SCRIPT_NAME'] as $name) {
    echo $name, '=', $_SERVER[$name], \"\\n\";
}
";

/// Writes the sites and enables them, beside Debian's default one.
pub(super) fn make() -> Result<(), String> {
    for folder in ["www", "docs", "files/folder"] {
        make_folder(&Path::new("/var/www").join(folder))?;
    }
    let socket = php_socket()?;
    for (name, text) in SITES {
        write(&format!("/etc/nginx/sites-enabled/{name}"), &text.replace("SOCKET", &socket))?;
    }
    write("/etc/nginx/snippets/tls.conf", TLS)?;
    write("/var/www/www/index.php", PHP)?;
    write("/var/www/www/style.css", "body { color: black }\n")?;
    write("/var/www/docs/index.html", "a secret page\n")?;
    write("/var/www/files/data.txt", &"data\n".repeat(1000))?;
    project::succeed(Command::new("gzip").args(["-k", "/var/www/files/data.txt"]))?;
    secrets()
}

/// The name of php-fpm's socket, which has its version.
pub(super) fn php_socket() -> Result<String, String> {
    Ok(format!("php{}-fpm.sock", php_version()?))
}

/// `8.2`
pub(super) fn php_version() -> Result<String, String> {
    let program = crate::packages::find_versioned("php-fpm").ok_or("php-fpm is not installed")?;
    let name = program.to_string_lossy().into_owned();
    Ok(name.rsplit("php-fpm").next().unwrap_or_default().to_owned())
}

/// A key, a certificate for all names, and a list of passwords, which root alone can read.
fn secrets() -> Result<(), String> {
    let folder = Path::new("/etc/nginx/ssl");
    make_folder(folder)?;
    let (key, certificate) = (folder.join("example.key"), folder.join("example.crt"));
    processes::certificate::make(&key, &certificate)?;
    let hash = Command::new("openssl").args(["passwd", "-apr1", "secret"]).output();
    let hash = hash.map_err(|error| format!("openssl: {error}"))?.stdout;
    write("/etc/nginx/htpasswd", &format!("user:{}", String::from_utf8_lossy(&hash)))?;
    project::succeed(Command::new("chgrp").args(["www-data", "/etc/nginx/htpasswd"]))?;
    for (path, mode) in [("/etc/nginx/htpasswd", 0o640), ("/etc/nginx/ssl", 0o700)] {
        let mode = fs::Permissions::from_mode(mode);
        fs::set_permissions(path, mode).map_err(|error| format!("{path}: {error}"))?;
    }
    Ok(())
}

fn make_folder(path: &Path) -> Result<(), String> {
    fs::create_dir_all(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn write(path: &str, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{path}: {error}"))
}
