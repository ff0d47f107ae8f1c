//! The record of an earlier run, read and checked before anything runs.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::record::{BaselineRecord, FORMAT, StudyRecord};

/// The file in a folder of results.
const RECORD: &str = "record.json";

/// An earlier record.
pub(crate) struct StoredBaseline {
    file: String,
    record: StudyRecord,
}

impl StoredBaseline {
    /// Reads a record, or that of a folder of results.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let path = if path.is_dir() { path.join(RECORD) } else { path.to_owned() };
        let file = path.display().to_string();
        let text = fs::read_to_string(&path).map_err(|error| of(&file, &error.to_string()))?;
        Self::parse(&file, &text)
    }

    pub(super) fn parse(file: &str, text: &str) -> Result<Self, String> {
        let value: Value =
            serde_json::from_str(text).map_err(|error| of(file, &error.to_string()))?;
        if value["format"] != FORMAT {
            return Err(of(file, &format!("it is no record with the format \"{FORMAT}\"")));
        }
        let record: StudyRecord =
            serde_json::from_value(value).map_err(|error| of(file, &error.to_string()))?;
        let (programs, rows) = (record.programs.len(), record.rows().len());
        if programs == 0 || record.turns.is_empty() {
            return Err(of(file, "it has no turns"));
        }
        if record.turns.iter().any(|turn| turn.program >= programs || turn.row >= rows) {
            return Err(of(file, "it has turns of a row or a program that it does not list"));
        }
        Ok(Self { file: file.to_owned(), record })
    }

    /// An error unless a new record measures the same on the same machine.
    pub(crate) fn check(&self, new: &StudyRecord) -> Result<(), String> {
        let old = &self.record;
        if study(old)? != study(new)? {
            return Err(of(&self.file, "its study is not the same as now"));
        }
        let (a, b) = (&old.machine, &new.machine);
        let parts = [
            ("processor", a.processor.clone(), b.processor.clone()),
            ("number of processors", a.processors.to_string(), b.processors.to_string()),
            ("system", a.system.clone(), b.system.clone()),
            ("hosts", old.hosts.clone(), new.hosts.clone()),
        ];
        match parts.into_iter().find(|(_, old, new)| old != new) {
            Some((what, old, new)) => Err(of(
                &self.file,
                &format!(
                    "its {what}: {old}; now: {new}. Times of different machines cannot be \
                     compared: measure the old server here with --against"
                ),
            )),
            None => Ok(()),
        }
    }

    /// The comparison with a new record.
    pub(crate) fn compare(&self, new: &StudyRecord) -> Option<BaselineRecord> {
        BaselineRecord::of(&self.file, &self.record, new)
    }
}

/// The study without its search, which follows the turns and does not change them.
fn study(record: &StudyRecord) -> Result<Value, String> {
    let mut study = serde_json::to_value(&record.study).map_err(|error| error.to_string())?;
    if let Some(fields) = study.as_object_mut() {
        fields.remove("search");
    }
    Ok(study)
}

fn of(file: &str, what: &str) -> String {
    format!("--baseline {file}: {what}")
}
