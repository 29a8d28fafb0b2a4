test_that("one URL, several URLs, and appending", {
    root <- tempfile()
    dir.create(root)
    writeLines(c("some", "text"), file.path(root, "a"))
    server <- local_server(root)
    to <- tempfile()
    expect_identical(download_file(paste0(server, "/a"), to, quiet = TRUE), 0L)
    expect_identical(readLines(to), c("some", "text"))
    download_file(paste0(server, "/a"), to, mode = "ab", quiet = TRUE)
    expect_identical(readLines(to), rep(c("some", "text"), 2))

    several <- replicate(3, tempfile())
    value <- withVisible(download_file(rep(paste0(server, "/a"), 3), several, "libcurl", TRUE))
    expect_false(value$visible)
    expect_equal(value$value, structure(0L, retvals = c(0L, 0L, 0L)))
    expect_true(all(file.exists(several)))
})

test_that("failures are worded as R words them and destroy nothing", {
    root <- tempfile()
    dir.create(root)
    writeLines("x", file.path(root, "a"))
    server <- local_server(root)
    to <- tempfile()
    writeLines("what was here before", to)
    url <- paste0(server, "/missing")
    expect_warning(
        expect_error(download_file(url, to, quiet = TRUE),
                     paste0("cannot open URL '", url, "'"), fixed = TRUE),
        paste0("cannot open URL '", url, "': HTTP status was '404 Not Found'"), fixed = TRUE
    )
    expect_identical(readLines(to), "what was here before")

    urls <- c(url, paste0(server, "/a"))
    warnings <- capture_warnings(
        value <- download_file(urls, c(tempfile(), to), "libcurl", quiet = TRUE)
    )
    expect_identical(attr(value, "retvals"), c(1L, 0L))
    expect_match(warnings, "some files were not downloaded", all = FALSE)
    expect_error(
        suppressWarnings(download_file(c(url, url), c(tempfile(), tempfile()), quiet = TRUE)),
        "cannot download any files"
    )
})

test_that("arguments are checked", {
    expect_error(download_file(character(), tempfile()), "non-empty character vector")
    expect_error(download_file("http://x", 1), "destfile")
    expect_error(download_file(c("http://x", "http://y"), tempfile(), quiet = TRUE), "lengths")
    expect_error(download_file("http://x", tempfile(), headers = "a", quiet = TRUE), "headers")
})

test_that("a loop of single calls keeps its connection", {
    root <- tempfile()
    dir.create(root)
    writeLines("x", file.path(root, "a"))
    server <- local_server(root)
    for (i in 1:100) download_file(paste0(server, "/a"), tempfile(), quiet = TRUE)
    row <- stats()[stats()$origin == server, ]
    expect_identical(row$connections, 1)
    expect_identical(row$requests, 100)
})

test_that("a forked process has a pool of its own", {
    skip_on_os("windows")
    root <- tempfile()
    dir.create(root)
    writeLines("x", file.path(root, "a"))
    server <- local_server(root)
    fetch <- function(i) {
        to <- tempfile()
        download_file(paste0(server, "/a"), to, quiet = TRUE)
        readLines(to)
    }
    fetch(0)
    expect_identical(parallel::mclapply(1:4, fetch, mc.cores = 2), as.list(rep("x", 4)))
    expect_identical(fetch(5), "x")
})
