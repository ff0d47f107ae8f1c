//! nginx.conf as routes need it: servers by port and host, what they match requests by, groups of
//! servers, and the text of all of it. It knows no objects of the cluster.

mod conditions;
mod cors;
mod forwarding;
mod groups;
mod http_server;
mod listen;
mod main_file;
mod matching;
mod stream_server;
mod text;
mod weights;

pub(crate) use conditions::RequestCondition;
pub(crate) use cors::{CrossOrigin, is_origin};
pub(crate) use forwarding::{client_fields, forwarded_fields};
pub(crate) use groups::{ServiceGroupName, ServiceGroups};
pub(crate) use listen::GATEWAY_ADDRESSES_MAX;
pub(crate) use main_file::{PlannedSites, write_files};
pub(crate) use matching::{Entry, Order, PathMatch};
pub(crate) use stream_server::{StreamPort, StreamTarget};
pub(crate) use text::{ConfText, literal, no_variables, quoted, quoted_template, regex_of};
pub(crate) use weights::split;

use std::collections::{BTreeMap, BTreeSet};

use crate::PlannedFiles;

/// A virtual server of `http {}`.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlannedSite {
    /// The paths of certificates and keys within the folder. Without any, it speaks no TLS.
    pub(crate) certificates: Vec<(String, String)>,
    /// Further directives of the server, each once.
    pub(crate) settings: BTreeMap<&'static str, String>,
    /// Files with locations that its entries refer to, and with directives of annotations.
    pub(crate) includes: BTreeSet<String>,
    pub(crate) entries: Vec<Entry>,
}
