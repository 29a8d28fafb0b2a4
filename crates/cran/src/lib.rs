//! R packages: what to get, from which repository, in which order.
//!
//! The decisions are pure: [`Index`] merges the indexes of several repositories as
//! `available.packages()` does, [`closure`] works out dependencies and the order of installation,
//! [`plan`] turns requests into places to look with digests to check, and [`Schedule`] says what
//! installs next. [`wording`] has the texts of R that scripts look for.
//!
//! Around them, over an engine that is handed in: [`indexes`] reads the indexes of all
//! repositories at once, [`download`] brings files from the first place that has them, and
//! [`install`] runs `R CMD INSTALL` while later files still download. [`mirror`] serves any
//! client of any repository from one warm pool.

pub mod closure;
pub mod download;
pub mod index;
pub mod indexes;
pub mod install;
pub mod mirror;
pub mod plan;
pub mod r_setup;
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
