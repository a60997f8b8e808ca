// SPDX-License-Identifier: Apache-2.0
#include "train/allreduce/rank_values.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/types/span.h"
#include "core/base/strings.h"

namespace tenon {
namespace {

/// Marks the errors of OkOnAllRanks.
constexpr char kOfAllRanks[] = "tenon/of_all_ranks";
/// How many different errors of ranks are told, and how many ranks are named for each.
constexpr size_t kMostErrors = 4, kMostRanks = 8;

/// The ranks that have the same thing to say.
struct SameError {
  std::string message;
  std::vector<int> ranks;
};

std::string NameRanks(const std::vector<int>& ranks, int size) {
  if (ranks.size() == static_cast<size_t>(size)) return "all ranks";
  const size_t shown = std::min(ranks.size(), kMostRanks);
  const std::vector<int> named(ranks.begin(), ranks.begin() + static_cast<int64_t>(shown));
  return StrCat(ranks.size() == 1 ? "rank " : "ranks ", Join(named, ", "),
                shown < ranks.size() ? StrCat(" and ", ranks.size() - shown, " others") : "");
}

}  // namespace

StatusOr<Tensor> ReduceOverRanks(Communicator& ranks, const std::string& name, const Tensor& own,
                                 Reduction reduction) {
  TENON_ASSIGN_OR_RETURN(CollectiveResult result, ranks.Run({.kind = Collective::Kind::kAllReduce,
                                                             .name = name,
                                                             .data = own,
                                                             .reduction = reduction}));
  return std::move(result.data);
}

StatusOr<Tensor> GatherRows(Communicator& ranks, const std::string& name, const Tensor& own) {
  const auto allocate = [&own](const Shape& shape) {
    return Tensor::Allocate(CpuAllocator(), own.dtype(), shape);
  };
  TENON_ASSIGN_OR_RETURN(
      CollectiveResult result,
      ranks.Run(
          {.kind = Collective::Kind::kAllGather, .name = name, .data = own, .allocate = allocate}));
  return std::move(result.data);
}

StatusOr<std::vector<std::vector<std::string>>> GatherTexts(Communicator& ranks,
                                                            const std::string& name,
                                                            const std::vector<std::string>& own) {
  std::vector<int64_t> own_sizes;
  std::string own_bytes;
  for (const std::string& text : own) {
    own_sizes.push_back(static_cast<int64_t>(text.size()));
    own_bytes += text;
  }
  const absl::Span<const uint8_t> as_numbers(reinterpret_cast<const uint8_t*>(own_bytes.data()),
                                             own_bytes.size());
  TENON_ASSIGN_OR_RETURN(
      const Tensor counts,
      GatherRows(ranks, StrCat(name, "/counts"),
                 Tensor::Vector(std::vector<int64_t>{static_cast<int64_t>(own.size())})));
  TENON_ASSIGN_OR_RETURN(const Tensor sizes,
                         GatherRows(ranks, StrCat(name, "/sizes"), Tensor::Vector(own_sizes)));
  TENON_ASSIGN_OR_RETURN(
      const Tensor bytes,
      GatherRows(ranks, name,
                 Tensor::Of<uint8_t>({static_cast<int64_t>(own_bytes.size())}, as_numbers)));
  std::vector<std::vector<std::string>> texts;
  const int64_t* size = sizes.data<int64_t>();
  const char* begin = reinterpret_cast<const char*>(bytes.data<uint8_t>());
  for (const int64_t count : counts.flat<int64_t>()) {
    texts.emplace_back();
    for (int64_t i = 0; i < count; ++i, begin += *size++) {
      texts.back().emplace_back(begin, static_cast<size_t>(*size));
    }
  }
  return texts;
}

Status OkOnAllRanks(Communicator& ranks, const std::string& name, const Status& own) {
  if (ranks.size() == 1) return own;
  std::vector<std::string> words;  // none where all is well
  if (!own.ok()) words = {StrCat(static_cast<int>(own.code())), std::string(Message(own))};
  TENON_ASSIGN_OR_RETURN(const auto all, GatherTexts(ranks, name, words));
  StatusCode code = StatusCode::kOk;
  std::vector<SameError> errors;
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const std::vector<std::string>& theirs = all[static_cast<size_t>(rank)];
    if (theirs.empty()) continue;
    if (code == StatusCode::kOk) code = static_cast<StatusCode>(std::atoi(theirs[0].c_str()));
    const auto known = std::find_if(errors.begin(), errors.end(),
                                    [&](const SameError& e) { return e.message == theirs[1]; });
    if (known != errors.end()) {
      known->ranks.push_back(rank);
    } else {
      errors.push_back({theirs[1], {rank}});
    }
  }
  if (errors.empty()) return OkStatus();
  std::vector<std::string> told;
  for (size_t i = 0; i < std::min(errors.size(), kMostErrors); ++i) {
    const bool alone = ranks.size() == 1;
    told.push_back(alone
                       ? errors[i].message
                       : StrCat(NameRanks(errors[i].ranks, ranks.size()), ": ", errors[i].message));
  }
  if (errors.size() > kMostErrors) {
    told.push_back(StrCat("and ", errors.size() - kMostErrors, " other errors of ranks"));
  }
  Status status(code, Join(told, "; "));
  status.SetPayload(kOfAllRanks, absl::Cord());
  return status;
}

bool IsOfAllRanks(const Status& status) { return status.GetPayload(kOfAllRanks).has_value(); }

}  // namespace tenon
