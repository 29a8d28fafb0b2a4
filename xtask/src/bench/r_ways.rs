//! How R fetches the files of a case: the code that each row runs.

/// One row's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RWay {
    /// `download.packages()` of all packages: one call.
    Packages,
    /// `download.file()` for one file after the other.
    Loop,
    /// `download.file()` with all URLs at once.
    Vector,
    /// `curl::multi_download()`.
    MultiDownload,
    /// Our `download_packages()`.
    OursPackages,
    /// Our package behind a loop of `download.file()`.
    OursLoop,
    /// Our `download_file()` with all URLs at once.
    OursVector,
    /// `download.packages()` of an unchanged R behind our mirror, which has no file yet.
    MirrorCold,
    /// The same once the mirror has all files.
    MirrorWarm,
    /// `available.packages()` of six repositories.
    Indexes,
    /// Our `available_packages()` of six repositories.
    OursIndexes,
}

/// Packages are asked for in the order of the index; `out` is where they go, `base` the server.
const PACKAGES: &str = "a <- available.packages(type = 'source')
    d <- download.packages(rownames(a), out, available = a, type = 'source', quiet = TRUE)
    stopifnot(nrow(d) == nrow(a))";
const FILES: &str = "u <- readLines(urls); f <- file.path(out, basename(u))";
const SIX: &str = "repos <- paste0(base, '/', 1:6)";

impl RWay {
    /// The code, with `out`, `urls` and `base` taken from the arguments.
    pub(super) fn code(self) -> String {
        let start = "x <- commandArgs(TRUE); out <- x[1]; urls <- x[2]; base <- x[3]; lib <- x[4]";
        let ours = "suppressMessages(library(trunkline, lib.loc = lib))";
        let body = match self {
            Self::Packages | Self::MirrorCold | Self::MirrorWarm => PACKAGES.to_owned(),
            Self::Loop => format!(
                "{FILES}; for (i in seq_along(u)) download.file(u[i], f[i], quiet = TRUE, mode = 'wb')"
            ),
            Self::Vector => {
                format!("{FILES}; download.file(u, f, 'libcurl', quiet = TRUE, mode = 'wb')")
            }
            Self::MultiDownload => format!(
                "{FILES}; r <- curl::multi_download(u, f, progress = FALSE,
                     cainfo = Sys.getenv('CURL_CA_BUNDLE')); stopifnot(all(r$success))"
            ),
            Self::OursPackages => {
                format!("{ours}; {}", PACKAGES.replace("available.packages", "available_packages")
                    .replace("download.packages", "download_packages"))
            }
            Self::OursLoop => format!(
                "{ours}; enable(); {FILES}
                 for (i in seq_along(u)) utils::download.file(u[i], f[i], quiet = TRUE, mode = 'wb')"
            ),
            Self::OursVector => format!("{ours}; {FILES}; download_file(u, f, quiet = TRUE)"),
            Self::Indexes => format!(
                "{SIX}; stopifnot(nrow(available.packages(repos = repos, type = 'source')) > 0)"
            ),
            Self::OursIndexes => format!(
                "{ours}; {SIX}
                 stopifnot(nrow(available_packages(repos = repos, type = 'source')) > 0)"
            ),
        };
        format!("{start}; {body}")
    }

    /// Whether it runs behind our mirror.
    pub(super) fn has_mirror(self) -> bool {
        matches!(self, Self::MirrorCold | Self::MirrorWarm)
    }

    /// Whether it is one of ours.
    pub(super) fn is_ours(self) -> bool {
        matches!(self, Self::OursPackages | Self::OursLoop | Self::OursVector | Self::OursIndexes)
            || self.has_mirror()
    }

    /// Whether it leaves the files of the case behind.
    pub(super) fn stores_files(self) -> bool {
        !matches!(self, Self::Indexes | Self::OursIndexes)
    }
}
