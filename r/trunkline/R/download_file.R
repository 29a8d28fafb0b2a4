# download.file() over the pool.

# Methods that name a program or a system facility are R's business.
is_ours <- function(method) method %in% c("auto", "default", "libcurl")

download_file <- function(url, destfile, method, quiet = FALSE, mode = "w", cacheOK = TRUE,
                          extra = getOption("download.file.extra"), headers = NULL, ...) {
    if (missing(method) || is.null(method)) method <- getOption("download.file.method", "auto")
    if (!is.character(url) || !length(url)) stop("'url' must be a non-empty character vector")
    if (!is.character(destfile)) stop("invalid 'destfile' argument")
    if (!is.character(method) || length(method) != 1L) stop("invalid 'method' argument")
    if (!is_ours(method) || !all(grepl("^(https?|file)://", url, ignore.case = TRUE))) {
        return(original("download.file")(url, destfile, method, quiet, mode, cacheOK, extra,
                                         headers, ...))
    }
    if (length(destfile) != length(url)) stop("lengths of 'url' and 'destfile' must match")
    if (length(headers)) {
        headers <- unlist(headers)
        nh <- names(headers)
        if (length(nh) != length(headers) || any(!nzchar(nh)) || anyNA(headers) || anyNA(nh))
            stop("'headers' must have names and must not be NA")
    }
    paths <- path.expand(destfile)
    relative <- !grepl("^(/|[A-Za-z]:[/\\\\])", paths)
    paths[relative] <- file.path(getwd(), paths[relative])
    if (!quiet) for (u in url) message("trying URL '", u, "'")
    reply <- fetch(url, paths, mode = mode, cache_ok = cacheOK, headers = headers,
                   progress = !quiet && length(url) == 1L)
    report(url, destfile, reply, quiet)
}

# Brings URLs to absolute paths; `md5` may hold what the files must have.
fetch <- function(url, paths, mode = "wb", cache_ok = TRUE, headers = NULL, md5 = NULL,
                  progress = FALSE) {
    call_core(
        "download",
        settings = current_settings(),
        urls = enc2utf8(url),
        paths = enc2utf8(paths),
        append = startsWith(mode, "a"),
        cache_ok = isTRUE(cacheOK_value(cache_ok)),
        headers = if (length(headers)) headers else character(),
        md5 = if (is.null(md5)) rep(NA_character_, length(url)) else md5,
        progress = progress
    )
}

cacheOK_value <- function(x) as.logical(x)[1L]

# R's warnings, errors and value for what became of each URL.
report <- function(url, destfile, reply, quiet) {
    failed <- !is.na(reply$kind)
    warnings <- failure_warnings(url, reply)
    for (w in warnings[failed]) warning(w, call. = FALSE, domain = NA)
    if (length(url) == 1L) {
        if (failed) {
            opened <- reply$kind %in% c("length", "timeout", "checksum") && reply$bytes > 0
            stop(if (opened || reply$kind %in% c("length", "checksum")) {
                sprintf("download from '%s' failed", url)
            } else {
                sprintf("cannot open URL '%s'", url)
            }, call. = FALSE, domain = NA)
        }
        if (!quiet) message("downloaded ", format_size(reply$bytes), "\n")
        return(invisible(0L))
    }
    if (all(failed)) stop("cannot download any files", call. = FALSE)
    if (any(failed)) warning("some files were not downloaded", call. = FALSE)
    invisible(structure(0L, retvals = as.integer(failed)))
}

failure_warnings <- function(url, reply) {
    timeout <- getOption("timeout", 60)
    vapply(seq_along(url), function(i) {
        switch(
            if (is.na(reply$kind[i])) "none" else reply$kind[i],
            none = "",
            status = sprintf("cannot open URL '%s': HTTP status was '%d %s'",
                             url[i], reply$status[i], reply$reason[i]),
            timeout = sprintf("URL '%s': Timeout of %d seconds was reached",
                              url[i], as.integer(timeout)),
            sprintf("URL '%s': status was '%s'", url[i], reply$message[i])
        )
    }, "")
}

format_size <- function(bytes) {
    if (bytes > 1024^2) sprintf("%.1f MB", bytes / 1024^2)
    else if (bytes > 10240) sprintf("%d KB", as.integer(bytes / 1024))
    else sprintf("%d bytes", as.integer(bytes))
}
