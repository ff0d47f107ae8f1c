//! The configuration that is built in: what `weir` serves where there is none.
//!
//! It needs no rights and leaves nothing behind.

use std::path::Path;

use conf::Memory;

use crate::command_line::CommandLine;
use crate::name::name;

/// What it is called in messages.
pub const NAME: &str = "(built in)/nginx.conf";
/// Where it listens.
const ADDRESS: &str = "127.0.0.1:8080";

/// Whether the command line means it: no file is named, and there is none where one would be.
pub fn is_meant(command: &CommandLine) -> bool {
    let unnamed = command.conf.is_none() && command.prefix.is_none() && command.signal.is_none();
    unnamed && name().embedded_default && !Path::new(name().conf).exists()
}

/// Its files.
pub fn files() -> Memory {
    Memory::default().with(NAME, text(net::process::id()))
}

fn text(process: i32) -> String {
    let pid = std::env::temp_dir().join(format!("weir-{process}.pid"));
    format!(
        "daemon off;
master_process off;
worker_processes auto;
pid \"{}\";
error_log stderr;

events {{}}

http {{
    access_log off;

    server {{
        listen {ADDRESS};
        default_type text/html;

        location = / {{
            return 200 '{WELCOME}';
        }}
    }}
}}
",
        pid.display()
    )
}

const WELCOME: &str = "<!DOCTYPE html>
<html>
<head><meta charset=\"utf-8\"><title>Welcome to Weir</title></head>
<body style=\"max-width: 40em; margin: 4em auto; font-family: sans-serif\">
<h1>It works.</h1>
<p>This is the page that is built in. Give Weir the nginx.conf you have:</p>
<pre>weir -c /etc/nginx/nginx.conf</pre>
</body>
</html>
";

/// What to try next, for the terminal.
pub fn next_steps() -> String {
    format!(
        "Weir {version} serves a welcome page on http://{ADDRESS} until you press Ctrl-C.

There is no configuration in {conf}. What to try next:

    weir -t -c nginx.conf            check the configuration you have
    weir -c nginx.conf               serve it
    weir --lenient -c nginx.conf     pass over what this version does not have yet
    weir -h                          every option
",
        version = name().version,
        conf = name().conf,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Origin, load};

    #[test]
    fn it_is_a_configuration() {
        let loaded = load(&Origin::embedded(), &mut files()).unwrap();
        let addresses: Vec<_> =
            loaded.site.listens().iter().map(|listen| listen.address.to_string()).collect();
        assert_eq!(addresses, [ADDRESS]);
        assert!(!loaded.settings.daemon && !loaded.settings.master_process);
    }
}
