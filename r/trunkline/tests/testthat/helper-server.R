# A server on loopback, in a process of its own. It answers any path below the folder it
# was given, and 404 to all others. Skips the test where it cannot run.
local_server <- function(root, env = parent.frame()) {
    python <- Sys.which("python3")
    skip_if(!nzchar(python), "python3 is needed as a server")
    log <- tempfile()
    code <- paste(
        "import functools, http.server as h",
        "H = functools.partial(h.SimpleHTTPRequestHandler, directory=%s)",
        "h.SimpleHTTPRequestHandler.protocol_version = 'HTTP/1.1'",
        "s = h.ThreadingHTTPServer(('127.0.0.1', 0), H)",
        "print(s.server_port, flush=True); s.serve_forever()",
        sep = "\n"
    )
    script <- tempfile(fileext = ".py")
    writeLines(sprintf(code, deparse(root)), script)
    pid_file <- tempfile()
    system(sprintf("%s %s > %s 2>/dev/null & echo $! > %s", shQuote(python), shQuote(script),
                   shQuote(log), shQuote(pid_file)))
    for (i in 1:100) {
        port <- if (file.exists(log)) readLines(log, warn = FALSE) else character()
        if (length(port)) break
        Sys.sleep(0.05)
    }
    pid <- as.integer(readLines(pid_file))
    withr::defer(tools::pskill(pid), envir = env)
    paste0("http://127.0.0.1:", port[1L])
}

# A repository of small source packages; returns its root.
local_repository <- function(names = c("tlone", "tltwo"), env = parent.frame()) {
    root <- tempfile("repo")
    contrib <- file.path(root, "src", "contrib")
    dir.create(contrib, recursive = TRUE)
    old <- setwd(contrib)
    on.exit(setwd(old))
    for (name in names) {
        dir.create(file.path(name, "R"), recursive = TRUE)
        writeLines(c(paste0("Package: ", name), "Version: 1.0", "Title: Generated",
                     "Description: For tests.", "Author: Nobody",
                     "Maintainer: Nobody <nobody@example.org>", "License: GPL-2"),
                   file.path(name, "DESCRIPTION"))
        writeLines("export(hello)", file.path(name, "NAMESPACE"))
        writeLines("hello <- function() 1", file.path(name, "R", "hello.R"))
        utils::tar(paste0(name, "_1.0.tar.gz"), name, compression = "gzip", tar = "internal")
        unlink(name, recursive = TRUE)
    }
    tools::write_PACKAGES(contrib, type = "source")
    root
}
