//! garage-push and garage-check: their options, the lines that scripts match, their exit codes (0
//! and 1), except where theirs hide a failure. docs/garage.md lists the differences.

use std::ffi::OsString;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Parser as _;
use http::{Method, StatusCode};
use trunkline_ostree::check::{self, Check};
use trunkline_ostree::credentials::Credentials;
use trunkline_ostree::push::{self, Push};
use trunkline_ostree::remote::RemoteError;
use trunkline_ostree::repo::{Mode, Repo};
use trunkline_ostree::targets;
use trunkline_proto::ostree::Checksum;
use trunkline_transfer::{Engine, OriginProfile, Request};
use trunkline_transport::Origin;

use crate::commands::ostree::{self, Named, OstreeError, fail, run, verdict_text};
use crate::exit::Exit;
use crate::flags::garage::{CheckArgs, CommonArgs, PushArgs};
use crate::flags::ostree::ServerArgs;
use crate::{logging, render};

/// Names under which the program answers as another.
const NAMES: [&str; 2] = ["garage-push", "garage-check"];

/// Called by one of those names, through a link, it takes that one's options.
pub(crate) fn named(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<_> = arguments.collect();
    let name = arguments.first().map(Path::new).and_then(Path::file_name).map(OsString::from);
    if let Some(name) = name.filter(|name| NAMES.iter().any(|known| name == known)) {
        arguments.insert(1, name);
    }
    arguments
}

/// As `trunkline ostree` would be told what garage's options say.
fn server(common: &CommonArgs) -> ServerArgs {
    /// Gives the options that garage has not their defaults.
    #[derive(clap::Parser)]
    struct Defaults {
        #[command(flatten)]
        server: ServerArgs,
    }
    let program = OsString::from("garage");
    let credentials = common.credentials.clone().into_os_string();
    let parsed = Defaults::parse_from([program, "--credentials".into(), credentials]);
    let mut server = parsed.server;
    server.jobs = common.jobs;
    server.network.cacert.clone_from(&common.cacert);
    server
}

fn begin(common: &CommonArgs) {
    // Their 0 and 1 are what our -v and -vv tell.
    let by_level = match common.loglevel {
        Some(0) => 2,
        Some(1) => 1,
        _ => 0,
    };
    logging::start(common.verbose.max(by_level));
}

fn end(ended: Result<Exit, OstreeError>) -> Exit {
    match ended {
        Ok(Exit::Success) => Exit::Success,
        Ok(exit @ Exit::Signal(_)) => exit,
        Ok(_) => Exit::Mixed,
        Err(error) => {
            fail(&error);
            Exit::Mixed
        }
    }
}

/// Runs as garage-push.
pub(crate) fn push(args: PushArgs) -> Exit {
    begin(&args.common);
    if args.repo_manifest.is_some() {
        render::error("--repo-manifest is not uploaded by this program");
    }
    end(run(do_push(args)))
}

async fn do_push(args: PushArgs) -> Result<Exit, OstreeError> {
    let repo = Repo::open(&args.repo)?;
    if repo.mode() != Mode::Archive {
        tracing::info!("the repository is packed on the way");
    }
    let (commit, name) = Named::read(&args.name)?.resolve(&repo)?;
    if name.is_none() && !args.common.quiet {
        render::note("Provided ref is a commit; no ref will be pushed");
    }
    let remote = ostree::remote(&server(&args.common))?;
    let ask = Push {
        commit,
        name,
        jobs: args.common.jobs,
        dry_run: args.dry_run,
        verify: !args.disable_integrity_checks,
        walk: args.common.walk_tree,
        repair: false,
        force: true,
        plain: false,
    };
    let pushed = push::push(&repo, &remote, &ask).await?;
    if !args.common.quiet {
        if args.dry_run {
            render::data("Dry run. No objects uploaded.");
        } else {
            let requests = (pushed.heads, pushed.uploads);
            render::data(&format!(
                "Upload to Treehub complete after {} HEAD requests and {} PUT requests.",
                requests.0, requests.1
            ));
            render::data(&format!("Total size of uploaded objects: {} bytes.", pushed.bytes));
        }
    }
    Ok(Exit::Success)
}

/// Runs as garage-check.
pub(crate) fn check(args: CheckArgs) -> Exit {
    begin(&args.common);
    end(run(do_check(args)))
}

async fn do_check(args: CheckArgs) -> Result<Exit, OstreeError> {
    let commit = args.name.parse().map_err(|_| OstreeError::Name(args.name.clone()))?;
    let remote = ostree::remote(&server(&args.common))?;
    let ask = Check { commit, walk: args.common.walk_tree, jobs: args.common.jobs, plain: false };
    let verdict = check::check(&remote, &ask).await?;
    if !verdict.is_sound() {
        render::error(&verdict_text(&verdict));
        return Ok(Exit::Mixed);
    }
    check_targets(remote.engine(), &args.common, &commit).await?;
    Ok(Exit::Success)
}

/// Is the commit in the list that devices update to? Asked when the credentials say where that is.
async fn check_targets(
    engine: &Engine,
    common: &CommonArgs,
    commit: &Checksum,
) -> Result<(), OstreeError> {
    let credentials = Credentials::read(&common.credentials)?;
    let Some(mut url) = credentials.tufrepo else { return Ok(()) };
    // The server's own profile stays: it may have a client certificate.
    if let Ok(origin) = Origin::from_url(&url)
        && Origin::from_url(&credentials.server).ok().as_ref() != Some(&origin)
    {
        let profile = OriginProfile { auth: Some(credentials.auth), network: None };
        engine.configure(origin, profile);
    }
    let base = url.path().trim_end_matches('/').to_owned();
    url.set_path(&format!("{base}/api/v1/user_repo/targets.json"));
    let shown = url.to_string().into_boxed_str();
    let request = Request::new(Method::GET, url);
    let reply = engine.send(request).await.map_err(RemoteError::from)?;
    if reply.status != StatusCode::OK {
        return Err(OstreeError::TargetsStatus { url: shown, status: reply.status.as_u16() });
    }
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    Ok(targets::check_targets(&reply.body, commit, now_s)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_by_its_name_takes_its_options() {
        let named = |arguments: &[&str]| named(arguments.iter().map(OsString::from));
        assert_eq!(
            named(&["/usr/bin/garage-push", "-C", "x"]),
            ["/usr/bin/garage-push", "garage-push", "-C", "x"]
        );
        assert_eq!(named(&["trunkline", "get"]), ["trunkline", "get"]);
        assert!(named(&[]).is_empty());
    }
}
