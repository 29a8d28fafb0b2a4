//! Formats and codecs: bytes in, values out; no async, no sockets, no clock, no files.
//!
//! - [`cran`]: what an R package repository serves.
//! - [`digest`]: checksums, their spellings and computation.
//! - [`file_name`]: safe local names for URLs, paths behind `file:` URLs.
//! - [`http_date`], [`retry_after`], [`range`]: header values of RFC 9110.
//! - [`list`]: transfer lists.
//! - [`nbd`]: the Network Block Device protocol.
//! - [`ostree`]: objects, refs and summaries of OSTree; [`pack`]: many objects in one body.
//! - [`netrc`], [`no_proxy`]: files and variables by which users tell hosts apart.
//! - [`partition`]: MBR and GPT.
//! - [`secret`]: text that cannot be shown.

pub mod cran;
pub mod digest;
pub mod file_name;
pub mod http_date;
pub mod list;
pub mod nbd;
pub mod netrc;
pub mod no_proxy;
pub mod ostree;
pub mod pack;
pub mod partition;
pub mod range;
pub mod retry_after;
pub mod secret;
