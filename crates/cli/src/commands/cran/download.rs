//! `trunkline cran download`.

use std::{path::PathBuf, sync::Arc};

use futures_util::StreamExt as _;
use trunkline_cran::{
    Dependencies, PackagePlan,
    download::{DownloadError, DownloadOptions, download},
};
use trunkline_transfer::{Class, Report};

use crate::{
    commands::cran::{
        args::DownloadArgs,
        error::CranError,
        session::{Session, exit_of},
    },
    exit::Exit,
    render::{self, View},
    signals,
};

pub(crate) async fn run(args: DownloadArgs) -> Result<Exit, CranError> {
    std::fs::create_dir_all(&args.destdir).map_err(CranError::file("make", &args.destdir))?;
    let session = Session::begin(&args.repositories, &args.network).await?;
    let dependencies = args.repositories.dependencies.clone().unwrap_or(Dependencies::None);
    let (plans, unplanned) = session.plans(&args.packages, &dependencies);
    let view = Arc::new(View::new(&args.output, Some(plans.len() as u64), None));
    let options = DownloadOptions {
        destination: args.destdir.clone(),
        headers: http::HeaderMap::new(),
        in_flight_max: args.repositories.max_in_flight,
        keep_complete: true,
        observer: view.observer(),
    };
    let started = std::time::Instant::now();
    let mut report = Report::default();
    let mut got: Vec<(&PackagePlan, PathBuf)> = Vec::with_capacity(plans.len());
    let (stop, stopped) = signals::stop();
    let work = async {
        let mut results = std::pin::pin!(download(&session.engine, &plans, &options));
        while let Some((number, result)) = results.next().await {
            match result {
                Ok(path) => {
                    report.done += 1;
                    got.push((&plans[number], path));
                }
                Err(error) => add_failure(&mut report, &plans[number], &error),
            }
        }
    };
    tokio::select! {
        () = work => {}
        () = stop => {}
    }
    report.elapsed = started.elapsed();
    report.bytes_received = session.engine.stats_total().bytes_received;
    let exit = exit_of(&report, unplanned, stopped.get());
    view.finish(&report, &session.engine, exit);
    if !args.output.quiet && !args.output.json {
        show(&got, &plans);
    }
    if let (Some(path), None) = (&args.repositories.write_lockfile, stopped.get()) {
        session.write_lockfile(path, &got)?;
    }
    session.engine.close();
    Ok(exit)
}

/// Counts a package that could not be had, and says why where the engine did not.
pub(crate) fn add_failure(report: &mut Report, plan: &PackagePlan, error: &DownloadError) {
    report.failed += 1;
    let class = match error {
        DownloadError::Transfer(error) => error.kind.class(),
        DownloadError::Url { .. } => Class::Usage,
        DownloadError::LocalChecksum { .. } => Class::Integrity,
        _ => Class::File,
    };
    *report.classes.entry(class).or_default() += 1;
    if !matches!(error, DownloadError::Transfer(_)) {
        render::error(&error.to_string());
    }
    render::error(&trunkline_cran::wording::download_failed(&plan.name));
}

/// One line a package on standard output, in the order asked for: name, version, file.
fn show(got: &[(&PackagePlan, PathBuf)], plans: &[PackagePlan]) {
    use std::io::Write as _;
    let mut out = std::io::stdout().lock();
    for plan in plans {
        let Some((_, path)) = got.iter().find(|(done, _)| std::ptr::eq(*done, plan)) else {
            continue;
        };
        // A reader that went away wants no more lines.
        if writeln!(out, "{}\t{}\t{}", plan.name, plan.version, path.display()).is_err() {
            return;
        }
    }
}
