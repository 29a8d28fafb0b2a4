//! OSTree repositories and what to move between them: push, pull, check.
//!
//! [`repo::Repo`] reads and writes local repositories, [`remote::Remote`] speaks to a server.
//! [`push::push`], [`pull::pull`], [`check::check`] and, between two servers, [`deploy::deploy`]
//! decide what moves; the moving is done by `trunkline-transfer`: no connection is made here.

pub mod beside;
pub mod check;
pub mod closure;
pub mod credentials;
pub mod deploy;
pub mod pull;
pub mod push;
pub mod remote;
pub mod repo;
pub mod targets;
mod tree;
