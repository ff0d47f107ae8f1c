//! Configurations that ask for more than this version has: refused, or passed over safely.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::process::{Command, Output};

use testing::{Folder, Server, complaint, is_root, output};

fn configured(text: &str) -> Folder {
    let folder = Folder::new();
    folder.write("nginx.conf", format!("pid nginx.pid; error_log error.log;\n{text}"));
    folder
}

fn test(folder: &Folder, more: &[&str]) -> Output {
    folder.run(&[&["-t", "-c", "nginx.conf"], more].concat())
}

/// What is on the terminal when the program, under its own name, tests a configuration.
fn test_as_weir(folder: &Folder) -> String {
    let mut weir = Command::new(env!("CARGO_BIN_EXE_weir"));
    weir.arg("-p").arg(folder).args(["-e", "error.log", "-t", "-c"]);
    complaint(&output({
        weir.arg(folder.join("nginx.conf"));
        weir
    }))
}

const LINE: &str = "events {} http { access_log off; server { location / { tunnel_pass a:1; } } }";

#[test]
fn only_lenient_accepts_an_unsupported_directive() {
    let folder = configured(LINE);
    let refused = test(&folder, &[]);
    let missing = "directive \"tunnel_pass\" is not supported by this version of weir";
    let said = complaint(&refused);
    assert!(said.starts_with(&format!("nginx: [emerg] {missing} in ")), "{said}");
    assert_eq!(refused.status.code(), Some(1));
    let lenient = test(&folder, &["--lenient"]);
    let said = complaint(&lenient);
    let instead = "requests to its location are answered with 503";
    assert!(said.starts_with(&format!("nginx: [warn] {missing}: {instead} in ")), "{said}");
    assert_eq!(lenient.status.code(), Some(0));
}

#[test]
fn lenient_is_set_by_option_variable_or_directive() {
    let folder = configured(LINE);
    assert_eq!(test(&folder, &["-g", "lenient on;"]).status.code(), Some(0));
    assert_eq!(test(&folder, &["-g", "lenient off;"]).status.code(), Some(1));
    for (value, code) in [("1", 0), ("on", 0), ("0", 1), ("", 1)] {
        let mut nginx = Command::new(folder.nginx());
        nginx.arg("-p").arg(&folder).args(["-e", "error.log", "-t", "-c", "nginx.conf"]);
        nginx.env("WEIR_LENIENT", value);
        assert_eq!(output(nginx).status.code(), Some(code), "{value:?}");
    }
    // Even after what it is for.
    let folder = configured(&format!("{LINE}\nlenient on;"));
    assert_eq!(test(&folder, &[]).status.code(), Some(0));
    let folder = configured(&format!("{LINE}\nlenient maybe;"));
    let said = complaint(&test(&folder, &[]));
    assert!(said.contains("directive \"tunnel_pass\" is not supported"), "{said}");
    let folder = configured("events {}\nlenient on; lenient on;");
    let said = complaint(&test(&folder, &[]));
    assert!(said.starts_with("nginx: [emerg] \"lenient\" directive is duplicate in "), "{said}");
}

#[test]
fn a_directive_of_another_module_is_unknown_to_nginx_and_known_to_weir() {
    let folder = configured("events {} http { access_log off; brotli on; }");
    let belongs = "belongs to ngx_brotli, which this version of weir does not support";
    let said = complaint(&test(&folder, &[]));
    assert!(said.starts_with("nginx: [emerg] unknown directive \"brotli\" in "), "{said}");
    assert!(said.contains(&format!("      it {belongs}\n")), "{said}");
    let said = test_as_weir(&folder);
    assert!(
        said.starts_with(&format!("weir: [emerg] directive \"brotli\" {belongs} in ")),
        "{said}"
    );
    assert_eq!(test(&folder, &["--lenient"]).status.code(), Some(0));
    let folder = configured("events {} http { access_log off; brotly on; }");
    assert_eq!(test(&folder, &["--lenient"]).status.code(), Some(1));
}

#[test]
fn a_lenient_server_gives_no_sources_away_and_can_be_told_things() {
    let user = if is_root() { "user root;" } else { "" };
    let server = Server::start_as(&format!(
        "{user} pid nginx.pid; error_log error.log info; daemon off;
         events {{ }}
         http {{
             access_log off;
             ssl_protocols TLSv1.2 TLSv1.3;
             server {{
                 listen ADDRESS;
                 root DIR/site;
                 index index.php;
                 location / {{ try_files $uri $uri/ /index.php?$args; }}
                 location ~ \\.php$ {{
                     try_files $uri =404;
                     set $script $document_root$uri;
                     xslt_param Script $script;
                     tunnel_pass unix:/run/php/php-fpm.sock;
                 }}
                 location /private/ {{ auth_jwt members; }}
             }}
         }}
         lenient on;"
    ));
    server.await_log("start worker process ", 1);
    std::fs::create_dir_all(server.folder.join("site/private")).unwrap();
    server.folder.write("site/wp-config.php", "<?php define('DB_PASSWORD', 'secret');");
    server.folder.write("site/index.php", "<?php secret");
    server.folder.write("site/style.css", "css");
    server.folder.write("site/private/a.txt", "secret");
    for (path, words) in [
        ("/wp-config.php", "503 Service Temporarily Unavailable"),
        ("/", "503 Service"),
        ("/a/page/", "503 Service"),
        ("/private/a.txt", "403 Forbidden"),
        ("/style.css", "css"),
    ] {
        let reply = server.get(path);
        assert!(reply.contains(words) && !reply.contains("secret"), "{path}: {reply}");
    }
    let place = format!("\"tunnel_pass\" in {}:15", server.folder.join("nginx.conf").display());
    let line = format!("not served: directive {place} is not supported by this version of weir");
    server.await_log(&line, 3);

    let reload = server.folder.run(&["-c", "nginx.conf", "-s", "reload"]);
    assert_eq!(reload.status.code(), Some(0), "{}", complaint(&reload));
    server.await_log("exited with code 0", 1);
    assert!(server.get("/wp-config.php").contains("503 Service"));
    let quit = server.folder.run(&["-c", "nginx.conf", "-s", "quit"]);
    assert_eq!(quit.status.code(), Some(0), "{}", complaint(&quit));
}

/// What Debian's packages of nginx put into nginx.conf, without gzip.
const DEBIAN: &str = "worker_processes auto;
    include DIR/modules-enabled/*.conf;
    events { worker_connections 768; }
    http {
        sendfile on;
        tcp_nopush on;
        types_hash_max_size 2048;
        include DIR/mime.types;
        default_type application/octet-stream;
        ssl_protocols TLSv1 TLSv1.1 TLSv1.2 TLSv1.3;
        ssl_prefer_server_ciphers on;
        access_log DIR/access.log;
        include DIR/conf.d/*.conf;
        include DIR/sites-enabled/*;
    }";

const NODE: &str = "map $http_upgrade $connection_upgrade { default upgrade; '' close; }
    server {
        listen 127.0.0.1:1;
        http2 off;
        ssi off;
        location / {
            proxy_pass http://127.0.0.1:3000;
            proxy_http_version 1.1;
            proxy_set_header Upgrade $http_upgrade;
            proxy_set_header Connection $connection_upgrade;
            proxy_set_header X-TLS $ssl_protocol;
            proxy_cache_bypass $http_upgrade;
            proxy_no_cache $cookie_session;
            proxy_cache off;
            proxy_ssl_server_name on;
        }
    }";

#[test]
fn an_ordinary_debian_configuration_is_supported() {
    let folder = Folder::new();
    for name in ["modules-enabled", "conf.d", "sites-enabled"] {
        std::fs::create_dir(folder.join(name)).unwrap();
    }
    folder.write("mime.types", "types { text/html html; }");
    folder.write("sites-enabled/default", "server { listen 127.0.0.1:1; root DIR; }");
    folder.write("conf.d/node.conf", NODE);
    let text = DEBIAN.replace("DIR", &folder.to_string_lossy());
    folder.write("nginx.conf", format!("pid nginx.pid; error_log error.log;\n{text}"));
    let mut nginx = Command::new(folder.nginx());
    nginx.arg("-p").arg(&folder).args(["-e", "error.log", "-T", "-q", "-c", "nginx.conf"]);
    let said = complaint(&output(nginx));
    // Port 1 may be forbidden; the syntax is not.
    assert!(!said.contains("emerg") || said.contains("bind()"), "{said}");
    assert!(!said.contains("not supported"), "{said}");
}
