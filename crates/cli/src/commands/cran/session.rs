//! What downloads and installations have in common: R's set-up, the engine, the index, the plans.

use std::path::Path;

use http::HeaderValue;
use trunkline_cran::{
    Dependencies, Digests, Filter, Index, InstallSet, PackagePlan, PackageType, Platform, Request,
    closure::{Installed, install_set},
    contrib_url,
    indexes::{IndexRequest, read_indexes},
    plan::plan,
    r_setup::RSetup,
    wording,
};
use trunkline_proto::cran::{LockedPackage, LockedR, LockedRepository, Lockfile, Version};
use trunkline_proto::digest::Algorithm;
use trunkline_transfer::{Engine, Report};

use crate::{
    commands::cran::{args::RepositoryArgs, error::CranError},
    environment::Environment,
    exit::Exit,
    flags::NetworkArgs,
    render, settings,
};

/// Everything that is known before the first package is fetched.
pub(crate) struct Session {
    pub(crate) engine: Engine,
    /// `None` when no R was asked.
    pub(crate) r: Option<RSetup>,
    pub(crate) index: Index,
    pub(crate) lock: Option<Lockfile>,
    repositories: Vec<(String, String)>,
    r_version: Version,
    package_type: PackageType,
}

impl Session {
    /// Asks R, makes the engine, and reads the indexes of all repositories.
    pub(crate) async fn begin(
        args: &RepositoryArgs,
        network: &NetworkArgs,
    ) -> Result<Self, CranError> {
        let lock = args.lockfile.as_deref().map(read_lockfile).transpose()?;
        let r = match &args.r_version {
            Some(_) => None,
            None => Some(RSetup::ask(&args.r).await?),
        };
        let mut settings = settings::engine(network, &Environment::read())?;
        settings.files.write_in_place = true;
        if let Some(r) = &r
            && network.user_agent.is_none()
            && let Some(agent) = r.user_agent.as_ref().and_then(|a| HeaderValue::try_from(a).ok())
        {
            // Some repositories choose by it what they serve for this system.
            settings.identity.user_agent = agent;
        }
        let repositories = repositories(args, lock.as_ref(), r.as_ref());
        if repositories.is_empty() {
            return Err(CranError::NoRepositories);
        }
        let platform = match (&r, &args.r_version) {
            (Some(r), _) => r.platform.clone(),
            (None, version) => Platform {
                r_version: version.clone().expect("R is asked unless a version is given"),
                os_type: if cfg!(windows) { "windows" } else { "unix" }.to_owned(),
                subarch: String::new(),
            },
        };
        let engine = Engine::new(settings);
        let index = read_index(&engine, &repositories, args, &platform).await?;
        let (r_version, package_type) = (platform.r_version, args.package_type.clone());
        Ok(Self { engine, r, index, lock, repositories, r_version, package_type })
    }

    /// What to get: the packages of the lock file, or the named ones with their dependencies.
    ///
    /// What cannot be planned is said, and leaves the rest alone; its number is the second value.
    pub(crate) fn plans(
        &self,
        packages: &[Request],
        dependencies: &Dependencies,
    ) -> (Vec<PackagePlan>, u64) {
        let mut requests: Vec<Request> = Vec::new();
        if let Some(lock) = &self.lock {
            requests.extend(lock.packages.values().filter_map(request_of));
        }
        requests.extend(self.with_dependencies(packages, dependencies));
        let mut failed = 0;
        let mut plans = Vec::with_capacity(requests.len());
        for request in &requests {
            match plan(&self.index, request, &self.package_type, &[]) {
                Ok(plan) => plans.push(self.with_locked_digests(plan)),
                Err(error) => {
                    render::error(&error.to_string());
                    failed += 1;
                }
            }
        }
        (plans, failed)
    }

    fn with_dependencies(&self, packages: &[Request], dependencies: &Dependencies) -> Vec<Request> {
        if *dependencies == Dependencies::None {
            return packages.to_vec();
        }
        let nothing = Installed::new();
        let installed = self.r.as_ref().map_or(&nothing, |r| &r.installed);
        let names: Vec<String> = packages.iter().map(|request| request.name.clone()).collect();
        let binary = self.package_type != PackageType::Source;
        let set = install_set(&self.index, &names, dependencies, installed, binary);
        say_about(&set);
        let asked = |name: &String| packages.iter().find(|request| request.name == *name).cloned();
        let of = |name: String| asked(&name).unwrap_or(Request { name, version: None });
        // A package that only an archive has is not in the set; its plan will tell.
        let only_archived = packages
            .iter()
            .filter(|request| request.version.is_some() && !set.packages.contains(&request.name));
        let only_archived: Vec<Request> = only_archived.cloned().collect();
        set.packages.into_iter().map(of).chain(only_archived).collect()
    }

    /// A place whose index gives no checksum is checked by the lock file's.
    fn with_locked_digests(&self, mut plan: PackagePlan) -> PackagePlan {
        let locked = self.lock.as_ref().and_then(|lock| lock.packages.get(&plan.name));
        if let Some(locked) = locked.filter(|locked| locked.version == plan.version) {
            for candidate in &mut plan.candidates {
                if candidate.digests == Digests::default() {
                    candidate.digests.md5.clone_from(&locked.file_md5);
                    candidate.digests.sha256.clone_from(&locked.file_sha256);
                }
            }
        }
        plan
    }

    /// Writes what was got as a lock file.
    pub(crate) fn write_lockfile(
        &self,
        path: &Path,
        got: &[(&PackagePlan, std::path::PathBuf)],
    ) -> Result<(), CranError> {
        let locked = |(plan, file): &(&PackagePlan, std::path::PathBuf)| {
            let sha256 = trunkline_cran::download::digest_of(file, Algorithm::Sha256);
            let sha256 = sha256.map_err(CranError::file("read", file))?;
            Ok((plan.name.clone(), self.locked(plan, sha256.to_hex())))
        };
        let packages = got.iter().map(locked).collect::<Result<_, CranError>>()?;
        let repository = |(name, url): &(String, String)| LockedRepository {
            name: name.clone(),
            url: url.clone(),
        };
        let lock = Lockfile {
            r: LockedR {
                version: self.r_version.to_string(),
                repositories: self.repositories.iter().map(repository).collect(),
                ..LockedR::default()
            },
            packages,
            ..Lockfile::default()
        };
        std::fs::write(path, lock.to_json()).map_err(CranError::file("write", path))
    }

    fn locked(&self, plan: &PackagePlan, sha256: String) -> LockedPackage {
        // renv refers to a repository by its name, else by its URL.
        let first = self.index.best(&plan.name).map(|package| package.contrib_url().to_owned());
        let from = self.repositories.iter().find(|(_, root)| {
            first.as_ref().is_some_and(|first| first.starts_with(root.trim_end_matches('/')))
        });
        LockedPackage {
            package: plan.name.clone(),
            version: plan.version.clone(),
            source: Some("Repository".to_owned()),
            repository: from.map(|(name, root)| if name.is_empty() { root } else { name }.clone()),
            file_md5: plan.candidates.first().and_then(|candidate| candidate.digests.md5.clone()),
            file_sha256: Some(sha256),
            ..LockedPackage::default()
        }
    }
}

/// The repositories asked for: named on the command line, else by the lock file, else by R.
fn repositories(
    args: &RepositoryArgs,
    lock: Option<&Lockfile>,
    r: Option<&RSetup>,
) -> Vec<(String, String)> {
    if !args.repos.is_empty() {
        return args.repos.iter().map(|text| split_name(text)).collect();
    }
    if let Some(lock) = lock.filter(|lock| !lock.r.repositories.is_empty()) {
        let pair = |known: &LockedRepository| (known.name.clone(), known.url.clone());
        return lock.r.repositories.iter().map(pair).collect();
    }
    r.map(|r| r.repositories.clone()).unwrap_or_default()
}

/// `NAME=URL`, or a URL, which may have `=` in its query but not before its scheme.
fn split_name(text: &str) -> (String, String) {
    match text.split_once('=') {
        Some((name, url)) if !name.contains([':', '/']) => (name.to_owned(), url.to_owned()),
        _ => (String::new(), text.to_owned()),
    }
}

async fn read_index(
    engine: &Engine,
    repositories: &[(String, String)],
    args: &RepositoryArgs,
    platform: &Platform,
) -> Result<Index, CranError> {
    let contrib_urls: Vec<String> = repositories
        .iter()
        .map(|(_, root)| contrib_url(root, &args.package_type, &platform.r_version))
        .collect();
    let results = read_indexes(engine, &contrib_urls, &IndexRequest::default()).await;
    let mut indexes = Vec::with_capacity(results.len());
    for (contrib_url, result) in contrib_urls.iter().zip(results) {
        match result {
            Ok(index) => indexes.push(index),
            Err(error) => {
                render::error(&wording::index_inaccessible(contrib_url, &error.to_string()));
            }
        }
    }
    if indexes.is_empty() {
        return Err(CranError::NoIndex);
    }
    Ok(Index::merge(indexes, &Filter::DEFAULT, platform))
}

fn read_lockfile(path: &Path) -> Result<Lockfile, CranError> {
    let bytes = std::fs::read(path).map_err(CranError::file("read", path))?;
    Lockfile::read(&bytes).map_err(|source| CranError::Lockfile { path: path.to_owned(), source })
}

/// A locked package as a request; what no repository has is said and left out.
fn request_of(locked: &LockedPackage) -> Option<Request> {
    let version = locked.version.parse();
    match (locked.is_from_repository(), version) {
        (true, Ok(version)) => {
            Some(Request { name: locked.package.clone(), version: Some(version) })
        }
        _ => {
            let source = locked.source.as_deref().unwrap_or("an unknown place");
            render::error(&format!(
                "{} is left out: version {} comes from {source}, not from a repository",
                wording::quote(&locked.package),
                locked.version
            ));
            None
        }
    }
}

fn say_about(set: &InstallSet) {
    for warning in wording::install_set_warnings(set, false) {
        render::error(&warning);
    }
    if let Some(message) = wording::also_installing(set) {
        render::error(message.trim_end());
    }
}

/// The exit code after everything was tried.
pub(crate) fn exit_of(report: &Report, unplanned: u64, signal: Option<u8>) -> Exit {
    match (signal, Exit::of(report)) {
        (Some(number), _) => Exit::Signal(number),
        (None, Exit::Success) if unplanned > 0 => Exit::Status,
        (None, _) if unplanned > 0 => Exit::Mixed,
        (None, exit) => exit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_may_have_a_name() {
        let split = |text| {
            let (name, url) = split_name(text);
            format!("{name}|{url}")
        };
        assert_eq!(split("CRAN=https://x.org"), "CRAN|https://x.org");
        assert_eq!(split("https://x.org/?a=b"), "|https://x.org/?a=b");
        assert_eq!(split("file:///srv"), "|file:///srv");
    }
}
