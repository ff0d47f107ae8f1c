//! `userid`: a cookie that identifies a browser, in the format of nginx and mod_uid.
//!
//! It contains a number of 128 bits: where and when it was assigned, by which worker, and a count.
//! Browsers without a cookie receive one with the reply (`on`, `v1`), or are only logged (`log`).

mod cookie;
mod number;
mod settings;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use conf::{Number, Result, Text, Values, VariableId};
use observe::{Level, Text as Shown};

use crate::exchange::{Exchange, FeatureState, Filtered};
use crate::site::LocationBuilder;
use crate::variables::{BuiltIn, VariableTable};
use cookie::{DIGITS, Sent};
use number::Uid;
use settings::{Mark, Unless, Userid, UseridExpires, UseridFlags};
use wire::base64;

conf::directives! {
    in MAIN | SERVER | LOCATION;

    /// Whether clients are given a cookie that identifies them. `log` sends none, but logs the
    /// cookies it receives; `v1` is an old format.
    ///
    /// Syntax: on | v1 | log | off
    ///
    /// ```nginx
    /// userid on;
    /// userid_expires 365d;
    /// ```
    userid: Userid = "off",
    /// The number of this server within the cookie. Without it, the server's address, or 0 with
    /// `v1`.
    userid_service: Option<Number>,
    /// The name of the cookie.
    userid_name: Text = "uid",
    /// The domain of the cookie; `none` omits it.
    ///
    /// Syntax: NAME | none
    userid_domain: Unless = "none",
    /// The path of the cookie.
    userid_path: Text = "/",
    /// How long browsers keep the cookie. `off` means until the browser is closed.
    ///
    /// Syntax: TIME | max | off
    userid_expires: UseridExpires = "off",
    /// Further attributes of the cookie.
    ///
    /// Syntax: off | secure | httponly | samesite=strict | samesite=lax | samesite=none ...
    userid_flags: UseridFlags = "off",
    /// The value of the field `P3P` that goes with the cookie; `none` sends no such field.
    ///
    /// Syntax: STRING | none
    userid_p3p: Unless = "none",
    /// A character in place of the cookie's padding; a cookie without it is sent again.
    ///
    /// Syntax: CHARACTER | = | off
    userid_mark: Mark = "off",
}

/// The settings, and the number of `$uid_reset`.
#[derive(Clone)]
pub struct UseridRules {
    conf: Arc<Conf>,
    uid_reset: VariableId,
}

pub(crate) const VARIABLES: VariableTable = VariableTable::new(
    "ngx_http_userid_filter_module",
    &[
        BuiltIn::cached(
            "uid_got",
            "The cookie of `userid` that the client sent, as `NAME=VALUE`.",
            |x, out| {
                let Some(rules) = rules(x) else { return false };
                let uid = note(&rules.conf, x).got;
                uid.is_some_and(|uid| uid.write_named(&rules.conf.userid_name.0, out))
            },
        ),
        BuiltIn::cached(
            "uid_set",
            "The cookie of `userid` that the client is given, as `NAME=VALUE`.",
            |x, out| {
                let Some(rules) = rules(x) else { return false };
                let uid =
                    if rules.conf.userid.sets_cookies() { given(&rules, x).set } else { None };
                uid.is_some_and(|uid| uid.write_named(&rules.conf.userid_name.0, out))
            },
        ),
        BuiltIn::cached(
            "uid_reset",
            "A value other than empty or `0` replaces the client's cookie of `userid`; `log` also \
             writes that to the error log.",
            |_, _| true,
        )
        .changeable(),
    ],
);

/// The rules of the main request's location.
fn rules(x: &Exchange) -> Option<UseridRules> {
    x.generation.location(x.main_location()).core.own.find().cloned()
}

/// The state of a browser in one exchange.
#[derive(Clone, Default)]
struct Note {
    /// The number in the browser's cookie.
    got: Option<Uid>,
    /// The number that is assigned to it, once it is known.
    set: Option<Uid>,
    /// The cookie that it sent.
    sent: Sent,
    /// Whether a new number replaces the one in its cookie.
    is_reset: bool,
}

/// The note of an exchange, once it was computed.
#[derive(Default)]
struct Noted(Option<Note>);

impl FeatureState for Noted {
    fn clear(&mut self) {
        self.0 = None;
    }

    fn redirected(&mut self) {
        self.0 = None;
    }

    /// A main request and its subrequests share the note.
    fn begin_subrequest(&mut self, parent: &Self) {
        self.0.clone_from(&parent.0);
    }

    fn end_subrequest(&mut self, subrequest: &mut Self) {
        if let Some(note) = subrequest.0.take() {
            self.0 = Some(note);
        }
    }
}

/// Adds the filter that sets cookies, and passes the settings to the core for the variables.
pub fn install(conf: &Arc<Conf>, location: &mut LocationBuilder<'_, '_>) -> Result<()> {
    if conf.userid == Userid::Off {
        return Ok(());
    }
    let uid_reset = location.load.names.number(b"uid_reset", None);
    let rules = UseridRules { conf: conf.clone(), uid_reset };
    location.core.own.add(rules.clone());
    if conf.userid.sets_cookies() {
        location.main_filter(move |x| {
            set_cookie(&rules, x);
            Filtered::Pass
        });
    }
    Ok(())
}

/// The note of the exchange, computed at the first call.
fn note(conf: &Conf, x: &mut Exchange) -> Note {
    if let Some(note) = &x.states.of::<Noted>().0 {
        return note.clone();
    }
    let sent = Sent::find(&conf.userid_name.0, x);
    let note = Note { got: sent.uid(x), sent, ..Note::default() };
    x.states.of::<Noted>().0 = Some(note.clone());
    note
}

/// The note with the assigned number, if any.
fn given(rules: &UseridRules, x: &mut Exchange) -> Note {
    let mut note = note(&rules.conf, x);
    if note.set.is_some() {
        return note;
    }
    if let Some(got) = note.got {
        let mut reset = Vec::new();
        x.variable(rules.uid_reset, &mut reset);
        note.is_reset = !matches!(&reset[..], b"" | b"0");
        if !note.is_reset && note.sent.is_marked(rules.conf.userid_mark) {
            return note;
        }
        if &reset[..] == b"log" {
            let name = Shown(&rules.conf.userid_name.0);
            x.log(Level::Notice, format_args!("userid cookie \"{name}={got}\" was reset"));
        }
    }
    note.set = match note.got {
        Some(got) if !note.is_reset => Some(got),
        _ => Some(next_uid(&rules.conf, x)),
    };
    x.states.of::<Noted>().0 = Some(note.clone());
    note
}

fn next_uid(conf: &Conf, x: &Exchange) -> Uid {
    let service = conf.userid_service.map(|number| number.0 as u32);
    match conf.userid {
        Userid::V1 => Uid::next_v1(service.unwrap_or(0)),
        _ => Uid::next_v2(service.unwrap_or_else(|| number::of_address(x))),
    }
}

fn set_cookie(rules: &UseridRules, x: &mut Exchange) {
    let note = given(rules, x);
    let Some(uid) = note.set else { return };
    let known_text = note.sent.text.as_ref().filter(|_| note.got.is_some() && !note.is_reset);
    let value = cookie_value(&rules.conf, uid, known_text.map(|text| &text[..]));
    x.reply.fields.append(b"Set-Cookie", &value);
    if let Some(p3p) = &rules.conf.userid_p3p.0 {
        x.reply.fields.append(b"P3P", p3p);
    }
}

/// The value of `Set-Cookie`. A number that the browser has already is sent in its original text.
fn cookie_value(conf: &Conf, uid: Uid, known_text: Option<&[u8]>) -> Vec<u8> {
    let mut out = conf.userid_name.0.to_vec();
    out.push(b'=');
    match known_text.and_then(|text| text.get(..DIGITS)) {
        Some(digits) => out.extend_from_slice(digits),
        None => {
            base64::encode(&uid.bytes(), &mut out);
            out.truncate(out.len() - b"==".len());
        }
    }
    out.extend_from_slice(&[conf.userid_mark.0.unwrap_or(b'='), b'=']);
    conf.userid_expires.write((net::clock::unix_ms() / 1000).cast_signed(), &mut out);
    if let Some(domain) = &conf.userid_domain.0 {
        out.extend_from_slice(b"; domain=");
        out.extend_from_slice(domain);
    }
    out.extend_from_slice(b"; path=");
    out.extend_from_slice(&conf.userid_path.0);
    conf.userid_flags.write(&mut out);
    out
}
