//! What an R package repository serves: its index, its archive listing, and the words in them.
//!
//! A repository is a folder of `NAME_VERSION.tar.gz` files with an index beside them, in three
//! spellings of one table: `PACKAGES` (Debian control format), `PACKAGES.gz`, and `PACKAGES.rds`
//! (an R character matrix). [`read_index`] takes any of them. [`ArchiveIndex`] is
//! `Meta/archive.rds`, the list of superseded versions. [`Version`] orders versions as R does,
//! [`dependency`] reads the dependency fields, and [`Lockfile`] is renv's `renv.lock`.
//!
//! Everything here works on whole byte slices under named [`Limits`]; nothing opens a file or
//! looks at a clock.

mod archive;
mod compressed;
pub mod dcf;
pub mod dependency;
mod error;
mod index;
mod lockfile;
pub mod rds;
mod strings;
mod version;

pub use archive::{ArchiveFile, ArchiveIndex};
pub use compressed::{Compression, Limits, expand};
pub use dependency::{Constraint, Dependency, Relation};
pub use error::Error;
pub use index::read_index;
pub use lockfile::{LockedBioconductor, LockedPackage, LockedR, LockedRepository, Lockfile};
pub use strings::{StringMatrix, StringVector};
pub use version::{InvalidVersion, Version};
