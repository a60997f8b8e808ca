// SPDX-License-Identifier: Apache-2.0
#include "tools/glm_penalty_flags.h"

#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/base/strings.h"

namespace tenon::tools {

void AddPenaltyFlags(CLI::App* command, GlmPenaltyFlags* flags) {
  command
      ->add_option("--ridge", flags->ridge,
                   "Penalty R: least is deviance / 2 + R / 2 x the sum of squares of standardised "
                   "coefficients. Estimates under a penalty have no standard errors")
      ->check(AtLeast(0));
  command
      ->add_option("--lasso", flags->lasso,
                   "Penalty LAMBDA as glmnet counts it: least is deviance / 2 / n + LAMBDA x the "
                   "sum of absolute values of standardised coefficients")
      ->check(AtLeast(0));
  command->add_option("--elastic_net", flags->elastic_net,
                      "ALPHA,LAMBDA as in glmnet: ALPHA is 1 for a lasso, 0 for a ridge; with "
                      "--path LAMBDA may be left out");
  command
      ->add_option("--path", flags->path,
                   "So many fits down glmnet's sequence of lambdas, into coefficients_path.csv and "
                   "path.svg; printed is the last, or that of --lambda")
      ->check(Between(1, 10000));
  command->add_option("--lambda", flags->lambda, "The lambda of --path that is printed")
      ->check(AtLeast(0));
  command
      ->add_option("--standardize", flags->standardised,
                   "Whose coefficients a penalty counts for one standard deviation (1/n): all, as "
                   "glmnet; numeric: those of levels as they are, which is what --stream has; none")
      ->check(CLI::IsMember({"all", "numeric", "none"}));
}

std::string NameOf(const GlmPenaltyFlags& flags) {
  return StrCat(flags.ridge, " ", flags.lasso, " ", flags.elastic_net, " ", flags.lambda, " ",
                flags.standardised);
}

StatusOr<GlmPenalty> PenaltyOf(const GlmPenaltyFlags& flags, bool for_stream) {
  const int kinds =
      (flags.ridge > 0 ? 1 : 0) + (flags.lasso > 0 ? 1 : 0) + (flags.elastic_net.empty() ? 0 : 1);
  if (kinds > 1) return WrongUsage("one of --ridge, --lasso and --elastic_net is a penalty");
  if (flags.lambda > 0 && flags.path == 0) {
    return WrongUsage("--lambda wants --path; --lasso LAMBDA is a fit of its own");
  }
  GlmPenalty penalty;
  penalty.ridge = flags.ridge;
  penalty.path = flags.path;
  penalty.lambda = flags.lambda > 0 ? flags.lambda : flags.lasso;
  if (!flags.elastic_net.empty()) {
    const std::vector<std::string> parts = absl::StrSplit(flags.elastic_net, ',');
    const bool has_lambda = parts.size() == 2;
    if (parts.size() > 2 || !absl::SimpleAtod(parts[0], &penalty.alpha) ||
        (has_lambda && !absl::SimpleAtod(parts[1], &penalty.lambda)) ||
        (!has_lambda && flags.path == 0)) {
      return WrongUsage(StrCat("--elastic_net wants ALPHA,LAMBDA such as 0.5,0.01, found '",
                               flags.elastic_net, "'"));
    }
  }
  if (flags.standardised == "numeric" || (for_stream && flags.standardised.empty()))
    penalty.standardised = StandardisedColumns::kNumeric;
  if (flags.standardised == "none") penalty.standardised = StandardisedColumns::kNone;
  return penalty;
}

}  // namespace tenon::tools
