//! How far a request has come.

use std::cell::{Cell, RefCell};

use net::Address;
use observe::Text;
use upstream::address::Endpoint;

use crate::error::{FetchError, FetchFault, FetchStep};

/// The progress of a request, for its error.
pub(crate) struct FetchProgress<'a> {
    place: &'a Endpoint,
    pub(crate) step: Cell<FetchStep>,
    pub(crate) address: RefCell<Option<Address>>,
}

impl<'a> FetchProgress<'a> {
    pub(crate) fn new(place: &'a Endpoint) -> Self {
        let step = Cell::new(FetchStep::Preparing);
        Self { place, step, address: RefCell::default() }
    }

    pub(crate) fn error(&self, fault: FetchFault) -> FetchError {
        let peer = match (self.place, &*self.address.borrow()) {
            (Endpoint::At(address), _) => address.to_string(),
            (Endpoint::Named { host, port }, None) => format!("{}:{port}", Text(host)),
            (Endpoint::Named { host, .. }, Some(address)) => {
                format!("{} at {address}", Text(host))
            }
        };
        FetchError { step: self.step.get(), peer, fault }
    }
}
