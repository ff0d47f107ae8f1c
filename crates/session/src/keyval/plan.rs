//! From a request to the change that it makes of a table.

use super::change::{KeyvalOperation, KeyvalPair};
use super::refusal::KeyvalRefusal;
use super::request::{KeyvalRequest, RequestedPair};
use super::table::KeyvalTable;

/// What decides on the time of an entry.
#[derive(Clone, Copy)]
struct EntryTime {
    /// `timeout` of the zone.
    timeout_ms: Option<u64>,
    now_ms: u64,
}

impl KeyvalTable {
    /// Decides a request: makes the change, and returns it for the other processes. `timeout_ms` is
    /// that of the zone.
    pub fn accept(
        &mut self,
        request: &KeyvalRequest,
        timeout_ms: Option<u64>,
        now_ms: u64,
    ) -> Result<KeyvalOperation, KeyvalRefusal> {
        let time = EntryTime { timeout_ms, now_ms };
        let operation = match request {
            KeyvalRequest::Add(pairs) => KeyvalOperation::Put(self.added(pairs, time)?),
            KeyvalRequest::Modify { key, value, expire_ms } => {
                let entry = self.get(key, now_ms).ok_or_else(|| KeyvalRefusal::no_key(key))?;
                // The key stays as it was written first.
                let key = entry.key.clone();
                let value = value.clone().unwrap_or_else(|| entry.value.clone());
                let deadline_ms = time.deadline_ms(*expire_ms)?;
                KeyvalOperation::Put(vec![KeyvalPair { key, value, deadline_ms }])
            }
            KeyvalRequest::Remove(key) => match self.get(key, now_ms) {
                Some(_) => KeyvalOperation::Remove(key.clone()),
                None => return Err(KeyvalRefusal::no_key(key)),
            },
            KeyvalRequest::Clear => KeyvalOperation::Clear,
        };
        self.apply(&operation, now_ms)?;
        Ok(operation)
    }

    /// Checks new entries. Two with the same network are the same key, which a reader of JSON does
    /// not see.
    fn added(
        &self,
        pairs: &[RequestedPair],
        time: EntryTime,
    ) -> Result<Vec<KeyvalPair>, KeyvalRefusal> {
        if pairs.len() > 1 && !self.is_empty(time.now_ms) {
            let text = "only one key can be added, unless the zone is empty";
            return Err(KeyvalRefusal::format(text));
        }
        let mut trial = self.clone();
        let mut added = Vec::with_capacity(pairs.len());
        for RequestedPair { key, value, expire_ms } in pairs {
            if trial.get(key, time.now_ms).is_some() {
                return Err(KeyvalRefusal::exists(key));
            }
            let (key, value) = (key.clone(), value.clone());
            let pair = KeyvalPair { key, value, deadline_ms: time.deadline_ms(*expire_ms)? };
            trial.put(&pair, time.now_ms)?;
            added.push(pair);
        }
        Ok(added)
    }
}

impl EntryTime {
    fn deadline_ms(self, expire_ms: Option<u64>) -> Result<Option<u64>, KeyvalRefusal> {
        if expire_ms.is_some() && self.timeout_ms.is_none() {
            let text = "keyval timeout is not enabled: the zone has no \"timeout\" parameter";
            return Err(KeyvalRefusal::format(text));
        }
        let time_ms = expire_ms.or(self.timeout_ms);
        Ok(time_ms.map(|time_ms| self.now_ms.saturating_add(time_ms)))
    }
}
