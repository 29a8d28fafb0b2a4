//! OSTree repositories and what to move between them: push, pull, check.
//!
//! [`repo::Repo`] reads and writes local repositories; [`remote::Remote`] speaks to a server. What
//! moves is decided from the two, and moved by `trunkline-transfer`: no connection is made here.

pub mod closure;
pub mod repo;
