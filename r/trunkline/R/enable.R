# Puts the package's functions behind R's own, and takes them away again.

replacements <- function() {
    list(download.file = download_file, download.packages = download_packages,
         available.packages = available_packages)
}

is_enabled <- function() !is.null(state$originals)

# R's function, also while it is replaced.
original <- function(name) {
    if (is_enabled()) state$originals[[name]]
    else get(name, envir = asNamespace("utils"))
}

enable <- function() {
    if (is_enabled()) return(invisible(FALSE))
    ours <- replacements()
    state$originals <- lapply(setNames(nm = names(ours)), original)
    for (name in names(ours)) replace_everywhere(name, state$originals[[name]], ours[[name]])
    state$renv <- options(renv.download.override = renv_download)
    invisible(TRUE)
}

disable <- function() {
    if (!is_enabled()) return(invisible(FALSE))
    ours <- replacements()
    originals <- state$originals
    for (name in names(ours)) replace_everywhere(name, ours[[name]], originals[[name]])
    state$originals <- NULL
    options(state$renv)
    invisible(TRUE)
}

# In utils itself, on the search path, and in the imports of packages that were loaded before.
replace_everywhere <- function(name, from, to) {
    places <- list(asNamespace("utils"))
    if ("package:utils" %in% search()) places <- c(places, as.environment("package:utils"))
    others <- setdiff(loadedNamespaces(), c("base", "utils", "trunkline"))
    places <- c(places, lapply(others, function(p) parent.env(asNamespace(p))))
    for (place in places) {
        if (!exists(name, envir = place, inherits = FALSE)) next
        if (!identical(get(name, envir = place), from)) next
        locked <- bindingIsLocked(name, place)
        if (locked) unlock(name, place)
        assign(name, to, envir = place)
        if (locked) lockBinding(name, place)
    }
}

unlock <- function(name, place) get("unlockBinding", baseenv())(name, place)

# renv's hook for every file it fetches.
renv_download <- function(url, destfile, quiet = FALSE, mode = "wb", headers = NULL, ...) {
    download_file(url, destfile, method = "libcurl", quiet = quiet, mode = mode,
                  headers = headers)
}
