//! `auth_basic`: access by user name and password (RFC 7617).
//!
//! Passwords are verified as nginx does with libxcrypt. Slow schemes are verified on threads, a few
//! at a time, so that other clients do not wait.

mod checks;
mod crypt;
mod hash;
#[cfg(test)]
mod tests;
mod user_file;

use net::LentFuture;
use std::sync::Arc;

use conf::{Result, Template};
use observe::{Level, Text};

use crate::credentials::{BasicCredentials, are_for_proxy};
use crate::exchange::{Exchange, Flow, TimedPhase};
use crate::site::LocationBuilder;
use hash::Scheme;
use user_file::UserFile;

conf::directives! {
    in MAIN | SERVER | LOCATION | LIMIT_EXCEPT;

    /// Requires a user name and a password; the text is shown to the user. `off` requires none.
    ///
    /// Syntax: STRING | off
    /// Default: off
    ///
    /// ```nginx
    /// location /admin/ {
    ///     auth_basic "Administration";
    ///     auth_basic_user_file htpasswd;
    /// }
    /// ```
    auth_basic: Option<Template>,
    /// The file of user names and password hashes, one `NAME:HASH` per line: crypt (MD5, SHA-256,
    /// SHA-512), bcrypt, yescrypt, apr1, `{SHA}`, `{SSHA}`, `{PLAIN}`. It is read for each request,
    /// as the worker's user.
    ///
    /// Syntax: FILE
    ///
    /// ```nginx
    /// auth_basic_user_file htpasswd;
    /// ```
    auth_basic_user_file: Option<UserFile>,
}

const OFF: &[u8] = b"off";

/// Installs the check if there are a realm and a user file.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    if let (Some(realm), Some(users)) = (&conf.auth_basic, &conf.auth_basic_user_file)
        && realm.as_fixed() != Some(OFF)
    {
        let (realm, users) = (realm.clone(), users.clone());
        location.access(move |x| check(&realm, &users, x));
    }
    Ok(())
}

fn check(realm: &Template, users: &UserFile, x: &mut Exchange) -> Flow {
    let realm = x.render(realm);
    if realm == OFF {
        return Flow::Next;
    }
    let Some(credentials) = BasicCredentials::of(x) else {
        let nothing = "no user/password was provided for basic authentication";
        x.log(Level::Info, format_args!("{nothing}"));
        return challenge(x, &realm);
    };
    let StoredPassword { scheme, text } = match look_up(users, credentials.name(), x) {
        Ok(Some(kept)) => kept,
        Ok(None) => return challenge(x, &realm),
        Err(status) => return Flow::Status(status),
    };
    if !scheme.is_slow {
        let accepted = scheme.accepts(credentials.password(), &text);
        return settle(x, accepted, &credentials, &realm);
    }
    Flow::wait(move |x| {
        x.waits_for(TimedPhase::AuthBasic);
        LentFuture::new(async move {
            let password = credentials.password().to_owned();
            let accepted = checks::run(move || scheme.accepts(&password, &text)).await;
            settle(x, accepted, &credentials, &realm)
        })
    })
}

/// A stored password and its scheme.
struct StoredPassword {
    scheme: Scheme,
    text: Box<[u8]>,
}

/// The stored password of a user; `None` for an unknown user. `Err` is the status to answer with.
/// Everything but success is logged.
fn look_up(users: &UserFile, user: &[u8], x: &mut Exchange) -> Result<Option<StoredPassword>, u16> {
    let found = users.find(x, user)?;
    let (user, path) = (Text(user), Text(&found.path));
    let Some(text) = found.kept else {
        x.log(Level::Error, format_args!("user \"{user}\" was not found in \"{path}\""));
        return Ok(None);
    };
    let Some(scheme) = Scheme::of(&text) else {
        let kind = Text(hash::scheme_name(&text));
        let unsupported = format_args!("passwords of the kind \"{kind}\" are not supported");
        x.log(Level::Crit, format_args!("user \"{user}\" in \"{path}\": {unsupported}"));
        return Err(500);
    };
    Ok(Some(StoredPassword { scheme, text }))
}

fn settle(x: &mut Exchange, accepted: bool, credentials: &BasicCredentials, realm: &[u8]) -> Flow {
    if accepted {
        return Flow::Skip;
    }
    let user = Text(credentials.name());
    x.log(Level::Error, format_args!("user \"{user}\": password mismatch"));
    challenge(x, realm)
}

/// Demands a user name and a password.
fn challenge(x: &mut Exchange, realm: &[u8]) -> Flow {
    let (field, status) = if are_for_proxy(x) {
        (&b"Proxy-Authenticate"[..], 407)
    } else {
        (&b"WWW-Authenticate"[..], 401)
    };
    x.reply.fields.append(field, &[b"Basic realm=\"", realm, b"\""].concat());
    Flow::Status(status)
}
