// SPDX-License-Identifier: Apache-2.0
#include "train/evaluation/model_export.h"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "core/base/strings.h"
#include "data/files/file.h"
#include "data/files/path.h"

namespace tenon {
namespace {

/// The versions in a folder, oldest first.
StatusOr<std::vector<int64_t>> Versions(const std::string& folder) {
  TENON_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(folder));
  std::vector<int64_t> versions;
  for (const std::string& name : names) {
    int64_t version = 0;
    const char* const end = name.data() + name.size();
    const auto [read, error] = std::from_chars(name.data(), end, version);
    if (error == std::errc() && read == end) versions.push_back(version);
  }
  std::sort(versions.begin(), versions.end());
  return versions;
}

class LatestModelExporter : public ModelExporter {
 public:
  explicit LatestModelExporter(ModelExportOptions options) : options_(std::move(options)) {}

  Status Export(Session& session, const Evaluation& evaluation) override {
    if (options_.saver == nullptr) return InvalidArgument("an export needs a saver");
    const std::string path = JoinPath(options_.folder, StrCat(evaluation.step));
    if (FileExists(path)) return OkStatus();
    TENON_RETURN_IF_ERROR(MakeFolders(options_.folder));
    TENON_RETURN_IF_ERROR(
        ExportSavedModel(session, *options_.saver, path, options_.signatures, options_.options));
    if (options_.keep <= 0) return OkStatus();
    TENON_ASSIGN_OR_RETURN(const std::vector<int64_t> versions, Versions(options_.folder));
    for (size_t i = 0; i + static_cast<size_t>(options_.keep) < versions.size(); ++i) {
      TENON_RETURN_IF_ERROR(RemoveTree(JoinPath(options_.folder, StrCat(versions[i]))));
    }
    return OkStatus();
  }

 private:
  const ModelExportOptions options_;
};

class BestModelExporter final : public LatestModelExporter {
 public:
  BestModelExporter(const ModelExportOptions& options, std::string eval_dir, std::string metric,
                    Better better)
      : LatestModelExporter(options),
        eval_dir_(std::move(eval_dir)),
        metric_(std::move(metric)),
        better_(better) {}

  Status Export(Session& session, const Evaluation& evaluation) override {
    if (!evaluation.metrics.contains(metric_)) {
      std::vector<std::string> names;
      for (const auto& [name, value] : evaluation.metrics) names.push_back(name);
      return InvalidArgument("the evaluation has no metric '", metric_, "'; it has ",
                             names.empty() ? "none" : Join(names, ", "));
    }
    // The present evaluation is written already.
    TENON_ASSIGN_OR_RETURN(const auto history, ReadMetric(eval_dir_, metric_));
    if (history.empty() || BestStep(history, better_) == evaluation.step) {
      return LatestModelExporter::Export(session, evaluation);
    }
    return OkStatus();
  }

 private:
  const std::string eval_dir_, metric_;
  const Better better_;
};

}  // namespace

std::shared_ptr<ModelExporter> LatestExport(const ModelExportOptions& options) {
  return std::make_shared<LatestModelExporter>(options);
}

std::shared_ptr<ModelExporter> BestExport(const ModelExportOptions& options,
                                          const std::string& eval_dir, const std::string& metric,
                                          Better better) {
  return std::make_shared<BestModelExporter>(options, eval_dir, metric, better);
}

}  // namespace tenon
