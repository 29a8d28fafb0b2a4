# The Rust core: one per process, made when it is first needed.

state <- new.env(parent = emptyenv())

# The core of this process. Threads do not survive a fork, so a child makes its own and leaves
# its parent's alone.
core <- function() {
    if (is.null(state$core) || state$process != Sys.getpid()) {
        state$core <- .Call(core_new)
        state$process <- Sys.getpid()
    }
    state$core
}

close_core <- function() {
    if (!is.null(state$core) && state$process == Sys.getpid()) .Call(core_free, state$core)
    state$core <- NULL
}

# Sends a request, waits for the reply (interrupts work), and turns the core's errors into R's.
call_core <- function(op, ..., progress = FALSE) {
    request <- serialize(list(op = op, ...), NULL, version = 2L)
    reply <- unserialize(.Call(core_call, core(), request, progress))
    failure <- reply[["error"]] # `$` would also match "errors"
    if (!is.null(failure)) stop(failure, call. = FALSE)
    reply
}

env <- function(names) {
    values <- Sys.getenv(names)
    values <- values[nzchar(values)]
    if (length(values)) values[[1L]] else NA_character_
}

# What the session's options and environment ask for; read anew for every call, as R does.
current_settings <- function() {
    timeout <- getOption("timeout", 60)
    agent <- getOption("HTTPUserAgent")
    all_proxy <- env(c("all_proxy", "ALL_PROXY"))
    proxy <- function(names) {
        own <- env(names)
        if (is.na(own)) all_proxy else own
    }
    list(
        timeout = as.numeric(timeout)[1L],
        user_agent = if (is.character(agent)) agent[1L] else NA_character_,
        netrc = netrc_file(),
        ca_bundle = env(c("CURL_CA_BUNDLE", "SSL_CERT_FILE")),
        http_proxy = proxy("http_proxy"),
        https_proxy = proxy(c("https_proxy", "HTTPS_PROXY")),
        no_proxy = env(c("no_proxy", "NO_PROXY")),
        connections_max = as.numeric(getOption("trunkline.max_connections", NA))
    )
}

# R 4.6 has options(netrc = path); before that, `--netrc` or `--netrc-file` among the extra
# arguments for curl was the way to ask for it.
netrc_file <- function() {
    path <- getOption("netrc")
    if (is.character(path) && length(path) == 1L) return(path.expand(path))
    extra <- strsplit(paste(getOption("download.file.extra"), collapse = " "), "[ =]+")[[1L]]
    at <- match("--netrc-file", extra)
    if (!is.na(at) && at < length(extra)) return(path.expand(extra[at + 1L]))
    if (any(extra %in% c("--netrc", "-n"))) {
        path <- env("NETRC")
        if (is.na(path)) path <- path.expand("~/.netrc")
        if (file.exists(path)) return(path)
    }
    NA_character_
}

stats <- function() {
    reply <- call_core("stats")
    data.frame(reply, stringsAsFactors = FALSE)
}

.onUnload <- function(libpath) {
    disable()
    close_core()
    library.dynam.unload("trunkline", libpath)
}
