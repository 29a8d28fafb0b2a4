//! The get job, done three ways against the same origin.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::stream;
use trunkline_pool::Limits;
use trunkline_transfer::{Engine, EngineSettings, IN_FLIGHT_DEFAULT, Job, JobId, Observer, Silent};
use trunkline_transport::{Roots, TlsClient, TlsOptions};

use super::certificate::Certificate;
use super::error::TourError;
use super::files::{FileSet, TourFile};
use super::origin::{Counts, Origin, OriginSettings};
use super::scratch::Scratch;

/// How long a slow way may take; beyond that it does only a part of the files.
const WAY_TIME_MAX: Duration = Duration::from_secs(15);

/// The fewest files that say something about all.
const SAMPLE_MIN: usize = 5;

/// A way to do the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Everything new for each file, one file after the other: what a process per file does.
    Cold,
    /// One connection, one request at a time.
    Warm,
    /// One engine for all files, as `trunkline get` does it.
    Trunkline,
}

impl Way {
    /// The slowest first: the others are compared with it.
    pub(super) const ALL: [Self; 3] = [Self::Cold, Self::Warm, Self::Trunkline];

    /// One word, for programs.
    pub(super) fn id(self) -> &'static str {
        match self {
            Self::Cold => "cold",
            Self::Warm => "warm",
            Self::Trunkline => "trunkline",
        }
    }

    /// A few words, for people.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Cold => "a new client per file",
            Self::Warm => "one connection, in turn",
            Self::Trunkline => "trunkline get",
        }
    }

    /// Round trips that a file costs, at a guess, where files follow one another.
    fn turns_a_file(self) -> Option<u32> {
        match self {
            // TCP, TLS 1.3, the request, and one for the bytes.
            Self::Cold => Some(4),
            Self::Warm => Some(1),
            Self::Trunkline => None,
        }
    }

    /// How many of `files` can be done in time.
    fn sample(self, files: usize, round_trip: Duration) -> usize {
        let Some(turns) = self.turns_a_file() else { return files };
        let file = round_trip.max(Duration::from_millis(1)) * turns;
        let in_time = WAY_TIME_MAX.as_millis() / file.as_millis();
        usize::try_from(in_time).unwrap_or(usize::MAX).max(SAMPLE_MIN).min(files)
    }
}

/// What one way took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    /// Files brought and verified; fewer than all where all would have taken too long.
    pub(super) files: usize,
    /// Time for these.
    pub(super) elapsed: Duration,
    /// What the origin saw.
    pub(super) counts: Counts,
}

/// Everything the ways have in common.
pub(super) struct Site {
    files: Arc<FileSet>,
    certificate: Certificate,
    scratch: Scratch,
    origin: OriginSettings,
}

impl Site {
    /// Makes a certificate and a temporary folder. The origin starts anew with each way, so that
    /// each count starts from zero and no session outlives its way.
    ///
    /// # Errors
    /// [`TourError::Certificate`], [`TourError::Folder`].
    pub(super) fn make(files: Arc<FileSet>, origin: OriginSettings) -> Result<Self, TourError> {
        let certificate = Certificate::make()?;
        let scratch = Scratch::make(&certificate)?;
        Ok(Self { files, certificate, scratch, origin })
    }

    /// Brings the files one way. Each is verified by its SHA-256 as it comes.
    ///
    /// # Errors
    /// [`TourError::Fetch`] for the first file that failed; and what it takes to begin.
    pub(super) async fn measure(&self, way: Way) -> Result<Measured, TourError> {
        let folder = self.scratch.folder(way.id())?;
        let origin = Origin::start(Arc::clone(&self.files), &self.certificate, self.origin)?;
        let all = self.files.as_slice();
        let files = way.sample(all.len(), self.origin.round_trip);
        // Spread over the whole, so that the sample's sizes are those of all.
        let chosen = (0..files).map(|index| &all[index * all.len() / files]);
        let jobs = chosen.map(|file| job(&origin, file, &folder)).collect();
        let started = Instant::now();
        match way {
            Way::Cold => self.one_engine_a_file(jobs).await?,
            Way::Warm => {
                let limits = Limits { connections_per_origin: 1, ..Limits::default() };
                self.one_engine(limits, 1, jobs).await?;
            }
            Way::Trunkline => self.one_engine(Limits::default(), IN_FLIGHT_DEFAULT, jobs).await?,
        }
        let elapsed = started.elapsed();
        let counts = origin.stop();
        // The space is needed by the next way; what cannot be removed now is at the end.
        let _ = std::fs::remove_dir_all(folder);
        Ok(Measured { files, elapsed, counts })
    }

    async fn one_engine_a_file(&self, jobs: Vec<Job>) -> Result<(), TourError> {
        let observer: Arc<dyn Observer> = Arc::new(Silent);
        for (id, job) in jobs.iter().enumerate() {
            let engine = self.engine(Limits::default())?;
            engine.fetch(id as JobId, job, &observer).await.map_err(TourError::Fetch)?;
            engine.close();
        }
        Ok(())
    }

    async fn one_engine(
        &self,
        limits: Limits,
        in_flight: usize,
        jobs: Vec<Job>,
    ) -> Result<(), TourError> {
        let engine = self.engine(limits)?;
        let never = std::future::pending();
        let report = engine.run(stream::iter(jobs), in_flight, Arc::new(Silent), never).await;
        engine.close();
        match report.failures.into_iter().next() {
            Some((_, error)) => Err(TourError::Fetch(error)),
            None => Ok(()),
        }
    }

    /// An engine that has nothing from another: no connection, no session, no parsed certificate.
    fn engine(&self, limits: Limits) -> Result<Engine, TourError> {
        let roots = Roots::Only(vec![self.scratch.authority().to_owned()]);
        let tls = TlsClient::new(TlsOptions { roots, ..TlsOptions::default() })?;
        Ok(Engine::new(EngineSettings { limits, ..EngineSettings::new(tls) }))
    }
}

fn job(origin: &Origin, file: &TourFile, folder: &Path) -> Job {
    let destination = folder.join(&file.name);
    Job { check: Some(file.sha256), ..Job::new(origin.url(file), destination) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_way_does_as_many_files_as_its_time_allows() {
        let rtt = Duration::from_millis;
        assert_eq!(Way::Cold.sample(150, rtt(20)), 150);
        assert_eq!(Way::Cold.sample(150, rtt(100)), 37);
        assert_eq!(Way::Cold.sample(150, rtt(2000)), SAMPLE_MIN);
        assert_eq!(Way::Cold.sample(3, rtt(2000)), 3);
        assert_eq!(Way::Cold.sample(150, Duration::ZERO), 150);
        assert_eq!(Way::Warm.sample(150, rtt(200)), 75);
        assert_eq!(Way::Trunkline.sample(2000, rtt(2000)), 2000);
    }
}
