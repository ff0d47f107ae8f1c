//! An exchange for one request of a connection.

use std::ops::{Deref, DerefMut};
use std::rc::Rc;

use super::WorkerContext;
use crate::client::Client;
use crate::exchange::Exchange;
use crate::phases;

/// An exchange that the worker lends. Dropping it ends the exchange, even if the connection was
/// cut: the exchange is logged and given back.
pub(crate) struct LentExchange<'c> {
    context: &'c WorkerContext,
    /// `Some` until the drop.
    x: Option<Box<Exchange>>,
}

impl<'c> LentExchange<'c> {
    /// `None` if the newest configuration no longer serves the client.
    pub(crate) fn new(context: &'c WorkerContext, client: &Rc<Client>) -> Option<Self> {
        let x = context.lend(client)?;
        Some(Self { context, x: Some(x) })
    }
}

impl Deref for LentExchange<'_> {
    type Target = Exchange;
    fn deref(&self) -> &Exchange {
        self.x.as_ref().expect("the exchange is not over")
    }
}

impl DerefMut for LentExchange<'_> {
    fn deref_mut(&mut self) -> &mut Exchange {
        self.x.as_mut().expect("the exchange is not over")
    }
}

impl Drop for LentExchange<'_> {
    fn drop(&mut self) {
        let Some(mut x) = self.x.take().filter(|_| !std::thread::panicking()) else { return };
        phases::log(&mut x);
        self.context.give_back(x);
    }
}
