//! One module a command: arguments in, exit code out.

pub(crate) mod cran;
pub(crate) mod garage;
pub(crate) mod get;
pub(crate) mod get_list;
pub(crate) mod nbd;
pub(crate) mod ostree;
pub(crate) mod tour;
pub(crate) mod treehub;
