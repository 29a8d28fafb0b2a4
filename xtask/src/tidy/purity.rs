//! What code may touch, by room: unsafe, the clock, the environment, the end of the process.

use super::Findings;
use super::tree::{File, Tree};

/// Rooms whose one `sys.rs` may hold unsafe code, where a measurement demands it.
const UNSAFE_ROOMS: [&str; 3] = ["transport", "listen", "nbd"];
/// Rooms that talk to the person at the terminal.
const ENTRY_ROOMS: [&str; 2] = ["cli", "xtask"];
/// Files that decide and do not act, in any room: time is an argument there.
const PURE_FILES: [&str; 5] = ["plan.rs", "policy.rs", "range.rs", "schedule.rs", "retry.rs"];
const PURE_ROOM: &str = "proto";

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    for file in tree.rust() {
        let room = file.room().unwrap_or_default();
        let mut refuse = |code: &str, words: &[&str], law: &str| {
            for (index, line) in code.lines().enumerate() {
                if let Some(word) = words.iter().find(|word| line.contains(**word)) {
                    findings.broken(&file.path, index + 1, format!("`{word}`: {law}"));
                }
            }
        };
        if !may_be_unsafe(file, room) {
            let law = "unsafe code lives only in sys.rs of transport, listen and nbd";
            let words = ["allow(unsafe_code)", "expect(unsafe_code"];
            refuse(&file.code, &words, law);
        }
        if !ENTRY_ROOMS.contains(&room) {
            let words = ["env::var", "env::vars", "env::args", "process::exit", "process::abort"];
            refuse(
                &file.shipped_code,
                &words,
                "only cli reads the environment or ends the process",
            );
        }
        if room == PURE_ROOM || PURE_FILES.contains(&file.name()) {
            let words = ["Instant::now", "SystemTime::now", "thread::sleep"];
            refuse(&file.shipped_code, &words, "pure code is given the time");
        }
    }
}

fn may_be_unsafe(file: &File, room: &str) -> bool {
    UNSAFE_ROOMS.contains(&room) && file.path == format!("crates/{room}/src/sys.rs")
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
    fn unsafe_is_allowed_in_three_files_only() {
        let text = "#![allow(unsafe_code)]";
        assert_eq!(broken("crates/nbd/src/sys.rs", text), 0);
        assert_eq!(broken("crates/nbd/src/wrap/sys.rs", text), 1);
        assert_eq!(broken("crates/pool/src/sys.rs", text), 1);
    }

    #[test]
    fn only_entry_points_read_the_environment() {
        let text = "fn f() { std::env::var_os(X); }";
        assert_eq!(broken("crates/cli/src/settings.rs", text), 0);
        assert_eq!(broken("crates/transfer/src/credentials.rs", text), 1);
        assert_eq!(broken("crates/transfer/tests/it/main.rs", text), 0);
        let in_tests = format!("#[cfg(test)]\nmod tests {{ {text} }}");
        assert_eq!(broken("crates/transfer/src/credentials.rs", &in_tests), 0);
    }

    #[test]
    fn pure_code_is_given_the_time() {
        let text = "fn f() { let now = Instant::now(); }";
        assert_eq!(broken("crates/proto/src/pack.rs", text), 1);
        assert_eq!(broken("crates/pool/src/policy.rs", text), 1);
        assert_eq!(broken("crates/pool/src/dial.rs", text), 0);
        assert_eq!(broken("crates/pool/src/policy.rs", "// Instant::now is banned here"), 0);
    }
}
