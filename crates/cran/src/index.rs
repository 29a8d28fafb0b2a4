//! What can be had: the indexes of all repositories as one table (R: `available.packages()`).

use std::collections::HashMap;

use trunkline_proto::cran::{Constraint, StringMatrix, Version, dependency};

use crate::repository::{PackageType, Platform};

/// One repository's index, as it was read.
#[derive(Clone, Debug)]
pub struct RepositoryIndex {
    /// The folder it describes (R: an element of `contriburl`), without a slash at the end.
    pub contrib_url: String,
    /// The table in it.
    pub table: StringMatrix,
}

/// Which packages of a table are left out (R: `available_packages_filters`).
///
/// The two filters by licence need R's licence analysis; R code applies them to the finished
/// table.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Filter {
    /// Those whose `Depends` rules out this version of R.
    RVersion,
    /// Those for another operating system.
    OsType,
    /// Those whose `Archs` lacks R's sub-architecture.
    Subarch,
    /// All but the highest version of each package; of equal ones the first repository's stays.
    Duplicates,
    /// Those that CRAN has too, when this URL, its root, is not where they come from.
    Cran(String),
}

impl Filter {
    /// R's defaults, in R's order.
    pub const DEFAULT: [Self; 4] = [Self::RVersion, Self::OsType, Self::Subarch, Self::Duplicates];
}

/// Packages of several repositories that passed the filters.
#[derive(Clone, Debug)]
pub struct Index {
    sources: Vec<Source>,
    rows: Vec<Row>,
    /// For each name its rows, in the order of `rows`.
    by_name: HashMap<Box<str>, Vec<usize>>,
    /// Rows that a `Duplicates` filter left out: the same packages, elsewhere or older.
    spares: Vec<Row>,
}

#[derive(Clone, Debug)]
struct Source {
    index: RepositoryIndex,
    columns: Columns,
}

/// Where the fields that every query needs are.
#[derive(Clone, Copy, Debug)]
struct Columns {
    package: Option<usize>,
    version: Option<usize>,
    path: Option<usize>,
    file: Option<usize>,
    depends: Option<usize>,
}

#[derive(Clone, Debug)]
struct Row {
    source: usize,
    row: usize,
    /// `None` where the version is one R would not accept; it then counts as the lowest.
    version: Option<Version>,
}

impl Index {
    /// Merges indexes in the order of their repositories and applies filters in their order.
    ///
    /// Rows without a package name or a version are dropped: nothing could be downloaded for them.
    #[must_use]
    pub fn merge(
        indexes: impl IntoIterator<Item = RepositoryIndex>,
        filters: &[Filter],
        platform: &Platform,
    ) -> Self {
        let sources: Vec<Source> = indexes.into_iter().map(Source::new).collect();
        let mut rows: Vec<Row> = Vec::new();
        for (number, source) in sources.iter().enumerate() {
            rows.extend((0..source.index.table.rows()).filter_map(|row| source.row(number, row)));
        }
        let mut spares = Vec::new();
        for filter in filters {
            match filter {
                Filter::RVersion => rows.retain(|row| {
                    let depends = sources[row.source].cell(row.row, |columns| columns.depends);
                    runs_on(depends, &platform.r_version)
                }),
                Filter::OsType => rows.retain(|row| {
                    let os_type = sources[row.source].index.table.field(row.row, "OS_type");
                    os_type.is_none_or(|os_type| os_type == platform.os_type)
                }),
                Filter::Subarch => rows.retain(|row| {
                    let archs = sources[row.source].index.table.field(row.row, "Archs");
                    has_arch(archs, &platform.subarch)
                }),
                Filter::Duplicates => drop_stale(&sources, &mut rows, &mut spares),
                Filter::Cran(root) => prefer_cran(&sources, &mut rows, root),
            }
        }
        let mut by_name: HashMap<Box<str>, Vec<usize>> = HashMap::with_capacity(rows.len());
        for (number, row) in rows.iter().enumerate() {
            by_name.entry(sources[row.source].name(row.row).into()).or_default().push(number);
        }
        Self { sources, rows, by_name, spares }
    }

    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether no package can be had.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// All packages, in the order of R's table.
    pub fn packages(&self) -> impl ExactSizeIterator<Item = Package<'_>> {
        self.rows.iter().map(|row| self.package(row))
    }

    /// Whether there is a package of that name.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// The first row of a package, the one R's `available[name, ]` takes.
    #[must_use]
    pub fn first(&self, name: &str) -> Option<Package<'_>> {
        self.by_name.get(name).map(|rows| self.package(&self.rows[rows[0]]))
    }

    /// All rows of a package.
    pub fn rows_of(&self, name: &str) -> impl Iterator<Item = Package<'_>> {
        let rows = self.by_name.get(name).map_or(&[][..], Vec::as_slice);
        rows.iter().map(|&row| self.package(&self.rows[row]))
    }

    /// The row `download.packages()` takes: the highest version, of equal ones the first.
    #[must_use]
    pub fn best(&self, name: &str) -> Option<Package<'_>> {
        self.rows_of(name).reduce(
            |best, other| {
                if other.version() > best.version() { other } else { best }
            },
        )
    }

    /// The rows of a package in exactly this version, in the order of the repositories, those a
    /// `Duplicates` filter set aside included: where to turn when the first fails.
    #[must_use]
    pub fn in_version(&self, name: &str, version: &Version) -> Vec<Package<'_>> {
        let mut found: Vec<_> = self
            .rows_of(name)
            .chain(self.spares.iter().map(|row| self.package(row)))
            .filter(|package| package.name() == name && package.version() == Some(version))
            .collect();
        found.sort_by_key(|package| (package.row.source, package.row.row));
        found
    }

    /// The folders of all repositories (R: `contriburl`), in order.
    pub fn contrib_urls(&self) -> impl ExactSizeIterator<Item = &str> {
        self.sources.iter().map(|source| source.index.contrib_url.as_str())
    }

    fn package<'a>(&'a self, row: &'a Row) -> Package<'a> {
        Package { source: &self.sources[row.source], row }
    }
}

impl Source {
    fn new(index: RepositoryIndex) -> Self {
        let table = &index.table;
        let columns = Columns {
            package: table.column("Package"),
            version: table.column("Version"),
            path: table.column("Path"),
            file: table.column("File"),
            depends: table.column("Depends"),
        };
        Self { index, columns }
    }

    fn cell(&self, row: usize, column: impl Fn(&Columns) -> Option<usize>) -> Option<&str> {
        self.index.table.get(row, column(&self.columns)?)
    }

    fn row(&self, source: usize, row: usize) -> Option<Row> {
        self.cell(row, |columns| columns.package)?;
        let version = self.cell(row, |columns| columns.version)?;
        Some(Row { source, row, version: Version::package(version).ok() })
    }

    fn name(&self, row: usize) -> &str {
        self.cell(row, |columns| columns.package).expect("rows without a name were dropped")
    }
}

/// One row of an [`Index`].
#[derive(Clone, Copy, Debug)]
pub struct Package<'a> {
    source: &'a Source,
    row: &'a Row,
}

impl<'a> Package<'a> {
    /// The package's name.
    #[must_use]
    pub fn name(&self) -> &'a str {
        self.source.name(self.row.row)
    }

    /// The version as the index spells it.
    #[must_use]
    pub fn version_text(&self) -> &'a str {
        let version = self.source.cell(self.row.row, |columns| columns.version);
        version.expect("rows without a version were dropped")
    }

    /// The version, where it is one R accepts.
    #[must_use]
    pub fn version(&self) -> Option<&'a Version> {
        self.row.version.as_ref()
    }

    /// Any field of the index: `Depends`, `MD5sum`, ...
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&'a str> {
        self.source.index.table.field(self.row.row, name)
    }

    /// The folder whose index lists the package.
    #[must_use]
    pub fn contrib_url(&self) -> &'a str {
        &self.source.index.contrib_url
    }

    /// The folder the package is in (R: column `Repository`): the index's `Path` field, where
    /// there is one, names a folder below [`contrib_url`](Self::contrib_url).
    #[must_use]
    pub fn repository(&self) -> String {
        match self.source.cell(self.row.row, |columns| columns.path) {
            Some(path) => format!("{}/{path}", self.contrib_url()),
            None => self.contrib_url().to_owned(),
        }
    }

    /// The name of the package's file: the `File` field, else `NAME_VERSION` and the type's
    /// extension.
    #[must_use]
    pub fn file_name(&self, package_type: &PackageType) -> String {
        self.source.cell(self.row.row, |columns| columns.file).map_or_else(
            || format!("{}_{}{}", self.name(), self.version_text(), package_type.extension()),
            str::to_owned,
        )
    }
}

/// Whether `Depends` allows this version of R; what it says of `R` must all hold.
fn runs_on(depends: Option<&str>, r_version: &Version) -> bool {
    let on_r = depends.into_iter().flat_map(dependency::parse).filter(|entry| entry.name == "R");
    on_r.into_iter().all(|entry| match entry.constraint {
        Constraint::Version(relation, wanted) => relation.holds(r_version, &wanted),
        _ => true,
    })
}

fn has_arch(archs: Option<&str>, subarch: &str) -> bool {
    let Some(archs) = archs else { return true };
    subarch.is_empty() || archs.split(',').any(|arch| arch.trim() == subarch)
}

/// Keeps of each package the first row with its highest version, and the order of the rest.
fn drop_stale(sources: &[Source], rows: &mut Vec<Row>, spares: &mut Vec<Row>) {
    let mut best: HashMap<&str, usize> = HashMap::with_capacity(rows.len());
    for (number, row) in rows.iter().enumerate() {
        let kept = best.entry(sources[row.source].name(row.row)).or_insert(number);
        if row.version > rows[*kept].version {
            *kept = number;
        }
    }
    let mut kept: Vec<usize> = best.into_values().collect();
    kept.sort_unstable();
    let mut kept = kept.into_iter().peekable();
    let mut number = 0;
    spares.extend(rows.extract_if(.., |_| {
        let stays = kept.next_if_eq(&number).is_some();
        number += 1;
        !stays
    }));
}

/// Of packages that several rows have, keeps those from CRAN if any is (R: filter `CRAN`).
fn prefer_cran(sources: &[Source], rows: &mut Vec<Row>, root: &str) {
    let is_cran = |row: &Row| sources[row.source].index.contrib_url.starts_with(root);
    let on_cran: std::collections::HashSet<&str> = rows
        .iter()
        .filter(|row| is_cran(row))
        .map(|row| sources[row.source].name(row.row))
        .collect();
    rows.retain(|row| is_cran(row) || !on_cran.contains(sources[row.source].name(row.row)));
}

#[cfg(test)]
mod tests;
