//! Formats and codecs: bytes in, values out; no async, no sockets, no clock, no files.

pub mod cran;
