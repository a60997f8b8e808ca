// SPDX-License-Identifier: Apache-2.0
#include "tools/fit_progress.h"

#include <chrono>
#include <cmath>

#include "absl/strings/str_format.h"
#include "core/base/strings.h"
#include "data/files/file.h"
#include "data/files/path.h"
#include "runtime/device/machine_clock.h"
#include "tools/commands.h"

namespace tenon::tools {
namespace {

constexpr std::chrono::seconds kLinePause{1};

}  // namespace

FitProgress::FitProgress(bool quiet) : quiet_(quiet), next_(MachineClock().Now() + kLinePause) {}

StatusOr<std::unique_ptr<FitProgress>> FitProgress::Create(const std::string& model_dir,
                                                           std::string_view fit,
                                                           const std::vector<std::string>& files,
                                                           bool quiet, GlmOptions* options) {
  auto progress = std::unique_ptr<FitProgress>(new FitProgress(quiet));
  // The standard input comes no second time.
  if (!model_dir.empty() && files != std::vector<std::string>{"-"}) {
    TENON_RETURN_IF_ERROR(MakeFolders(model_dir));
    TENON_ASSIGN_OR_RETURN(const auto found, FindTableFiles(files));
    progress->checkpoint_.emplace(JoinPath(model_dir, "fit.checkpoint"), fit, found);
    TENON_ASSIGN_OR_RETURN(const auto saved, progress->checkpoint_->Load());
    if (saved) {
      PrintNotice(StrCat("the fit goes on where it was in pass ", saved->pass));
      options->start = saved->coefficients;
    }
  }
  if (!quiet) options->notice = [](const std::string& line) { PrintNotice(line); };
  options->progress = [own = progress.get()](const GlmIteration& iteration, const GlmPoint& at) {
    own->Pass(iteration, at);
  };
  return progress;
}

void FitProgress::Pass(const GlmIteration& iteration, const GlmPoint& at) {
  if (checkpoint_) {
    const Status saved = checkpoint_->Save(iteration.pass, at);
    if (!saved.ok()) PrintNotice(StrCat("no checkpoint was saved: ", Message(saved)));
  }
  if (quiet_ || MachineClock().Now() < next_) return;
  next_ = MachineClock().Now() + kLinePause;
  const std::string gradient = std::isnan(iteration.gradient_norm)
                                   ? ""
                                   : absl::StrFormat("  gradient %.1e", iteration.gradient_norm);
  PrintNotice(
      absl::StrFormat("pass %d  deviance %.6g%s", iteration.pass, iteration.deviance, gradient));
}

}  // namespace tenon::tools
