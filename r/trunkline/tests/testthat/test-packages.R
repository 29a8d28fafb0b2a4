test_that("the table is the one R has", {
    server <- local_server(local_repository())
    ours <- available_packages(repos = server, type = "source")
    expect_identical(ours, utils::available.packages(repos = server, type = "source"))
    own <- available_packages(repos = server, type = "source", fields = "Title",
                              filters = list(function(db) db[1L, , drop = FALSE]))
    expect_identical(rownames(own), "tlone")
    expect_true("Title" %in% colnames(own))
})

test_that("a repository that cannot be read is a warning", {
    root <- tempfile()
    dir.create(root)
    server <- local_server(root)
    expect_warning(
        table <- available_packages(repos = server, type = "source"),
        paste0("unable to access index for repository ", server, "/src/contrib"), fixed = TRUE
    )
    expect_identical(nrow(table), 0L)
})

test_that("packages arrive verified, or there is a warning", {
    root <- local_repository()
    server <- local_server(root)
    destdir <- tempfile()
    dir.create(destdir)
    got <- download_packages(c("tlone", "tltwo", "tlone"), destdir, repos = server,
                             type = "source", quiet = TRUE)
    expect_identical(got[, 1], c("tlone", "tltwo"))
    expect_true(all(file.exists(got[, 2])))
    expect_warning(
        none <- download_packages("tlnone", destdir, repos = server, type = "source"),
        "no package .tlnone. at the repositories"
    )
    expect_identical(dim(none), c(0L, 2L))

    writeLines("not a package", file.path(root, "src/contrib/tlone_1.0.tar.gz"))
    unlink(file.path(destdir, "tlone_1.0.tar.gz"))
    warnings <- capture_warnings(
        got <- download_packages("tlone", destdir, repos = server, type = "source", quiet = TRUE)
    )
    expect_match(warnings, "download of package .tlone. failed", all = FALSE)
    expect_identical(nrow(got), 0L)
    expect_false(file.exists(file.path(destdir, "tlone_1.0.tar.gz")))
})

test_that("local repositories are used in place", {
    root <- local_repository()
    for (repos in paste0(c("file://", "file:"), root)) {
        got <- download_packages("tltwo", tempdir(), repos = repos, type = "source")
        expect_identical(got[, 2], file.path(root, "src/contrib/tltwo_1.0.tar.gz"))
    }
})

test_that("R's own functions use the pool while it is enabled", {
    server <- local_server(local_repository())
    original <- utils::download.file
    expect_true(enable())
    withr::defer(disable())
    expect_identical(utils::download.file, download_file)
    expect_false(is.null(getOption("renv.download.override")))
    lib <- tempfile()
    dir.create(lib)
    utils::install.packages(c("tlone", "tltwo"), lib = lib, repos = server, type = "source",
                            quiet = TRUE)
    expect_setequal(list.files(lib), c("tlone", "tltwo"))
    expect_gt(stats()[stats()$origin == server, "requests"], 2)
    expect_true(disable())
    expect_identical(utils::download.file, original)
    expect_null(getOption("renv.download.override"))
})
