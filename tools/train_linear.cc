// SPDX-License-Identifier: Apache-2.0
#include "tools/train_linear.h"

#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "core/base/parallel.h"
#include "core/base/strings.h"
#include "ops/register.h"
#include "tools/access_flags.h"
#include "tools/fit_progress.h"
#include "tools/glm_penalty_flags.h"
#include "tools/glm_stream_flags.h"
#include "tools/training_task.h"
#include "train/glm/fit_glm.h"
#include "train/glm/glm_cluster.h"
#include "train/glm/report/print_glm.h"
#include "train/glm/report/write_glm.h"
#include "train/replica_flags.h"

namespace tenon::tools {
namespace {

struct TrainLinearFlags {
  ClusterFlags cluster;
  ServerAccessFlags access;
  std::string formula;
  std::vector<std::string> files;
  std::string family = "gaussian", link, weights, separated = "drop", format = "csv", model_dir;
  std::vector<std::string> missing = {"NA"}, types, evaluation;
  double level = 0.95;
  int64_t max_rejects = 0;
  std::string rejects;
  int64_t memory = 0;
  int threads = 0;
  GlmPenaltyFlags penalty;
  GlmStreamFlags stream;
  std::string method = "auto";
  bool robust = false;
  bool all = false;
  bool quiet = false;
};

/// The columns of "column=category".
StatusOr<std::vector<std::string>> CategoriesOf(const std::vector<std::string>& types) {
  std::vector<std::string> categories;
  for (const std::string& type : types) {
    const size_t sign = type.rfind('=');
    if (sign == std::string::npos || type.substr(sign + 1) != "category") {
      return WrongUsage(StrCat("--types wants column=category, found '", type, "'"));
    }
    categories.push_back(type.substr(0, sign));
  }
  return categories;
}

StatusOr<GlmOptions> OptionsOf(const TrainLinearFlags& flags) {
  GlmOptions options;
  TENON_ASSIGN_OR_RETURN(options.family, ParseGlmFamily(flags.family));
  if (!flags.link.empty()) {
    TENON_ASSIGN_OR_RETURN(options.link, ParseGlmLink(flags.link));
  }
  options.weights = flags.weights;
  if (flags.separated == "keep") options.separated = SeparatedLevels::kKeep;
  if (flags.separated == "error") options.separated = SeparatedLevels::kError;
  options.level = flags.level;
  options.robust = flags.robust;
  if (flags.method == "newton") options.method = GlmMethod::kNewton;
  if (flags.method == "lbfgs") options.method = GlmMethod::kLbfgs;
  if (flags.format == "tsv") options.format.delimiter = '\t';
  options.format.missing = flags.missing;
  TENON_ASSIGN_OR_RETURN(options.categories, CategoriesOf(flags.types));
  options.max_rejects = flags.max_rejects;
  TENON_ASSIGN_OR_RETURN(options.penalty, PenaltyOf(flags.penalty, flags.stream.stream));
  TENON_ASSIGN_OR_RETURN(options.stream, StreamOf(flags.stream));
  if (flags.stream.stream && flags.robust) {
    return WrongUsage("--robust wants standard errors, which --stream has not");
  }
  if (flags.stream.stream && flags.method != "auto") {
    return WrongUsage("--method is one of exact fits; --stream is a method of its own");
  }
  if (flags.stream.stream && flags.penalty.path > 0) {
    return WrongUsage("--path is one of exact fits; --stream takes --lasso or --elastic_net");
  }
  options.evaluation = flags.evaluation;
  options.rejects_file = flags.rejects;
  options.memory = flags.memory;
  return options;
}

/// Prints and writes what was fitted.
Status ShowResult(const TrainLinearFlags& flags, const GlmResult& result) {
  if (!flags.quiet) {
    GlmPrintOptions print = {.all = flags.all};
    if (!flags.model_dir.empty()) print.coefficients_file = flags.model_dir + "/coefficients.csv";
    std::cout << FormatGlm(result, print);
  }
  if (!flags.model_dir.empty()) {
    TENON_ASSIGN_OR_RETURN(const std::vector<std::string> written,
                           WriteGlm(result, flags.model_dir));
    if (!flags.quiet) std::cout << flags.model_dir << ": " << Join(written, " ") << "\n";
  }
  if (result.converged || result.stream) return OkStatus();
  return FailedPrecondition("the fit has not converged after ", result.iterations.size(),
                            " passes");
}

/// The fit that the flags ask for: `fit(options)` makes it.
Status FitAndShow(const TrainLinearFlags& flags, GlmOptions options,
                  const std::function<StatusOr<GlmResult>(const GlmOptions& options)>& fit) {
  const std::string name = Join(std::vector{flags.formula, flags.family, flags.link, flags.weights,
                                            flags.separated, NameOf(flags.penalty), flags.method},
                                "\n");
  // A path and a stream go from their beginning to their end.
  const bool goes_on = flags.penalty.path == 0 && !flags.stream.stream;
  const std::string checkpoint_dir = goes_on ? flags.model_dir : "";
  TENON_ASSIGN_OR_RETURN(const auto progress, FitProgress::Create(checkpoint_dir, name, flags.files,
                                                                  flags.quiet, &options));
  TENON_ASSIGN_OR_RETURN(const GlmResult result, fit(options));
  TENON_RETURN_IF_ERROR(progress->End());
  return ShowResult(flags, result);
}

Status TrainLinear(const TrainLinearFlags& flags) {
  TENON_ASSIGN_OR_RETURN(const GlmOptions given, OptionsOf(flags));
  if (flags.threads > 0) SetThreadBudget(flags.threads);
  TENON_ASSIGN_OR_RETURN(ResolvedTask task, ResolveTrainingTask(flags.cluster, 0));
  if (PrintTask(task, flags.cluster)) return OkStatus();
  if (task.is_alone()) {
    return FitAndShow(flags, given, [&](const GlmOptions& options) {
      return FitGlm(flags.formula, flags.files, options);
    });
  }
  if (flags.files == std::vector<std::string>{"-"}) {
    return WrongUsage("the standard input can be read by one process alone: give a cluster files");
  }
  ServerOptions server_options;
  server_options.notice = PrintNotice;
  server_options.start_up_deadline = StartUpDeadline(flags.cluster);
  TENON_RETURN_IF_ERROR(flags.access.ApplyTo(&server_options));
  TENON_RETURN_IF_ERROR(TakeTask(&task, &server_options));
  return RunGlmTask(server_options, AllOps(), [&](Server& server) {
    return FitAndShow(flags, given, [&](const GlmOptions& options) {
      return FitGlmOnWorkers(server, flags.formula, flags.files, options, PrintNotice);
    });
  });
}

}  // namespace

void AddTrainLinearCommand(CLI::App& train, Command* chosen) {
  auto flags = std::make_shared<TrainLinearFlags>();
  CLI::App* linear = train.add_subcommand(
      "linear",
      "Linear, logistic and Poisson regression from files, exact, with what R's summary(glm) "
      "prints: tenon train linear 'late ~ C(month) + carrier + distance' flights.csv --family "
      "binomial; in this process, or on the workers of a cluster (tenon launch --ps 0 --workers 4 "
      "-- tenon train linear ...)");
  linear
      ->add_option("formula", flags->formula,
                   "The model as R writes it: +, :, *, -, ., C(x, ref=v), I(x^2), log, cut(x, 1, "
                   "5), hash(x, n), offset(x), cbind(successes, failures)")
      ->required();
  linear
      ->add_option("files", flags->files,
                   "Tables with a header, one or more, or patterns, or - for the standard input; "
                   "gzip and zstd are told by their content")
      ->required();
  linear->add_option("--family", flags->family, "Of the response: gaussian, binomial, poisson")
      ->check(CLI::IsMember({"gaussian", "binomial", "poisson"}));
  linear
      ->add_option("--link", flags->link,
                   "identity, logit, probit, cloglog or log; default: the family's first")
      ->check(CLI::IsMember({"identity", "logit", "probit", "cloglog", "log"}));
  linear->add_option("--weights", flags->weights, "Column of prior weights; default: 1");
  linear
      ->add_option("--separated", flags->separated,
                   "What to do with levels whose responses are all alike: drop them with their "
                   "rows, keep them as R does, or error")
      ->check(CLI::IsMember({"drop", "keep", "error"}));
  linear
      ->add_option("--eval", flags->evaluation,
                   "Other tables, of which the metrics are printed too; may be repeated")
      ->type_size(1)
      ->allow_extra_args(false);
  linear->add_option("--na", flags->missing,
                     "Texts of missing values beside empty ones, in place of NA");
  linear->add_option("--types", flags->types,
                     "column=category: a column of categories, whatever its values");
  linear->add_option("--format", flags->format, "csv or tsv")->check(CLI::IsMember({"csv", "tsv"}));
  linear
      ->add_option("--max_rejects", flags->max_rejects,
                   "Leave out so many records that are not as the header says; more are an error")
      ->check(AtLeast(0));
  AddPenaltyFlags(linear, &flags->penalty);
  AddStreamFlags(linear, &flags->stream);
  linear->add_option("--rejects", flags->rejects,
                     "CSV file for these records, with file, line, byte and what is wrong");
  linear
      ->add_option("--memory", flags->memory,
                   "What the rows may take in each process, as 64M; those beyond are read again in "
                   "each pass; default: all are kept")
      ->transform(CLI::AsSizeValue(false))
      ->check(AtLeast(0));
  linear->add_option("--level", flags->level, "Of the confidence intervals")
      ->check(Between(0.5, 0.999999));
  linear->add_option("--model_dir", flags->model_dir,
                     "Folder for coefficients.csv and the other files; default: none");
  linear->add_option("--threads", flags->threads, "Threads that read and add; default: all cores")
      ->check(AtLeast(1));
  linear
      ->add_option(
          "--method", flags->method,
          "newton: exact in some passes, with standard errors; lbfgs: from gradients alone, "
          "for models of many thousand columns; auto: as the columns want it")
      ->check(CLI::IsMember({"auto", "newton", "lbfgs"}));
  linear->add_flag("--robust", flags->robust,
                   "White's standard errors (HC1, as sandwich::vcovHC), which hold also where the "
                   "variance is not as the family has it");
  linear->add_flag("--all", flags->all, "Print every coefficient, not the 20 largest |z| alone");
  linear->add_flag("--quiet", flags->quiet, "Print nothing but errors");
  AddClusterFlags(*linear, &flags->cluster);
  flags->access.AddTo(*linear);
  linear->callback([=] { *chosen = [flags] { return Report(TrainLinear(*flags)); }; });
}

}  // namespace tenon::tools
