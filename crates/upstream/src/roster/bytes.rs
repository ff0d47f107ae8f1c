//! Changes as bytes, for other processes. Reading them never panics.

use std::sync::Arc;

use conf::Subsystem;

use super::{GroupChange, LineOwner, Roster, RosterLine, ServerOperation, ServerSpec};
use crate::server::{ServerStatus, ServerTerms};
use crate::server_state::FailurePolicy;

const ADD: u8 = 1;
const SET: u8 = 2;
const REMOVE: u8 = 3;
const REPLACE: u8 = 4;

impl GroupChange {
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.push(match self.subsystem {
            Subsystem::Main => 0,
            Subsystem::Http => 1,
            Subsystem::Stream => 2,
        });
        write_text(&mut out, &self.group);
        match &self.operation {
            ServerOperation::Add { id, spec } => write_line(&mut out, ADD, *id, spec),
            ServerOperation::Set { id, spec } => write_line(&mut out, SET, *id, spec),
            ServerOperation::Remove { id } => {
                out.push(REMOVE);
                write_number(&mut out, *id);
            }
            ServerOperation::Replace(roster) => {
                out.push(REPLACE);
                write_roster(&mut out, roster);
            }
        }
        out
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote; `None`: something else.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut input = ChangeReader { bytes };
        let subsystem = match input.byte()? {
            0 => Subsystem::Main,
            1 => Subsystem::Http,
            2 => Subsystem::Stream,
            _ => return None,
        };
        let group = input.text()?.into();
        let operation = match input.byte()? {
            ADD => ServerOperation::Add { id: input.number()?, spec: input.spec()? },
            SET => ServerOperation::Set { id: input.number()?, spec: input.spec()? },
            REMOVE => ServerOperation::Remove { id: input.number()? },
            REPLACE => ServerOperation::Replace(input.roster()?),
            _ => return None,
        };
        input.bytes.is_empty().then_some(Self { subsystem, group, operation })
    }
}

fn write_number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_le_bytes());
}

fn write_text(out: &mut Vec<u8>, text: &[u8]) {
    write_number(out, text.len() as u64);
    out.extend_from_slice(text);
}

fn write_optional(out: &mut Vec<u8>, text: Option<&[u8]>) {
    out.push(text.is_some().into());
    text.into_iter().for_each(|text| write_text(out, text));
}

fn write_line(out: &mut Vec<u8>, kind: u8, id: u64, spec: &ServerSpec) {
    out.push(kind);
    write_number(out, id);
    write_spec(out, spec);
}

fn write_roster(out: &mut Vec<u8>, roster: &Roster) {
    write_number(out, roster.next_id);
    write_number(out, roster.lines.len() as u64);
    for RosterLine { id, owner, spec } in &roster.lines {
        let owner = match owner {
            LineOwner::Configuration => 0,
            LineOwner::StateFile => 1,
            LineOwner::Api => 2,
        };
        write_line(out, owner, *id, spec);
    }
}

fn write_spec(out: &mut Vec<u8>, spec: &ServerSpec) {
    let ServerSpec { terms, backup, resolve, service } = spec;
    let ServerTerms { text, weight, max_conns, failure_policy, slow_start_ms, status, route } =
        terms;
    write_text(out, text);
    let numbers = [
        (*weight).into(),
        (*max_conns).into(),
        failure_policy.max_fails.into(),
        failure_policy.fail_timeout_ms,
        *slow_start_ms,
    ];
    numbers.into_iter().for_each(|number| write_number(out, number));
    let status = match status {
        ServerStatus::Up => 0,
        ServerStatus::Down => 1,
        ServerStatus::Drain => 2,
    };
    out.extend([status, (*backup).into(), (*resolve).into()]);
    write_optional(out, route.as_deref());
    write_optional(out, service.as_deref());
}

struct ChangeReader<'a> {
    bytes: &'a [u8],
}

impl<'a> ChangeReader<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*byte)
    }

    fn flag(&mut self) -> Option<bool> {
        Some(self.byte()? != 0)
    }

    fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(u64::from_le_bytes(*number))
    }

    fn small(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?.try_into().ok()?;
        let (text, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(text)
    }

    fn optional(&mut self) -> Option<Option<Arc<[u8]>>> {
        match self.flag()? {
            false => Some(None),
            true => Some(Some(self.text()?.into())),
        }
    }

    fn roster(&mut self) -> Option<Roster> {
        let (next_id, count) = (self.number()?, self.number()?);
        let lines = (0..count).map(|_| self.line()).collect::<Option<_>>()?;
        Some(Roster { next_id, lines })
    }

    fn line(&mut self) -> Option<RosterLine> {
        let owner = match self.byte()? {
            0 => LineOwner::Configuration,
            1 => LineOwner::StateFile,
            2 => LineOwner::Api,
            _ => return None,
        };
        Some(RosterLine { id: self.number()?, owner, spec: self.spec()? })
    }

    fn spec(&mut self) -> Option<ServerSpec> {
        let text = self.text()?.into();
        let (weight, max_conns, max_fails) = (self.small()?, self.small()?, self.small()?);
        let (fail_timeout_ms, slow_start_ms) = (self.number()?, self.number()?);
        let status = match self.byte()? {
            0 => ServerStatus::Up,
            1 => ServerStatus::Down,
            2 => ServerStatus::Drain,
            _ => return None,
        };
        let (backup, resolve) = (self.flag()?, self.flag()?);
        let (route, service) = (self.optional()?, self.optional()?);
        let failure_policy = FailurePolicy { max_fails, fail_timeout_ms };
        let terms =
            ServerTerms { text, weight, max_conns, failure_policy, slow_start_ms, status, route };
        Some(ServerSpec { terms, backup, resolve, service })
    }
}
