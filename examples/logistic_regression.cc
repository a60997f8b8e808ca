// SPDX-License-Identifier: Apache-2.0
//
// Which flights are late? A logistic regression from a file, exact, with the names of categories:
// the table of R's summary(glm), and its numbers for the program that made it.
//
//   example_logistic_regression --data share/flights/flights_sample.csv.gz --model_dir late
#include <algorithm>
#include <cmath>
#include <iostream>
#include <string>
#include <vector>

#include "examples/parse_flags.h"
#include "examples/program_end.h"
#include "tenon/tenon.h"

using namespace tenon;  // NOLINT: a program about Tenon

Status Fit(const std::string& data, const std::string& model_dir) {
  TENON_ASSIGN_OR_RETURN(
      const GlmResult fit,
      FitGlm("late ~ C(month) + hour + carrier + origin + distance + wind_speed + precip + visib",
             {data}, {.family = GlmFamily::kBinomial}));
  std::cout << FormatGlm(fit) << '\n';

  // Which carriers have the least odds of being late, everything else alike.
  std::vector<GlmCoefficient> carriers;
  for (const GlmCoefficient& c : fit.coefficients) {
    if (c.term == "carrier" && c.status == CoefficientStatus::kOk) carriers.push_back(c);
  }
  std::sort(carriers.begin(), carriers.end(),
            [](const auto& a, const auto& b) { return a.estimate < b.estimate; });
  for (const GlmCoefficient& c : carriers) {
    std::cout << c.level << "  odds " << std::exp(c.estimate) << " (" << std::exp(c.lower) << " to "
              << std::exp(c.upper) << "), " << c.rows << " flights\n";
  }
  if (model_dir.empty()) return OkStatus();
  return WriteGlm(fit, model_dir).status();
}

int main(int argc, char** argv) {
  std::string data, model_dir;
  CLI::App app("Logistic regression of flights that are late");
  app.add_option("--data", data, "A table as share/flights/flights_sample.csv.gz")->required();
  app.add_option("--model_dir", model_dir, "Folder for the coefficients and pictures");
  if (const auto code = ParseFlags(app, argc, argv)) return *code;
  return ExitCode(Fit(data, model_dir));
}
