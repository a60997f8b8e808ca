#!/usr/bin/env Rscript
# SPDX-License-Identifier: Apache-2.0
# Writes distributions.tsv: tail probabilities and quantiles by R's own functions, as the function's name, the
# arguments and the result. Probabilities are natural logarithms, which reach where a double would be 0.
# Run: Rscript make_distributions.R > distributions.tsv
number <- function(x) sprintf("%.17g", x)
row <- function(...) cat(paste(c(...), collapse = "\t"), "\n", sep = "")
cat("# ", R.version.string, "\n", sep = "")
sizes <- c(0, 1e-9, 0.001, 0.1, 0.5, 1, 1.5, 1.96, 2, 3, 4.5, 7.05, 8.2, 10, 20, 30, 36, 37, 37.5, 38, 40, 64, 102.81, 500, 1e4,
           1e8)
dfs <- c(0.5, 1, 2, 3, 5, 10, 30, 99, 1000, 43210, 261730, 1e7, 1e9)
for (z in sizes) row("normal", number(z), number(log(2) + pnorm(z, lower.tail = FALSE, log.p = TRUE)))
for (df in dfs) for (t in sizes) {
  row("student", number(t), number(df), number(log(2) + pt(t, df, lower.tail = FALSE, log.p = TRUE)))
}
for (df in c(1, 2, 3, 6, 11, 15, 102, 1000, 3760)) for (x in c(0.001, 0.1, 1, 2, 5, 10, 50, 100, 500, 1000, 1340, 1380, 1450, 2021.1, 4417.5, 10570.6,
                                                                1e6)) {
  row("chi_squared", number(x), number(df), number(pchisq(x, df, lower.tail = FALSE, log.p = TRUE)))
}
# R's pf is right to 8 digits only for 11 and 261730 degrees of freedom from f = 300 on, and its qt to 10 for half a one at
# 0.999999: the test has values of another source for these.
for (df1 in c(1, 2, 6, 11, 144)) for (df2 in c(1, 5, 9, 30, 1000, 261730)) for (f in c(0.01, 0.5, 1, 1.5, 3, 10, 100, 330.3, 1000, 1e5)) {
  if (df1 == 11 && df2 == 261730 && f > 300) next
  row("fisher", number(f), number(df1), number(df2), number(pf(f, df1, df2, lower.tail = FALSE, log.p = TRUE)))
}
levels <- c(0.5, 0.6, 0.75, 0.9, 0.95, 0.975, 0.99, 0.995, 0.9995, 0.999999)
for (p in c(1 - levels, levels)) row("normal_quantile", number(p), number(qnorm(p)))
for (df in dfs) for (p in levels) if (df > 0.5 || p < 0.9999) row("student_quantile", number(p), number(df), number(qt(p, df)))
