//! Scripted origins and fixtures for tests.

pub mod cran_repo;
pub mod rscript;
