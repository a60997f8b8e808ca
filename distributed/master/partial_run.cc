// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/partial_run.h"

#include "core/graph/graph.h"

namespace tenon {
namespace {

/// Each holds what its step has computed so far.
constexpr size_t kMaxPartialRuns = 1 << 10;

/// "x" and "x:0" are the same tensor.
std::string WithOutput(const std::string& name) {
  const auto parsed = ParseTensorName(name);
  return parsed.ok() ? StrCat(parsed->node, ":", parsed->index) : name;
}

}  // namespace

PartialRun::Tensors::Tensors(const std::vector<std::string>& names) : done(names.size(), false) {
  for (size_t i = 0; i < names.size(); ++i) {
    numbers.emplace(WithOutput(names[i]), static_cast<int>(i));
  }
  left = numbers.size();  // a fetch may be named twice
}

StatusOr<int> PartialRun::Tensors::Take(const char* what, const std::string& name,
                                        const char* taken) {
  const auto found = numbers.find(WithOutput(name));
  if (found == numbers.end()) {
    return InvalidArgument("The ", what, " ", name, " was not specified in partial_run_setup.");
  }
  if (done[found->second]) {
    return InvalidArgument("The ", what, " ", name, " has already been ", taken, ".");
  }
  done[found->second] = true;
  --left;
  return found->second;
}

PartialRun::PartialRun(std::shared_ptr<ClusterProgram> program, const Signature& signature,
                       std::shared_ptr<const FeedDependencies> dependencies)
    : program_(std::move(program)),
      feed_names_(signature.feeds),
      dependencies_(std::move(dependencies)),
      step_id_(program_->NewStepId()),
      feeds_(signature.feeds),
      fetches_(signature.fetches) {}

Status PartialRun::BeginCall(const ClientCall& call, CallShare* share) {
  MutexLock lock(mu_);
  if (cancellation_.cancelled()) return cancellation_.status();
  if (over_) return Aborted("the last call of the partial run is under way");
  Tensors feeds = feeds_, fetches = fetches_;
  share->feeds.assign(feeds.done.size(), -1);
  share->fetches.assign(fetches.done.size(), -1);
  for (size_t i = 0; i < call.feeds.size(); ++i) {
    const auto& [name, value] = call.feeds[i];
    TENON_ASSIGN_OR_RETURN(const int feed, feeds.Take("feed", name, "fed"));
    TENON_RETURN_IF_ERROR(program_->feeds().CheckOne(feed, value));
    share->feeds[feed] = static_cast<int>(i);
  }
  std::vector<int> asked;
  for (const std::string& name : call.fetches) {
    TENON_ASSIGN_OR_RETURN(const int fetch, fetches.Take("fetch", name, "fetched"));
    share->fetches[fetch] = static_cast<int>(asked.size());
    asked.push_back(fetch);
  }
  if (const int missing = dependencies_->MissingFeed(asked, feeds.done); missing >= 0) {
    return InvalidArgument("Fetch can't be computed from the feeds that have been fed so far: '",
                           feed_names_[missing], "' is missing");
  }
  feeds_ = std::move(feeds);
  fetches_ = std::move(fetches);
  share->step_id = step_id_;
  share->is_last = feeds_.left == 0 && fetches_.left == 0;
  over_ = share->is_last;
  begun_ = true;
  ++calls_;
  return OkStatus();
}

bool PartialRun::EndCall(const Status& status) {
  {
    MutexLock lock(mu_);
    over_ = over_ || !status.ok() || cancellation_.cancelled();
    if (--calls_ > 0 || !over_) return false;
  }
  program_->CleanUp(step_id_);
  return true;
}

void PartialRun::End(const Status& why) {
  cancellation_.Cancel(why);
  {
    MutexLock lock(mu_);
    over_ = true;
    if (calls_ > 0 || !begun_) return;  // EndCall cleans up
  }
  program_->CleanUp(step_id_);
}

StatusOr<std::string> PartialRuns::Add(std::shared_ptr<PartialRun> run) {
  MutexLock lock(mu_);
  TENON_RETURN_IF_ERROR(ended_);
  if (runs_.size() >= kMaxPartialRuns) {
    return ResourceExhausted("the session has ", kMaxPartialRuns,
                             " partial runs, as many as it may have");
  }
  const std::string handle = StrCat(next_++);
  runs_.emplace(handle, std::move(run));
  return handle;
}

StatusOr<std::shared_ptr<PartialRun>> PartialRuns::Find(const std::string& handle) {
  MutexLock lock(mu_);
  const auto found = runs_.find(handle);
  if (found != runs_.end()) return found->second;
  return InvalidArgument("Must run PartialRunSetup before performing partial runs; there is no '",
                         handle, "'");
}

void PartialRuns::Forget(const std::shared_ptr<PartialRun>& run) {
  MutexLock lock(mu_);
  erase_if(runs_, [&](const auto& entry) { return entry.second == run; });
}

void PartialRuns::EndAll(const Status& why) {
  StringMap<std::shared_ptr<PartialRun>> runs;
  {
    MutexLock lock(mu_);
    ended_ = why;
    runs.swap(runs_);
  }
  for (const auto& [handle, run] : runs) run->End(why);
}

}  // namespace tenon
