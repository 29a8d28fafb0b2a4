//! The same job in each peer's own words.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::fixtures::Entry;

/// Input files for one case, in the folder that they lie in.
#[derive(Debug)]
pub(super) struct Lists {
    pub(super) directory: PathBuf,
    /// What is fetched, and under which name it is stored.
    pub(super) jobs: Vec<Job>,
    base: String,
}

/// One file to fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Job {
    pub(super) entry: Entry,
    pub(super) name: String,
}

impl Lists {
    /// `base` is the URL of the served folder, without a slash at the end. With `copies`, each
    /// entry is fetched so often, under names of their own.
    ///
    /// # Errors
    /// The files cannot be written.
    pub(super) fn write(
        directory: &Path,
        base: &str,
        entries: &[Entry],
        copies: usize,
    ) -> Result<Self> {
        std::fs::create_dir_all(directory)?;
        let jobs = (0..copies)
            .flat_map(|copy| {
                entries.iter().map(move |entry| {
                    let name = match copy {
                        0 => entry.name().to_owned(),
                        _ => format!("{copy}.{}", entry.name()),
                    };
                    Job { entry: entry.clone(), name }
                })
            })
            .collect();
        let lists = Self { directory: directory.to_owned(), jobs, base: base.to_owned() };
        lists.write_each("urls", |url, _| format!("{url}\n"))?;
        lists.write_each("named", |url, name| format!("{url}\t{name}\n"))?;
        lists.write_each("aria2", |url, name| format!("{url}\n out={name}\n"))?;
        lists.write_each("curl", |url, name| format!("url=\"{url}\"\noutput=\"{name}\"\n"))?;
        Ok(lists)
    }

    fn write_each(&self, name: &str, line: impl Fn(&str, &str) -> String) -> Result<()> {
        let text: String = self.jobs.iter().map(|job| line(&self.url(job), &job.name)).collect();
        Ok(std::fs::write(self.path(name), text)?)
    }

    pub(super) fn url(&self, job: &Job) -> String {
        format!("{}/{}", self.base, job.entry.path)
    }

    /// The URL of the served folder.
    pub(super) fn base(&self) -> &str {
        &self.base
    }

    /// One URL a line.
    pub(super) fn urls(&self) -> PathBuf {
        self.path("urls")
    }

    /// `URL TAB name`.
    pub(super) fn named(&self) -> PathBuf {
        self.path("named")
    }

    /// aria2's input file.
    pub(super) fn aria2(&self) -> PathBuf {
        self.path("aria2")
    }

    /// curl's `-K` file.
    pub(super) fn curl(&self) -> PathBuf {
        self.path("curl")
    }

    /// URLs for one of `clients` clients of h2load. Each of its clients starts at the head of the
    /// list, so all would fetch the same first files; this list has the share of one client, chosen
    /// so that all of them together move as many bytes as the whole list.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn share(&self, clients: usize) -> Result<(PathBuf, usize)> {
        let share = typical_share(&self.jobs, clients);
        let path = self.path(&format!("share{clients}"));
        let mut text = String::new();
        for job in &share {
            writeln!(text, "{}", self.url(job))?;
        }
        std::fs::write(&path, text)?;
        Ok((path, share.len() * clients))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

/// As many jobs as one client's share has, together as near to its share of the bytes as swapping
/// one job for another brings them.
fn typical_share(jobs: &[Job], clients: usize) -> Vec<&Job> {
    let (mut share, mut others): (Vec<&Job>, Vec<&Job>) = {
        let mut by_size: Vec<&Job> = jobs.iter().collect();
        by_size.sort_by_key(|job| job.entry.bytes);
        let (taken, left): (Vec<_>, Vec<_>) =
            by_size.into_iter().enumerate().partition(|(index, _)| index % clients == clients / 2);
        (
            taken.into_iter().map(|(_, job)| job).collect(),
            left.into_iter().map(|(_, job)| job).collect(),
        )
    };
    let aim = jobs.iter().map(|job| job.entry.bytes).sum::<u64>() / clients as u64;
    loop {
        let have: u64 = share.iter().map(|job| job.entry.bytes).sum();
        let distance =
            |out: &Job, into: &Job| (have - out.entry.bytes + into.entry.bytes).abs_diff(aim);
        let best = (0..share.len())
            .flat_map(|out| (0..others.len()).map(move |into| (out, into)))
            .min_by_key(|&(out, into)| distance(share[out], others[into]));
        match best {
            Some((out, into)) if distance(share[out], others[into]) < have.abs_diff(aim) => {
                std::mem::swap(&mut share[out], &mut others[into]);
            }
            _ => return share,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(bytes: u64) -> Job {
        let entry = Entry { path: format!("d/{bytes}"), bytes, md5: String::new() };
        Job { name: entry.name().to_owned(), entry }
    }

    #[test]
    fn one_clients_share_times_the_clients_is_about_the_whole() {
        let jobs: Vec<Job> = (0..150_u64).map(|n| job(1000 + n * n)).collect();
        let share = typical_share(&jobs, 6);
        assert_eq!(share.len(), 25);
        let whole: u64 = jobs.iter().map(|job| job.entry.bytes).sum();
        let moved: u64 = 6 * share.iter().map(|job| job.entry.bytes).sum::<u64>();
        assert!(moved.abs_diff(whole) * 1000 < whole, "{moved} of {whole}");
    }

    #[test]
    fn copies_have_names_of_their_own() {
        let directory = tempfile::tempdir().unwrap();
        let lists = Lists::write(directory.path(), "https://h", &[job(1).entry], 2).unwrap();
        let named = std::fs::read_to_string(lists.named()).unwrap();
        assert_eq!(named, "https://h/d/1\t1\nhttps://h/d/1\t1.1\n");
    }
}
