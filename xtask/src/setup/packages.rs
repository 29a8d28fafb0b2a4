//! The one table of Debian packages: what each is for and who would miss it.

use std::path::Path;

use crate::command;

/// Who needs a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    Tests,
    Benches,
}

/// One Debian package.
#[derive(Debug)]
pub(super) struct Package {
    /// Its name for apt-get.
    pub(super) name: &'static str,
    /// A program (or an absolute path) that shows it is there, however it got there.
    probe: &'static str,
    pub(super) why: &'static str,
    pub(super) used_by: &'static str,
    pub(super) need: Need,
    /// Its installation would start a service that nobody asked for.
    pub(super) starts_service: bool,
}

impl Package {
    /// Judged by the thing needed, not by the package manager: a hand-built nginx is as good.
    pub(super) fn is_present(&self) -> bool {
        if self.probe.starts_with('/') {
            return Path::new(self.probe).exists();
        }
        command::find_program(self.probe).is_some()
    }
}

const fn for_tests(
    name: &'static str,
    probe: &'static str,
    why: &'static str,
    used_by: &'static str,
) -> Package {
    Package { name, probe, why, used_by, need: Need::Tests, starts_service: false }
}

const fn for_benches(
    name: &'static str,
    probe: &'static str,
    why: &'static str,
    used_by: &'static str,
) -> Package {
    Package { name, probe, why, used_by, need: Need::Benches, starts_service: false }
}

pub(super) const PACKAGES: &[Package] = &[
    Package {
        starts_service: true,
        ..for_tests(
            "nginx-light",
            "nginx",
            "a real HTTP/1.1 and HTTP/2 server",
            "cli tests; benches",
        )
    },
    for_tests("curl", "curl", "a client to compare behaviour with", "cli tests; benches"),
    for_tests(
        "openssl",
        "openssl",
        "judges certificates and PKCS#12 files",
        "transport tests; lab",
    ),
    for_tests(
        "ca-certificates",
        "/etc/ssl/certs/ca-certificates.crt",
        "system roots, as on a user's machine",
        "transport tests",
    ),
    for_tests("r-base-core", "Rscript", "the judge of everything about R packages", "cran; r"),
    for_tests("r-base-dev", "/usr/share/R/include/R.h", "compiles the R package", "r"),
    for_tests(
        "r-cran-testthat",
        "/usr/lib/R/site-library/testthat",
        "runs the R package's tests",
        "r",
    ),
    for_tests("r-cran-withr", "/usr/lib/R/site-library/withr", "cleans up after them", "r"),
    for_tests("r-cran-knitr", "/usr/lib/R/site-library/knitr", "builds the vignette", "r"),
    for_tests("r-cran-markdown", "/usr/lib/R/site-library/markdown", "builds the vignette", "r"),
    for_tests(
        "ostree",
        "ostree",
        "the judge of everything about OSTree",
        "ostree; cli; bench ostree",
    ),
    for_tests("libnbd-bin", "nbdcopy", "judges NBD servers", "nbd; cli"),
    for_tests(
        "python3-libnbd",
        "/usr/lib/python3/dist-packages/nbd.py",
        "single NBD requests by hand",
        "nbd",
    ),
    for_tests("nbdkit", "nbdkit", "chained to our server", "nbd"),
    for_tests("qemu-utils", "qemu-img", "judges NBD servers", "nbd; cli"),
    for_tests("fio", "fio", "checked random reads", "nbd"),
    for_tests("fdisk", "sfdisk", "makes partition tables", "cli"),
    for_benches("r-cran-curl", "/usr/lib/R/site-library/curl", "a peer", "bench cran"),
    for_benches("iproute2", "ip", "network namespaces", "lab"),
    for_benches("gcc", "gcc", "compiles the delay line", "lab"),
    for_benches("libc6-dev", "/usr/include/stdio.h", "headers for the delay line", "lab"),
    for_benches("aria2", "aria2c", "peer: many HTTP/1.1 connections", "bench get"),
    for_benches("wget2", "wget2", "peer: threads over HTTP/2", "bench get"),
    for_benches("nghttp2-client", "h2load", "peer: the floor, bodies thrown away", "bench get"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_package_says_once_why_it_is_needed() {
        for (index, package) in PACKAGES.iter().enumerate() {
            assert!(!package.why.is_empty() && !package.used_by.is_empty(), "{package:?}");
            assert!(
                PACKAGES[..index].iter().all(|earlier| earlier.name != package.name),
                "{} is listed twice",
                package.name
            );
        }
    }
}
