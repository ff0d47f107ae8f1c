//! The processors of a row's server and of its generator.

use processes::topology::{ProcessorChoice, ProcessorMap};

/// What a row chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowCores {
    server: ProcessorChoice,
    /// The generator's and the backends'; if `None`, all that the server does not have.
    load: Option<ProcessorChoice>,
}

/// The chosen processors of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlacedCores {
    pub(crate) server: Vec<usize>,
    pub(crate) load: Vec<usize>,
}

impl RowCores {
    /// Reads `first 4`, or with the generator's `node 0 4 / node 1 4`; nothing chooses nothing.
    pub(super) fn parse(text: &str) -> Result<Option<Self>, String> {
        if text.is_empty() {
            return Ok(None);
        }
        let read = |text: &str| {
            ProcessorChoice::parse(text).ok_or_else(|| {
                format!(
                    "\"{text}\" must choose processors: first N, cores N, threads N or node NODE N"
                )
            })
        };
        let (server, load) = match text.split_once('/') {
            Some((server, load)) => (server, Some(load)),
            None => (text, None),
        };
        Ok(Some(Self { server: read(server)?, load: load.map(read).transpose()? }))
    }

    /// The processors on a machine. Where it has too few, server and generator share them.
    pub(crate) fn place(self, machine: &ProcessorMap) -> PlacedCores {
        let server = machine.choose(self.server);
        let left = machine.without(&server);
        let all = ProcessorChoice::First(left.count());
        let load = left.choose(self.load.unwrap_or(all));
        PlacedCores { server, load }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_read() {
        let parse = |text| RowCores::parse(text).map_err(|error| error.len());
        let (server, node) = (ProcessorChoice::First(4), ProcessorChoice::Node(1, 2));
        assert_eq!(parse("first 4"), Ok(Some(RowCores { server, load: None })));
        assert_eq!(parse("first 4 / node 1 2"), Ok(Some(RowCores { server, load: Some(node) })));
        assert_eq!(parse(""), Ok(None));
        for text in ["4", "first 4 /", "/ first 4", "first 1 / first 1 / first 1"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
