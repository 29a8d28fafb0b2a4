//! Which room may depend on which: a new edge is a reviewed change to the table below.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::Findings;
use crate::command;

/// Normal dependencies between rooms, by short name. Whatever is not listed is forbidden.
const EDGES: &[(&str, &[&str])] = &[
    (
        "cli",
        &["cran", "nbd", "ostree", "treehub", "transfer", "pool", "transport", "proto", "listen"],
    ),
    ("cran", &["transfer", "proto", "listen"]),
    ("nbd", &["transfer", "proto", "listen"]),
    ("ostree", &["transfer", "proto", "listen"]),
    ("treehub", &["proto", "listen", "transfer"]),
    ("transfer", &["pool", "transport", "proto"]),
    ("pool", &["transport"]),
    ("transport", &["proto"]),
    ("listen", &[]),
    ("proto", &[]),
    ("testkit", &["proto", "transport", "listen"]),
    // The R package's core is an entry point, as cli is: it makes the engine.
    ("r", &["cran", "transfer", "pool", "transport", "proto"]),
    ("xtask", &[]),
];

/// Rooms that exist for tests: nobody may ship them.
const TEST_ONLY: &str = "testkit";

/// What a pure room must not reach, not even through others.
const IMPURE: [&str; 6] = ["tokio", "mio", "hyper", "socket2", "rustix", "async-io"];
const PURE_ROOM: &str = "proto";

/// How one package depends on another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Normal,
    Development,
    Build,
}

/// The part of Cargo's metadata that the laws speak of.
#[derive(Debug, Default)]
pub(super) struct Graph {
    /// Our rooms by short name: their manifest, and what they depend on among ours.
    rooms: BTreeMap<String, Room>,
    /// Names of all packages that the pure room reaches through normal dependencies.
    reached_by_pure: BTreeSet<String>,
}

#[derive(Debug, Default)]
struct Room {
    manifest: String,
    edges: Vec<(String, Kind)>,
}

impl Graph {
    /// # Errors
    /// cargo fails, or answers something else than its documented format.
    pub(super) fn load() -> Result<Self> {
        let text =
            command::output(command::cargo().args(["metadata", "--format-version=1", "--locked"]))?;
        let metadata: Value = serde_json::from_str(&text).context("cargo metadata is not JSON")?;
        Self::from_metadata(&metadata).context("cargo metadata lacks a documented field")
    }

    fn from_metadata(metadata: &Value) -> Option<Self> {
        let members: BTreeSet<&str> =
            metadata["workspace_members"].as_array()?.iter().filter_map(Value::as_str).collect();
        let root = metadata["workspace_root"].as_str()?;
        let mut graph = Self::default();
        let mut names = BTreeMap::new();
        for package in metadata["packages"].as_array()? {
            let (id, name) = (package["id"].as_str()?, package["name"].as_str()?);
            names.insert(id, name);
            if !members.contains(id) {
                continue;
            }
            let manifest = package["manifest_path"].as_str()?.trim_start_matches(root);
            let mut room =
                Room { manifest: manifest.trim_start_matches('/').to_owned(), ..Room::default() };
            for dependency in package["dependencies"].as_array()? {
                // A path means: one of ours.
                if dependency["path"].is_string() {
                    let kind = match dependency["kind"].as_str() {
                        None => Kind::Normal,
                        Some("dev") => Kind::Development,
                        Some(_) => Kind::Build,
                    };
                    room.edges.push((short(dependency["name"].as_str()?).to_owned(), kind));
                }
            }
            graph.rooms.insert(short(name).to_owned(), room);
        }
        graph.reached_by_pure = reached(&metadata["resolve"], &names)?;
        Some(graph)
    }
}

/// Names of packages that the pure room reaches through normal dependencies.
fn reached(resolve: &Value, names: &BTreeMap<&str, &str>) -> Option<BTreeSet<String>> {
    let mut next = BTreeMap::new();
    for node in resolve["nodes"].as_array()? {
        let targets: Vec<&str> = node["deps"]
            .as_array()?
            .iter()
            .filter(|dep| is_normal(&dep["dep_kinds"]))
            .filter_map(|dep| dep["pkg"].as_str())
            .collect();
        next.insert(node["id"].as_str()?, targets);
    }
    let mut waiting: Vec<&str> =
        names.iter().filter(|(_, name)| short(name) == PURE_ROOM).map(|(id, _)| *id).collect();
    let mut seen = BTreeSet::new();
    while let Some(id) = waiting.pop() {
        for target in next.get(id).into_iter().flatten() {
            if seen.insert(*target) {
                waiting.push(target);
            }
        }
    }
    Some(seen.into_iter().filter_map(|id| names.get(id)).map(|name| (*name).to_owned()).collect())
}

fn is_normal(kinds: &Value) -> bool {
    kinds.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()))
}

fn short(package: &str) -> &str {
    package.strip_prefix("trunkline-").unwrap_or(package)
}

/// Every edge is in the table, tests' rooms are only ever dev-dependencies, the pure room is pure.
pub(super) fn check(graph: &Graph, findings: &mut Findings) {
    for (name, room) in &graph.rooms {
        let Some((_, allowed)) = EDGES.iter().find(|(known, _)| known == name) else {
            findings.broken(&room.manifest, None, format!("room `{name}` is not in tidy's graph"));
            continue;
        };
        for (target, kind) in &room.edges {
            let is_allowed = match kind {
                Kind::Normal | Kind::Build => allowed.contains(&target.as_str()),
                Kind::Development => may_test_with(name, target),
            };
            if !is_allowed {
                let text = format!("`{name}` must not depend on `{target}` ({kind:?} dependency)");
                findings.broken(&room.manifest, None, text);
            }
        }
    }
    let manifest = format!("crates/{PURE_ROOM}/Cargo.toml");
    for impure in IMPURE.iter().filter(|name| graph.reached_by_pure.contains(**name)) {
        let text = format!("`{PURE_ROOM}` is pure, yet it reaches `{impure}`");
        findings.broken(&manifest, None, text);
    }
}

/// Tests may use the test kit, what it is built from, and whatever lies below their own room.
fn may_test_with(room: &str, target: &str) -> bool {
    if room == "xtask" {
        return false;
    }
    let below = |name: &str| {
        EDGES.iter().find(|(known, _)| *known == name).map_or(&[][..], |(_, edges)| *edges)
    };
    let mut waiting = vec![room, TEST_ONLY];
    let mut seen = BTreeSet::from([TEST_ONLY]);
    while let Some(name) = waiting.pop() {
        for next in below(name) {
            if seen.insert(next) {
                waiting.push(next);
            }
        }
    }
    seen.contains(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[(&str, &str, Kind)]) -> Graph {
        let mut graph = Graph::default();
        for (from, to, kind) in edges {
            let room = graph.rooms.entry((*from).to_owned()).or_default();
            room.edges.push(((*to).to_owned(), *kind));
        }
        graph
    }

    fn broken(graph: &Graph) -> Vec<String> {
        let mut findings = Findings::default();
        check(graph, &mut findings);
        findings.broken.into_iter().map(|finding| finding.text).collect()
    }

    #[test]
    fn a_listed_edge_passes_and_its_reverse_does_not() {
        assert!(broken(&graph(&[("pool", "transport", Kind::Normal)])).is_empty());
        let upwards = broken(&graph(&[("transport", "pool", Kind::Normal)]));
        assert_eq!(upwards, ["`transport` must not depend on `pool` (Normal dependency)"]);
    }

    #[test]
    fn the_test_kit_is_never_shipped() {
        assert!(broken(&graph(&[("transfer", "testkit", Kind::Development)])).is_empty());
        assert_eq!(broken(&graph(&[("transfer", "testkit", Kind::Normal)])).len(), 1);
        assert_eq!(broken(&graph(&[("cli", "testkit", Kind::Build)])).len(), 1);
    }

    #[test]
    fn tests_may_use_lower_rooms_but_not_a_neighbour() {
        assert!(may_test_with("transfer", "listen"));
        assert!(may_test_with("ostree", "pool"));
        assert!(!may_test_with("cran", "treehub"));
        assert!(!may_test_with("xtask", "testkit"));
    }

    #[test]
    fn an_unknown_room_must_be_entered_in_the_table() {
        assert_eq!(broken(&graph(&[("attic", "proto", Kind::Normal)])).len(), 1);
    }

    #[test]
    fn a_socket_reached_through_another_package_still_breaks_purity() {
        let metadata = serde_json::json!({
            "workspace_root": "/w",
            "workspace_members": ["p"],
            "packages": [
                {"id": "p", "name": "trunkline-proto", "manifest_path": "/w/crates/proto/Cargo.toml",
                 "dependencies": [{"name": "friendly", "kind": null}]},
                {"id": "f", "name": "friendly", "manifest_path": "", "dependencies": []},
                {"id": "t", "name": "tokio", "manifest_path": "", "dependencies": []},
                {"id": "d", "name": "mio", "manifest_path": "", "dependencies": []},
            ],
            "resolve": {"nodes": [
                {"id": "p", "deps": [
                    {"pkg": "f", "dep_kinds": [{"kind": null}]},
                    {"pkg": "d", "dep_kinds": [{"kind": "dev"}]}]},
                {"id": "f", "deps": [{"pkg": "t", "dep_kinds": [{"kind": null}]}]},
                {"id": "t", "deps": []},
                {"id": "d", "deps": []},
            ]},
        });
        let graph = Graph::from_metadata(&metadata).unwrap();
        assert_eq!(broken(&graph), ["`proto` is pure, yet it reaches `tokio`"]);
    }
}
