#!/usr/bin/env Rscript
# SPDX-License-Identifier: Apache-2.0
# Writes fits.tsv: models of data that come with R, and what R's summary() says of them. A line is a kind and values:
#   model    name, family, link, rows, dispersion, residual df, null df, null and residual deviance, AIC, BIC, log-likelihood
#   summary  R², adjusted R², sigma, F, its two dfs, log p (of lm only)
#   coef     term, level, name, estimate, standard error, statistic, log p, lower, upper (of 95 %); NA where R says so
#   cov      a row of vcov()
#   term     label, df, Wald's chi squared, log p (by F where the dispersion is estimated)
# Run: Rscript make_fits.R > fits.tsv
number <- function(x) ifelse(is.na(x), "NA", sprintf("%.17g", x))
row <- function(...) cat(paste(c(...), collapse = "\t"), "\n", sep = "")
cat("# ", R.version.string, "\n", sep = "")
write_fit <- function(name, m) {
  s <- summary(m)
  is_lm <- !inherits(m, "glm")
  rdf <- m$df.residual
  if (is_lm) {
    y <- model.response(model.frame(m))
    null <- if (attr(terms(m), "intercept")) sum((y - mean(y))^2) else sum(y^2)
    row("model", name, "gaussian", "identity", nobs(m), number(c(s$sigma^2, rdf, nobs(m) - attr(terms(m), "intercept"),
        null, deviance(m), AIC(m), BIC(m), logLik(m))))
    f <- s$fstatistic
    row("summary", number(c(s$r.squared, s$adj.r.squared, s$sigma, f, pf(f[1], f[2], f[3], lower.tail = FALSE, log.p = TRUE))))
  } else {
    row("model", name, m$family$family, m$family$link, nobs(m), number(c(s$dispersion, rdf, m$df.null, m$null.deviance, deviance(m),
        AIC(m), BIC(m), logLik(m))))
  }
  b <- coef(m)
  table <- coef(s)
  assign <- if (is_lm) m$assign else attr(model.matrix(m), "assign")
  labels <- attr(terms(m), "term.labels")
  tail <- if (is_lm) function(t) pt(abs(t), rdf, lower.tail = FALSE, log.p = TRUE) else function(z) pnorm(abs(z), lower.tail = FALSE, log.p = TRUE)
  q <- if (is_lm) qt(0.975, rdf) else qnorm(0.975)
  for (i in seq_along(b)) {
    term <- if (assign[i] == 0) "(Intercept)" else labels[assign[i]]
    level <- if (term %in% names(m$xlevels)) substring(names(b)[i], nchar(term) + 1) else ""
    at <- match(names(b)[i], rownames(table))
    se <- table[at, 2]
    row("coef", term, level, names(b)[i], number(c(b[i], se, table[at, 3], log(2) + tail(table[at, 3]), b[i] - q * se, b[i] + q * se)))
  }
  kept <- !is.na(b)
  v <- vcov(m)[kept, kept]
  for (i in seq_len(nrow(v))) row("cov", number(v[i, ]))
  for (k in seq_along(labels)) {
    own <- which(assign[kept] == k)
    if (length(own) == 0) next
    chi <- drop(b[kept][own] %*% solve(v[own, own, drop = FALSE], b[kept][own]))
    p <- if (is_lm) pf(chi / length(own), length(own), rdf, lower.tail = FALSE, log.p = TRUE) else pchisq(chi, length(own), lower.tail = FALSE, log.p = TRUE)
    row("term", labels[k], length(own), number(c(chi, p)))
  }
}
exact <- glm.control(epsilon = 1e-14, maxit = 50)
cars <- transform(mtcars, cyl = factor(cyl), gear = factor(gear), tons = wt * 0.45359237)
write_fit("cars", lm(mpg ~ cyl + wt + tons + gear + hp, cars))
write_fit("origin", lm(mpg ~ 0 + wt + hp, cars))
write_fit("longley", lm(Employed ~ ., longley))
write_fit("infert", glm(case ~ age + parity + education + spontaneous + induced, binomial, infert, control = exact))
write_fit("breaks", glm(breaks ~ wool * tension, poisson, warpbreaks, control = exact))
write_fit("esoph", glm(cbind(ncases, ncontrols) ~ factor(agegp, ordered = FALSE) + unclass(tobgp), binomial("cloglog"), esoph, control = exact))
