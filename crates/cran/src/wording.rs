//! R's own words, for the messages that scripts look for.
//!
//! Every text here is what R 4.2 and R-devel say in an English locale with UTF-8 quotes; a test
//! compares them with R. (R: `src/library/utils/R/packages.R`, `packages2.R`,
//! `src/modules/internet/libcurl.c`.)

use crate::closure::{InstallOrder, InstallSet};

/// R's `sQuote()`.
#[must_use]
pub fn quote(text: &str) -> String {
    format!("\u{2018}{text}\u{2019}")
}

/// Several quoted names, as R lists them.
#[must_use]
pub fn quote_all<T: AsRef<str>>(names: impl IntoIterator<Item = T>) -> String {
    let quoted: Vec<String> = names.into_iter().map(|name| quote(name.as_ref())).collect();
    quoted.join(", ")
}

/// R's `ngettext()` for English.
fn plural<'a>(count: usize, one: &'a str, many: &'a str) -> &'a str {
    if count == 1 { one } else { many }
}

/// Warning of `available.packages()` about a repository whose index cannot be had.
#[must_use]
pub fn index_inaccessible(contrib_url: &str, reason: &str) -> String {
    format!("unable to access index for repository {contrib_url}:\n  {reason}")
}

/// Warning of `download.packages()` about a package no repository has.
#[must_use]
pub fn no_such_package(name: &str) -> String {
    format!("no package {} at the repositories", quote(name))
}

/// Warning of `download.packages()` about a file missing from a `file:` repository.
#[must_use]
pub fn not_in_local_repository(name: &str) -> String {
    format!("package {} does not exist on the local repository", quote(name))
}

/// Warning of `download.packages()` about a failed download.
#[must_use]
pub fn download_failed(name: &str) -> String {
    format!("download of package {} failed", quote(name))
}

/// Error of `download.file()` for a response that is not a success.
#[must_use]
pub fn cannot_open_url(url: &str) -> String {
    format!("cannot open URL '{url}'")
}

/// Warning of `download.file()` before [`cannot_open_url`].
#[must_use]
pub fn http_status_was(url: &str, status: u16, reason: &str) -> String {
    format!("cannot open URL '{url}': HTTP status was '{status} {reason}'")
}

/// Warning of `download.file()` about a failed connection, with libcurl's words for it.
#[must_use]
pub fn url_status_was(url: &str, status: &str) -> String {
    format!("URL '{url}': status was '{status}'")
}

/// Warning of `download.file()` about its time-out.
#[must_use]
pub fn timed_out(url: &str, timeout_s: u32) -> String {
    format!("URL '{url}': Timeout of {timeout_s} seconds was reached")
}

/// Warning of `download.file()` about a body cut short.
#[must_use]
pub fn length_differs(downloaded_bytes: u64, reported_bytes: u64) -> String {
    format!("downloaded length {downloaded_bytes} != reported length {reported_bytes}")
}

/// Error of `download.file()` for a download that broke off.
#[must_use]
pub fn download_from_failed(url: &str) -> String {
    format!("download from '{url}' failed")
}

/// Error of `download.file()` with several URLs, all of which failed.
pub const NO_FILES: &str = "cannot download any files";

/// Warning of `download.file()` with several URLs, some of which failed.
pub const SOME_FILES: &str = "some files were not downloaded";

/// Message of `install.packages()` about packages nobody asked for by name; `None` without any.
#[must_use]
pub fn also_installing(set: &InstallSet) -> Option<String> {
    let start = plural(
        set.added.len(),
        "also installing the dependency",
        "also installing the dependencies",
    );
    (!set.added.is_empty()).then(|| format!("{start} {}\n", quote_all(&set.added)))
}

/// Warnings of `install.packages()` about what it cannot install, in R's order.
///
/// `r_is_under_development` selects the manual that R refers to.
#[must_use]
pub fn install_set_warnings(set: &InstallSet, r_is_under_development: bool) -> Vec<String> {
    let mut warnings = Vec::new();
    if !set.base.is_empty() {
        let names = quote_all(&set.base);
        warnings.push(match set.base.len() {
            1 => format!("package {names} is a base package, and should not be updated"),
            _ => format!("packages {names} are base packages, and should not be updated"),
        });
    }
    if !set.unavailable.is_empty() {
        let names = quote_all(&set.unavailable);
        let count = set.unavailable.len();
        let start = plural(count, "package", "packages");
        let verb = plural(count, "is", "are");
        let elsewhere = plural(
            count,
            "A version of this package for your version of R might be available elsewhere,",
            "Versions of these packages for your version of R might be available elsewhere,",
        );
        let manual = if r_is_under_development { "r-devel" } else { "r-patched" };
        warnings.push(format!(
            "{start} {names} {verb} not available for this version of R\n\n{elsewhere}\n\
             see the ideas at\nhttps://cran.r-project.org/doc/manuals/{manual}/\
             R-admin.html#Installing-packages"
        ));
    }
    if !set.missing.is_empty() {
        let names = quote_all(&set.missing);
        let start = plural(set.missing.len(), "dependency", "dependencies");
        let verb = plural(set.missing.len(), "is", "are");
        warnings.push(format!("{start} {names} {verb} not available"));
    }
    warnings
}

/// Warning of `install.packages()` about a wanted package whose name differs from those on offer
/// in upper and lower case only; `None` unless it is the only one unavailable.
#[must_use]
pub fn perhaps_you_meant<'a>(
    set: &InstallSet,
    mut offered: impl Iterator<Item = &'a str>,
) -> Option<String> {
    let [wanted] = set.unavailable.as_slice() else { return None };
    let meant = offered.find(|name| name.eq_ignore_ascii_case(wanted))?;
    Some(format!("Perhaps you meant {} ?", quote(meant)))
}

/// Warning of `install.packages()` about packages that need each other; `None` without a circle.
#[must_use]
pub fn circle(order: &InstallOrder) -> Option<String> {
    match order.circle.len() {
        0 => None,
        all if all == order.packages.len() => {
            Some("every package depends on at least one other".to_owned())
        }
        _ => Some(format!("packages {} are mutually dependent", quote_all(&order.circle))),
    }
}

/// Warning of `install.packages()` about one package.
#[must_use]
pub fn install_failed(name: &str) -> String {
    format!("installation of package {} had non-zero exit status", quote(name))
}
