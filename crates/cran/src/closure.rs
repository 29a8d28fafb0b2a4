//! Which packages must be had for the ones that are wanted, and in which order they install.
//!
//! Results agree with R's to the order of their elements, because R shows that order: in "also
//! installing the dependencies", in the matrix of `download.packages()` and in the log of an
//! installation. (R: `getDependencies()`, `.make_dependency_list()` and `.find_install_order()` of
//! utils; `tools::package_dependencies()`.)

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use trunkline_proto::cran::{Constraint, Relation, Version, dependency};

use crate::index::{Index, Package};

/// A field that names other packages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// Attached with the package.
    Depends,
    /// Loaded with the package.
    Imports,
    /// Needed to compile the package.
    LinkingTo,
    /// Needed by examples, tests or vignettes only.
    Suggests,
    /// Made better by the package.
    Enhances,
}

impl Field {
    /// The field's name in an index.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Depends => "Depends",
            Self::Imports => "Imports",
            Self::LinkingTo => "LinkingTo",
            Self::Suggests => "Suggests",
            Self::Enhances => "Enhances",
        }
    }

    /// The field of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Depends, Self::Imports, Self::LinkingTo, Self::Suggests, Self::Enhances]
            .into_iter()
            .find(|field| field.name() == name)
    }
}

/// What a package cannot do without (R: `"strong"`).
pub const STRONG: [Field; 3] = [Field::Depends, Field::Imports, Field::LinkingTo];
/// What a package is checked with (R: `"most"`).
pub const MOST: [Field; 4] = [Field::Depends, Field::Imports, Field::LinkingTo, Field::Suggests];

/// Which dependencies are installed along (R: `dependencies` of `install.packages()`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dependencies {
    /// None (R: `FALSE`).
    None,
    /// What the packages and their dependencies cannot do without (R: `NA`, the default).
    Strong,
    /// That, and what the wanted packages themselves suggest (R: `TRUE`).
    StrongAndSuggested,
    /// These fields, of the wanted packages and of all that follow (R: a character vector).
    Fields(Vec<Field>),
}

impl Dependencies {
    /// The fields looked at for the wanted packages, and for the dependencies after them.
    fn fields(&self, binary: bool) -> (Vec<Field>, Vec<Field>) {
        // R's NA is the same for binaries; only TRUE leaves out what compiling alone needs.
        let without_linking = |fields: &[Field]| {
            fields.iter().copied().filter(|&f| !(binary && f == Field::LinkingTo)).collect()
        };
        match self {
            Self::None => (Vec::new(), Vec::new()),
            Self::Strong => (STRONG.to_vec(), STRONG.to_vec()),
            Self::StrongAndSuggested => (without_linking(&MOST), without_linking(&STRONG)),
            Self::Fields(fields) => (fields.clone(), fields.clone()),
        }
    }
}

/// What is installed already: versions by package, base packages included.
pub type Installed = HashMap<String, Vec<Version>>;

/// The packages that come with R itself and are never installed from a repository.
pub const BASE_PACKAGES: [&str; 14] = [
    "base",
    "compiler",
    "datasets",
    "grDevices",
    "graphics",
    "grid",
    "methods",
    "parallel",
    "splines",
    "stats",
    "stats4",
    "tcltk",
    "tools",
    "utils",
];

/// The result of [`install_set`]: what to get, and what R would warn about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstallSet {
    /// Everything to get, dependencies before the packages they were found for.
    pub packages: Vec<String>,
    /// Those of `packages` that nobody asked for by name.
    pub added: Vec<String>,
    /// Wanted packages that no repository has.
    pub unavailable: Vec<String>,
    /// Wanted packages that are part of R.
    pub base: Vec<String>,
    /// Dependencies that no repository has (or not in the version needed), as R words them:
    /// `name` or `name (>= version)`.
    pub missing: Vec<String>,
}

/// Works out what to get for the wanted packages (R: `getDependencies()`).
///
/// `binary` says that binary packages are asked for, which need nothing to compile.
#[must_use]
pub fn install_set(
    index: &Index,
    wanted: &[String],
    dependencies: &Dependencies,
    installed: &Installed,
    binary: bool,
) -> InstallSet {
    let asked = unique(wanted.iter().map(String::as_str));
    let mut set = InstallSet::default();
    let mut found: Vec<&str> = Vec::new();
    for &name in &asked {
        let is_base = BASE_PACKAGES.contains(&name);
        if is_base {
            set.base.push(name.to_owned());
        }
        if index.contains(name) {
            found.push(name);
        } else if !is_base {
            set.unavailable.push(name.to_owned());
        }
    }
    let (first_fields, later_fields) = dependencies.fields(binary);
    let mut closure = Closure { index, installed, known: asked.iter().copied().collect() };
    // R puts each round's finds in front of all before.
    let mut rounds: Vec<Vec<&str>> = vec![found.clone()];
    let mut fields = first_fields;
    while !fields.is_empty() {
        let last = rounds.last().expect("the wanted packages are the first round");
        let next = closure.round(last, &fields, &mut set.missing);
        if next.is_empty() {
            break;
        }
        rounds.push(next);
        fields.clone_from(&later_fields);
    }
    set.missing =
        unique(set.missing.iter().map(String::as_str)).into_iter().map(Into::into).collect();
    let all = unique(rounds.iter().rev().flatten().copied());
    let asked: HashSet<&str> = found.into_iter().collect();
    let added = all.iter().filter(|name| !asked.contains(*name));
    set.added = added.map(|&name| name.to_owned()).collect();
    set.packages = all.into_iter().map(str::to_owned).collect();
    set
}

struct Closure<'a> {
    index: &'a Index,
    installed: &'a Installed,
    /// Everything asked for or found so far.
    known: HashSet<&'a str>,
}

impl<'a> Closure<'a> {
    /// What a round's packages need that is neither installed nor known, in R's order.
    fn round(
        &mut self,
        packages: &[&str],
        fields: &[Field],
        missing: &mut Vec<String>,
    ) -> Vec<&'a str> {
        let mut next = Vec::new();
        for name in packages {
            let package = self.index.first(name).expect("only available packages are followed");
            let mut seen = HashSet::new();
            for entry in entries(package, fields) {
                if entry.name == "R" || !seen.insert(entry.name) || self.is_installed(&entry) {
                    continue;
                }
                match self.missing_wording(&entry) {
                    Some(words) => missing.push(words),
                    None if self.known.insert(entry.name) => next.push(entry.name),
                    None => {}
                }
            }
        }
        next
    }

    /// R looks at the installed version only where the constraint is `>=`.
    fn is_installed(&self, entry: &dependency::Dependency<'_>) -> bool {
        let Some(versions) = self.installed.get(entry.name) else { return false };
        match at_least(&entry.constraint) {
            Some(wanted) => versions.iter().any(|version| version >= wanted),
            None => true,
        }
    }

    /// Why no repository can help, in R's words; `None` when one can.
    fn missing_wording(&self, entry: &dependency::Dependency<'_>) -> Option<String> {
        if !self.index.contains(entry.name) {
            return Some(entry.name.to_owned());
        }
        let wanted = at_least(&entry.constraint)?;
        let mut rows = self.index.rows_of(entry.name);
        let offered = rows.any(|package| package.version().is_some_and(|found| found >= wanted));
        (!offered).then(|| format!("{} (>= {})", entry.name, wanted.canonical()))
    }
}

fn at_least<'a>(constraint: &'a Constraint<'_>) -> Option<&'a Version> {
    match constraint {
        Constraint::Version(Relation::AtLeast, wanted) => Some(wanted),
        _ => None,
    }
}

fn entries<'a>(
    package: Package<'a>,
    fields: &[Field],
) -> impl Iterator<Item = dependency::Dependency<'a>> {
    fields.iter().filter_map(move |field| package.field(field.name())).flat_map(dependency::parse)
}

/// The names in a package's fields, each once, in order.
fn dependency_names<'a>(package: Package<'a>, fields: &[Field]) -> Vec<&'a str> {
    let texts = fields.iter().filter_map(|field| package.field(field.name()));
    unique(texts.flat_map(dependency::names))
}

fn unique<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = HashSet::new();
    names.into_iter().filter(|&name| seen.insert(name)).collect()
}

/// An order in which packages can be installed, and what stood in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstallOrder {
    /// All packages; each after those it needs, as far as there is such an order.
    pub packages: Vec<String>,
    /// For each package those of the set that must be installed before it, by name.
    pub needs: BTreeMap<String, BTreeSet<String>>,
    /// Packages that need each other in a circle; they come last, in no useful order.
    pub circle: Vec<String>,
}

/// Orders a set of packages (R: `.find_install_order()`).
///
/// Packages of equal standing keep their order. In a circle nobody comes first: R warns and tries
/// anyway, and so may the caller; `needs` leaves the links within [`circle`](InstallOrder::circle)
/// out, so that following it always ends.
#[must_use]
pub fn install_order(index: &Index, packages: &[String]) -> InstallOrder {
    let set: HashSet<&str> = packages.iter().map(String::as_str).collect();
    let needs_of = |name: &str| -> Vec<&str> {
        let Some(package) = index.first(name) else { return Vec::new() };
        let names = dependency_names(package, &STRONG);
        names.into_iter().filter(|&other| other != name && set.contains(other)).collect()
    };
    let mut waiting: Vec<(&str, Vec<&str>)> =
        unique(packages.iter().map(String::as_str)).into_iter().map(|p| (p, needs_of(p))).collect();
    let mut needs: BTreeMap<String, BTreeSet<String>> = waiting
        .iter()
        .map(|(name, needs)| (name.to_string(), needs.iter().map(ToString::to_string).collect()))
        .collect();
    let mut done: HashSet<&str> = HashSet::new();
    let mut order: Vec<&str> = Vec::new();
    loop {
        let (ready, rest): (Vec<_>, Vec<_>) =
            waiting.into_iter().partition(|(_, needs)| needs.iter().all(|n| done.contains(n)));
        waiting = rest;
        if ready.is_empty() {
            break;
        }
        order.extend(ready.iter().map(|&(name, _)| name));
        done.extend(ready.iter().map(|&(name, _)| name));
    }
    let circle: Vec<&str> = waiting.iter().map(|&(name, _)| name).collect();
    for name in &circle {
        if let Some(needs) = needs.get_mut(*name) {
            needs.retain(|other| !circle.contains(&other.as_str()));
        }
    }
    order.extend(&circle);
    let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
    InstallOrder { packages: owned(order), needs, circle: owned(circle) }
}

/// The dependencies of packages by name, directly or through others, as
/// `tools::package_dependencies()` finds them; names without an entry in the index are leaves.
///
/// Direct dependencies keep the order of the fields; all others are sorted. `None` stands for a
/// package the index lacks.
#[must_use]
pub fn package_dependencies(
    index: &Index,
    packages: &[String],
    which: &[Field],
    recursive: bool,
) -> BTreeMap<String, Option<Vec<String>>> {
    let direct = |name: &str| index.first(name).map(|package| dependency_names(package, which));
    let through = |name: &str| {
        let mut found: BTreeSet<&str> = BTreeSet::new();
        let mut next = direct(name)?;
        while let Some(name) = next.pop() {
            if found.insert(name) {
                next.extend(direct(name).into_iter().flatten());
            }
        }
        Some(found.into_iter().map(str::to_owned).collect())
    };
    let of = |name: &String| match recursive {
        true => through(name),
        false => direct(name).map(|names| names.into_iter().map(str::to_owned).collect()),
    };
    packages.iter().map(|name| (name.clone(), of(name))).collect()
}

#[cfg(test)]
mod tests;
