//! What to download from where, with what to check it by: plain data, no connection.

use std::path::{Path, PathBuf};

use trunkline_proto::cran::{ArchiveIndex, Version};

use crate::{
    index::{Index, Package},
    repository::{PackageType, join_local, local_path},
    request::Request,
};

/// One package to get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackagePlan {
    /// The package's name.
    pub name: String,
    /// The version, as the index or the user spells it.
    pub version: String,
    /// The file's name in the destination folder.
    pub file_name: String,
    /// Where to look, in this order, until one place has it.
    pub candidates: Vec<Candidate>,
}

/// One place that should have a package's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Where the file is.
    pub place: Place,
    /// What the index of that place says about the file.
    pub digests: Digests,
    /// Whether the place is a repository's archive of superseded versions.
    pub archived: bool,
}

/// A file on this machine or elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A file of a `file:` repository. R uses it where it is.
    Local(PathBuf),
    /// A URL, exactly as R would ask for it.
    Remote(String),
}

/// Digests an index gives, in lower-case hexadecimal; both are checked where both are given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Digests {
    /// Field `MD5sum`.
    pub md5: Option<String>,
    /// Field `SHA256`, which R-universe has.
    pub sha256: Option<String>,
}

/// Why a request cannot be planned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// No repository lists the package (R: "no package ... at the repositories").
    #[error("no package \u{2018}{name}\u{2019} at the repositories")]
    NoSuchPackage {
        /// The package's name.
        name: String,
    },
    /// Binary packages are kept in one version only, and it is another one.
    #[error(
        "the repositories have no {package_type} package \u{2018}{name}\u{2019} in version \
         {version}: only source packages are archived"
    )]
    NoSuchBinaryVersion {
        /// The package's name.
        name: String,
        /// The version asked for.
        version: Version,
        /// The type of package asked for.
        package_type: PackageType,
    },
    /// Every repository's archive listing was read, and none has the version.
    #[error("no repository has \u{2018}{name}\u{2019} in version {version}, archives included")]
    NotInArchive {
        /// The package's name.
        name: String,
        /// The version asked for.
        version: Version,
    },
    /// The index gives a `File` that is not a plain file name.
    #[error("the index gives \u{2018}{name}\u{2019} a file name that leaves its folder: {file}")]
    UnsafeFileName {
        /// The package's name.
        name: String,
        /// The file name in the index.
        file: String,
    },
}

/// An archive listing that was read, with the folder (`contriburl`) it belongs to.
#[derive(Clone, Debug)]
pub struct KnownArchive<'a> {
    /// One of [`Index::contrib_urls`].
    pub contrib_url: &'a str,
    /// What it lists.
    pub listing: &'a ArchiveIndex,
}

/// Plans one request.
///
/// Without a version the plan follows `download.packages()`: the highest version on offer, then
/// the same version in other repositories. With one, repositories that list it come first, then
/// the archives: those in `archives` only if their listing has the version, all others unseen
/// (asking costs one request, reading a listing of CRAN's size costs more).
///
/// # Errors
/// [`PlanError`]; no network is involved in finding out.
pub fn plan(
    index: &Index,
    request: &Request,
    package_type: &PackageType,
    archives: &[KnownArchive<'_>],
) -> Result<PackagePlan, PlanError> {
    let name = &request.name;
    let Some(version) = &request.version else {
        let best =
            index.best(name).ok_or_else(|| PlanError::NoSuchPackage { name: name.clone() })?;
        let offers = match best.version() {
            Some(version) => index.in_version(name, version),
            None => vec![best],
        };
        return from_offers(&offers, package_type);
    };
    let offers = index.in_version(name, version);
    let mut plan = match offers.as_slice() {
        [] => None,
        offers => Some(from_offers(offers, package_type)?),
    };
    if *package_type == PackageType::Source {
        let archived = archive_candidates(index, name, version, archives);
        let plan = plan.get_or_insert_with(|| PackagePlan {
            name: name.clone(),
            version: version.to_string(),
            file_name: format!("{name}_{version}.tar.gz"),
            candidates: Vec::new(),
        });
        plan.candidates.extend(archived);
    } else if plan.is_none() {
        return Err(PlanError::NoSuchBinaryVersion {
            name: name.clone(),
            version: version.clone(),
            package_type: package_type.clone(),
        });
    }
    plan.filter(|plan| !plan.candidates.is_empty())
        .ok_or_else(|| PlanError::NotInArchive { name: name.clone(), version: version.clone() })
}

/// A plan from rows of the index that all are the same version of a package.
fn from_offers(
    offers: &[Package<'_>],
    package_type: &PackageType,
) -> Result<PackagePlan, PlanError> {
    let first = offers.first().expect("an offer was found");
    let mut candidates = Vec::with_capacity(offers.len());
    for offer in offers {
        let file = offer.file_name(package_type);
        if !stays_in_its_folder(&file) {
            return Err(PlanError::UnsafeFileName { name: offer.name().to_owned(), file });
        }
        candidates.push(Candidate {
            place: place(&offer.repository(), &file),
            digests: digests(*offer),
            archived: false,
        });
    }
    let file = first.file_name(package_type);
    Ok(PackagePlan {
        name: first.name().to_owned(),
        version: first.version_text().to_owned(),
        // A `File` may name a folder of the repository; on this side only the last part counts.
        file_name: file.rsplit('/').next().unwrap_or(&file).to_owned(),
        candidates,
    })
}

fn archive_candidates<'a>(
    index: &'a Index,
    name: &'a str,
    version: &'a Version,
    archives: &'a [KnownArchive<'_>],
) -> impl Iterator<Item = Candidate> + 'a {
    index.contrib_urls().filter_map(move |contrib_url| {
        let known = archives.iter().find(|archive| archive.contrib_url == contrib_url);
        let path = match known {
            Some(archive) => archive.listing.find(name, version)?.path.clone(),
            None => format!("{name}/{name}_{version}.tar.gz"),
        };
        stays_in_its_folder(&path).then(|| Candidate {
            place: place(&format!("{contrib_url}/Archive"), &path),
            digests: Digests::default(),
            archived: true,
        })
    })
}

fn place(folder_url: &str, file: &str) -> Place {
    match local_path(folder_url) {
        Some(folder) => Place::Local(join_local(folder, file)),
        None => Place::Remote(format!("{folder_url}/{file}")),
    }
}

fn digests(package: Package<'_>) -> Digests {
    let hex = |field: &str, digits: usize| {
        let text = package.field(field)?.trim();
        let plain = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        plain.then(|| text.to_ascii_lowercase())
    };
    Digests { md5: hex("MD5sum", 32), sha256: hex("SHA256", 64) }
}

/// Whether a relative path from an index names a file below its folder and nothing else.
fn stays_in_its_folder(file: &str) -> bool {
    !file.is_empty()
        && !file.contains(['\\', '\0'])
        && Path::new(file).components().all(|part| matches!(part, std::path::Component::Normal(_)))
}

#[cfg(test)]
mod tests;
