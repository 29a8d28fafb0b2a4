//! The command as its users run it: arguments in; output, files and exit code out.

mod tour;
