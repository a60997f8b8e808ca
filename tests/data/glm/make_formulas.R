#!/usr/bin/env Rscript
# SPDX-License-Identifier: Apache-2.0
# Writes formulas.tsv: random formulas, and the terms that R's terms() finds in them, behind 1 or 0 for the
# intercept. Run: Rscript make_formulas.R > formulas.tsv
set.seed(1)
columns <- c("a", "b", "c", "d", "w")
data <- as.data.frame(setNames(rep(list(1), 7), c("y", "a", "b", "c", "d", "flight no", "w")), optional = TRUE)

pick <- function(x) x[[sample.int(length(x), 1)]]
term <- function(depth) {
  kind <- sample.int(if (depth > 2) 7 else 12, 1)
  if (kind <= 5) return(pick(columns))
  if (kind == 6) return(pick(c("log(a)", "I(a^2)", "sqrt(b + c)", "C(d)", "I(a * b)")))
  if (kind == 7) return("`flight no`")
  if (kind == 8) return(paste0("(", sum_of(depth + 1), ")"))
  if (kind == 9) return(paste0("(", sum_of(depth + 1), ")^", 1 + sample.int(2, 1)))
  paste(term(depth + 1), pick(c(":", "*", ":", "*", "/")), term(depth + 1))
}
sum_of <- function(depth) {
  text <- term(depth)
  for (i in seq_len(sample.int(3, 1) - 1)) {
    # A group from which all terms are taken away leaves an empty one, with which R drops what it is crossed with.
    sign <- pick(c("+", "+", "+", if (depth == 0) "-" else "+"))
    text <- paste(text, sign, if (sample.int(8, 1) == 1) pick(c("0", "1")) else term(depth))
  }
  text
}
cat("# ", R.version.string, "; columns y a b c d \"flight no\" w\n", sep = "")
for (i in seq_len(1500)) {
  text <- paste(pick(c("y", "log(y)")), "~", if (sample.int(6, 1) == 1) pick(c(".", "0 +", ". -")) else "", "")
  rest <- sum_of(0)
  if (endsWith(text, ". ")) text <- paste(text, pick(c("+", "-")), "")
  text <- gsub(" +", " ", paste0(text, rest))
  found <- terms(as.formula(text), data = data, keep.order = FALSE)
  labels <- gsub("`", "", attr(found, "term.labels"))
  cat(text, "\t", paste(c(attr(found, "intercept"), labels), collapse = " "), "\n", sep = "")
}
