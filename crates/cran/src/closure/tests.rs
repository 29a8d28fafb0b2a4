use trunkline_proto::cran::{Limits, read_index};

use super::*;
use crate::{
    index::{Filter, RepositoryIndex},
    repository::Platform,
};

fn index(packages: &str) -> Index {
    let table = read_index(packages.as_bytes(), &Limits::default()).unwrap();
    let repository = RepositoryIndex { contrib_url: "u".to_owned(), table };
    let platform = Platform {
        r_version: "4.2.2".parse().unwrap(),
        os_type: "unix".to_owned(),
        subarch: String::new(),
    };
    Index::merge([repository], &Filter::DEFAULT, &platform)
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

const CHAIN: &str = "Package: app\nVersion: 1.0\nDepends: R (>= 3.5), methods\nImports: lib (>= 1.1), zeta\nSuggests: extra\n\n\
                     Package: lib\nVersion: 1.2\nImports: core\nSuggests: never\nLinkingTo: headers\n\n\
                     Package: core\nVersion: 1.0\n\nPackage: zeta\nVersion: 1.0\nImports: core\n\n\
                     Package: headers\nVersion: 1.0\n\nPackage: extra\nVersion: 1.0\nImports: more\n\n\
                     Package: more\nVersion: 1.0\n\nPackage: never\nVersion: 1.0\n";

fn base() -> Installed {
    let r: Version = "4.2.2".parse().unwrap();
    BASE_PACKAGES.iter().map(|name| (name.to_string(), vec![r.clone()])).collect()
}

#[test]
fn each_round_goes_in_front_of_the_ones_before() {
    let index = index(CHAIN);
    let set = |dependencies, binary| {
        install_set(&index, &names(&["app"]), &dependencies, &base(), binary).packages
    };
    assert_eq!(set(Dependencies::None, false), ["app"]);
    assert_eq!(set(Dependencies::Strong, false), ["core", "headers", "lib", "zeta", "app"]);
    assert_eq!(
        set(Dependencies::StrongAndSuggested, false),
        ["core", "headers", "more", "lib", "zeta", "extra", "app"]
    );
    assert_eq!(
        set(Dependencies::StrongAndSuggested, true),
        ["core", "more", "lib", "zeta", "extra", "app"]
    );
    assert!(set(Dependencies::Fields(MOST.to_vec()), false).contains(&"never".to_owned()));
    assert_eq!(set(Dependencies::Fields(vec![Field::Suggests]), false), ["extra", "app"]);
}

#[test]
fn installed_packages_are_not_fetched_unless_too_old() {
    let index = index(CHAIN);
    let mut installed = base();
    installed.insert("zeta".to_owned(), vec!["0.1".parse().unwrap()]);
    installed.insert("lib".to_owned(), vec!["1.0".parse().unwrap()]);
    let set = install_set(&index, &names(&["app"]), &Dependencies::Strong, &installed, false);
    assert_eq!(set.packages, ["core", "headers", "lib", "app"]);
    assert_eq!(set.added, ["core", "headers", "lib"]);
    installed.insert("lib".to_owned(), vec!["1.0".parse().unwrap(), "1.1".parse().unwrap()]);
    let set = install_set(&index, &names(&["app"]), &Dependencies::Strong, &installed, false);
    assert_eq!(set.packages, ["app"]);
}

#[test]
fn what_cannot_be_had_is_told_apart() {
    let index = index(
        "Package: app\nVersion: 1.0\nImports: gone, old (>= 2.0-1), old (>= 3), any (< 1.0)\n\n\
         Package: old\nVersion: 1.9\n\nPackage: any\nVersion: 1.0\n",
    );
    let wanted = names(&["app", "nosuch", "stats", "app"]);
    let set = install_set(&index, &wanted, &Dependencies::Strong, &base(), false);
    assert_eq!(set.packages, ["any", "app"]);
    assert_eq!(set.unavailable, ["nosuch"]);
    assert_eq!(set.base, ["stats"]);
    assert_eq!(set.missing, ["gone", "old (>= 2.0.1)"]);
}

#[test]
fn the_order_puts_needs_first_and_keeps_equals() {
    let index = index(CHAIN);
    let set = names(&["app", "zeta", "lib", "headers", "core"]);
    let order = install_order(&index, &set);
    assert_eq!(order.packages, ["headers", "core", "zeta", "lib", "app"]);
    assert_eq!(order.needs["app"], names(&["lib", "zeta"]).into_iter().collect());
    assert!(order.circle.is_empty());
}

#[test]
fn a_circle_comes_last_and_does_not_block() {
    let index = index(
        "Package: aa\nVersion: 1.0\nImports: bb\n\nPackage: bb\nVersion: 1.0\nImports: aa, cc\n\n\
         Package: cc\nVersion: 1.0\n",
    );
    let order = install_order(&index, &names(&["aa", "bb", "cc"]));
    assert_eq!(order.packages, ["cc", "aa", "bb"]);
    assert_eq!(order.circle, ["aa", "bb"]);
    assert_eq!(order.needs["bb"], names(&["cc"]).into_iter().collect());
    assert!(order.needs["aa"].is_empty());
}

#[test]
fn dependencies_are_followed_or_not() {
    let index = index(CHAIN);
    let wanted = names(&["app", "nosuch"]);
    let direct = package_dependencies(&index, &wanted, &STRONG, false);
    assert_eq!(direct["app"], Some(names(&["methods", "lib", "zeta"])));
    assert_eq!(direct["nosuch"], None);
    let all = package_dependencies(&index, &wanted, &STRONG, true);
    assert_eq!(all["app"], Some(names(&["core", "headers", "lib", "methods", "zeta"])));
}
