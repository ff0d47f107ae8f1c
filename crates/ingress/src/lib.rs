//! `weir ingress`: a controller that makes a server of a Kubernetes cluster's gateway: it turns
//! Gateway API and Ingress objects into nginx.conf, certificates and lists of servers.
//!
//! ```text
//! API server --objects--> plan (pure) --+-- files that changed: written, then a reload
//!                                       +-- servers that changed: one PUT per group
//!                                       +-- status of objects: the leader writes it
//! ```

mod objects;
mod plan;

pub use objects::{Kind, ObjectKey, Objects};
pub use plan::{Plan, Settings, StatusUpdate, WARNINGS_FILE, dry_run, plan};

#[cfg(any(test, feature = "fuzzing"))]
pub use plan::fuzz;
