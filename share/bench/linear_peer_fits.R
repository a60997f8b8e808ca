#!/usr/bin/env Rscript
# SPDX-License-Identifier: Apache-2.0
# A fit of linear_peers.py by R, as it is told: Rscript linear_peer_fits.R KEY=VALUE...
#   peer        glm, brglm2 or glmnet
#   train, test CSV files; formula, family, link, weights; factors: numeric columns that are categories, by commas
#   epsilon     of the change of the deviance at which glm ends
#   lambdas     of glmnet, by commas; robust: HC1 has standard errors by sandwich
#   out         a file of lines: seconds NAME S, deviance D, log_loss L, coef NAME ESTIMATE ERROR, lambda L NONZERO DEVIANCE
given <- strsplit(commandArgs(trailingOnly = TRUE), "=", fixed = TRUE)
value <- function(name, default = "") {
  for (pair in given) if (pair[1] == name) return(paste(pair[-1], collapse = "="))
  default
}
list_of <- function(name) Filter(nzchar, strsplit(value(name), ",")[[1]])
lines <- c()
say <- function(...) lines <<- c(lines, paste(c(...), collapse = "\t"))
number <- function(x) ifelse(is.na(x), "NA", sprintf("%.17g", x))
timed <- function(name, expression) {
  begin <- proc.time()[["elapsed"]]
  result <- eval.parent(substitute(expression))
  say("seconds", name, proc.time()[["elapsed"]] - begin)
  result
}
invisible(Sys.setlocale("LC_COLLATE", "C"))  # levels in the order of their bytes
C <- function(x) factor(x)
formula <- as.formula(value("formula"))
d <- timed("read", read.csv(value("train"), stringsAsFactors = TRUE))
family <- get(value("family"))(link = value("link"))
weights <- if (nzchar(value("weights"))) d[[value("weights")]] else rep(1, nrow(d))
peer <- value("peer")

if (peer == "glmnet") {
  suppressMessages(library(glmnet))
  x <- timed("encode", model.matrix(formula, d)[, -1])
  lambdas <- as.numeric(list_of("lambdas"))
  path <- if (length(lambdas) == 0) timed("fit", glmnet(x, d[[all.vars(formula)[1]]], value("family"))) else
    timed("fit", glmnet(x, d[[all.vars(formula)[1]]], value("family"), lambda = lambdas, thresh = 1e-12))
  for (i in seq_along(path$lambda)) say("lambda", number(path$lambda[i]), path$df[i],
                                         number((1 - path$dev.ratio[i]) * path$nulldev))
} else {
  method <- "glm.fit"
  if (peer == "brglm2") method <- brglm2::brglmFit
  control <- if (peer == "brglm2") list() else list(epsilon = as.numeric(value("epsilon", "1e-8")), maxit = 50)
  # An lm is a glm of family gaussian, but for what summary() says.
  m <- timed("fit", suppressWarnings(glm(formula, family, d, weights = weights, control = control, method = method)))
  table <- timed("summary", coef(summary(m)))
  if (nzchar(value("robust"))) table[, 2] <- sqrt(diag(timed("robust", sandwich::vcovHC(m, type = value("robust")))))
  say("deviance", number(deviance(m)))
  say("aic", number(AIC(m)))
  for (name in names(coef(m))) {
    if (name %in% rownames(table)) say("coef", name, number(table[name, 1]), number(table[name, 2])) else say("coef", name, "NA", "NA")
  }
  if (nzchar(value("test")) && value("family") == "binomial") {
    test <- read.csv(value("test"), stringsAsFactors = TRUE)
    p <- suppressWarnings(predict(m, test, type = "response"))
    y <- test[[all.vars(formula)[1]]]
    say("log_loss", number(-mean(log(ifelse(y == 1, p, 1 - p)))))
  }
}
writeLines(lines, value("out"))
