//! Documents that must keep up with the code.

use std::collections::BTreeSet;

use super::tree::Tree;
use super::{Findings, source};

const PROMISES: &str = "docs/promises/";
/// `test: path::to::name`, alone on a line of a promise (a list mark and backticks may be there).
const TEST_MARK: &str = "test:";

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    if tree.find("CHANGELOG.md").is_none() {
        findings.broken("CHANGELOG.md", None, "is missing: users read what changed there");
    }
    check_map(tree, findings);
    check_promises(tree, findings);
}

/// A newcomer finds every room on the map.
fn check_map(tree: &Tree, findings: &mut Findings) {
    const MAP: &str = "ARCHITECTURE.md";
    let Some(map) = tree.find(MAP) else {
        findings.broken(MAP, None, "is missing: it is the map of the house");
        return;
    };
    let words: BTreeSet<&str> =
        map.text.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let rooms: BTreeSet<&str> = tree.files.iter().filter_map(|file| file.room()).collect();
    for room in rooms {
        if !words.contains(room) {
            findings.broken(MAP, None, format!("does not mention the room `{room}`"));
        }
    }
}

/// A promise names the tests that keep it, and they exist.
fn check_promises(tree: &Tree, findings: &mut Findings) {
    let mut functions = BTreeSet::new();
    for file in tree.rust() {
        functions.extend(source::functions(&file.code).into_iter().map(|function| function.name));
    }
    for page in &tree.files {
        // A folder's README introduces the promises and makes none.
        let is_promise = page.path.starts_with(PROMISES) && page.path.ends_with(".md");
        if !is_promise || page.name() == "README.md" {
            continue;
        }
        let mut named = 0;
        for (index, line) in page.text.lines().enumerate() {
            let Some(test) = named_test(line) else { continue };
            named += 1;
            if !functions.contains(test.rsplit("::").next().unwrap_or(test)) {
                findings.broken(&page.path, index + 1, format!("there is no test `{test}`"));
            }
        }
        if named == 0 {
            let text = "names no test that keeps it (a line `test: path::to::name`)";
            findings.broken(&page.path, None, text);
        }
    }
}

fn named_test(line: &str) -> Option<&str> {
    let line = line.trim().trim_start_matches(['-', '*', ' ', '`', '_']);
    let name = line.strip_prefix(TEST_MARK)?.trim_matches(|c| "`* _.".contains(c));
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANGES: (&str, &str) = ("CHANGELOG.md", "");

    fn broken(files: &[(&str, &str)]) -> Vec<String> {
        let mut findings = Findings::default();
        check(&Tree::of(files), &mut findings);
        findings.broken.into_iter().map(|finding| finding.text).collect()
    }

    #[test]
    fn each_room_is_on_the_map() {
        let map = ("ARCHITECTURE.md", "`crates/pool` and xtask");
        let rooms = [("crates/pool/src/lib.rs", ""), ("xtask/src/main.rs", "")];
        assert!(broken(&[CHANGES, map, rooms[0], rooms[1]]).is_empty());
        let extra = ("crates/cran/src/lib.rs", "");
        assert_eq!(broken(&[CHANGES, map, extra]), ["does not mention the room `cran`"]);
    }

    #[test]
    fn a_promise_names_tests_that_exist() {
        let map = ("ARCHITECTURE.md", "pool");
        let code = ("crates/pool/src/lib.rs", "#[cfg(test)] mod tests { fn is_kept() {} }");
        let kept = ("docs/promises/reuse.md", "Reuse.\n\n- test: `pool::tests::is_kept`\n");
        let lost = ("docs/promises/retry.md", "test: pool::tests::is_lost\n");
        let vague = ("docs/promises/exit.md", "Trust us.\n");
        assert!(broken(&[CHANGES, map, code, kept]).is_empty());
        assert_eq!(
            broken(&[CHANGES, map, code, lost]),
            ["there is no test `pool::tests::is_lost`"]
        );
        assert_eq!(broken(&[CHANGES, map, code, vague]).len(), 1);
    }

    #[test]
    fn a_house_without_map_and_changelog_is_broken() {
        assert_eq!(broken(&[]).len(), 2);
    }
}
