//! Runs transfers over the pool: retry, resume, verify, atomic files, remote files, uploads.
