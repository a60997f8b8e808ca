// SPDX-License-Identifier: Apache-2.0
#include "train/allreduce/device_ranks.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/strings.h"

namespace tenon {
namespace {

/// The bits of the word that each rank tells the others.
constexpr int32_t kCan = 1, kHasDevice = 2, kNeedsIt = 4;
/// The rank could not join because of another one, as it seems.
constexpr int32_t kHasWaited = 8;
/// How long the others may still be busy joining, in multiples of the limit for that.
constexpr int kPatience = 2;
/// The tags of the two exchanges.
constexpr uint32_t kAbleTag = 0x6465761, kJoinedTag = 0x6465762;

std::string ReasonKey(const RankOptions& own, int rank) {
  return StrCat("collectives/device/", own.generation, "/", rank);
}

/// The words of all ranks, in their order.
StatusOr<std::vector<int32_t>> Share(CollectiveBackend& host, const RankOptions& own, uint32_t tag,
                                     int32_t word) {
  CollectiveCall call = {.tag = tag, .limit = kPatience * own.start_limit};
  TENON_ASSIGN_OR_RETURN(call.in, Tensor::Allocate(CpuAllocator(), DType::kInt32, {1}));
  TENON_ASSIGN_OR_RETURN(call.out, Tensor::Allocate(CpuAllocator(), DType::kInt32, {own.size}));
  *call.in.data<int32_t>() = word;
  const std::vector<int64_t> bytes(static_cast<size_t>(own.size), sizeof(int32_t));
  TENON_RETURN_IF_ERROR(host.AllGather(call.in.raw_data(), call.out.raw_data(), bytes, call));
  const auto* const words = call.out.data<int32_t>();
  return std::vector<int32_t>(words, words + own.size);
}

/// Why this rank cannot join by its device; OK when it may try.
Status WhyNot(const RankOptions& own, DeviceWish wish) {
  if (wish == DeviceWish::kNone) {
    return FailedPrecondition("it wants no library for the memory of GPUs");
  }
  if (own.device == nullptr) return NotFound("it has no GPU");
  TENON_ASSIGN_OR_RETURN(const CollectivesPlugin* const plugin, LoadCollectives("cuda"));
  return plugin->check == nullptr ? OkStatus() : plugin->check(own);
}

/// The first rank that cannot, best one that is the cause, or -1.
int FirstUnable(const std::vector<int32_t>& words) {
  for (const int32_t waited : {0, kHasWaited}) {
    const auto unable = std::find_if(words.begin(), words.end(), [&](int32_t word) {
      return (word & (kCan | kHasWaited)) == waited;
    });
    if (unable != words.end()) return static_cast<int>(unable - words.begin());
  }
  return -1;
}

}  // namespace

StatusOr<std::unique_ptr<CollectiveBackend>> JoinByDevices(
    CollectiveBackend& host, const RankOptions& own, DeviceWish wish,
    const std::function<void(const std::string& line)>& notice) {
  std::unique_ptr<CollectiveBackend> joined;
  std::vector<int32_t> words;
  int unable = -1;
  for (const uint32_t tag : {kAbleTag, kJoinedTag}) {
    Status own_end = WhyNot(own, wish);
    if (tag == kJoinedTag) {
      StatusOr<std::unique_ptr<CollectiveBackend>> backend = JoinBy("cuda", own);
      own_end = backend.status();
      if (backend.ok()) joined = *std::move(backend);
    }
    if (!own_end.ok()) {
      own.store->Put(ReasonKey(own, own.rank), std::string(Message(own_end)), own.start_limit)
          .IgnoreError();
    }
    const bool has_device = own.device != nullptr && wish != DeviceWish::kNone;
    const bool has_waited = own_end.code() == StatusCode::kDeadlineExceeded ||
                            own_end.code() == StatusCode::kUnavailable;
    const int32_t word = (own_end.ok() ? kCan : 0) | (has_waited ? kHasWaited : 0) |
                         (has_device ? kHasDevice : 0) |
                         (wish == DeviceWish::kNeeded ? kNeedsIt : 0);
    TENON_ASSIGN_OR_RETURN(words, Share(host, own, tag, word));
    unable = FirstUnable(words);
    if (unable >= 0) break;
  }
  if (unable < 0) return joined;
  if (joined != nullptr) joined->Abort(/*has_failed=*/true);
  int32_t any = 0;
  for (const int32_t word : words) any |= word;
  const bool is_needed = (any & kNeedsIt) != 0;
  if ((any & kHasDevice) == 0 && !is_needed) return nullptr;
  const StatusOr<std::string> reason =
      own.store->Get(ReasonKey(own, unable), std::chrono::milliseconds(0));
  const std::string why =
      StrCat("rank ", unable, ": ", reason.ok() ? *reason : "it does not say why");
  if (is_needed) {
    return FailedPrecondition("ranks cannot join by NCCL, which one of them asks for: ", why);
  }
  if (notice && own.rank == 0) {
    notice(StrCat("collectives of GPUs go by way of the hosts' memory: ", why));
  }
  return nullptr;
}

}  // namespace tenon
