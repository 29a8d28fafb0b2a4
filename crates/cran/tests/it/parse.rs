//! Versions, dependency fields and control files, read by both.

use std::{fmt::Write as _, fs};

use proptest::{prelude::*, strategy::ValueTree as _, test_runner::TestRunner};
use trunkline_proto::cran::{Limits, Version, dcf, dependency};
use trunkline_testkit::rscript;

/// Samples of a strategy, the same in every run.
fn samples<S: Strategy>(strategy: &S, count: usize) -> Vec<S::Value> {
    let mut runner = TestRunner::deterministic();
    (0..count).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect()
}

#[test]
fn versions_compare_as_in_r() {
    let texts = samples(&"[0-9]{1,2}([.-][0-9]{1,3}){1,3}(\\.0){0,2}", 60);
    let code = r#"
        v <- package_version(readLines(file.path(commandArgs(TRUE)[1], "versions")))
        for (i in seq_along(v))
            cat(ifelse(v[[i]] < v, "<", ifelse(v[[i]] == v, "=", ">")), "\n", sep = "")"#;
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("versions"), texts.join("\n") + "\n").unwrap();
    let Some(theirs) = rscript::run(code, &[folder.path().to_str().unwrap()]) else { return };
    let versions: Vec<Version> = texts.iter().map(|text| Version::package(text).unwrap()).collect();
    let mut ours = String::new();
    for a in &versions {
        for b in &versions {
            ours.push(match a.cmp(b) {
                std::cmp::Ordering::Less => '<',
                std::cmp::Ordering::Equal => '=',
                std::cmp::Ordering::Greater => '>',
            });
        }
        ours.push('\n');
    }
    assert_eq!(ours, theirs);
}

#[test]
fn names_in_dependency_fields_are_the_ones_r_finds() {
    let fields = samples(&"([Rab.1](.?[ab.9]{0,3})?( ?\\(>?= ?r?[0-9.x]{1,4}\\)?)?,? ?){0,4}", 300);
    let fields: Vec<_> = fields
        .into_iter()
        .filter(|f| {
            f.contains(char::is_alphanumeric) && f.bytes().all(|b| (b' '..0x7f).contains(&b))
        })
        .collect();
    let code = r#"
        x <- readLines(file.path(commandArgs(TRUE)[1], "fields"))
        for (f in x) cat(tools:::.extract_dependency_package_names(f), "\n")"#;
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("fields"), fields.join("\n") + "\n").unwrap();
    let Some(theirs) = rscript::run(code, &[folder.path().to_str().unwrap()]) else { return };
    for (field, theirs) in fields.iter().zip(theirs.lines()) {
        let ours: Vec<_> = dependency::names(field).collect();
        assert_eq!(ours, theirs.split_whitespace().collect::<Vec<_>>(), "{field:?}");
    }
}

#[test]
fn control_files_read_as_in_r() {
    let line = "([A-C]:|[A-C]: {0,3}|  |\t)[ab.:é]{0,5} {0,2}|[A-C]: ?x|| {1,2}|  \\.|junk";
    let files = samples(&proptest::collection::vec(line, 1..12), 400);
    let files: Vec<_> = files.into_iter().filter(|lines| !ends_a_field_with_a_dot(lines)).collect();
    let code = r#"
        d <- commandArgs(TRUE)[1]
        for (f in sort(list.files(d))) {
            m <- tryCatch(read.dcf(file.path(d, f)), error = function(e) NULL)
            cat(f, if (is.null(m)) "error" else encodeString(c(dim(m), colnames(m), m)), sep = "\t")
            cat("\n")
        }"#;
    let folder = tempfile::tempdir().unwrap();
    for (number, lines) in files.iter().enumerate() {
        fs::write(folder.path().join(format!("{number:03}")), lines.join("\n") + "\n").unwrap();
    }
    let Some(theirs) = rscript::run(code, &[folder.path().to_str().unwrap()]) else { return };
    for ((number, lines), theirs) in files.iter().enumerate().zip(theirs.lines()) {
        let text = lines.join("\n") + "\n";
        let mut ours = format!("{number:03}");
        match dcf::read(text.as_bytes(), &Limits::default()) {
            Ok(m) => {
                write!(ours, "\t{}\t{}", m.rows(), m.columns().len()).unwrap();
                let cells = m.cells().iter().map(|cell| cell.unwrap_or("<NA>"));
                for cell in m.columns().iter().map(String::as_str).chain(cells) {
                    write!(ours, "\t{}", cell.replace('\n', "\\n")).unwrap();
                }
            }
            Err(_) => ours.push_str("\terror"),
        }
        assert_eq!(ours, theirs, "{text:?}");
    }
}

/// R 4.2 lets empty lines at the end of one field turn up in the next, which nobody wants copied.
fn ends_a_field_with_a_dot(lines: &[String]) -> bool {
    let continues = |line: &str| line.starts_with([' ', '\t']) && !line.trim().is_empty();
    let mut pairs = lines.iter().zip(lines.iter().skip(1));
    pairs.any(|(line, next)| line.trim() == "." && !continues(next))
}
