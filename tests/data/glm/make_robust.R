# SPDX-License-Identifier: Apache-2.0
#
# Robust standard errors of sandwich: `Rscript make_robust.R` in this folder reads models.csv and writes
# robust.tsv, a line a coefficient: the formula, family, column of weights, name, estimate, standard error.

suppressMessages(library(sandwich))
d <- read.csv("models.csv", stringsAsFactors = TRUE)
C <- function(x) factor(x)
models <- list(
  list("y ~ x + z + f + C(g)", "binomial", ""), list("y ~ x * f + big", "binomial", "w"),
  list("cbind(hits, misses) ~ x + f", "binomial", ""), list("count ~ x + z + f", "poisson", ""),
  list("count ~ x + f + offset(log(trials))", "poisson", "w"), list("level ~ x + z + f", "gaussian", ""),
  list("level ~ x * f + C(g) + big", "gaussian", "w"), list("level ~ 0 + C(g) + x", "gaussian", ""))
out <- c()
for (m in models) {
  weights <- if (m[[3]] == "") rep(1, nrow(d)) else d[[m[[3]]]]
  fit <- suppressWarnings(glm(as.formula(m[[1]]), m[[2]], d, weights = weights,
                              control = list(epsilon = 1e-16, maxit = 30)))
  error <- sqrt(diag(vcovHC(fit, type = "HC1")))
  for (name in names(coef(fit))) {
    out <- c(out, paste(m[[1]], m[[2]], m[[3]], name, format(coef(fit)[[name]], digits = 17),
                        format(error[[name]], digits = 17), sep = "\t"))
  }
}
writeLines(c(paste0("# ", R.version.string, ", sandwich ", packageVersion("sandwich")), out), "robust.tsv")
