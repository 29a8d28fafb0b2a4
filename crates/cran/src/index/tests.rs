use trunkline_proto::cran::{Limits, read_index};

use super::*;

fn platform() -> Platform {
    Platform {
        r_version: "4.2.2".parse().unwrap(),
        os_type: "unix".to_owned(),
        subarch: String::new(),
    }
}

fn repository(contrib_url: &str, packages: &str) -> RepositoryIndex {
    let table = read_index(packages.as_bytes(), &Limits::default()).unwrap();
    RepositoryIndex { contrib_url: contrib_url.to_owned(), table }
}

fn shown(index: &Index) -> Vec<String> {
    let show = |p: Package<'_>| format!("{} {} {}", p.name(), p.version_text(), p.repository());
    index.packages().map(show).collect()
}

#[test]
fn the_highest_version_wins_and_the_first_repository_among_equals() {
    let one = "Package: a\nVersion: 1.0\n\nPackage: b\nVersion: 2.0\n\nPackage: c\nVersion: 1.0\n";
    let two =
        "Package: a\nVersion: 1.0.0\n\nPackage: b\nVersion: 2.0-1\n\nPackage: b\nVersion: 1.9\n";
    let index =
        Index::merge([repository("u1", one), repository("u2", two)], &Filter::DEFAULT, &platform());
    assert_eq!(shown(&index), ["a 1.0 u1", "c 1.0 u1", "b 2.0-1 u2"]);
    assert!(index.contains("a") && !index.contains("d"));
    let everywhere: Vec<_> =
        index.in_version("a", &"1.0".parse().unwrap()).iter().map(Package::repository).collect();
    assert_eq!(everywhere, ["u1", "u2"]);
    assert_eq!(index.in_version("b", &"1.9".parse().unwrap()).len(), 1, "older ones are found too");
}

#[test]
fn packages_for_other_versions_or_systems_are_left_out() {
    let packages = "Package: new\nVersion: 1.0\nDepends: R (>= 4.3.0), methods\n\n\
                    Package: old\nVersion: 1.0\nDepends: methods, R (< 4.0)\n\n\
                    Package: good\nVersion: 1.0\nDepends: R (>= 4.2), R (!= 4.2.1)\n\n\
                    Package: win\nVersion: 1.0\nOS_type: windows\n\n\
                    Package: nix\nVersion: 1.0\nOS_type: unix\n\n\
                    Package: arch\nVersion: 1.0\nArchs: i386, x64\n";
    let index = |filters: &[Filter], platform: &Platform| {
        let merged = Index::merge([repository("u", packages)], filters, platform);
        merged.packages().map(|p| p.name().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(index(&Filter::DEFAULT, &platform()), ["good", "nix", "arch"]);
    assert_eq!(index(&[Filter::OsType], &platform()), ["new", "old", "good", "nix", "arch"]);
    let arm = Platform { subarch: "arm64".to_owned(), ..platform() };
    assert_eq!(index(&[Filter::Subarch], &arm), ["new", "old", "good", "win", "nix"]);
}

#[test]
fn cran_has_precedence_with_its_filter() {
    let one = "Package: a\nVersion: 2.0\n\nPackage: b\nVersion: 1.0\n";
    let two = "Package: a\nVersion: 1.0\n";
    let index = Index::merge(
        [repository("https://other/src/contrib", one), repository("https://cran/src/contrib", two)],
        &[Filter::Cran("https://cran".to_owned()), Filter::Duplicates],
        &platform(),
    );
    assert_eq!(
        shown(&index),
        ["b 1.0 https://other/src/contrib", "a 1.0 https://cran/src/contrib",]
    );
}

#[test]
fn path_and_file_say_where_a_package_is() {
    let packages = "Package: a\nVersion: 1.0\nPath: older/4.1\n\n\
                    Package: b\nVersion: 1.0\nFile: b_1.0_R_x86_64.tar.gz\n\n\
                    Package: c\nVersion: 1.0\n";
    let index = Index::merge([repository("u", packages)], &[], &platform());
    let place = |name: &str| {
        let package = index.first(name).unwrap();
        format!("{}/{}", package.repository(), package.file_name(&PackageType::Source))
    };
    assert_eq!(place("a"), "u/older/4.1/a_1.0.tar.gz");
    assert_eq!(place("b"), "u/b_1.0_R_x86_64.tar.gz");
    assert_eq!(place("c"), "u/c_1.0.tar.gz");
    let file = index.first("c").unwrap().file_name(&PackageType::WinBinary);
    assert_eq!(file, "c_1.0.zip");
}

#[test]
fn unusable_rows_do_not_hide_usable_ones() {
    let packages = "Package: a\nVersion: unknown\n\nPackage: a\nVersion: 0.1\n\n\
                    Package: b\n\nVersion: 1.0\n";
    let index = Index::merge([repository("u", packages)], &Filter::DEFAULT, &platform());
    assert_eq!(shown(&index), ["a 0.1 u"]);
}

#[test]
fn best_is_the_highest_when_duplicates_stay() {
    let packages = "Package: a\nVersion: 1.9\n\nPackage: a\nVersion: 1.10\nPath: x\n\n\
                    Package: a\nVersion: 1.10.0\n";
    let index = Index::merge([repository("u", packages)], &[], &platform());
    assert_eq!(index.len(), 3);
    assert_eq!(index.first("a").unwrap().version_text(), "1.9");
    assert_eq!(index.best("a").unwrap().repository(), "u/x");
}
