//! The pool's promises, against scripted origins.
#![allow(clippy::unwrap_used)]

mod site;

mod caps;
mod ends;
mod faults;
mod http1;
mod http2;
mod lanes;
mod stress;
