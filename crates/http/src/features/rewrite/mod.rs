//! Rewrite programs: `set`, `if`, `rewrite`, `return`, `break`.
//!
//! The lines of a block, with those of its `if` blocks, form one program, which the rewrite phase
//! runs from the top. An `if` in a location that is true also applies its settings; the last true
//! one wins. Deliberately absent: settings in an `if`, such as `add_header`. Inner blocks do not
//! inherit the program.

mod condition;
mod program;
mod replacement;
mod run;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use conf::Result;

use crate::site::LocationBuilder;
use program::Program;

conf::directives! {
    also {
        /// Replaces the path if it matches a regular expression. Without a flag, processing
        /// continues with the next line. `last` searches for a location again, `break` stays in
        /// this one, `redirect` and `permanent` answer with 302 and 301. A replacement that starts
        /// with `http://`, `https://` or `$scheme` is a redirect.
        ///
        /// Syntax: REGEX STRING [last | break | redirect | permanent]
        ///
        /// ```nginx
        /// rewrite ^/old/(.*)$ /new/$1 permanent;
        /// ```
        rewrite(2..=3) in SERVER | IF_IN_SERVER | LOCATION | IF_IN_LOCATION => program;
        /// Stops processing and answers with a status and a text, or redirects to a URL. 444 closes
        /// the connection without a response.
        ///
        /// Syntax: CODE [STRING]
        /// Syntax: CODE URL
        /// Syntax: URL
        ///
        /// ```nginx
        /// server {
        ///     listen 80;
        ///     server_name www.example.com;
        ///     return 301 http://example.com$request_uri;
        /// }
        /// ```
        return(1..=2) in SERVER | IF_IN_SERVER | LOCATION | IF_IN_LOCATION => program;
        /// Stops the rewrite directives of this block: `rewrite`, `set`, `if`, `return`.
        ///
        /// ```nginx
        /// if ($http_user_agent ~ bot) {
        ///     set $name bot;
        ///     break;
        /// }
        /// ```
        break(0..=0) in SERVER | IF_IN_SERVER | LOCATION | IF_IN_LOCATION => program;
        /// Executes the rewrite directives inside, and uses the settings inside, if a condition is
        /// true: `$VARIABLE` (not empty and not `0`), `=` and `!=`, `~`, `~*`, `!~`, `!~*` with a
        /// regular expression, `-f`, `-d`, `-e`, `-x` for files, and their negations with `!`.
        ///
        /// Syntax: (CONDITION)
        ///
        /// ```nginx
        /// if ($request_method = POST) {
        ///     return 405;
        /// }
        /// ```
        if(1..=usize::MAX) {} in SERVER | LOCATION => program;
        /// Sets a variable.
        ///
        /// Syntax: $VARIABLE STRING
        ///
        /// ```nginx
        /// set $backend http://127.0.0.1:3000;
        /// ```
        set(2..=2) in SERVER | IF_IN_SERVER | LOCATION | IF_IN_LOCATION => program;
    }
    slots {
        /// The lines.
        program: Option<Program>,
    }

    in MAIN | SERVER | IF_IN_SERVER | LOCATION | IF_IN_LOCATION;

    /// Whether rewrites are logged in the error log at the level `notice`.
    ///
    /// ```nginx
    /// rewrite_log on;
    /// ```
    rewrite_log: bool = "off",
    /// Whether the use of a variable before it is set is logged.
    ///
    /// ```nginx
    /// uninitialized_variable_warn off;
    /// ```
    uninitialized_variable_warn: bool = "on",
}

impl Layer {
    /// Moves the program of an `if` block from its settings into this program, of which it is a
    /// part.
    pub(in crate::features) fn merge_if_block(&mut self, inside: &mut Self) {
        if let Some(Some(program)) = &mut self.program {
            program.merge_if_block(inside.program.take().flatten());
        }
    }
}

/// Adds the program to the rewrite phase.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    location.core.uninitialized_variable_warn = conf.uninitialized_variable_warn;
    if let Some(program) = &conf.program {
        let machine = run::Machine::new(program.clone(), &location.ifs, conf.rewrite_log);
        location.rewrite(move |x| machine.run(x));
    }
    Ok(())
}
