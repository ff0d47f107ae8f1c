//! A recording of the files that were read, as bytes that can be replayed.
//!
//! A recording is a list of entries: a kind, a name and the result, errors included; numbers are
//! little-endian, every string is preceded by its length. It may come from anywhere: reading one
//! never panics and allocates in proportion to its size.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Call, ENOENT, FileError, Files};
use crate::{Error, Result};

/// Forwards to other files and records the results. A repeated name gets the first result again, so
/// one load sees one state of the disk.
#[derive(Debug)]
pub struct Recorder<F> {
    inner: F,
    recording: Recording,
}

impl<F: Files> Recorder<F> {
    pub fn new(inner: F) -> Self {
        Self { inner, recording: Recording::default() }
    }

    /// All entries so far, for [`Replay::from_bytes`].
    pub fn to_bytes(&self) -> Vec<u8> {
        self.recording.to_bytes()
    }
}

impl<F: Files> Files for Recorder<F> {
    fn read(&mut self, path: &[u8]) -> Result<Arc<[u8]>, FileError> {
        if let Some(known) = self.recording.files.get(path) {
            return known.clone();
        }
        let answer = self.inner.read(path);
        self.recording.files.insert(path.into(), answer.clone());
        answer
    }

    fn glob(&mut self, pattern: &[u8]) -> Result<Vec<Box<[u8]>>, FileError> {
        if let Some(known) = self.recording.globs.get(pattern) {
            return known.clone();
        }
        let answer = self.inner.glob(pattern);
        self.recording.globs.insert(pattern.into(), answer.clone());
        answer
    }
}

/// Answers from a recording alone.
#[derive(Debug)]
pub struct Replay(Recording);

impl Replay {
    /// Reads a recording made by [`Recorder::to_bytes`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let mut input = RecordingReader { bytes };
        let recording = input.recording();
        recording.map(Self).ok_or_else(|| {
            let at = bytes.len() - input.bytes.len();
            Error::bare(format!("the recorded files are corrupt before byte {at}"))
        })
    }
}

impl Files for Replay {
    fn read(&mut self, path: &[u8]) -> Result<Arc<[u8]>, FileError> {
        self.0.files.get(path).cloned().unwrap_or(Err(NOT_RECORDED))
    }

    fn glob(&mut self, pattern: &[u8]) -> Result<Vec<Box<[u8]>>, FileError> {
        self.0.globs.get(pattern).cloned().unwrap_or(Err(NOT_RECORDED))
    }
}

const NOT_RECORDED: FileError = FileError { call: Call::Replay, errno: ENOENT };

type Answers<T> = BTreeMap<Box<[u8]>, Result<T, FileError>>;

#[derive(Debug, Default)]
struct Recording {
    files: Answers<Arc<[u8]>>,
    globs: Answers<Vec<Box<[u8]>>>,
}

/// The kinds of entries.
const FILE: u8 = 0;
const FILE_FAILED: u8 = 1;
const GLOB: u8 = 2;
const GLOB_FAILED: u8 = 3;

/// The calls that can fail; a recording contains their index in this array.
const CALLS: [Call; 4] = [Call::Open, Call::Read, Call::Glob, Call::Replay];

impl Recording {
    fn to_bytes(&self) -> Vec<u8> {
        let mut out = RecordingWriter::default();
        for (path, answer) in &self.files {
            match answer {
                Ok(bytes) => {
                    out.entry(FILE, path);
                    out.string(bytes);
                }
                Err(error) => out.failed(FILE_FAILED, path, *error),
            }
        }
        for (pattern, answer) in &self.globs {
            match answer {
                Ok(found) => {
                    out.entry(GLOB, pattern);
                    out.number(found.len() as u32);
                    found.iter().for_each(|path| out.string(path));
                }
                Err(error) => out.failed(GLOB_FAILED, pattern, *error),
            }
        }
        out.0
    }
}

#[derive(Default)]
struct RecordingWriter(Vec<u8>);

impl RecordingWriter {
    fn entry(&mut self, kind: u8, name: &[u8]) {
        self.0.push(kind);
        self.string(name);
    }

    fn failed(&mut self, kind: u8, name: &[u8], error: FileError) {
        self.entry(kind, name);
        let call = CALLS.iter().position(|&call| call == error.call);
        self.0.push(call.expect("all calls are listed") as u8);
        self.number(error.errno as u32);
    }

    fn string(&mut self, bytes: &[u8]) {
        self.number(u32::try_from(bytes.len()).expect("files are under FILE_BYTES_MAX"));
        self.0.extend_from_slice(bytes);
    }

    fn number(&mut self, number: u32) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }
}

struct RecordingReader<'a> {
    bytes: &'a [u8],
}

/// Each method returns `None` if the bytes end too early or are invalid.
impl<'a> RecordingReader<'a> {
    fn recording(&mut self) -> Option<Recording> {
        let mut recording = Recording::default();
        while !self.bytes.is_empty() {
            let [kind] = self.take()?;
            let name = self.string()?.into();
            match kind {
                FILE => recording.files.insert(name, Ok(self.string()?.into())).map(drop),
                FILE_FAILED => recording.files.insert(name, Err(self.error()?)).map(drop),
                GLOB => recording.globs.insert(name, Ok(self.strings()?)).map(drop),
                GLOB_FAILED => recording.globs.insert(name, Err(self.error()?)).map(drop),
                _ => return None,
            };
        }
        Some(recording)
    }

    fn error(&mut self) -> Option<FileError> {
        let [call] = self.take()?;
        let call = *CALLS.get(usize::from(call))?;
        Some(FileError { call, errno: i32::from_le_bytes(self.take()?) })
    }

    fn strings(&mut self) -> Option<Vec<Box<[u8]>>> {
        let count = u32::from_le_bytes(self.take()?);
        (0..count).map(|_| self.string().map(Into::into)).collect()
    }

    fn string(&mut self) -> Option<&'a [u8]> {
        let len = u32::from_le_bytes(self.take()?);
        let (string, rest) = self.bytes.split_at_checked(len as usize)?;
        self.bytes = rest;
        Some(string)
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(*taken)
    }
}
