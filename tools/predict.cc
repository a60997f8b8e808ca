// SPDX-License-Identifier: Apache-2.0
#include "train/glm/predict/predict_table.h"

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "core/base/parallel.h"
#include "core/base/strings.h"
#include "tools/commands.h"
#include "train/glm/report/covariance_file.h"
#include "train/glm/report/model_file.h"

namespace tenon::tools {
namespace {

struct PredictFlags {
  std::string model;
  std::vector<std::string> files;
  std::string output = "-", type = "response", format = "model";
  std::vector<std::string> keep, missing;
  bool errors = false;
  double threshold = 0.5;
  int64_t max_rejects = 0;
  int threads = 0;
  bool quiet = false;
};

Status WriteToStandardOutput(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size()) return OkStatus();
  return Unavailable("cannot write to the standard output");
}

/// Writes a file that appears whole or not at all.
class WholeFile {
 public:
  static StatusOr<WholeFile> Create(const std::string& path) {
    WholeFile file(path);
    TENON_ASSIGN_OR_RETURN(file.file_, OpenOutput(file.temporary_));
    return file;
  }
  WholeFile(WholeFile&&) = default;
  ~WholeFile() {
    if (file_ == nullptr) return;
    file_.reset();
    if (temporary_ != path_) RemoveFile(temporary_).IgnoreError();
  }
  Status Append(std::string_view text) { return file_->Append(text); }
  Status Publish() {
    TENON_RETURN_IF_ERROR(file_->Sync());
    TENON_RETURN_IF_ERROR(file_->Close());
    file_.reset();
    return PublishWhole(temporary_, path_);
  }

 private:
  explicit WholeFile(const std::string& path) : path_(path), temporary_(NameToPublish(path)) {}

  std::string path_, temporary_;
  std::unique_ptr<OutputFile> file_;
};

StatusOr<PredictTableOptions> PredictOptionsOf(const PredictFlags& flags,
                                               const GlmEquation& equation) {
  using Type = PredictTableOptions::Type;
  PredictTableOptions options;
  options.type = flags.type == "link"    ? Type::kLink
                 : flags.type == "class" ? Type::kClass
                                         : Type::kResponse;
  options.threshold = flags.threshold;
  options.max_rejects = flags.max_rejects;
  for (const std::string& columns : flags.keep) {
    for (const absl::string_view column : absl::StrSplit(columns, ',')) {
      options.keep.emplace_back(column);
    }
  }
  if (!flags.errors) return options;
  if (options.type == Type::kClass) return WrongUsage("--se is not for --type class");
  TENON_ASSIGN_OR_RETURN(options.covariance, LoadCovariance(equation, flags.model));
  return options;
}

Status Predict(const PredictFlags& flags) {
  if (flags.threads > 0) SetThreadBudget(flags.threads);
  TENON_ASSIGN_OR_RETURN(GlmEquation equation, LoadGlm(flags.model));
  if (flags.format != "model") equation.format.delimiter = flags.format == "tsv" ? '\t' : ',';
  if (!flags.missing.empty()) equation.format.missing = flags.missing;
  TENON_ASSIGN_OR_RETURN(const PredictTableOptions options, PredictOptionsOf(flags, equation));
  std::optional<WholeFile> file;
  if (flags.output != "-") {
    TENON_ASSIGN_OR_RETURN(WholeFile made, WholeFile::Create(flags.output));
    file.emplace(std::move(made));
  }
  TENON_ASSIGN_OR_RETURN(const PredictedTable table,
                         PredictTable(equation, flags.files, options, [&](std::string_view text) {
                           return file ? file->Append(text) : WriteToStandardOutput(text);
                         }));
  if (file) TENON_RETURN_IF_ERROR(file->Publish());
  if (flags.quiet) return OkStatus();
  std::fflush(stdout);
  std::fprintf(stderr, "%s\n", table.Text().c_str());
  return OkStatus();
}

}  // namespace

void AddPredictCommand(CLI::App& app, Command* chosen) {
  auto flags = std::make_shared<PredictFlags>();
  CLI::App* predict = app.add_subcommand(
      "predict",
      "Predict the rows of tables with a model of tenon train linear: tenon predict late new.csv "
      "--keep id --output p.csv");
  predict->add_option("model", flags->model, "Folder that --model_dir named")->required();
  predict
      ->add_option("files", flags->files,
                   "Tables with the columns of the model, in any order, one or more, or patterns, "
                   "or - for the standard input")
      ->required();
  predict->add_option("--output", flags->output,
                      "File for the predictions, which appears whole; -: the standard output");
  predict
      ->add_option("--keep", flags->keep,
                   "Columns of the tables that come before the prediction: id,carrier")
      ->type_size(1)
      ->allow_extra_args(false);
  predict
      ->add_option("--type", flags->type,
                   "response: the mean, as a probability; link: the linear predictor; class: the "
                   "level that the threshold gives")
      ->check(CLI::IsMember({"response", "link", "class"}));
  predict->add_flag("--se", flags->errors,
                    "Standard errors too, of the response by the delta method");
  predict
      ->add_option("--threshold", flags->threshold,
                   "Probability from which on a class is the second one")
      ->check(Between(0, 1));
  predict->add_option("--na", flags->missing,
                      "Texts of missing values, beside empty ones; default: those of the model");
  predict->add_option("--format", flags->format, "csv, tsv, or as the tables of the model")
      ->check(CLI::IsMember({"model", "csv", "tsv"}));
  predict
      ->add_option("--max_rejects", flags->max_rejects,
                   "Leave out so many records that are not as the header says; more are an error")
      ->check(AtLeast(0));
  predict->add_option("--threads", flags->threads, "Threads; default: all cores")
      ->check(AtLeast(1));
  predict->add_flag("--quiet", flags->quiet, "No account of the rows on the error stream");
  predict->callback([=] { *chosen = [flags] { return Report(Predict(*flags)); }; });
}

}  // namespace tenon::tools
