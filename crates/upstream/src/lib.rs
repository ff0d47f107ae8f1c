//! Groups of servers: who is asked next, how many at once, who waits, who is well; and connections
//! kept for later. For `http` and `stream` alike.
//!
//! Deliberately absent: the protocols spoken with them.

pub mod limit;
pub mod pool;
