//! `cargo xtask tidy`: the laws of ARCHITECTURE.md and STYLE.md that a machine can keep.

mod documents;
mod graph;
mod hygiene;
mod names;
mod purity;
mod sizes;
mod source;
mod tree;

use std::fmt;

use anyhow::{Result, bail};

use self::tree::Tree;

/// What one look at the workspace found.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// Broken laws: these fail the run.
    broken: Vec<Finding>,
    /// Worth a look, no more.
    notes: Vec<Finding>,
}

/// One place and what is wrong with it.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    path: String,
    /// Counted from 1; absent when the whole file is meant.
    line: Option<usize>,
    text: String,
}

impl Findings {
    fn broken(&mut self, path: &str, line: impl Into<Option<usize>>, text: impl Into<String>) {
        self.broken.push(Finding { path: path.into(), line: line.into(), text: text.into() });
    }

    fn note(&mut self, path: &str, line: impl Into<Option<usize>>, text: impl Into<String>) {
        self.notes.push(Finding { path: path.into(), line: line.into(), text: text.into() });
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.path, self.text),
            None => write!(f, "{}: {}", self.path, self.text),
        }
    }
}

/// Runs every check and fails when a law is broken.
pub(crate) fn run() -> Result<()> {
    let tree = Tree::load()?;
    let mut findings = Findings::default();
    graph::check(&graph::Graph::load()?, &mut findings);
    sizes::check(&tree, &mut findings);
    names::check(&tree, &mut findings);
    purity::check(&tree, &mut findings);
    documents::check(&tree, &mut findings);
    hygiene::check(&tree, &mut findings);
    for note in &findings.notes {
        println!("note: {note}");
    }
    for finding in &findings.broken {
        println!("tidy: {finding}");
    }
    if !findings.broken.is_empty() {
        bail!("tidy: {} broken", findings.broken.len());
    }
    println!("tidy: {} files, nothing broken, {} notes", tree.files.len(), findings.notes.len());
    Ok(())
}
