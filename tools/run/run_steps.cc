// SPDX-License-Identifier: Apache-2.0
#include "tools/run/run_steps.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "core/base/mutex.h"
#include "core/base/plural.h"
#include "runtime/device/machine_clock.h"
#include "tools/commands.h"
#include "tools/progress.h"
#include "train/sessions/stop_signal.h"

namespace tenon::tools {
namespace {

using SteadyClock = std::chrono::steady_clock;

/// How long lines may wait for others before somebody sees them.
constexpr std::chrono::milliseconds kFlushPause{200};
constexpr std::chrono::milliseconds kSignalPause{20};

/// Cancels the step that runs when a signal has asked for the end.
class CancelOnSignal {
 public:
  explicit CancelOnSignal(Session& session)
      : watcher_([&session](const std::stop_token& end) {
          while (!end.stop_requested()) {
            if (StopSignal::received() != 0) {
              session.Close().IgnoreError();
              return;
            }
            std::this_thread::sleep_for(kSignalPause);
          }
        }) {}

 private:
  std::jthread watcher_;
};

/// While one lives, a line on the error stream says, every 5 s, that a step still runs.
class LongStepNotice {
 public:
  /// `hint` ends the first line.
  explicit LongStepNotice(std::string hint)
      : hint_(std::move(hint)), watcher_([this] { Watch(); }) {}
  ~LongStepNotice() {
    MutexLock lock(mu_);
    ended_ = true;
    changed_.NotifyAll();
  }

 private:
  void Watch() {
    constexpr std::chrono::seconds kPause{5};
    const auto begin = SteadyClock::now();
    MutexLock lock(mu_);
    for (auto next = begin + kPause; !ended_;) {
      if (MachineClock().WaitUntil(changed_, mu_, next)) continue;
      const auto now = SteadyClock::now();
      next = now + kPause;
      const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - begin).count();
      std::fprintf(stderr, "the step runs, %d s now%s\n", static_cast<int>(seconds),
                   std::exchange(hint_, "").c_str());
    }
  }

  std::string hint_;
  Mutex mu_;
  CondVar changed_;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  std::jthread watcher_;
};

class Runner {
 public:
  Runner(Session& session, const RunLoopOptions& options, FeedInputs& feeds)
      : session_(session), options_(options), feeds_(feeds) {}

  int Run(FirstRows first) {
    // One step has nothing that could be kept: a signal ends it as any program.
    if (has_several()) {
      signal_.emplace();
      // The last step is the one to trace: it is run to its end.
      if (options_.trace.empty()) cancel_.emplace(session_);
    }
    Status status = Steps(std::move(first));
    if (progress_) progress_->Finish();
    const int signal = signal_ ? StopSignal::received() : 0;
    cancel_.reset();
    if (signal != 0) status = OkStatus();  // that it was cancelled
    const Status written = WriteRest();
    if (!status.ok()) {
      if (options_.explain) status = options_.explain(status);
      return Report(AppendToMessage(status, written.ok() ? KeptText() : ""));
    }
    if (!written.ok()) return Report(written);
    if (options_.output != nullptr && !prints() && options_.output_name != "-") {
      std::printf("%s: %s\n", options_.output_name.c_str(), options_.output->Summary().c_str());
    }
    return signal == 0 ? kDone : ReportStop(signal, StrCat("after ", done_, unit(), KeptText()));
  }

 private:
  bool has_batches() const { return options_.batch > 0; }
  bool has_several() const { return has_batches() || options_.steps > 1; }
  /// Whether each step's values are printed.
  bool prints() const {
    if (options_.output_name == "-") return false;
    return !has_batches() || options_.output == nullptr;
  }
  const char* unit() const { return has_batches() ? " batches" : " steps"; }

  /// -1 when only the end of the input tells.
  int64_t num_steps() const {
    if (!has_batches()) return options_.steps;
    const int64_t rows = feeds_.num_rows();
    return rows < 0 ? -1 : rows / options_.batch + (rows % options_.batch > 0 ? 1 : 0);
  }

  Status Steps(FirstRows first) {
    TENON_ASSIGN_OR_RETURN(const std::unique_ptr<PreparedStep> step,
                           session_.Prepare(feeds_.tensors(), options_.fetches, options_.targets));
    if (has_several() && !(prints() && !options_.fetches.empty())) {
      const bool plain_lines = options_.output_name != "-";
      progress_.emplace("running", has_batches() ? feeds_.num_rows() : options_.steps, 0,
                        plain_lines);
      progress_->Advance(0, [] { return std::string(); });
    }
    std::vector<Tensor> values = std::move(first.values);
    int64_t rows = first.rows;
    while (true) {
      TENON_RETURN_IF_ERROR(OneStep(*step, values, rows));
      if (!has_batches() && done_ == options_.steps) return OkStatus();
      if (StopSignal::received() != 0 && (options_.trace.empty() || traced_)) return OkStatus();
      if (!has_batches()) continue;
      TENON_RETURN_IF_ERROR(feeds_.Next(&values, &rows));
      if (rows > 0) continue;
      if (feeds_.num_rows() <= rows_done_) return OkStatus();
      return DataLoss("found ", rows_done_, " rows, and at first ", feeds_.num_rows(),
                      ": a file that is fed has changed");
    }
  }

  Status OneStep(PreparedStep& step, const std::vector<Tensor>& values, int64_t rows) {
    StepOptions options;
    options.timeout = std::chrono::milliseconds(options_.timeout_ms);
    const bool may_be_last =
        num_steps() < 0 || done_ + 1 == num_steps() || StopSignal::received() != 0;
    traced_ = !options_.trace.empty() && may_be_last;
    if (traced_) options.trace = &trace_;
    std::vector<Tensor> fetched;
    std::optional<LongStepNotice> notice;
    if (!has_several()) notice.emplace("; --batch N runs the rows of files in parts");
    const auto start = SteadyClock::now();
    if (const Status ran = step.Run(values, &fetched, options); !ran.ok()) {
      const std::string files = feeds_.LastFiles();
      return files.empty() ? ran : Annotate(ran, StrCat("batch ", done_, ", ", files));
    }
    if (options_.print_times) {
      milliseconds_.push_back(
          std::chrono::duration<double, std::milli>(SteadyClock::now() - start).count());
    }
    notice.reset();
    if (prints()) Print(fetched);
    if (options_.file_names) fetched.insert(fetched.begin(), feeds_.FilesOfRows());
    if (options_.output != nullptr) TENON_RETURN_IF_ERROR(options_.output->Add(fetched, rows));
    ++done_;
    rows_done_ += rows;
    if (progress_) {
      progress_->Advance(has_batches() ? rows_done_ : done_, [] { return std::string(); });
    }
    return OkStatus();
  }

  void Print(const std::vector<Tensor>& fetched) {
    for (size_t i = 0; i < fetched.size(); ++i) {
      if (has_several()) {
        std::printf("%s %lld: ", has_batches() ? "batch" : "step", static_cast<long long>(done_));
      }
      std::printf("%s = %s\n", options_.labels[i].c_str(), fetched[i].ToString().c_str());
    }
    const auto now = SteadyClock::now();
    if (now < next_flush_) return;
    std::fflush(stdout);
    next_flush_ = now + kFlushPause;
  }

  /// What the steps that were run have left to be written.
  Status WriteRest() {
    if (options_.print_times && done_ > 0) PrintTimes();
    Status status;
    if (!options_.trace.empty() && done_ > 0) {
      status.Update(WriteTextFile(options_.trace, ToChromeTrace(trace_)));
    }
    if (options_.output != nullptr && done_ > 0) status.Update(options_.output->Finish());
    return status;
  }

  void PrintTimes() {
    std::sort(milliseconds_.begin(), milliseconds_.end());
    const size_t n = milliseconds_.size();
    std::printf("%s: min %.3f ms, median %.3f ms, max %.3f ms\n",
                Plural(static_cast<int64_t>(n), "step").c_str(), milliseconds_.front(),
                milliseconds_[n / 2], milliseconds_.back());
  }

  /// "; o.npy has y float[300,10]", when steps before the end have left something.
  std::string KeptText() const {
    if (options_.output == nullptr || done_ == 0 || options_.output_name == "-") return "";
    return StrCat("; ", options_.output_name, " has ", options_.output->Summary());
  }

  Session& session_;
  const RunLoopOptions& options_;
  FeedInputs& feeds_;
  std::optional<StopSignal> signal_;
  std::optional<CancelOnSignal> cancel_;
  std::optional<Progress> progress_;
  std::vector<double> milliseconds_;
  std::vector<NodeTrace> trace_;
  SteadyClock::time_point next_flush_ = SteadyClock::now() + kFlushPause;
  int64_t done_ = 0, rows_done_ = 0;
  bool traced_ = false;
};

}  // namespace

int RunSteps(Session& session, const RunLoopOptions& options, FeedInputs& feeds, FirstRows first) {
  return Runner(session, options, feeds).Run(std::move(first));
}

}  // namespace tenon::tools
