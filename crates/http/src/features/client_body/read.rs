//! Reads a whole body into memory or into a file.

use std::future::poll_fn;

use net::memory;
use observe::Level;

use crate::exchange::{Exchange, Flow, RequestBodyError, StoredBody, StoredContent};
use crate::files::TempFile;
use crate::site::policy::{ClientBody, InFileOnly};

/// The initial memory of a body of unknown length.
const FIRST_ROOM: usize = 8 * 1024;
/// After this much of a body, memory for the rest is reserved at once, so that some of many large
/// bodies fail early, instead of all of them halfway.
const RESERVED_FROM: usize = 64 * 1024;

impl Exchange {
    /// Reads the whole request body, once, and keeps it by the rules of the location. Errors are
    /// logged; `Err` is how the exchange continues.
    pub async fn read_body(&mut self) -> Result<(), Flow> {
        if !self.request.body.is_announced() || !self.request.body.is_unread() {
            return Ok(());
        }
        let rules = self.location().core.client_body.clone();
        self.read_body_by(&rules).await
    }

    /// Reads a body that was received completely and fits into memory. Because it would otherwise
    /// be streamed, it is not written to a file, whatever `client_body_in_file_only` is.
    pub(crate) async fn read_arrived_body(&mut self) -> Result<(), Flow> {
        let rules = self.location().core.client_body.clone();
        self.read_body_by(&ClientBody { in_file_only: InFileOnly::Off, ..rules }).await
    }

    async fn read_body_by(&mut self, rules: &ClientBody) -> Result<(), Flow> {
        match self.collect(rules).await {
            Ok(kept) => {
                self.request.body.keep(kept);
                Ok(())
            }
            Err(error) => Err(error.into_flow(self)),
        }
    }

    async fn collect(&mut self, rules: &ClientBody) -> Result<StoredBody, RequestBodyError> {
        let mut buffer = Vec::new();
        let mut file = None;
        let length = self.request.body.length();
        let memory_max = rules.memory_max(self.request.head.version, length);
        let mut received = 0;
        loop {
            if buffer.len() == memory_max && received < length.unwrap_or(u64::MAX) {
                self.spill(&mut buffer, &mut file, rules)?;
            }
            if buffer.len() == buffer.capacity() {
                let room = match length {
                    Some(_) if received >= RESERVED_FROM as u64 => memory_max,
                    _ => buffer.len().max(FIRST_ROOM),
                };
                let room = room.min(memory_max - buffer.len());
                memory::try_reserve_exact(&mut buffer, room).map_err(RequestBodyError::NoMemory)?;
            }
            match poll_fn(|cx| self.poll_body(cx, &mut buffer)).await? {
                0 => break,
                count => received += count as u64,
            }
        }
        if file.is_some() || rules.in_file_only != InFileOnly::Off {
            self.spill(&mut buffer, &mut file, rules)?;
        }
        let content = match file {
            Some(file) => StoredContent::File(file),
            None => StoredContent::Memory(buffer),
        };
        let trailers = self.downstream.as_ref().and_then(|client| client.trailers());
        Ok(StoredBody { content, trailers })
    }

    /// Writes the buffer to the body's file, which is created first if necessary.
    fn spill(
        &self,
        buffer: &mut Vec<u8>,
        file: &mut Option<TempFile>,
        rules: &ClientBody,
    ) -> Result<(), RequestBodyError> {
        let file = match file {
            Some(file) => file,
            None => file.insert(self.make_file(rules)?),
        };
        file.append(buffer)
            .map_err(|error| RequestBodyError::File("pwrite()", file.path().to_owned(), error))?;
        buffer.clear();
        Ok(())
    }

    fn make_file(&self, rules: &ClientBody) -> Result<TempFile, RequestBodyError> {
        let temp_path = rules.temp_path.as_ref().expect("every location has a path");
        let file = temp_path
            .create(rules.fate())
            .map_err(|(path, error)| RequestBodyError::File("open()", path, error))?;
        let level = match rules.in_file_only {
            InFileOnly::Off => Level::Warn,
            InFileOnly::On | InFileOnly::Clean => Level::Notice,
        };
        let message = "a client request body is buffered to a temporary file";
        self.log(level, format_args!("{message} {}", file.path().display()));
        Ok(file)
    }
}
