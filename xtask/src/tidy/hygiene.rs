//! Strings that belong to one person's machine, not to the project.

use super::Findings;
use super::tree::Tree;

/// Written by cargo, with the registry's address in it; the fuzz workspace has its own.
const EXEMPT: [&str; 2] = ["Cargo.lock", "fuzz/Cargo.lock"];

/// Folders of a particular machine. Built from parts, so that this file passes its own check.
const MACHINE_FOLDERS: [&str; 4] =
    [concat!("/wo", "rk/"), concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/Use", "rs/")];

/// Package registries: where packages come from is the user's setting.
const REGISTRY_HOSTS: [&str; 5] = [
    concat!("crates", ".io"),
    concat!("py", "pi.org"),
    concat!("pythonhost", "ed.org"),
    concat!("npm", "js.org"),
    concat!("deb.deb", "ian.org"),
];

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    for file in &tree.files {
        if EXEMPT.contains(&file.path.as_str()) {
            continue;
        }
        for (index, line) in file.text.lines().enumerate() {
            if let Some(folder) = MACHINE_FOLDERS.iter().find(|folder| names_folder(line, folder)) {
                let text = format!("`{folder}` is a folder of one machine");
                findings.broken(&file.path, index + 1, text);
            }
            if let Some(host) = REGISTRY_HOSTS.iter().find(|host| line.contains(**host)) {
                findings.broken(&file.path, index + 1, format!("`{host}` is a registry's host"));
            }
        }
    }
}

/// The folder at the start of a path, not in the middle of a URL or a longer path.
fn names_folder(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        !line[..at].ends_with(|c: char| c.is_alphanumeric() || "/._-~})".contains(c))
    })
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
    fn a_machine_path_is_found_and_a_path_in_a_url_is_not() {
        let folder = MACHINE_FOLDERS[0];
        assert_eq!(broken("README.md", &format!("see {folder}notes")), 1);
        assert_eq!(broken("README.md", &format!("`{folder}`")), 1);
        assert_eq!(broken("README.md", &format!("https://host.example{folder}x")), 0);
    }

    #[test]
    fn a_registry_host_is_found_except_where_cargo_writes_it() {
        let host = REGISTRY_HOSTS[0];
        assert_eq!(broken("docs/x.md", &format!("https://{host}/crates/x")), 1);
        assert_eq!(broken("Cargo.lock", &format!("registry+https://{host}")), 0);
    }
}
