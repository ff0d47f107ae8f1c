//! What the program says on the command line, and how it exits.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::process::Command;

use testing::{Folder, complaint};

fn configured(text: &str) -> Folder {
    let folder = Folder::new();
    let globals = "pid nginx.pid; error_log error.log; events {}\n";
    folder.write("nginx.conf", format!("{globals}{text}"));
    folder
}

#[test]
fn the_version_is_that_of_the_name_the_program_was_called_by() {
    let folder = Folder::new();
    let nginx = folder.run(&["-v"]);
    assert_eq!(complaint(&nginx), "nginx version: nginx/1.31.3\n");
    let version = env!("CARGO_PKG_VERSION");
    for option in ["-v", "--version"] {
        let expected = (Some(0), format!("weir version: weir/{version}\n"), String::new());
        assert_eq!(weir(&[option]), expected);
    }
}

/// Exit code, standard output and standard error of the program under its own name.
fn weir(arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    let output = command.args(arguments).output().unwrap();
    let out = String::from_utf8(output.stdout.clone()).unwrap();
    (output.status.code(), out, complaint(&output))
}

#[test]
fn only_the_help_of_weir_has_the_options_that_nginx_lacks() {
    let last = "  -g directives : set global directives out of configuration file\n\n";
    let nginx = complaint(&Folder::new().run(&["-h"]));
    assert!(nginx.ends_with(last), "{nginx}");
    let (_, help, _) = weir(&["-h"]);
    assert!(help.contains("\n  --lenient       "), "{help}");
    assert!(help.contains("\n  load "), "{help}");
}

#[test]
fn help_is_found_wherever_it_is_asked_for() {
    let help = weir(&["-h"]);
    assert_eq!((help.0, &*help.2), (Some(0), ""));
    for words in [&["--help"][..], &["help"], &["-?"], &["-t", "--help"]] {
        assert_eq!(weir(words), help, "{words:?}");
    }
    for line in help.1.split_once("Commands:\n").unwrap().1.lines().take_while(|l| !l.is_empty()) {
        let command = line.split_whitespace().next().unwrap();
        let asked = weir(&[command, "--help"]);
        assert_eq!((asked.0, &*asked.2), (Some(0), ""), "{command}");
        assert!(asked.1.contains(&format!("weir {command}")), "{asked:?}");
        assert_eq!(weir(&["help", command]), asked);
    }
    assert_eq!(weir(&["fmt", "--check", "-h"]), weir(&["fmt", "--help"]));
}

#[test]
fn unknown_words_get_a_suggestion() {
    let cases: [(&[&str], &str, Option<&str>); 12] = [
        (&["loda"], "unknown command \"loda\"", Some("weir load")),
        (&["help", "fmr"], "unknown command \"fmr\"", Some("fmt")),
        (&["reload"], "unknown command \"reload\"", Some("weir -s reload")),
        (&["start"], "unknown command \"start\"", Some("weir -c FILE")),
        (&["Cargo.toml"], "unknown command \"Cargo.toml\"", Some("-c Cargo.toml")),
        (&["-t", "Cargo.toml"], "unexpected argument \"Cargo.toml\"", Some("-c Cargo.toml")),
        (&["--", "x.conf"], "unexpected argument \"x.conf\"", None),
        (&["--hlep"], "invalid option: \"--hlep\"", Some("--help")),
        (&["--config=x"], "invalid option: \"--config=x\"", Some("-c FILE")),
        (&["-z"], "invalid option: \"z\"", None),
        (&["-s", "relaod"], "invalid option: \"-s relaod\"", Some("-s reload")),
        (&["fmt", "--chekc"], "fmt: invalid option: \"--chekc\"", Some("--check")),
    ];
    for (words, complaint, meant) in cases {
        let (code, out, said) = weir(words);
        assert_eq!((code, &*out), (Some(1), ""), "{words:?}");
        let guess = meant.map(|meant| format!("      did you mean \"{meant}\"?\n"));
        let begin = format!("weir: {complaint}\n{}", guess.unwrap_or_default());
        let rest = said.strip_prefix(&begin).unwrap_or_else(|| panic!("{words:?}: {said}"));
        assert!(rest.contains("--help\" for help\n"), "{words:?}: {said}");
    }
}

#[test]
fn the_parts_that_are_not_there_are_listed_as_left_out() {
    let said = complaint(&Folder::new().run(&["-V"]));
    let mut lines = said.lines();
    assert_eq!(lines.next(), Some("nginx version: nginx/1.31.3"));
    assert!(lines.next().unwrap().starts_with("built by rustc"));
    // certbot finds the version of the library and the word SNI like this.
    assert_eq!(lines.next(), Some("built with OpenSSL 1.1.1 (compatible; AWS-LC)"));
    assert_eq!(lines.next(), Some("TLS SNI support enabled"));
    let arguments = lines.next().unwrap();
    assert!(arguments.starts_with("configure arguments: --prefix="), "{arguments}");
    // acme.sh finds the configuration like this.
    let conf = arguments.split(' ').find_map(|option| option.strip_prefix("--conf-path="));
    assert_eq!(conf, Some("/etc/nginx/nginx.conf"));
    for option in [
        "--pid-path=/run/nginx.pid",
        "--error-log-path=/var/log/nginx/error.log",
        "--http-log-path=/var/log/nginx/access.log",
        "--http-client-body-temp-path=/var/lib/nginx/body",
        "--http-proxy-temp-path=/var/lib/nginx/proxy",
        "--with-debug",
    ] {
        assert!(arguments.split(' ').any(|given| given == option), "{option}: {arguments}");
    }
    assert!(arguments.contains("--without-http_ssi_module"));
    assert!(!arguments.contains("--without-http_rewrite_module"));
    assert!(arguments.contains("--with-http_ssl_module") && !arguments.contains("http_v3"));
}

#[test]
fn a_closed_standard_output_does_not_change_the_exit_code() {
    let folder = configured("http { access_log off; }");
    for (words, code) in [(&["-t"][..], 0), (&["-v"], 0), (&["-h"], 0), (&["-z"], 1)] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = Command::new(folder.nginx());
        command.arg("-p").arg(folder.join("")).args(["-c", "nginx.conf"]).args(words);
        let status = command.stdout(writer.try_clone().unwrap()).stderr(writer).status();
        assert_eq!(status.unwrap().code(), Some(code), "{words:?}");
    }
}

#[test]
fn a_wrong_option_is_refused_in_nginxs_words() {
    let output = Folder::new().run(&["-z"]);
    assert_eq!(complaint(&output), "nginx: invalid option: \"z\"\n");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_good_configuration_passes_the_test() {
    let folder = configured("http { access_log off; }");
    let output = folder.run(&["-t", "-c", "nginx.conf"]);
    let file = folder.join("nginx.conf");
    let file = file.display();
    let expected = format!(
        "nginx: the configuration file {file} syntax is ok\n\
         nginx: configuration file {file} test is successful\n"
    );
    assert!(complaint(&output).ends_with(&expected), "{}", complaint(&output));
    assert_eq!(output.status.code(), Some(0));
    assert!(complaint(&folder.run(&["-t", "-q", "-c", "nginx.conf"])).is_empty());
}

#[test]
fn the_dump_has_every_file_once() {
    let folder = configured("include more.conf;\ninclude more.conf;\n");
    folder.write("more.conf", "# nothing\n");
    let output = folder.run(&["-T", "-q", "-c", "nginx.conf"]);
    let dump = String::from_utf8(output.stdout).unwrap();
    let header =
        format!("# configuration file {}:\n# nothing\n\n", folder.join("more.conf").display());
    assert_eq!(dump.matches(&header).count(), 1, "{dump}");
    assert!(dump.starts_with("# configuration file "));
}

#[test]
fn bad_configurations_are_refused_with_their_place() {
    let cases = [
        ("http {\n  lisen 80;\n}", "unknown directive \"lisen\"", 3),
        ("listen 80;", "\"listen\" directive is not allowed here", 2),
        ("http { server {\n", "unexpected end of file, expecting \"}\"", 3),
        (
            "include missing.conf;",
            "open() \"DIR/missing.conf\" failed (2: No such file or directory)",
            2,
        ),
        ("worker_processes many;", "\"worker_processes\" directive invalid value", 2),
        ("load_module a.so;", "\"load_module\" directive is specified too late", 2),
        ("daemon on; daemon off;", "\"daemon\" directive is duplicate", 2),
        ("events {}", "\"events\" directive is duplicate", 2),
        ("user;", "invalid number of arguments in \"user\" directive", 2),
        ("events { use magic; }", "\"events\" directive is duplicate", 2),
        ("\u{0}\u{1}\u{2}", "unexpected end of file, expecting \";\" or \"}\"", 2),
    ];
    for (text, message, line) in cases {
        let folder = configured(text);
        folder.write("error.log", "");
        let output = folder.run(&["-t", "-c", "nginx.conf"]);
        let (dir, said) = (folder.display(), complaint(&output));
        let message = message.replace("DIR", &dir.to_string());
        let expected = format!("nginx: [emerg] {message} in {dir}/nginx.conf:{line}\n");
        assert!(said.starts_with(&expected), "{text}: {said}");
        let end = format!("nginx: configuration file {dir}/nginx.conf test failed\n");
        assert!(said.ends_with(&end), "{said}");
        assert_eq!(output.status.code(), Some(1));
        assert!(folder.read("error.log").contains(&message), "it is logged, too");
    }
}

#[test]
fn a_missing_configuration_is_nginxs_error() {
    let folder = Folder::new();
    let output = folder.run(&["-c", "none.conf"]);
    let path = folder.join("none.conf");
    let expected = format!(
        "nginx: [emerg] open() \"{}\" failed (2: No such file or directory)\n",
        path.display()
    );
    assert_eq!(complaint(&output), expected);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn events_are_a_must() {
    let folder = Folder::new();
    folder.write("nginx.conf", "pid nginx.pid;\n");
    let said = complaint(&folder.run(&["-t", "-c", "nginx.conf"]));
    assert!(said.starts_with("nginx: [emerg] no \"events\" section in configuration\n"), "{said}");
}

#[test]
fn settings_without_effect_are_warned_of_once() {
    let folder = Folder::new();
    let text = "pid nginx.pid; error_log error.log; timer_resolution 100ms;\n\
                events { use epoll; accept_mutex on; multi_accept on; }\n";
    folder.write("nginx.conf", text);
    let output = folder.run(&["-t", "-c", "nginx.conf"]);
    let said = complaint(&output);
    assert_eq!(said.matches("[warn]").count(), 2, "{said}");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn fmt_rewrites_files_or_names_unformatted_ones() {
    let folder = Folder::new();
    folder.write("a.conf", "events{}\nuser   a;\n");
    let weir = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command.arg("fmt").args(arguments).current_dir(&folder).output().unwrap()
    };
    let told = weir(&["--check", "a.conf"]);
    assert_eq!(complaint(&told), "weir: a.conf: not formatted\n");
    assert_eq!(told.status.code(), Some(1));
    let diff = weir(&["--diff", "a.conf"]);
    let shown = "--- a.conf\n+++ a.conf (formatted)\n@@ -1,2 +1,3 @@\n\
                 -events{}\n-user   a;\n+events {\n+}\n+user a;\n";
    assert_eq!(String::from_utf8(diff.stdout).unwrap(), shown);
    assert_eq!(diff.status.code(), Some(1));
    assert_eq!(folder.read("a.conf"), "events{}\nuser   a;\n");
    assert!(weir(&["a.conf"]).status.success());
    assert_eq!(folder.read("a.conf"), "events {\n}\nuser a;\n");
    assert!(weir(&["--check", "a.conf"]).status.success());
    folder.write("b.conf", "events {");
    let refused = complaint(&weir(&["b.conf"]));
    assert!(refused.starts_with("weir: [emerg] unexpected end of file"), "{refused}");
    assert!(refused.contains("b.conf:1"), "{refused}");
}
