//! How long a file and a function may be.

use super::tree::{File, Tree};
use super::{Findings, source};

/// A file above this is noted: split it while it is easy.
const FILE_LINES_TARGET: usize = 400;
/// A file above this is broken.
const FILE_LINES_MAX: usize = 700;
/// A function above this is noted.
const FUNCTION_LINES_TARGET: usize = 70;

/// Files that may be longer, each with the reason.
const LONG_TABLES: &[(&str, &str)] =
    &[("Cargo.lock", "written by cargo"), ("LICENSE-APACHE", "the licence's own text")];

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    for file in &tree.files {
        check_file(file, findings);
        for function in source::functions(&file.code) {
            if function.lines > FUNCTION_LINES_TARGET {
                let text = format!("`{}` has {} lines", function.name, function.lines);
                findings.note(&file.path, function.line, text);
            }
        }
    }
    for (path, _) in LONG_TABLES {
        if tree.find(path).is_none() {
            findings.broken(path, None, "is exempt from the length rule but does not exist");
        }
    }
}

fn check_file(file: &File, findings: &mut Findings) {
    if LONG_TABLES.iter().any(|(path, _)| *path == file.path) {
        return;
    }
    let lines = file.text.lines().count();
    if lines > FILE_LINES_MAX && (file.is_rust() || is_code(&file.path)) {
        findings.broken(&file.path, None, format!("{lines} lines, {FILE_LINES_MAX} at most"));
    } else if lines > FILE_LINES_TARGET && file.is_rust() {
        let text = format!("{lines} lines, {FILE_LINES_TARGET} is the target");
        findings.note(&file.path, None, text);
    }
}

/// Other languages of the project; data and documents may be as long as they need to be.
fn is_code(path: &str) -> bool {
    [".c", ".h", ".R", ".py", ".sh"].iter().any(|extension| path.ends_with(extension))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> (usize, usize) {
        let tables = LONG_TABLES.iter().map(|(path, _)| (*path, ""));
        let files: Vec<(&str, &str)> = tables.chain([(path, text)]).collect();
        let mut findings = Findings::default();
        check(&Tree::of(&files), &mut findings);
        (findings.broken.len(), findings.notes.len())
    }

    #[test]
    fn a_long_file_is_noted_and_a_very_long_one_is_broken() {
        assert_eq!(found("crates/pool/src/idle.rs", &"x;\n".repeat(400)), (0, 0));
        assert_eq!(found("crates/pool/src/idle.rs", &"x;\n".repeat(401)), (0, 1));
        assert_eq!(found("crates/pool/src/idle.rs", &"x;\n".repeat(701)), (1, 0));
        assert_eq!(found("docs/data.md", &"x\n".repeat(701)), (0, 0));
    }

    #[test]
    fn a_long_function_is_noted() {
        let text = format!("fn long() {{\n{}}}\n", "x;\n".repeat(70));
        assert_eq!(found("crates/pool/src/idle.rs", &text), (0, 1));
    }
}
