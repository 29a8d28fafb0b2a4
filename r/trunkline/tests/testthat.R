library(testthat)
library(trunkline)

test_check("trunkline")
