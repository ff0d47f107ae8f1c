//! Sixty mistakes that people make, and all that `-t` says of each (`mistakes.txt`).

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::process::Command;

use net::testing::tls::{ECDSA_CERTIFICATE, ECDSA_KEY};
use testing::{Folder, complaint, output};

/// A configuration with a mistake.
struct Mistake {
    name: &'static str,
    conf: &'static str,
    /// The exit code, and what is said.
    called_nginx: (i32, &'static str),
    /// The same under its own name.
    called_weir: (i32, &'static str),
}

impl Mistake {
    fn all() -> Vec<Self> {
        let cases = include_str!("mistakes.txt").split("\n=== ").skip(1);
        cases.map(|case| Self::read(case).unwrap_or_else(|| panic!("{case}"))).collect()
    }

    /// The name, the configuration, and one or two results behind `--- CODE`.
    fn read(case: &'static str) -> Option<Self> {
        let (name, rest) = case.split_once('\n')?;
        let mut parts = rest.split("--- ");
        let conf = parts.next()?;
        let mut result = || -> Option<(i32, &'static str)> {
            let (code, said) = parts.next()?.split_once('\n')?;
            Some((code.parse().ok()?, said.trim_end()))
        };
        let called_nginx = result()?;
        let called_weir = result().unwrap_or(called_nginx);
        Some(Self { name, conf, called_nginx, called_weir })
    }

    /// A directory with the configuration and what it names.
    fn folder(&self) -> Folder {
        let folder = Folder::new();
        for (name, contents) in [
            ("a.pem", ECDSA_CERTIFICATE),
            ("a.key", ECDSA_KEY),
            ("other.key", include_str!("../../net/src/tls/testdata/sec1.key")),
            ("short.pem", include_str!("../../net/src/tls/testdata/rsa1024.crt")),
            ("short.key", include_str!("../../net/src/tls/testdata/rsa1024_pkcs8.key")),
            ("nginx.conf", self.conf),
        ] {
            folder.write(name, contents);
        }
        folder
    }

    /// The exit code and what the program says, called `name`.
    fn run(&self, name: &str) -> (i32, String) {
        let folder = self.folder();
        let (pid, conf) = ("pid nginx.pid;", folder.join("nginx.conf"));
        let program = match name {
            "nginx" => folder.nginx(),
            _ => env!("CARGO_BIN_EXE_weir").into(),
        };
        let mut command = Command::new(program);
        command.args(["-t", "-q", "-g", pid, "-e"]).arg(folder.join("error.log"));
        command.arg("-p").arg(&folder).arg("-c").arg(conf);
        let output = output(command);
        let said = complaint(&output);
        let lines = said.lines().filter(|line| !line.ends_with(" test failed"));
        let said = lines.collect::<Vec<_>>().join("\n");
        let said = said.replace(&*folder.to_string_lossy(), "DIR");
        (output.status.code().unwrap(), said.replace(&format!("{name}: ["), "PROGRAM: ["))
    }
}

#[test]
fn the_messages_for_sixty_mistakes_are_exact() {
    let mistakes = Mistake::all();
    assert_eq!(mistakes.len(), 60);
    for mistake in &mistakes {
        for (name, (code, said)) in [("nginx", mistake.called_nginx), ("weir", mistake.called_weir)]
        {
            let got = mistake.run(name);
            assert_eq!((got.0, &*got.1), (code, said), "{}, called {name}", mistake.name);
        }
    }
}
