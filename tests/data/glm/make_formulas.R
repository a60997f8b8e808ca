#!/usr/bin/env Rscript
# SPDX-License-Identifier: Apache-2.0
# Writes formulas.tsv: random formulas, the terms that R's terms() finds in them, behind 1 or 0 for the intercept,
# and the columns of model.matrix(), where a, c and `flight no` are factors; nothing where there are more than 200.
# Run: Rscript make_formulas.R > formulas.tsv
set.seed(1)
columns <- c("a", "b", "c", "d", "w")
rows <- 12
data <- data.frame(y = 1:rows, a = factor(rep(c("p", "q", "r"), 4)), b = 1:rows, c = factor(rep(c("s", "t"), 6)),
                   d = 1:rows, f = factor(rep(c("7", "8"), 6)), w = 1:rows)
names(data)[6] <- "flight no"

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
  # Arithmetic on factors is an error in R, and C(d) makes one of numbers.
  arithmetic <- grepl("log\\(a\\)|I\\(|sqrt|C\\(", text)
  names <- if (arithmetic) "" else gsub("`", "", colnames(model.matrix(found, data)))
  if (length(names) > 200) names <- ""
  cat(text, "\t", paste(c(attr(found, "intercept"), labels), collapse = " "), "\t", paste(names, collapse = " "), "\n",
      sep = "")
}
