//! The common part of `http {}` and `stream {}`: variables, and the features that nginx has in
//! both. Each feature is written once, for any [`Session`]; a subsystem declares the directives and
//! its own type of session. The interface between the program and a subsystem is defined here as
//! well.
//!
//! Deliberately absent: the content of a request, and the course of a session.

pub mod access;
pub mod backend;
pub mod builtin;
mod captures;
pub mod client;
mod control_job;
pub mod decimal;
pub mod discovery;
pub mod evaluate;
pub mod forwarded;
mod generation;
pub mod geo;
pub mod health;
mod hook;
pub mod identity;
pub mod keyed;
pub mod keyval;
pub mod limit_conn;
pub mod limits;
pub mod listen;
pub mod log;
pub mod lru;
pub mod map;
mod passed;
pub mod rate;
pub mod realip;
pub mod regex;
pub mod server_names;
mod session;
pub mod slabs;
pub mod split_clients;
pub mod status;
pub mod steering;
pub mod store;
mod subsystem;
pub mod table;
mod trusted;
pub mod values;
pub mod variables;
pub mod wildcards;
mod worker_slots;

pub use captures::Captures;
pub use client::Client;
pub use control_job::{ControlJob, ControlJobs, JOBS_FINISH_MAX};
pub use generation::{Configuration, GenerationEnd, ListenerSlots, WorkerGeneration};
pub use hook::Hook;
pub use passed::{PassTargets, PassedConnection};
pub use session::Session;
pub use subsystem::{
    AdmitClient, AdmittedClient, LocalFuture, SiteShare, SubsystemSite, SubsystemWorker,
};
pub use worker_slots::{WorkerSlot, WorkerSlotKinds, WorkerSlots};
