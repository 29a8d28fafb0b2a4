//! Names that say nothing about what is inside.

use super::Findings;
use super::tree::Tree;

const BANNED: [&str; 8] =
    ["utils", "util", "common", "helpers", "helper", "misc", "manager", "managers"];

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    for file in tree.rust() {
        for part in file.path.trim_end_matches(".rs").split('/') {
            if BANNED.contains(&part) {
                findings.broken(&file.path, None, format!("`{part}` does not say what is inside"));
            }
        }
        for (index, line) in file.code.lines().enumerate() {
            if let Some(name) = module_name(line)
                && BANNED.contains(&name)
            {
                let text = format!("module `{name}` does not say what is inside");
                findings.broken(&file.path, index + 1, text);
            }
        }
    }
}

/// The name in `mod NAME`, whatever its visibility.
fn module_name(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace().skip_while(|word| word.starts_with("pub"));
    (words.next()? == "mod").then_some(())?;
    words.next().map(|name| name.trim_end_matches([';', '{']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(path: &str, text: &str) -> usize {
        let mut findings = Findings::default();
        check(&Tree::of(&[(path, text)]), &mut findings);
        findings.broken.len()
    }

    #[test]
    fn empty_words_are_refused_as_file_folder_and_module() {
        assert_eq!(broken("crates/pool/src/utils.rs", ""), 1);
        assert_eq!(broken("crates/pool/src/common/idle.rs", ""), 1);
        assert_eq!(broken("crates/pool/src/lib.rs", "pub(crate) mod helpers {\n}"), 1);
        assert_eq!(broken("crates/pool/src/idle.rs", "// mod utils;\nmod idle;"), 0);
    }
}
