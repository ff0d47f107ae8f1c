//! `check` and its companions: the checks of Tengine's module, in its notation.
//!
//! Only the settings; sending the checks is left to the crates that speak the protocols.

use std::ops::RangeInclusive;
use std::sync::Arc;

use conf::lacking::Class;
use conf::{Directive, Load, Result, Value, Word, add_words, units};

use crate::health::{Begin, CheckTerms};

/// The default of `check_http_send`.
const SEND: &[u8] = b"GET / HTTP/1.0\r\n\r\n";

/// How the servers of a group are checked, for all protocols.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerCheck {
    /// When to check, and how many results make a change.
    pub terms: CheckTerms,
    pub timeout_ms: u64,
    /// The port, if it is not the server's own.
    pub port: Option<u16>,
    pub kind: CheckKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckKind {
    /// The server accepts a connection.
    Tcp,
    /// The server answers a request.
    Http {
        /// The request, as it is sent.
        send: Box<[u8]>,
        /// The statuses that pass.
        alive: Alive,
        /// The number of requests over one connection.
        requests: u64,
    },
}

#[derive(Clone, Debug)]
pub struct CheckLine {
    terms: CheckTerms,
    timeout_ms: u64,
    port: Option<u16>,
    http: bool,
}

/// The value of `check_http_send`.
#[derive(Clone, Debug)]
pub struct HttpSend {
    text: Box<[u8]>,
    from: Directive,
}

/// Classes of statuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alive(u16);

impl Alive {
    const WORDS: [(&'static str, u16); 5] = [
        ("http_1xx", 1 << 1),
        ("http_2xx", 1 << 2),
        ("http_3xx", 1 << 3),
        ("http_4xx", 1 << 4),
        ("http_5xx", 1 << 5),
    ];

    pub fn has(self, status: u16) -> bool {
        status < 800 && self.0 & 1 << (status / 100) != 0
    }
}

impl Value for Alive {
    const ARGS: RangeInclusive<usize> = 1..=usize::MAX;
    fn parse(from: &Directive, load: &mut Load<'_>) -> Result<Self> {
        let mut alive = Self(0);
        alive.repeat(from, load)?;
        Ok(alive)
    }
    fn repeat(&mut self, from: &Directive, load: &mut Load<'_>) -> Result<()> {
        add_words(&mut self.0, from, &Self::WORDS, load)
    }
}

impl Value for HttpSend {
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        Ok(Self { text: from.arg(0).text.clone(), from: from.clone() })
    }
}

impl Value for CheckLine {
    const ARGS: RangeInclusive<usize> = 0..=usize::MAX;
    fn parse(from: &Directive, _: &mut Load<'_>) -> Result<Self> {
        let mut line = Self {
            terms: CheckTerms {
                interval_ms: 30_000,
                jitter_ms: 0,
                fails: 5,
                passes: 2,
                begin: Begin::Unhealthy,
            },
            timeout_ms: 1000,
            port: None,
            http: false,
        };
        for word in &from.args {
            line.parameter(word, from)?;
        }
        Ok(line)
    }
}

impl CheckLine {
    fn parameter(&mut self, word: &Word, from: &Directive) -> Result<()> {
        let invalid = || from.error_at(word, format!("invalid parameter \"{word}\""));
        let (name, value) = match word.text.iter().position(|&byte| byte == b'=') {
            Some(at) => word.text.split_at(at + 1),
            None => return Err(invalid()),
        };
        let number = || units::number(value).filter(|number| *number > 0).ok_or_else(invalid);
        let count = || number().and_then(|number| u32::try_from(number).map_err(|_| invalid()));
        match name {
            b"interval=" => self.terms.interval_ms = number()?,
            b"timeout=" => self.timeout_ms = number()?,
            b"rise=" => self.terms.passes = count()?,
            b"fall=" => self.terms.fails = count()?,
            b"port=" => {
                self.port = Some(u16::try_from(number()?).map_err(|_| invalid())?);
            }
            b"default_down=" => self.terms.begin = begin(value, word, from)?,
            b"type=" => match value {
                b"tcp" => self.http = false,
                b"http" => self.http = true,
                b"ssl_hello" | b"mysql" | b"ajp" | b"fastcgi" => {
                    let kind = String::from_utf8_lossy(value);
                    let message =
                        format!("check type \"{kind}\" is not supported; use tcp or http");
                    return Err(from.error_at(word, message).lacks(Class::Behavior));
                }
                _ => return Err(invalid()),
            },
            _ => return Err(invalid()),
        }
        Ok(())
    }
}

fn begin(value: &[u8], word: &Word, from: &Directive) -> Result<Begin> {
    match &value.to_ascii_lowercase()[..] {
        b"true" => Ok(Begin::Unhealthy),
        b"false" => Ok(Begin::Healthy),
        _ => {
            let must = "it must be \"true\" or \"false\"";
            Err(from.error_at(word, format!("invalid value \"{word}\", {must}")))
        }
    }
}

impl ServerCheck {
    /// The check that the lines of a group define.
    pub(super) fn of(
        line: Option<&CheckLine>,
        send: Option<&HttpSend>,
        alive: Alive,
        requests: u64,
    ) -> Result<Option<Arc<Self>>> {
        let refused = |message: &str| match send {
            Some(send) => Err(send.from.error(message)),
            None => Ok(()),
        };
        let Some(line) = line else {
            refused("invalid check_http_send should set [check] first")?;
            return Ok(None);
        };
        let kind = match line.http {
            false => {
                refused("invalid check_http_send for type \"tcp\"")?;
                CheckKind::Tcp
            }
            true => {
                let send = send.map_or(SEND.into(), |send| send.text.clone());
                CheckKind::Http { send, alive, requests }
            }
        };
        let CheckLine { terms, timeout_ms, port, .. } = *line;
        Ok(Some(Arc::new(Self { terms, timeout_ms, port, kind })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::load;

    fn read(lines: &str) -> Result<Option<ServerCheck>, String> {
        let (group, _) = load(&format!("server 10.0.0.1; {lines}"))?;
        Ok(group.check().map(|check| (**check).clone()))
    }

    #[test]
    fn defaults_are_those_of_tengine() {
        assert_eq!(read(""), Ok(None));
        let terms = CheckTerms {
            interval_ms: 30_000,
            jitter_ms: 0,
            fails: 5,
            passes: 2,
            begin: Begin::Unhealthy,
        };
        let tcp = ServerCheck { terms, timeout_ms: 1000, port: None, kind: CheckKind::Tcp };
        assert_eq!(read("check;"), Ok(Some(tcp.clone())));
        let http = CheckKind::Http { send: SEND.into(), alive: Alive(0b1100), requests: 1 };
        assert_eq!(read("check type=http;"), Ok(Some(ServerCheck { kind: http, ..tcp })));
    }

    #[test]
    fn parameters_are_accepted_in_any_order() {
        let check = read(
            r#"check_http_send "HEAD / HTTP/1.1\r\n\r\n"; check_keepalive_requests 7;
               check_http_expect_alive http_4xx http_5xx;
               check interval=3000 rise=3 fall=4 timeout=500 default_down=false
                     type=http port=81;"#,
        );
        let terms = CheckTerms {
            interval_ms: 3000,
            jitter_ms: 0,
            fails: 4,
            passes: 3,
            begin: Begin::Healthy,
        };
        let send = (*b"HEAD / HTTP/1.1\r\n\r\n").into();
        let kind = CheckKind::Http { send, alive: Alive(0b11_0000), requests: 7 };
        assert_eq!(check, Ok(Some(ServerCheck { terms, timeout_ms: 500, port: Some(81), kind })));
        assert!(Alive(0b1100).has(204) && Alive(0b1100).has(399) && !Alive(0b1100).has(400));
        assert!(!Alive(0xff).has(999));
    }

    #[test]
    fn invalid_values_are_refused() {
        let table = [
            ("check interval=0;", "invalid parameter \"interval=0\""),
            ("check interval=3s;", "invalid parameter \"interval=3s\""),
            ("check port=65536;", "invalid parameter \"port=65536\""),
            ("check fall;", "invalid parameter \"fall\""),
            ("check type=udp;", "invalid parameter \"type=udp\""),
            ("check type=mysql;", "check type \"mysql\" is not supported; use tcp or http"),
            (
                "check default_down=maybe;",
                "invalid value \"default_down=maybe\", it must be \"true\" or \"false\"",
            ),
            ("check_http_send x;", "invalid check_http_send should set [check] first"),
            ("check; check_http_send x;", "invalid check_http_send for type \"tcp\""),
            ("check_http_expect_alive http_6xx;", "invalid value \"http_6xx\""),
            ("check_keepalive_requests 0;", "value must be between 1 and 4294967295"),
        ];
        for (lines, expected) in table {
            assert_eq!(read(lines), Err(expected.into()), "{lines}");
        }
    }
}
