// SPDX-License-Identifier: Apache-2.0
#include "runtime/mpi/mpi_backend.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <vector>

#include "core/base/strings.h"
#include "runtime/collectives/reductions.h"
#include "runtime/mpi/greetings.h"
#include "runtime/mpi/mpi_library.h"
#include "runtime/mpi/mpi_ranks.h"

namespace tenon {
namespace {

/// The counts of MPI are ints: larger messages go in parts of so many bytes.
constexpr int64_t kMostBytes = int64_t{1} << 30;
/// Sums are made of so many bytes of each rank's at a time, which stay in caches.
constexpr int64_t kPart = int64_t{1} << 20;

constexpr auto kPayload = static_cast<int64_t>(Greetings::kPayload);

/// The memory that MPI uses beside the caller's. It outlives calls that fail.
struct Workspace {
  std::vector<int> counts, starts, own_counts, own_starts;
  std::vector<char> shares;
};

Workspace& WorkspaceOfProcess() {
  static auto* const workspace = new Workspace;
  return *workspace;
}

/// Collectives of MPI that do not block. Sums are made here, of the parts that each rank gets from
/// all: in the order of the ranks, so that they are the same bits by any library, and for dtypes
/// and NaNs that MPI has no sums for. It takes no longer than MPI's own sums do.
class MpiBackend final : public CollectiveBackend {
 public:
  explicit MpiBackend(MpiRanks& ranks)
      : ranks_(ranks), size_(static_cast<size_t>(ranks.size())), space_(WorkspaceOfProcess()) {
    space_.counts.resize(size_);
    space_.starts.resize(size_);
  }
  ~MpiBackend() override { ranks_.Leave(); }

  Status AllReduce(void* data, int64_t count, DType dtype, Reduction reduction,
                   const CollectiveCall& call) override {
    const ReductionFunction function = ReductionOf(dtype, reduction);
    if (function == nullptr) return Unimplemented("no sums of ", ToString(dtype));
    const auto width = static_cast<int64_t>(SizeOf(dtype));
    MutexLock lock(ranks_.mutex());
    if (size_ == 1) return Greet(call);
    if (count * width <= kPayload) {
      TENON_RETURN_IF_ERROR(ranks_.Greet(call, data, static_cast<size_t>(count * width)));
      const auto elements = static_cast<size_t>(count);
      function(data, ranks_.PayloadOf(0), ranks_.PayloadOf(1), elements);
      for (int r = 2; r < ranks_.size(); ++r) function(data, data, ranks_.PayloadOf(r), elements);
      FinishReduction(reduction, dtype, data, elements, ranks_.size());
      return OkStatus();
    }
    TENON_RETURN_IF_ERROR(Greet(call));
    const auto size = static_cast<int64_t>(size_);
    const int64_t most = size * (std::min(kPart, kMostBytes / size) / width);
    for (int64_t at = 0; at < count; at += most) {
      TENON_RETURN_IF_ERROR(ReducePart(static_cast<char*>(data) + at * width,
                                       std::min(most, count - at), dtype, reduction, call));
    }
    return OkStatus();
  }

  Status Broadcast(void* data, int64_t bytes, int root, const CollectiveCall& call) override {
    MutexLock lock(ranks_.mutex());
    if (bytes <= kPayload) {
      TENON_RETURN_IF_ERROR(ranks_.Greet(call, data, static_cast<size_t>(bytes)));
      std::memcpy(data, ranks_.PayloadOf(root), static_cast<size_t>(bytes));
      return OkStatus();
    }
    TENON_RETURN_IF_ERROR(Greet(call));
    return Send(static_cast<char*>(data), bytes, root, call);
  }

  Status AllGather(const void* in, void* out, absl::Span<const int64_t> sizes,
                   const CollectiveCall& call) override {
    MutexLock lock(ranks_.mutex());
    auto* const to = static_cast<char*>(out);
    const auto own = static_cast<size_t>(sizes[static_cast<size_t>(ranks_.rank())]);
    if (*std::max_element(sizes.begin(), sizes.end()) <= kPayload) {
      TENON_RETURN_IF_ERROR(ranks_.Greet(call, in, own));
      size_t at = 0;
      for (size_t r = 0; r < size_; ++r) {
        const auto bytes = static_cast<size_t>(sizes[r]);
        if (bytes > 0) std::memcpy(to + at, ranks_.PayloadOf(static_cast<int>(r)), bytes);
        at += bytes;
      }
      return OkStatus();
    }
    TENON_RETURN_IF_ERROR(Greet(call));
    if (std::accumulate(sizes.begin(), sizes.end(), int64_t{0}) <= kMostBytes) {
      Lay(sizes);
      MPI_Request request = MPI_REQUEST_NULL;
      TENON_RETURN_IF_ERROR(StatusOfMpi(
          MPI_Iallgatherv(in, static_cast<int>(own), MPI_BYTE, out, space_.counts.data(),
                          space_.starts.data(), MPI_BYTE, ranks_.communicator(), &request)));
      return ranks_.Wait(request, call);
    }
    size_t at = 0;
    for (size_t r = 0; r < size_; ++r) {
      const auto root = static_cast<int>(r);
      if (root == ranks_.rank() && own > 0) std::memcpy(to + at, in, own);
      TENON_RETURN_IF_ERROR(Send(to + at, sizes[r], root, call));
      at += static_cast<size_t>(sizes[r]);
    }
    return OkStatus();
  }

  /// Each rank's rows go in an exchange of two: whether all of them are small enough for one of all
  /// would be another thing to agree on.
  Status AllToAll(const void* in, absl::Span<const int64_t> sent, void* out,
                  absl::Span<const int64_t> received, const CollectiveCall& call) override {
    MutexLock lock(ranks_.mutex());
    TENON_RETURN_IF_ERROR(Greet(call));
    const int rank = ranks_.rank(), size = ranks_.size();
    for (int step = 0; step < size; ++step) {
      const auto to = static_cast<size_t>((rank + step) % size);
      const auto from = static_cast<size_t>((rank - step + size) % size);
      const char* const source = static_cast<const char*>(in) + Before(sent, to);
      char* const target = static_cast<char*>(out) + Before(received, from);
      if (step == 0) {
        if (sent[to] > 0) std::memcpy(target, source, static_cast<size_t>(sent[to]));
        continue;
      }
      TENON_RETURN_IF_ERROR(Swap(source, sent[to], static_cast<int>(to), target, received[from],
                                 static_cast<int>(from), call));
    }
    return OkStatus();
  }

  Status Barrier(const CollectiveCall& call) override {
    MutexLock lock(ranks_.mutex());
    return Greet(call);
  }

  void Abort(bool has_failed) override { ranks_.Abort(has_failed); }

 private:
  Status Greet(const CollectiveCall& call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(ranks_.mutex()) {
    return ranks_.Greet(call, nullptr, 0);
  }

  static int64_t Before(absl::Span<const int64_t> sizes, size_t rank) {
    return std::accumulate(sizes.begin(), sizes.begin() + static_cast<ptrdiff_t>(rank), int64_t{0});
  }

  /// The parts of all ranks, one after the other, as MPI wants to have them.
  void Lay(absl::Span<const int64_t> sizes) {
    int at = 0;
    for (size_t r = 0; r < size_; ++r) {
      space_.counts[r] = static_cast<int>(sizes[r]);
      space_.starts[r] = at;
      at += space_.counts[r];
    }
  }

  /// Each rank reduces a share of these elements, which it gets from all, and then all get it.
  Status ReducePart(char* data, int64_t count, DType dtype, Reduction reduction,
                    const CollectiveCall& call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(ranks_.mutex()) {
    const auto width = static_cast<int64_t>(SizeOf(dtype));
    const auto size = static_cast<int64_t>(size_);
    std::vector<int64_t> shares(size_);
    for (int64_t r = 0; r < size; ++r) {
      shares[static_cast<size_t>(r)] = (count * (r + 1) / size - count * r / size) * width;
    }
    Lay(shares);
    const auto rank = static_cast<size_t>(ranks_.rank());
    const int own = space_.counts[rank];
    const auto stride = static_cast<size_t>(own);
    space_.own_counts.assign(size_, own);
    space_.own_starts.resize(size_);
    for (size_t r = 0; r < size_; ++r) space_.own_starts[r] = static_cast<int>(r) * own;
    if (space_.shares.size() < stride * size_) space_.shares.resize(stride * size_);
    MPI_Request request = MPI_REQUEST_NULL;
    TENON_RETURN_IF_ERROR(StatusOfMpi(
        MPI_Ialltoallv(data, space_.counts.data(), space_.starts.data(), MPI_BYTE,
                       space_.shares.data(), space_.own_counts.data(), space_.own_starts.data(),
                       MPI_BYTE, ranks_.communicator(), &request)));
    TENON_RETURN_IF_ERROR(ranks_.Wait(request, call));
    char* const share = data + space_.starts[rank];
    const size_t elements = stride / static_cast<size_t>(width);
    const ReductionFunction function = ReductionOf(dtype, reduction);
    function(share, space_.shares.data(), space_.shares.data() + stride, elements);
    for (size_t r = 2; r < size_; ++r) {
      function(share, share, space_.shares.data() + r * stride, elements);
    }
    FinishReduction(reduction, dtype, share, elements, ranks_.size());
    TENON_RETURN_IF_ERROR(StatusOfMpi(MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_BYTE, data,
                                                      space_.counts.data(), space_.starts.data(),
                                                      MPI_BYTE, ranks_.communicator(), &request)));
    return ranks_.Wait(request, call);
  }

  /// A rank's bytes to all, in parts.
  Status Send(char* data, int64_t bytes, int root, const CollectiveCall& call)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(ranks_.mutex()) {
    for (int64_t at = 0; at < bytes; at += kMostBytes) {
      MPI_Request request = MPI_REQUEST_NULL;
      TENON_RETURN_IF_ERROR(
          StatusOfMpi(MPI_Ibcast(data + at, static_cast<int>(std::min(kMostBytes, bytes - at)),
                                 MPI_BYTE, root, ranks_.communicator(), &request)));
      TENON_RETURN_IF_ERROR(ranks_.Wait(request, call));
    }
    return OkStatus();
  }

  /// Bytes to one rank and from another one, in parts.
  Status Swap(const char* source, int64_t sent, int to, char* target, int64_t received, int from,
              const CollectiveCall& call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(ranks_.mutex()) {
    for (int64_t at = 0; at < std::max(sent, received); at += kMostBytes) {
      MPI_Request in = MPI_REQUEST_NULL, out = MPI_REQUEST_NULL;
      if (at < received) {
        TENON_RETURN_IF_ERROR(StatusOfMpi(
            MPI_Irecv(target + at, static_cast<int>(std::min(kMostBytes, received - at)), MPI_BYTE,
                      from, 0, ranks_.communicator(), &in)));
      }
      if (at < sent) {
        const Status sends =
            StatusOfMpi(MPI_Isend(source + at, static_cast<int>(std::min(kMostBytes, sent - at)),
                                  MPI_BYTE, to, 0, ranks_.communicator(), &out));
        if (!sends.ok()) return ranks_.Lose(sends, call);
      }
      TENON_RETURN_IF_ERROR(ranks_.Wait(in, call));
      TENON_RETURN_IF_ERROR(ranks_.Wait(out, call));
    }
    return OkStatus();
  }

  MpiRanks& ranks_;
  const size_t size_;
  Workspace& space_;
};

}  // namespace

StatusOr<std::unique_ptr<CollectiveBackend>> JoinByMpi(const RankOptions& options) {
  MpiRanks& ranks = MpiRanks::OfProcess();
  const Status joined = ranks.Join(options);
  if (!joined.ok()) {
    return Annotate(joined, StrCat("rank ", options.rank, " of ", options.size,
                                   " cannot join the others from ", options.host));
  }
  return std::make_unique<MpiBackend>(ranks);
}

}  // namespace tenon
