//! Dependency closures, the order of installation, and what R says about them.

use std::collections::BTreeMap;

use trunkline_cran::{
    Dependencies, Filter, InstallSet,
    closure::{
        BASE_PACKAGES, Field, Installed, MOST, STRONG, install_order, install_set,
        package_dependencies,
    },
    wording,
};
use trunkline_testkit::{cran_repo::Random, rscript};

use crate::world::World;

/// Runs `getDependencies()` and `.find_install_order()` for one line of packages after another,
/// with everything they say. Installed is what the file "installed" lists, and R's own packages.
const SOLVE: &str = r#"
    args <- commandArgs(TRUE)
    dir <- args[1]
    dependencies <- eval(parse(text = args[2]))
    urls <- args[-(1:2)]
    lib <- file.path(dir, "lib")
    dir.create(lib, showWarnings = FALSE)
    for (entry in strsplit(readLines(file.path(dir, "installed")), " ")) {
        meta <- file.path(lib, entry[1], "Meta")
        dir.create(meta, recursive = TRUE, showWarnings = FALSE)
        description <- c(Package = entry[1], Version = entry[2], Built = "4.2.2")
        saveRDS(list(DESCRIPTION = description, Built = list(R = getRversion())),
                file.path(meta, "package.rds"))
    }
    .libPaths(lib, include.site = FALSE)
    a <- available.packages(urls)
    cat(format(getRversion()), "\n", sep = "")
    for (line in readLines(file.path(dir, "wanted"))) {
        said <- character()
        tell <- function(m) said <<- c(said, sub("\n$", "", conditionMessage(m)))
        order <- withCallingHandlers({
            p <- utils:::getDependencies(strsplit(line, " ")[[1]], dependencies, a, lib)
            cat(p, "\n")
            # As install.packages() does: one package needs no order.
            if (length(p) > 1L) utils:::.find_install_order(p, utils:::.make_dependency_list(p, a))
            else p
        }, message = function(m) { tell(m); invokeRestart("muffleMessage") },
           warning = function(w) { tell(w); invokeRestart("muffleWarning") })
        cat(order, "\n")
        cat(encodeString(paste(said, collapse = "\n")), "\n", sep = "")
    }"#;

fn wanted_lines(random: &mut Random) -> Vec<String> {
    let name = |random: &mut Random| match random.below(12) {
        0 => "PK1".to_owned(),
        1 => "stats".to_owned(),
        2 => "nosuch".to_owned(),
        _ => format!("pk{}", random.below(60)),
    };
    let line = |random: &mut Random| {
        let names: Vec<_> = (0..=random.below(5)).map(|_| name(random)).collect();
        names.join(" ")
    };
    (0..40).map(|_| line(random)).collect()
}

/// Everything `getDependencies()` says, in its order, with R's hint about a misspelt name.
fn said(set: &InstallSet, names: &[String]) -> Vec<String> {
    let mut said = wording::install_set_warnings(set, false);
    if let Some(hint) = wording::perhaps_you_meant(set, names.iter().map(String::as_str)) {
        let after = usize::from(!set.base.is_empty()) + usize::from(!set.unavailable.is_empty());
        said.insert(after, hint);
    }
    said.extend(wording::also_installing(set));
    said
}

#[test]
fn closures_orders_and_messages_are_rs() {
    let choices = [
        ("NA", Dependencies::Strong),
        ("TRUE", Dependencies::StrongAndSuggested),
        ("FALSE", Dependencies::None),
        ("c('Depends', 'Imports', 'LinkingTo', 'Suggests')", Dependencies::Fields(MOST.to_vec())),
        ("'Imports'", Dependencies::Fields(vec![Field::Imports])),
    ];
    for (seed, (r_value, dependencies)) in (20..).zip(choices) {
        let world = World::new(seed);
        let mut random = Random(seed);
        let wanted = wanted_lines(&mut random);
        let installed: BTreeMap<String, String> = (0..12)
            .map(|_| (format!("pk{}", random.below(60)), format!("0.{}", random.below(12))))
            .collect();
        let folder = world.folder.path();
        std::fs::write(folder.join("wanted"), wanted.join("\n") + "\n").unwrap();
        let lines: String =
            installed.iter().map(|(name, version)| format!("{name} {version}\n")).collect();
        std::fs::write(folder.join("installed"), lines).unwrap();
        let mut args = vec![folder.to_str().unwrap(), r_value];
        args.extend(world.urls.iter().map(String::as_str));
        let Some(theirs) = rscript::run(SOLVE, &args) else { return };
        let mut theirs = theirs.lines();
        let r = theirs.next().unwrap();

        let index = world.index(&Filter::DEFAULT, r);
        let names: Vec<String> = index.packages().map(|p| p.name().to_owned()).collect();
        let mut have: Installed = installed
            .iter()
            .map(|(name, version)| (name.clone(), vec![version.parse().unwrap()]))
            .collect();
        have.extend(BASE_PACKAGES.map(|name| (name.to_owned(), vec![r.parse().unwrap()])));
        for line in &wanted {
            let asked: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let set = install_set(&index, &asked, &dependencies, &have, false);
            let order = install_order(&index, &set.packages);
            let mut said = said(&set, &names);
            said.extend(wording::circle(&order));
            let context = format!("seed {seed}, wanted {line}");
            assert_eq!(set.packages.join(" "), theirs.next().unwrap().trim_end(), "{context}");
            assert_eq!(order.packages.join(" "), theirs.next().unwrap().trim_end(), "{context}");
            assert_eq!(said.join("\n").replace('\n', "\\n"), theirs.next().unwrap(), "{context}");
        }
    }
}

const DEPENDENCIES: &str = r#"
    urls <- commandArgs(TRUE)
    a <- available.packages(urls)
    cat(format(getRversion()), "\n", sep = "")
    for (which in c("strong", "most")) for (recursive in c(FALSE, TRUE)) {
        d <- tools::package_dependencies(a[, "Package"], a, which, recursive)
        for (p in names(d)) cat(c(p, if (recursive) sort(d[[p]], method = "radix") else d[[p]]), sep = " ", fill = 1e6)
    }"#;

#[test]
fn package_dependencies_are_rs() {
    let world = World::new(40);
    let urls: Vec<&str> = world.urls.iter().map(String::as_str).collect();
    let Some(theirs) = rscript::run(DEPENDENCIES, &urls) else { return };
    let (r, theirs) = theirs.split_once('\n').unwrap();
    let index = world.index(&Filter::DEFAULT, r);
    let names: Vec<String> = index.packages().map(|p| p.name().to_owned()).collect();
    let mut ours = String::new();
    for which in [&STRONG[..], &MOST] {
        for recursive in [false, true] {
            let found = package_dependencies(&index, &names, which, recursive);
            for name in &names {
                let found = found[name].as_ref().unwrap();
                ours += name;
                for dependency in found {
                    ours += " ";
                    ours += dependency;
                }
                ours += "\n";
            }
        }
    }
    assert_eq!(ours, theirs);
}
