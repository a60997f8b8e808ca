// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/partial_run.h"

#include "core/graph/graph.h"

namespace tenon {
namespace {

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

PartialRun::PartialRun(std::shared_ptr<ClusterProgram> step, const Signature& signature,
                       std::shared_ptr<const FeedDependencies> dependencies)
    : step_(std::move(step)),
      feed_names_(signature.feeds),
      dependencies_(std::move(dependencies)),
      step_id_(NewStepId()),
      feeds_(signature.feeds),
      fetches_(signature.fetches) {}

Status PartialRun::BeginCall(const ClientCall& call, CallShare* part) {
  MutexLock lock(mu_);
  if (cancellation_.cancelled()) return cancellation_.status();
  if (over_) return Aborted("the last call of the partial run is under way");
  Tensors feeds = feeds_, fetches = fetches_;
  part->feeds.assign(feeds.done.size(), -1);
  part->fetches.assign(fetches.done.size(), -1);
  for (size_t i = 0; i < call.feeds.size(); ++i) {
    const auto& [name, value] = call.feeds[i];
    TENON_ASSIGN_OR_RETURN(const int feed, feeds.Take("feed", name, "fed"));
    TENON_RETURN_IF_ERROR(step_->feeds().CheckOne(feed, value));
    part->feeds[feed] = static_cast<int>(i);
  }
  std::vector<int> asked;
  for (const std::string& name : call.fetches) {
    TENON_ASSIGN_OR_RETURN(const int fetch, fetches.Take("fetch", name, "fetched"));
    part->fetches[fetch] = static_cast<int>(asked.size());
    asked.push_back(fetch);
  }
  if (const int missing = dependencies_->MissingFeed(asked, feeds.done); missing >= 0) {
    return InvalidArgument("Fetch can't be computed from the feeds that have been fed so far: '",
                           feed_names_[missing], "' is missing");
  }
  feeds_ = std::move(feeds);
  fetches_ = std::move(fetches);
  part->step_id = step_id_;
  part->is_last = feeds_.left == 0 && fetches_.left == 0;
  over_ = part->is_last;
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
  step_->CleanUp(step_id_);
  return true;
}

void PartialRun::End(const Status& why) {
  cancellation_.Cancel(why);
  {
    MutexLock lock(mu_);
    over_ = true;
    if (calls_ > 0 || !begun_) return;  // EndCall cleans up
  }
  step_->CleanUp(step_id_);
}

}  // namespace tenon
