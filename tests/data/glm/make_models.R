# SPDX-License-Identifier: Apache-2.0
#
# Fits models with R's glm() and writes what it found: `Rscript make_models.R` in this folder makes
# models.csv, the data, and models.tsv, a line a number: the model, what it is of, its name, the value.

set.seed(33)
n <- 600
d <- data.frame(x = round(rnorm(n), 3), z = round(rexp(n), 4), big = round(1015 + 7 * rnorm(n), 1),
                f = sample(c("b", "a", "c"), n, TRUE), g = sample(c("10", "9", "2", "1"), n, TRUE),
                w = sample(c(1, 2, 0.5), n, TRUE), trials = sample(1:9, n, TRUE))
eta <- 0.4 * d$x - 0.3 * d$z + (d$f == "a") * 0.8 - (d$g == "9") * 0.5 + 0.02 * (d$big - 1015)
d$y <- rbinom(n, 1, plogis(eta))
d$late <- ifelse(d$y == 1, "yes", "no")
d$hits <- rbinom(n, d$trials, plogis(eta))
d$misses <- d$trials - d$hits
d$count <- rpois(n, exp(0.5 * eta) * d$trials)
d$level <- round(3 + 2 * eta + rnorm(n), 4)
d$km <- round(1.609344 * d$z, 10)
for (column in c("x", "f", "level")) d[[column]][sample(n, 12)] <- NA
options(digits = 17)
write.csv(d, "models.csv", row.names = FALSE, quote = FALSE)
d <- read.csv("models.csv", stringsAsFactors = TRUE)

models <- list(
  list("y ~ x + z + f", binomial), list("y ~ x + z + f + C(g) + big", binomial),
  list("y ~ x * f + z", binomial), list("y ~ f:C(g)", binomial), list("y ~ f * C(g) + x", binomial),
  list("y ~ 0 + f + x", binomial), list("y ~ x + f:z", binomial), list("y ~ f:z + f", binomial),
  list("late ~ x + z", binomial), list("y ~ big + I(x^2) + log(z)", binomial),
  list("y ~ x + z + km + f", binomial), list("y ~ x:z + x + z", binomial),
  list("y ~ cut(z, 0, 0.5, 1, 20) + x", binomial), list("y ~ 1", binomial), list("y ~ 0 + x", binomial),
  list("y ~ x + f", binomial(probit)), list("y ~ x + z + C(g)", binomial(probit)),
  list("y ~ x + f", binomial(cloglog)), list("cbind(hits, misses) ~ x + f + z", binomial),
  list("cbind(hits, misses) ~ x + f", binomial(probit)),
  list("cbind(hits, misses) ~ x + C(g)", binomial(cloglog)),
  list("count ~ x + z + f", poisson), list("count ~ x + f + offset(log(trials))", poisson),
  list("count ~ x + f", poisson, "w"), list("count ~ f * x + C(g)", poisson),
  list("level ~ x + z + f", gaussian), list("level ~ x * f + C(g) + big", gaussian),
  list("level ~ x + z + km", gaussian), list("level ~ x + f", gaussian, "w"),
  list("level ~ 0 + C(g) + x", gaussian), list("log(z) ~ x + f + offset(z)", gaussian),
  list("level ~ 0 + f:x", gaussian), list("level ~ big * x", gaussian))

out <- c()
C <- function(x) factor(x)
cut <- function(x, ...) base::cut(x, c(...))
for (m in models) {
  weights <- if (length(m) > 2) d[[m[[3]]]] else rep(1, n)
  family <- m[[2]]
  if (is.function(family)) family <- family()
  # A small epsilon would have glm() tell aliased columns worse: its tolerance is a thousandth of it.
  first <- glm(as.formula(m[[1]]), family, d, weights = weights)
  kept <- names(coef(first))[!is.na(coef(first))]
  fit <- suppressWarnings(glm.fit(model.matrix(first)[, kept, drop = FALSE], first$y,
                                  first$prior.weights, offset = first$offset, family = family,
                                  control = list(epsilon = 1e-16, maxit = 30)))
  class(fit) <- "glm"
  key <- paste(m[[1]], family$family, family$link, if (length(m) > 2) m[[3]] else "", sep = "\t")
  line <- function(what, name, value) {
    out <<- c(out, paste(key, what, name, format(value, digits = 17), sep = "\t"))
  }
  # R names coefficients by the expressions of its formula.
  table <- coef(summary(fit))
  for (name in names(coef(first))) {
    if (name %in% kept) line("estimate", name, table[name, 1])
    if (name %in% kept) line("error", name, table[name, 2]) else line("estimate", name, NA)
  }
  line("deviance", "residual", deviance(fit))
  line("deviance", "null", first$null.deviance)
  line("df", "residual", df.residual(fit))
  line("aic", "aic", AIC(first))
}
writeLines(c(paste("#", R.version.string), out), "models.tsv")
