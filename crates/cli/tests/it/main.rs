//! The command as its users run it: arguments in; output, files and exit code out.

mod ostree;
mod ostree_process;
mod tour;
