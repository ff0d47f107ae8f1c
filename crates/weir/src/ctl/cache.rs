//! `weir ctl cache`: purges what caches have.

use super::cache_command::CacheCommand;
use super::group::percent_encoded;
use super::{Ctl, refused};
use crate::messages::Reported;

impl Ctl {
    pub(super) fn purge(&self, command: &CacheCommand) -> Result<(), Reported> {
        let CacheCommand { cache, body } = command;
        let path = format!("/9/http/caches/{}/purge", percent_encoded(cache));
        let reply = self.client.ask("POST", &path, Some(&body.to_string()))?;
        if reply.is_good() { Ok(()) } else { Err(refused(&reply)) }
    }
}
