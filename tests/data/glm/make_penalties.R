# SPDX-License-Identifier: Apache-2.0
#
# Fits models with penalties with glmnet: `Rscript make_penalties.R` in this folder reads models.csv and
# writes penalties.tsv, a line a number: the formula, family, column of weights, alpha, lambda, what the
# number is, of which column, the value.

suppressMessages(library(glmnet))
d <- read.csv("models.csv", stringsAsFactors = TRUE)
C <- function(x) factor(x)
glmnet.control(fdev = 1e-5, devmax = 0.999)

cases <- list(
  list("y ~ x + z + f + C(g) + big", "binomial", "", 1), list("y ~ x + z + f + C(g) + big", "binomial", "", 0.5),
  list("y ~ x * f + z", "binomial", "w", 1), list("cbind(hits, misses) ~ x + f + z", "binomial", "", 0.7),
  list("y ~ x + f + offset(z)", "binomial", "", 1), list("y ~ x + z + f + C(g)", "binomial", "", 0),
  list("count ~ x + z + f + C(g)", "poisson", "", 1),
  list("count ~ x + f + C(g) + offset(log(trials))", "poisson", "", 0.3),
  list("count ~ x + f + z", "poisson", "w", 1),
  list("level ~ x + z + f + C(g) + big", "gaussian", "", 1),
  list("level ~ x + z + f + C(g) + big", "gaussian", "", 0.4),
  list("level ~ x * f + C(g)", "gaussian", "w", 0.5), list("level ~ x + z + f", "gaussian", "", 0),
  list("level ~ x + f + offset(z)", "gaussian", "", 0.8))

out <- c()
for (case in cases) {
  formula <- as.formula(case[[1]])
  family <- case[[2]]
  alpha <- case[[4]]
  fit <- glm(formula, family, d, weights = if (case[[3]] == "") rep(1, nrow(d)) else d[[case[[3]]]])
  x <- model.matrix(fit)[, -1]
  offset <- if (is.null(fit$offset)) rep(0, nrow(x)) else fit$offset
  weight <- fit$prior.weights / sum(fit$prior.weights)
  # Of grouped data glmnet has counts; glm() has their shares and, as weights, their sums.
  y <- fit$y
  response <- if (family == "binomial") cbind(1 - y, y) * fit$prior.weights else y
  arguments <- list(x = x, y = response, family = family, alpha = alpha, offset = offset, thresh = 1e-14,
                    maxit = 1e7)
  if (family != "binomial") arguments$weights <- fit$prior.weights
  scale <- apply(x, 2, function(c) sqrt(sum(weight * c^2) - sum(weight * c)^2))
  deviation <- if (family == "gaussian") {
    sqrt(sum(weight * (y - offset)^2) - sum(weight * (y - offset))^2)
  } else 1
  key <- function(lambda) {
    paste(case[[1]], family, case[[3]], alpha, format(lambda, digits = 17), sep = "\t")
  }
  line <- function(lambda, what, name, value) {
    out <<- c(out, paste(key(lambda), what, name, format(value, digits = 17), sep = "\t"))
  }
  for (lambda in c(0.1, 0.01, 0.001) * deviation) {
    net <- do.call(glmnet, c(arguments, list(lambda = lambda)))
    b <- as.vector(net$beta)
    standardised <- b * scale
    mu <- fit$family$linkinv(as.vector(net$a0 + x %*% b + offset))
    deviance <- sum(fit$family$dev.resids(y, mu, fit$prior.weights))
    objective <- deviance / 2 / sum(fit$prior.weights) + lambda * (
      (1 - alpha) / 2 * sum(standardised^2) / deviation + alpha * sum(abs(standardised)))
    line(lambda, "estimate", "(Intercept)", net$a0)
    for (j in seq_along(b)) line(lambda, "estimate", colnames(x)[j], b[j])
    for (j in seq_along(b)) line(lambda, "scale", colnames(x)[j], scale[j])
    line(lambda, "objective", "", objective)
    line(lambda, "weight", "", sum(fit$prior.weights))
    line(lambda, "deviation", "", deviation)
  }
  if (alpha > 0) {
    path <- do.call(glmnet, arguments)
    for (k in c(1, 2, 10, 20, 30)) {
      if (k > length(path$lambda)) next
      line(0, "path lambda", k, path$lambda[k])
      line(0, "path df", k, path$df[k])
      line(0, "path ratio", k, path$dev.ratio[k])
    }
    line(0, "path length", "", length(path$lambda))
  }
}
writeLines(c(paste0("# ", R.version.string, ", glmnet ", packageVersion("glmnet")), out), "penalties.tsv")
