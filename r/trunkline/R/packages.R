# The package functions over the pool.

default_filters <- c("R_version", "OS_type", "subarch", "duplicates")

available_packages <- function(contriburl = contrib.url(repos, type), method, fields = NULL,
                               type = getOption("pkgType"), filters = NULL,
                               repos = getOption("repos"), ignore_repo_cache = FALSE,
                               max_repo_cache_age, quiet = TRUE, ...) {
    if (!is.character(type)) stop("invalid 'type'; must be a character string")
    required <- c(tools_fields(), "File")
    if (is.null(fields)) {
        fields <- required
    } else {
        stopifnot(is.character(fields))
        fields <- unique(c(required, fields))
    }
    if (is.null(filters)) {
        filters <- getOption("available_packages_filters")
        if (is.null(filters)) filters <- default_filters
    }
    if (is.list(filters) && isTRUE(filters$add)) {
        filters$add <- NULL
        filters <- c(default_filters, filters)
    }
    # Leading filters that the core knows are applied there; the rest is R's.
    names <- vapply(filters, function(f) if (is.character(f)) f[1L] else "", "")
    known <- cumall(names %in% default_filters)
    max_age <- if (missing(max_repo_cache_age)) {
        as.numeric(Sys.getenv("R_AVAILABLE_PACKAGES_CACHE_CONTROL_MAX_AGE", "3600"))
    } else {
        max_repo_cache_age
    }
    res <- indexes(contriburl, fields, names[known], if (ignore_repo_cache) 0 else max_age)
    for (f in filters[!known]) {
        if (!length(res)) break
        if (is.character(f)) f <- utils_internal("available_packages_filters_db")[[f[1L]]]
        if (!is.function(f)) stop("invalid 'filters' argument.")
        res <- f(res)
    }
    res
}

cumall <- function(x) as.logical(cumprod(x))

# One merged table, kept for the session as long as R would keep an index.
indexes <- function(contriburl, fields, filters, max_age) {
    agent <- getOption("HTTPUserAgent")
    key <- paste(c(contriburl, "|", fields, "|", filters, "|", agent), collapse = " ")
    hit <- state$indexes[[key]]
    local <- startsWith(contriburl, "file:")
    now <- as.numeric(Sys.time())
    if (!is.null(hit) && !any(local) && now - hit$read_s < max_age) return(hit$table)
    reply <- call_core(
        "indexes",
        settings = current_settings(),
        contrib_urls = enc2utf8(as.character(contriburl)),
        fields = fields,
        filters = as.character(filters),
        r_version = format(getRversion()),
        os_type = .Platform$OS.type,
        subarch = .Platform$r_arch
    )
    for (i in which(!is.na(reply$errors))) {
        warning(sprintf("unable to access index for repository %s", contriburl[i]), ":\n  ",
                reply$errors[i], call. = FALSE, immediate. = TRUE, domain = NA)
    }
    table <- reply$table
    if (!nrow(table)) rownames(table) <- NULL
    if (all(is.na(reply$errors)))
        state$indexes[[key]] <- list(table = table, read_s = now)
    table
}

tools_fields <- function() getFromNamespace(".get_standard_repository_db_fields", "tools")()
utils_internal <- function(name) get(name, envir = asNamespace("utils"), inherits = FALSE)
getFromNamespace <- function(name, package) get(name, envir = asNamespace(package))

download_packages <- function(pkgs, destdir, available = NULL, repos = getOption("repos"),
                              contriburl = contrib.url(repos, type), method,
                              type = getOption("pkgType"), ...) {
    if (!is.character(type)) stop("invalid 'type'; must be a character string")
    if (!all(startsWith(contriburl, "file:")) && !dir.exists(destdir))
        stop("'destdir' is not a directory")
    type <- utils_internal("resolvePkgType")(type)
    if (is.null(available)) available <- available_packages(contriburl = contriburl, ...)
    extension <- switch(sub("^mac.binary.*", "mac.binary", type), source = ".tar.gz",
                        mac.binary = ".tgz", win.binary = ".zip", stop("invalid 'type'"))
    plan <- lapply(unique(pkgs), plan_package, available, extension)
    plan <- do.call(rbind, plan[lengths(plan) > 0L])
    result <- matrix(character(), 0L, 2L)
    if (is.null(plan)) return(result)
    local <- startsWith(plan[, "repository"], "file:")
    paths <- character(nrow(plan))
    paths[local] <- file.path(sub("^file:(//)?(?=/)", "", plan[local, "repository"], perl = TRUE),
                              plan[local, "file"])
    there <- !local | file.exists(paths)
    for (p in plan[!there, "package"]) {
        warning(sprintf("package %s does not exist on the local repository", sQuote(p)),
                call. = FALSE, domain = NA, immediate. = TRUE)
    }
    if (any(!local)) {
        paths[!local] <- file.path(destdir, basename(plan[!local, "file"]))
        there[!local] <- fetch_packages(plan[!local, , drop = FALSE],
                                        normalizePath(destdir), list(...))
    }
    cbind(unname(plan[there, "package"]), paths[there], deparse.level = 0L)
}

# The row R takes for a package, as a named character vector; NULL (with R's warning) without one.
plan_package <- function(package, available, extension) {
    rows <- which(available[, "Package"] == package)
    if (!length(rows)) {
        warning(sprintf("no package %s at the repositories", sQuote(package)), call. = FALSE,
                domain = NA, immediate. = TRUE)
        return(NULL)
    }
    if (length(rows) > 1L) {
        versions <- package_version(available[rows, "Version"])
        rows <- rows[which(versions == max(versions))[1L]]
    }
    row <- available[rows, ]
    file <- if ("File" %in% names(row)) row[["File"]] else NA
    if (is.na(file)) file <- paste0(package, "_", row[["Version"]], extension)
    md5 <- if ("MD5sum" %in% names(row)) row[["MD5sum"]] else NA_character_
    c(package = package, file = file, repository = row[["Repository"]], md5 = md5)
}

# Fetches all at once; TRUE for every package that arrived.
fetch_packages <- function(plan, destdir, args) {
    url <- paste(plan[, "repository"], plan[, "file"], sep = "/")
    quiet <- isTRUE(args$quiet)
    if (!quiet) for (u in url) message("trying URL '", u, "'")
    reply <- fetch(url, file.path(destdir, basename(plan[, "file"])), headers = args$headers,
                   cache_ok = if (is.null(args$cacheOK)) TRUE else args$cacheOK,
                   md5 = unname(plan[, "md5"]))
    failed <- !is.na(reply$kind)
    messages <- failure_warnings(url, reply)
    for (i in which(failed)) {
        warning(messages[i], call. = FALSE, domain = NA)
        warning(sprintf("download of package %s failed", sQuote(plan[i, "package"])),
                call. = FALSE, domain = NA, immediate. = TRUE)
    }
    !failed
}

# R's own install.packages() with its indexes and files over the pool.
install_packages <- function(...) {
    if (!is_enabled()) {
        enable()
        on.exit(disable())
    }
    utils::install.packages(...)
}
