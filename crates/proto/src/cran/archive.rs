//! `src/contrib/Meta/archive.rds`: every superseded version a repository still has.

use std::collections::BTreeMap;

use super::{
    Error, Limits, Version, expand,
    rds::{self, Object, Value},
};

/// The superseded versions of all packages of a repository.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ArchiveIndex {
    packages: BTreeMap<String, Vec<ArchiveFile>>,
}

/// One superseded source package.
#[derive(Clone, Debug, PartialEq)]
pub struct ArchiveFile {
    /// Where it is, relative to `src/contrib/Archive/`: `A3/A3_0.9.1.tar.gz`.
    pub path: String,
    /// The version in the file's name.
    pub version: Version,
    /// Size in bytes, where the listing has one.
    pub size_bytes: Option<u64>,
    /// When the file was last changed, in seconds since 1970.
    pub modified_s: Option<f64>,
}

impl ArchiveIndex {
    /// Reads the listing: a list, named by package, of `file.info()` data frames whose row names
    /// are paths.
    ///
    /// Files whose names are not `PACKAGE_VERSION.tar.gz` (old archives hold some) are left out.
    ///
    /// # Errors
    /// Any [`Error`] of the format; [`Error::NotAnArchive`] for R data of another shape.
    pub fn read(bytes: &[u8], limits: &Limits) -> Result<Self, Error> {
        let object = rds::read(&expand(bytes, limits)?)?;
        let names = object.names().ok_or(Error::NotAnArchive)?;
        let Value::List(frames) = &object.value else { return Err(Error::NotAnArchive) };
        let mut packages = BTreeMap::new();
        for (name, frame) in names.iter().zip(frames) {
            let name = name.ok_or(Error::NotAnArchive)?;
            packages.insert(name.to_owned(), files(name, frame)?);
        }
        Ok(Self { packages })
    }

    /// The superseded versions of a package, in the listing's order (by date on CRAN).
    #[must_use]
    pub fn files(&self, package: &str) -> &[ArchiveFile] {
        self.packages.get(package).map_or(&[], Vec::as_slice)
    }

    /// The file of one version of a package, if it is archived.
    #[must_use]
    pub fn find(&self, package: &str, version: &Version) -> Option<&ArchiveFile> {
        self.files(package).iter().find(|file| file.version == *version)
    }

    /// All packages that have archived versions, by name.
    pub fn packages(&self) -> impl ExactSizeIterator<Item = &str> {
        self.packages.keys().map(String::as_str)
    }
}

fn files(package: &str, frame: &Object) -> Result<Vec<ArchiveFile>, Error> {
    let paths = frame.attribute("row.names").ok_or(Error::NotAnArchive)?;
    // An empty data frame has integer row names.
    let Value::Strings(paths) = paths else { return Ok(Vec::new()) };
    let sizes = numbers(frame.element("size"));
    let times = numbers(frame.element("mtime"));
    let file = |(row, path): (usize, Option<&str>)| {
        let path = path?;
        Some(ArchiveFile {
            version: version_in(path, package)?,
            path: path.to_owned(),
            size_bytes: sizes.get(row).copied().and_then(whole_bytes),
            modified_s: times.get(row).copied().filter(|time| time.is_finite()),
        })
    };
    Ok(paths.iter().enumerate().filter_map(file).collect())
}

/// The version in `DIRECTORY/PACKAGE_VERSION.tar.gz`.
fn version_in(path: &str, package: &str) -> Option<Version> {
    let file = path.rsplit('/').next()?;
    let version = file.strip_prefix(package)?.strip_prefix('_')?.strip_suffix(".tar.gz")?;
    version.parse().ok()
}

fn numbers(column: Option<&Object>) -> Vec<f64> {
    match column.map(|column| &column.value) {
        Some(Value::Real(values)) => values.clone(),
        Some(Value::Integer(values)) => {
            values.iter().map(|value| value.map_or(f64::NAN, f64::from)).collect()
        }
        _ => Vec::new(),
    }
}

fn whole_bytes(size: f64) -> Option<u64> {
    /// Above this a double no longer counts single bytes.
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    let sane = (0.0..=EXACT_MAX).contains(&size) && size.fract() == 0.0;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above")]
    sane.then_some(size as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_written_by_r_is_read() {
        let bytes = include_bytes!("../../tests/fixtures/cran/archive.rds");
        let archive = ArchiveIndex::read(bytes, &Limits::default()).unwrap();
        assert_eq!(archive.packages().collect::<Vec<_>>(), ["A3", "zoo"]);
        let paths: Vec<_> = archive.files("A3").iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["A3/A3_0.9.1.tar.gz", "A3/A3_0.9.2.tar.gz"]);
        let found = archive.find("A3", &"0.9.2".parse().unwrap()).unwrap();
        assert_eq!(found.size_bytes, Some(45907));
        assert_eq!(found.modified_s, Some(1_700_000_002.0));
        assert_eq!(archive.find("A3", &"0.9.3".parse().unwrap()), None);
        assert_eq!(archive.files("nothing"), []);
    }

    #[test]
    fn an_index_is_not_a_listing() {
        let bytes = include_bytes!("../../tests/fixtures/cran/matrix_xz.rds");
        let error = ArchiveIndex::read(bytes, &Limits::default()).unwrap_err();
        assert!(matches!(error, Error::NotAnArchive), "{error}");
    }

    #[test]
    fn versions_come_from_file_names() {
        let version = |path, package| version_in(path, package).map(|v| v.to_string());
        assert_eq!(version("a/a_1.0-2.tar.gz", "a").as_deref(), Some("1.0-2"));
        assert_eq!(version("a/a_1.0.tgz", "a"), None);
        assert_eq!(version("a/ab_1.0.tar.gz", "a"), None);
        assert_eq!(version("a/a_beta.tar.gz", "a"), None);
    }
}
