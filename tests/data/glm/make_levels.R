# SPDX-License-Identifier: Apache-2.0
#
# Models of a factor with 1,010 levels: `Rscript make_levels.R` in this folder writes levels.tsv: a line a model
# (its name, formula, family, residual deviance), a line a term (its label, Wald's statistic from vcov and from
# sandwich's HC1), and a line a coefficient: name, estimate, standard error, that of HC1. Of the levels every 50th is
# written. Rows are made of whole numbers, so that the test has the same.

suppressMessages(library(sandwich))
i <- 0:12119
k <- i %% 1010
part <- function(a, b, m) ((i * a + b) %% m) / m
d <- data.frame(k = factor(k), x = ((i * 37) %% 103) / 10, z = ((i * i * 13 + i * 7) %% 997) / 50,
                s = factor(c("a", "b", "c", "d")[(i * 31) %/% 7 %% 4 + 1]))
noise <- part(26544, 12345, 10007)
d$y <- round(0.3 * d$x - 0.1 * d$z + (k %% 17) / 5 + (1 + d$x / 5) * noise, 4)
d$late <- as.integer(noise + 0.02 * d$x - 0.01 * d$z + (k %% 5) / 20 > 0.6)
d$count <- floor(noise * 4 + (k %% 3) + d$x / 5)
d$twice <- (k %% 7)  # of the levels alone
models <- list(
  list("first", "y ~ C(k) + x + z + s", "gaussian"), list("last", "y ~ x + z + s + C(k)", "gaussian"),
  list("logit", "late ~ x + z + s + C(k)", "binomial"), list("counts", "count ~ x + C(k) + s", "poisson"),
  list("aliased", "y ~ C(k) + twice + x", "gaussian"))
C <- function(x) x
digits <- function(x) format(x, digits = 17)
out <- c()
for (m in models) {
  # glm() takes a thousandth of epsilon for what is left of an aliased column.
  control <- if (m[[3]] == "gaussian") list() else list(epsilon = 1e-16, maxit = 7)
  fit <- suppressWarnings(glm(as.formula(m[[2]]), m[[3]], d, control = control))
  b <- coef(fit)[!is.na(coef(fit))]
  v <- vcov(fit, complete = FALSE)
  hc <- vcovHC(fit, type = "HC1")
  hc <- hc[names(b), names(b)]
  out <- c(out, paste("model", m[[1]], m[[2]], m[[3]], digits(deviance(fit)), sep = "\t"))
  labels <- attr(terms(fit), "term.labels")
  of <- (c("(Intercept)", labels)[attr(model.matrix(fit), "assign") + 1])[!is.na(coef(fit))]
  for (t in labels) {
    own <- of == t
    if (!any(own)) next
    wald <- function(v) {
      scale <- sqrt(diag(v)[own])
      if (rcond(v[own, own] / outer(scale, scale)) < 1e-12) return(NA)
      sum(b[own] / scale * solve(v[own, own] / outer(scale, scale), b[own] / scale))
    }
    out <- c(out, paste("term", t, digits(wald(v)), digits(wald(hc)), sep = "\t"))
  }
  level <- suppressWarnings(as.integer(sub("^C\\(k\\)", "", names(b))))
  for (j in seq_along(b)) {
    if (!is.na(level[j]) && level[j] %% 50 != 1) next
    out <- c(out, paste("coef", names(b)[j], digits(b[[j]]), digits(sqrt(v[j, j])), digits(sqrt(hc[j, j])), sep = "\t"))
  }
}
writeLines(c(paste0("# ", R.version.string, ", sandwich ", packageVersion("sandwich")), out), "levels.tsv")
