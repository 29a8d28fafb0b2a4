//! `trunkline cran install`.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use futures_util::StreamExt as _;
use trunkline_cran::{
    Dependencies, Outcome, PackagePlan,
    closure::install_order,
    download::{DownloadOptions, download},
    install::{InstallEvent, InstallOptions, install},
    wording,
};
use trunkline_transfer::Report;

use crate::{
    commands::cran::{
        args::InstallArgs,
        download::add_failure,
        error::CranError,
        session::{Session, exit_of},
    },
    exit::Exit,
    render::{self, View},
    signals,
};

pub(crate) async fn run(args: InstallArgs) -> Result<Exit, CranError> {
    if args.repositories.r_version.is_some() {
        return Err(CranError::InstallWithoutR);
    }
    let scratch = tempfile::Builder::new().prefix("trunkline-cran-").tempdir();
    let scratch = scratch.map_err(CranError::file("make a folder in", &std::env::temp_dir()))?;
    let folder = |given: &Option<PathBuf>, name: &str| {
        let folder = given.clone().unwrap_or_else(|| scratch.path().join(name));
        std::fs::create_dir_all(&folder).map_err(CranError::file("make", &folder))?;
        std::path::absolute(&folder).map_err(CranError::file("find", &folder))
    };
    let (files, logs) = (folder(&args.destdir, "packages")?, folder(&args.logs, "logs")?);
    let session = Session::begin(&args.repositories, &args.network).await?;
    let options = install_options(&args, &session, &logs)?;
    // A lock file names everything; else R's default.
    let default = if session.lock.is_some() { Dependencies::None } else { Dependencies::Strong };
    let dependencies = args.repositories.dependencies.clone().unwrap_or(default);
    let (plans, unplanned) = session.plans(&args.packages, &dependencies);
    let view = Arc::new(View::new(&args.output, Some(plans.len() as u64), None));
    let downloads = DownloadOptions {
        destination: files,
        headers: http::HeaderMap::new(),
        in_flight_max: args.repositories.max_in_flight,
        keep_complete: true,
        observer: view.observer(),
    };
    let names: Vec<String> = plans.iter().map(|plan| plan.name.clone()).collect();
    let order = install_order(&session.index, &names);
    if let Some(warning) = wording::circle(&order) {
        render::error(&warning);
    }
    let started = std::time::Instant::now();
    let mut report = Report::default();
    let mut got: Vec<(&PackagePlan, PathBuf)> = Vec::new();
    let (stop, stopped) = signals::stop();
    let arriving = download(&session.engine, &plans, &downloads)
        .map(|(number, result)| (plans[number].name.clone(), result));
    let work = install(order, arriving, &options, |event| {
        observe(&event, &plans, &mut got, &mut report, args.output.quiet);
    });
    let outcomes = tokio::select! {
        outcomes = work => outcomes,
        () = stop => Vec::new(),
    };
    report.elapsed = started.elapsed();
    report.bytes_received = session.engine.stats_total().bytes_received;
    let exit = exit_of(&report, unplanned, stopped.get());
    view.finish(&report, &session.engine, exit);
    if let (Some(path), None) = (&args.repositories.write_lockfile, stopped.get()) {
        session.write_lockfile(path, &got)?;
    }
    session.engine.close();
    let failed = conclude(&outcomes);
    if failed && args.logs.is_none() {
        let kept = scratch.keep();
        render::error(&format!("the logs are in {}", kept.join("logs").display()));
    }
    Ok(if failed && exit == Exit::Success { Exit::Mixed } else { exit })
}

fn install_options(
    args: &InstallArgs,
    session: &Session,
    logs: &Path,
) -> Result<InstallOptions, CranError> {
    let r = session.r.as_ref().ok_or(CranError::InstallWithoutR)?;
    let library = match &args.lib {
        Some(library) => {
            std::fs::create_dir_all(library).map_err(CranError::file("make", library))?;
            std::path::absolute(library).map_err(CranError::file("find", library))?
        }
        None => r.libraries.first().cloned().ok_or(CranError::NoLibrary)?,
    };
    let others = r.libraries.iter().filter(|other| **other != library).cloned();
    Ok(InstallOptions {
        program: r.program.clone(),
        libraries: std::iter::once(library.clone()).chain(others).collect(),
        library,
        jobs_max: args.jobs,
        logs: logs.to_owned(),
        arguments: args.install_opts.clone(),
    })
}

fn observe<'a>(
    event: &InstallEvent<'_>,
    plans: &'a [PackagePlan],
    got: &mut Vec<(&'a PackagePlan, PathBuf)>,
    report: &mut Report,
    quiet: bool,
) {
    let plan = |package: &str| plans.iter().find(|plan| plan.name == package);
    match event {
        InstallEvent::Downloaded { package, path } => {
            report.done += 1;
            got.extend(plan(package).map(|plan| (plan, path.to_path_buf())));
        }
        InstallEvent::DownloadFailed { package, error } => {
            if let Some(plan) = plan(package) {
                add_failure(report, plan, error);
            }
        }
        InstallEvent::Started { package } if !quiet => {
            render::error(&format!("installing {}", wording::quote(package)));
        }
        InstallEvent::Finished { package, status, log } => match status {
            Ok(status) if status.success() => {}
            Ok(_) => {
                render::error(&wording::install_failed(package));
                show_end_of(log);
            }
            Err(error) => render::error(&format!("cannot run R for {package}: {error}")),
        },
        _ => {}
    }
}

/// The last lines of a log, where R says what went wrong.
fn show_end_of(log: &Path) {
    /// Lines shown of a failed installation's log.
    const LINES: usize = 12;
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    for line in &lines[lines.len().saturating_sub(LINES)..] {
        render::error(&format!("  {line}"));
    }
}

/// Says what was not installed for another package's sake; whether anything failed.
fn conclude(outcomes: &[(String, Outcome)]) -> bool {
    for (package, outcome) in outcomes {
        if let Outcome::Skipped { because } = outcome {
            render::error(&format!(
                "{} was not tried, since it needs {}",
                wording::quote(package),
                wording::quote(because)
            ));
        }
    }
    outcomes.iter().any(|(_, outcome)| *outcome != Outcome::Installed)
}
