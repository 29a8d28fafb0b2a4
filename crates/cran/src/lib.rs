//! R packages: what to get, from which repository, in which order.
//!
//! The files here are pure: [`Index`] merges the indexes of several repositories as
//! `available.packages()` does, [`closure`] works out dependencies and the order of installation,
//! [`plan`] turns requests into places to look with digests to check, and [`Schedule`] says what
//! installs next. [`wording`] has the texts of R that scripts look for.

pub mod closure;
pub mod index;
pub mod plan;
pub mod repository;
pub mod request;
pub mod schedule;
pub mod wording;

pub use closure::{Dependencies, InstallOrder, InstallSet};
pub use index::{Filter, Index, Package, RepositoryIndex};
pub use plan::{Candidate, Digests, KnownArchive, PackagePlan, Place, PlanError};
pub use repository::{PackageType, Platform, contrib_url};
pub use request::Request;
pub use schedule::{Outcome, Schedule};
