//! A study: a configuration with blanks, the values for the blanks, and the load.
//!
//! It is a TOML file. Each row of its table lists its differences from the first row, or from the
//! row that it is based on; a factorial study has a row for every combination instead.
//! docs/lab-studies.md explains the format.

mod builtin;
mod check;
mod content;
mod cores;
mod factor;
mod generator;
mod load;
mod needs;
mod options;
mod route;
mod row;
mod rows;
mod search;
mod setting;

pub(crate) use builtin::BUILT_IN;
pub(crate) use content::{BLOCKS_MIN, Study, StudyBackends, StudyBlocks};
pub(crate) use cores::{PlacedCores, RowCores};
pub(crate) use factor::{Factor, FactorTarget};
pub(crate) use generator::GeneratorKind;
pub(crate) use load::{StudyLoad, extent_problem};
pub(crate) use needs::StudyNeeds;
pub(crate) use options::problem as options_problem;
pub(crate) use row::StudyRow;
pub(crate) use search::StudySearch;
pub(crate) use setting::{BackendAddress, HostNames, RowSetting, StudyPlaces};

impl Study {
    /// Reads and checks a study; `file` is its name in messages.
    pub(crate) fn parse(file: &str, text: &str) -> Result<Self, String> {
        let mut study: Self = toml::from_str(text).map_err(|error| format!("{file}: {error}"))?;
        match check::problem(&study).or_else(|| study.combine().or_else(|| check::rows(&study))) {
            Some(problem) => Err(format!("{file}: {problem}")),
            None => Ok(study),
        }
    }
}

#[cfg(test)]
mod tests;
