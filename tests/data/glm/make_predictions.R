# SPDX-License-Identifier: Apache-2.0
#
# Predicts with R's glm(): `Rscript make_predictions.R` in this folder fits models to models.csv and makes predictions.csv,
# other rows, in other columns, some without a prediction, and predictions.tsv, a line a number or a row:
#   model    formula, family, link, weights: the lines behind it are about it
#   metric   training or evaluation, name, value
#   row      link, its standard error, response, its standard error; NA where there is no prediction

set.seed(44)
n <- 150
d <- data.frame(note = sprintf("\"row %d, \"\"quoted\"\"\"", seq_len(n)), g = sample(c("10", "9", "2", "1"), n, TRUE),
                z = round(rexp(n), 4), f = sample(c("b", "a", "c"), n, TRUE), id = 1000 + seq_len(n), x = round(rnorm(n), 3),
                trials = sample(1:9, n, TRUE), big = round(1015 + 7 * rnorm(n), 1), w = sample(c(1, 2, 0.5), n, TRUE))
eta <- 0.4 * d$x - 0.3 * d$z + (d$f == "a") * 0.8 - (d$g == "9") * 0.5
d$y <- rbinom(n, 1, plogis(eta))
d$late <- ifelse(d$y == 1, "yes", "no")
d$hits <- rbinom(n, d$trials, plogis(eta))
d$misses <- d$trials - d$hits
d$count <- rpois(n, exp(0.5 * eta) * d$trials)
d$level <- round(3 + 2 * eta + rnorm(n), 4)
d$km <- round(1.609344 * d$z, 10)
d$f[c(7, 50, 51)] <- c("d", "e", "d")
d$g[20] <- "77"
for (column in c("x", "f", "g", "z")) d[[column]][sample(100:n, 4)] <- NA
options(digits = 17)
write.csv(d, "predictions.csv", row.names = FALSE, quote = FALSE)
d <- read.csv("predictions.csv", stringsAsFactors = TRUE)
train <- read.csv("models.csv", stringsAsFactors = TRUE)

models <- list(
  list("y ~ x * f + z + C(g)", binomial()), list("late ~ x + f", binomial()), list("y ~ 0 + f + x", binomial("cloglog")),
  list("y ~ x + f:C(g)", binomial("probit")), list("cbind(hits, misses) ~ x + f + cut(z, 0, 0.5, 1, 20)", binomial()),
  list("count ~ x + f + offset(log(trials))", poisson(), "w"), list("level ~ x * f + C(g) + I(x^2) + z + km", gaussian()),
  list("level ~ log(z) + big * x", gaussian(), "w"))

C <- function(x) factor(x)
cut <- function(x, ...) base::cut(x, c(...))
number <- function(x) ifelse(is.na(x), "NA", sprintf("%.17g", x))
out <- c()
line <- function(...) out <<- c(out, paste(..., sep = "\t"))
metrics <- function(data, y, trials, mu, w) {
  use <- !is.na(mu) & !is.na(y) & trials > 0
  y <- y[use]; mu <- mu[use]; w <- w[use] * trials[use]
  metric <- function(name, value) line("metric", data, name, number(value))
  metric("rows", sum(use))
  if (family$family != "binomial") {
    metric("rmse", sqrt(sum(w * (y - mu)^2) / sum(w)))
    metric("mae", sum(w * abs(y - mu)) / sum(w))
    return(invisible())
  }
  positive <- w * y
  negative <- w * (1 - y)
  metric("log_loss", -sum(positive * log(mu) + negative * log1p(-mu)) / sum(w))
  metric("brier", sum(positive * (1 - mu)^2 + negative * mu^2) / sum(w))
  above <- outer(mu, mu, ">") + outer(mu, mu, "==") / 2
  metric("auc", sum(outer(positive, negative) * above) / sum(positive) / sum(negative))
  said <- mu >= 0.5
  metric("accuracy", (sum(positive[said]) + sum(negative[!said])) / sum(w))
  metric("precision", sum(positive[said]) / sum(w[said]))
  metric("recall", sum(positive[said]) / sum(positive))
  calibration <- coef(suppressWarnings(glm(y ~ qlogis(mu), binomial, weights = w)))
  metric("calibration_intercept", calibration[1])
  metric("calibration_slope", calibration[2])
}
for (m in models) {
  family <- m[[2]]
  formula <- as.formula(m[[1]])
  weights_of <- function(data) if (length(m) > 2) data[[m[[3]]]] else rep(1, nrow(data))
  train$own_weights <- weights_of(train)
  # A small epsilon would have glm() tell aliased columns worse; each further fit makes a step or two more.
  fit <- glm(formula, family, train, weights = own_weights)
  for (i in 1:12) {
    train$own_start <- predict(fit, train)
    train$own_start[is.na(train$own_start)] <- 0
    fit <- suppressWarnings(glm(formula, family, train, weights = own_weights, etastart = own_start))
  }
  line("model", m[[1]], family$family, family$link, if (length(m) > 2) m[[3]] else "")
  new <- d
  # R has an error for levels that the fit lacks.
  new$f[!(new$f %in% c("a", "b", "c"))] <- NA
  new$f <- droplevels(new$f)
  new$g[!(new$g %in% train$g)] <- NA
  link <- suppressWarnings(predict(fit, new, type = "link", se.fit = TRUE))
  response <- suppressWarnings(predict(fit, new, type = "response", se.fit = TRUE))
  counts <- grepl("cbind", m[[1]])
  name <- all.vars(formula)[1]
  of_table <- function(data) {
    if (counts) return(list(ifelse(data$trials > 0, data$hits / data$trials, NA), data$trials))
    list(if (is.factor(data[[name]])) as.integer(data[[name]] == "yes") else data[[name]], rep(1, nrow(data)))
  }
  seen <- of_table(train)
  metrics("training", seen[[1]], seen[[2]], suppressWarnings(predict(fit, train, type = "response")), weights_of(train))
  seen <- of_table(d)
  metrics("evaluation", seen[[1]], seen[[2]], response$fit, weights_of(d))
  line("row", number(link$fit), number(link$se.fit), number(response$fit), number(response$se.fit))
}
writeLines(c(paste("#", R.version.string), out), "predictions.tsv")
