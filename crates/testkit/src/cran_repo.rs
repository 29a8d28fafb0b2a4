//! Generated repositories of small valid R packages: same seed, same bytes.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use flate2::{Compression, GzBuilder};
use md5::{Digest, Md5};
use trunkline_proto::cran::{
    Limits, dcf,
    rds::{self, Object, Value},
};

/// The time all files claim to be from, in seconds since 1970.
const MODIFIED_S: u64 = 1_700_000_000;

/// A package to generate.
#[derive(Clone, Debug)]
pub struct PackageSpec {
    /// Its name.
    pub name: String,
    /// Its version, as spelled in file names.
    pub version: String,
    /// Fields for both `DESCRIPTION` and the index: `Imports`, `Suggests`, ...
    pub fields: Vec<(String, String)>,
    /// About how large its file becomes, in bytes, by incompressible content.
    pub bytes: usize,
    /// Whether installing it fails.
    pub broken: bool,
}

impl PackageSpec {
    /// A package of about 1 KiB without dependencies.
    #[must_use]
    pub fn new(name: &str, version: &str) -> Self {
        let (name, version) = (name.to_owned(), version.to_owned());
        Self { name, version, fields: Vec::new(), bytes: 0, broken: false }
    }

    /// The same package with one field more.
    #[must_use]
    pub fn field(mut self, name: &str, value: &str) -> Self {
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The name of its file.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("{}_{}.tar.gz", self.name, self.version)
    }

    /// Its file: a source package that `R CMD INSTALL` takes.
    ///
    /// # Panics
    /// Only if memory runs out.
    #[must_use]
    pub fn tarball(&self) -> Vec<u8> {
        let gzip = GzBuilder::new().write(Vec::new(), Compression::fast());
        let mut tar = tar::Builder::new(gzip);
        let mut add = |path: &str, content: &[u8]| {
            let mut header = tar::Header::new_ustar();
            header.set_size(content.len() as u64);
            // R takes no entry without a type, as the format's first version had them.
            header.set_entry_type(tar::EntryType::Regular);
            header.set_mode(0o644);
            header.set_mtime(MODIFIED_S);
            header.set_cksum();
            let path = format!("{}/{path}", self.name);
            tar.append_data(&mut header, path, content).expect("writing to memory succeeds");
        };
        add("DESCRIPTION", self.description().as_bytes());
        add("NAMESPACE", b"export(hello)\n");
        let code = if self.broken {
            "stop(\"this package is broken on purpose\")\n".to_owned()
        } else {
            format!("hello <- function() \"{} {}\"\n", self.name, self.version)
        };
        add("R/hello.R", code.as_bytes());
        if self.bytes > 0 {
            let seed = self.name.bytes().fold(1, |seed, b| seed * 31 + u64::from(b));
            add("inst/extdata/blob.bin", &noise(seed, self.bytes));
        }
        let gzip = tar.into_inner().expect("writing to memory succeeds");
        gzip.finish().expect("writing to memory succeeds")
    }

    fn description(&self) -> String {
        let fixed = format!(
            "Package: {}\nVersion: {}\nTitle: Generated Package\n\
             Description: Content of no interest, made for tests of transfers.\n\
             Author: Nobody\nMaintainer: Nobody <nobody@example.org>\nLicense: GPL-2\n\
             NeedsCompilation: no\nPackaged: 2023-11-14 22:13:20 UTC; nobody\n",
            self.name, self.version
        );
        // Where a package lies is the repository's business, not the package's.
        let own = self.fields.iter().filter(|(name, _)| name != "Path" && name != "File");
        own.fold(fixed, |text, (name, value)| text + &format!("{name}: {value}\n"))
    }

    fn record(&self, tarball: &[u8]) -> String {
        let md5: String = Md5::digest(tarball).iter().map(|byte| format!("{byte:02x}")).collect();
        let fixed = format!(
            "Package: {}\nVersion: {}\nLicense: GPL-2\nMD5sum: {md5}\nNeedsCompilation: no\n",
            self.name, self.version
        );
        self.fields.iter().fold(fixed, |text, (name, value)| text + &format!("{name}: {value}\n"))
    }
}

/// A repository to generate.
#[derive(Clone, Debug, Default)]
pub struct CranRepo {
    /// The packages of its index, in order.
    pub packages: Vec<PackageSpec>,
    /// Superseded packages, under `Archive`.
    pub archived: Vec<PackageSpec>,
}

impl CranRepo {
    /// `count` packages of some `median_bytes` each; every third imports an earlier one.
    #[must_use]
    pub fn generate(seed: u64, count: usize, median_bytes: usize) -> Self {
        let mut random = Random(seed);
        let mut packages: Vec<PackageSpec> = Vec::with_capacity(count);
        for number in 0..count {
            let version = format!("{}.{}.{}", random.below(4), random.below(10), random.below(10));
            let mut package = PackageSpec::new(&format!("bp{number:03}"), &version);
            // Between a quarter and four times the median, evenly in powers of two.
            package.bytes = (median_bytes << random.below(3) >> random.below(3)).max(1);
            package = package.field("Depends", "R (>= 3.5.0)");
            if number % 3 == 2 {
                let earlier = packages[random.below(number)].name.clone();
                package = package.field("Imports", &earlier);
            }
            packages.push(package);
        }
        Self { packages, archived: Vec::new() }
    }

    /// Every file of the repository by its path below the root: packages, the index in three
    /// spellings, and the archive with its listing.
    ///
    /// # Panics
    /// If the packages' fields do not make an index.
    #[must_use]
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let mut files = BTreeMap::new();
        let mut records = Vec::with_capacity(self.packages.len());
        for package in &self.packages {
            let tarball = package.tarball();
            records.push(package.record(&tarball));
            let field = |name: &str| {
                let found = package.fields.iter().find(|(field, _)| field == name);
                found.map(|(_, value)| value.clone())
            };
            let folder = field("Path").map(|path| format!("{path}/")).unwrap_or_default();
            let file = field("File").unwrap_or_else(|| package.file_name());
            files.insert(format!("src/contrib/{folder}{file}"), tarball);
        }
        let index = records.join("\n");
        let table = dcf::read(index.as_bytes(), &Limits::default()).expect("fields make an index");
        let rds = rds::write(&Object::from(&table));
        files.insert("src/contrib/PACKAGES.rds".to_owned(), gzip(&rds));
        files.insert("src/contrib/PACKAGES.gz".to_owned(), gzip(index.as_bytes()));
        files.insert("src/contrib/PACKAGES".to_owned(), index.into_bytes());
        let mut listing: BTreeMap<&str, Vec<(String, usize)>> = BTreeMap::new();
        for package in &self.archived {
            let tarball = package.tarball();
            let path = format!("{}/{}", package.name, package.file_name());
            listing.entry(&package.name).or_default().push((path.clone(), tarball.len()));
            files.insert(format!("src/contrib/Archive/{path}"), tarball);
        }
        if !listing.is_empty() {
            let listing = gzip(&rds::write(&archive_listing(&listing)));
            files.insert("src/contrib/Meta/archive.rds".to_owned(), listing);
        }
        files
    }

    /// Writes [`files`](Self::files) below a folder and returns `src/contrib`'s path.
    ///
    /// # Errors
    /// Whatever the file system says.
    pub fn write(&self, root: &Path) -> io::Result<PathBuf> {
        for (path, content) in self.files() {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("a path below the root"))?;
            fs::write(path, content)?;
        }
        Ok(root.join("src/contrib"))
    }
}

fn archive_listing(packages: &BTreeMap<&str, Vec<(String, usize)>>) -> Object {
    #[expect(clippy::cast_precision_loss, reason = "sizes of fixtures")]
    let frame = |files: &Vec<(String, usize)>| {
        let sizes = files.iter().map(|(_, bytes)| *bytes as f64).collect();
        let times = vec![MODIFIED_S as f64; files.len()];
        let times = Object::from(Value::Real(times))
            .with("class", Object::strings([Some("POSIXct"), Some("POSIXt")]));
        Object::from(Value::List(vec![Value::Real(sizes).into(), times]))
            .with("names", Object::strings([Some("size"), Some("mtime")]))
            .with("row.names", Object::strings(files.iter().map(|(path, _)| Some(path.as_str()))))
            .with("class", Object::strings([Some("data.frame")]))
    };
    Object::from(Value::List(packages.values().map(frame).collect()))
        .with("names", Object::strings(packages.keys().map(|name| Some(*name))))
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzBuilder::new().write(Vec::new(), Compression::fast());
    io::Write::write_all(&mut encoder, bytes).expect("writing to memory succeeds");
    encoder.finish().expect("writing to memory succeeds")
}

fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut random = Random(seed);
    std::iter::repeat_with(|| random.next().to_le_bytes()).flatten().take(len).collect()
}

/// SplitMix64: enough for fixtures, and the same everywhere.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// The next number.
    #[expect(clippy::should_implement_trait, reason = "endless, and no iterator is wanted")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`, which must not be 0.
    pub fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).expect("less than a usize")
    }

    /// One of several, which must not be none.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }
}
