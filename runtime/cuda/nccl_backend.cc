// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/nccl_backend.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "core/base/strings.h"
#include "runtime/device/machine_clock.h"

namespace tenon::cuda {
namespace {

/// How often a rank that waits asks whether the connections have failed.
constexpr std::chrono::milliseconds kLook{1};
/// How long a rank that ends waits for the others to end as well.
constexpr std::chrono::seconds kEndLimit{1};
constexpr size_t kScratchBytes = 256;

std::optional<NcclType> TypeOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat:
      return NcclType::kFloat;
    case DType::kDouble:
      return NcclType::kDouble;
    case DType::kHalf:
      return NcclType::kHalf;
    case DType::kBFloat16:
      return NcclType::kBFloat16;
    case DType::kInt8:
      return NcclType::kInt8;
    case DType::kUInt8:
      return NcclType::kUInt8;
    case DType::kInt32:
      return NcclType::kInt32;
    case DType::kUInt32:
      return NcclType::kUInt32;
    case DType::kInt64:
      return NcclType::kInt64;
    case DType::kUInt64:
      return NcclType::kUInt64;
    default:
      return std::nullopt;
  }
}

NcclReduction ReductionOf(Reduction reduction) {
  switch (reduction) {
    case Reduction::kMin:
      return NcclReduction::kMin;
    case Reduction::kMax:
      return NcclReduction::kMax;
    case Reduction::kProduct:
      return NcclReduction::kProduct;
    case Reduction::kMean:
      return NcclReduction::kAverage;
    default:
      return NcclReduction::kSum;
  }
}

/// `ranks` may be null, before there is a communicator.
Status ErrorOf(const Nccl& nccl, NcclResult result, NcclCommunicator* ranks) {
  const std::string_view details = nccl.GetLastError(ranks);
  const std::string text =
      StrCat("NCCL: ", nccl.GetErrorString(result), details.empty() ? "" : ": ", details);
  const bool is_misuse =
      result == NcclResult::kInvalidArgument || result == NcclResult::kInvalidUsage;
  return is_misuse ? FailedPrecondition(text) : Unavailable(text);
}

class NcclBackend final : public CollectiveBackend {
 public:
  NcclBackend(const Nccl& nccl, int rank, CudaDriver& driver)
      : nccl_(nccl), rank_(rank), driver_(driver), failure_(driver.gpu()) {}
  ~NcclBackend() override;

  /// All ranks, whose first one is found by `id`.
  Status Join(const RankOptions& options, const NcclId& id);

  Status AllReduce(void* data, int64_t count, DType dtype, Reduction reduction,
                   const CollectiveCall& call) override;
  Status Broadcast(void* data, int64_t bytes, int root, const CollectiveCall& call) override;
  Status AllGather(const void* in, void* out, absl::Span<const int64_t> sizes,
                   const CollectiveCall& call) override;
  Status AllToAll(const void* in, absl::Span<const int64_t> sent, void* out,
                  absl::Span<const int64_t> received, const CollectiveCall& call) override;
  Status Barrier(const CollectiveCall& call) override;
  void Abort(bool has_failed) override;

 private:
  /// Queues something by `queue`, and waits for it.
  template <typename Queue>
  Status Do(const CollectiveCall& call, const Queue& queue);
  Status Await(NcclResult queued, const CollectiveCall& call);
  /// Waits until the library has done what it does in the background.
  Status Settle(NcclResult result, Clock::Time end);
  /// Lets the other ranks have what this one still sends in the background.
  void End();
  /// The stream waits for the kernels that are queued.
  void WaitForKernels();
  void Enter() { failure_.Check(cudaSetDevice(driver_.ordinal()), "entering it"); }

  const Nccl& nccl_;
  const int rank_;
  CudaDriver& driver_;
  Failure failure_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t kernels_ = nullptr;
  void* scratch_ = nullptr;  // for Barrier
  Mutex mu_;
  CondVar changed_;
  NcclCommunicator* ranks_ = nullptr;  // of the thread of the calls while calling_ is set
  bool calling_ ABSL_GUARDED_BY(mu_) = false;
  bool aborted_ ABSL_GUARDED_BY(mu_) = false;
  int64_t queued_ = 0;
  int64_t done_ ABSL_GUARDED_BY(mu_) = 0;
  std::unique_ptr<Completions> completions_;
};

NcclBackend::~NcclBackend() {
  Enter();
  if (ranks_ != nullptr) End();
  completions_.reset();
  if (kernels_ != nullptr) cudaEventDestroy(kernels_);
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
  if (scratch_ != nullptr) driver_.Free(scratch_, kScratchBytes);
}

void NcclBackend::End() {
  {
    MutexLock lock(mu_);
    aborted_ = false;  // which ends waiting, and was meant for calls
  }
  const Status ended = Settle(nccl_.CommFinalize(ranks_), MachineClock().Now() + kEndLimit);
  if (ended.ok()) {
    nccl_.CommDestroy(ranks_);
  } else {
    nccl_.CommAbort(ranks_);
  }
}

Status NcclBackend::Join(const RankOptions& options, const NcclId& id) {
  Enter();
  failure_.Check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
  failure_.Check(cudaEventCreateWithFlags(&kernels_, cudaEventDisableTiming), "making an event");
  if (failure_.failed()) return failure_.status();
  completions_ = std::make_unique<Completions>(driver_.ordinal(), stream_, failure_);
  scratch_ = driver_.Allocate(Stream::kCompute, kScratchBytes);
  if (scratch_ == nullptr) return ResourceExhausted("out of memory of ", driver_.gpu());
  NcclConfig config;
  config.blocking = 0;  // a rank that never comes would be waited for without end
  const NcclResult result =
      nccl_.CommInitRankConfig(&ranks_, options.size, id, options.rank, &config);
  if (ranks_ == nullptr) return ErrorOf(nccl_, result, nullptr);
  const Status joined = Settle(result, MachineClock().Now() + options.start_limit);
  if (joined.code() != StatusCode::kDeadlineExceeded) return joined;
  return DeadlineExceeded("not all of ", options.size, " ranks have joined by NCCL within ",
                          options.start_limit.count(), " ms");
}

Status NcclBackend::Settle(NcclResult result, Clock::Time end) {
  while (result == NcclResult::kInProgress) {
    const NcclResult asked = nccl_.CommGetAsyncError(ranks_, &result);
    if (asked != NcclResult::kSuccess) return ErrorOf(nccl_, asked, ranks_);
    if (result != NcclResult::kInProgress) break;
    MutexLock lock(mu_);
    if (aborted_) return Unavailable("the ranks have let go of each other");
    const Clock::Time now = MachineClock().Now();
    if (now >= end) return DeadlineExceeded("NCCL has not begun within the limit");
    MachineClock().WaitUntil(changed_, mu_, std::min(end, now + kLook));
  }
  return result == NcclResult::kSuccess ? OkStatus() : ErrorOf(nccl_, result, ranks_);
}

template <typename Queue>
Status NcclBackend::Do(const CollectiveCall& call, const Queue& queue) {
  {
    MutexLock lock(mu_);
    if (aborted_) return Unavailable("the ranks have let go of each other");
    calling_ = true;
  }
  Enter();
  Status status = failure_.failed() ? failure_.status() : Await(queue(), call);
  NcclCommunicator* failed = nullptr;
  {
    MutexLock lock(mu_);
    calling_ = false;
    if (!status.ok()) aborted_ = true;
    if (aborted_) failed = std::exchange(ranks_, nullptr);
  }
  if (failed != nullptr) nccl_.CommAbort(failed);
  return status;
}

Status NcclBackend::Await(NcclResult queued, const CollectiveCall& call) {
  const Clock::Time end = MachineClock().Now() + call.limit;
  TENON_RETURN_IF_ERROR(Settle(queued, end));
  const int64_t number = ++queued_;
  // The tensors are kept for as long as the GPU may write them, which is longer than this call
  // where it fails.
  completions_->Add([this, held = std::make_shared<CollectiveCall>(call)](const Status&) mutable {
    held.reset();
    MutexLock lock(mu_);
    ++done_;
    changed_.NotifyAll();
  });
  while (true) {
    NcclResult result = NcclResult::kSuccess;
    const NcclResult asked = nccl_.CommGetAsyncError(ranks_, &result);
    MutexLock lock(mu_);
    if (done_ >= number) break;
    if (asked != NcclResult::kSuccess) result = asked;
    if (result != NcclResult::kSuccess && result != NcclResult::kInProgress) {
      return ErrorOf(nccl_, result, ranks_);
    }
    if (aborted_) return Unavailable("the ranks have let go of each other");
    const Clock::Time now = MachineClock().Now();
    if (now >= end) return DeadlineExceeded("NCCL has not ended within the limit");
    MachineClock().WaitUntil(changed_, mu_, std::min(end, now + kLook));
  }
  return failure_.status();
}

void NcclBackend::WaitForKernels() {
  auto* const kernels = static_cast<cudaStream_t>(driver_.Native(Stream::kCompute));
  if (failure_.Check(cudaEventRecord(kernels_, kernels), "recording an event")) {
    failure_.Check(cudaStreamWaitEvent(stream_, kernels_, 0), "waiting for kernels");
  }
}

Status NcclBackend::AllReduce(void* data, int64_t count, DType dtype, Reduction reduction,
                              const CollectiveCall& call) {
  const std::optional<NcclType> type = TypeOf(dtype);
  if (!type) return Unimplemented("NCCL has no sums of ", ToString(dtype));
  if (count == 0) return OkStatus();
  return Do(call, [&] {
    return nccl_.AllReduce(data, data, static_cast<size_t>(count), *type,
                           cuda::ReductionOf(reduction), ranks_, stream_);
  });
}

Status NcclBackend::Broadcast(void* data, int64_t bytes, int root, const CollectiveCall& call) {
  if (bytes == 0) return OkStatus();
  return Do(call, [&] {
    return nccl_.Broadcast(data, data, static_cast<size_t>(bytes), NcclType::kUInt8, root, ranks_,
                           stream_);
  });
}

/// The calls of a group, of which the first failure counts.
class Group {
 public:
  explicit Group(const Nccl& nccl) : nccl_(nccl) { Add(nccl_.GroupStart()); }
  void Add(NcclResult result) {
    const bool is_failure = result != NcclResult::kSuccess && result != NcclResult::kInProgress;
    if (is_failure && failure_ == NcclResult::kSuccess) failure_ = result;
  }
  NcclResult End() {
    const NcclResult end = nccl_.GroupEnd();
    return failure_ == NcclResult::kSuccess ? end : failure_;
  }

 private:
  const Nccl& nccl_;
  NcclResult failure_ = NcclResult::kSuccess;
};

Status NcclBackend::AllGather(const void* in, void* out, absl::Span<const int64_t> sizes,
                              const CollectiveCall& call) {
  return Do(call, [&] {
    WaitForKernels();
    Group group(nccl_);
    auto* part = static_cast<char*>(out);
    for (size_t root = 0; root < sizes.size(); ++root) {
      const void* const source = static_cast<int>(root) == rank_ ? in : part;
      if (sizes[root] > 0) {
        group.Add(nccl_.Broadcast(source, part, static_cast<size_t>(sizes[root]), NcclType::kUInt8,
                                  static_cast<int>(root), ranks_, stream_));
      }
      part += sizes[root];
    }
    return group.End();
  });
}

Status NcclBackend::AllToAll(const void* in, absl::Span<const int64_t> sent, void* out,
                             absl::Span<const int64_t> received, const CollectiveCall& call) {
  return Do(call, [&] {
    WaitForKernels();
    Group group(nccl_);
    const auto* from = static_cast<const char*>(in);
    auto* to = static_cast<char*>(out);
    for (size_t i = 0; i < sent.size(); ++i) {
      const auto peer = static_cast<int>(i);
      if (sent[i] > 0) {
        group.Add(nccl_.Send(from, static_cast<size_t>(sent[i]), NcclType::kUInt8, peer, ranks_,
                             stream_));
      }
      if (received[i] > 0) {
        group.Add(nccl_.Recv(to, static_cast<size_t>(received[i]), NcclType::kUInt8, peer, ranks_,
                             stream_));
      }
      from += sent[i];
      to += received[i];
    }
    return group.End();
  });
}

Status NcclBackend::Barrier(const CollectiveCall& call) {
  return Do(call, [&] {
    return nccl_.AllReduce(scratch_, scratch_, 1, NcclType::kInt32, NcclReduction::kMax, ranks_,
                           stream_);
  });
}

void NcclBackend::Abort(bool has_failed) {
  NcclCommunicator* ended = nullptr;
  {
    MutexLock lock(mu_);
    aborted_ = true;
    changed_.NotifyAll();
    if (has_failed && !calling_) ended = std::exchange(ranks_, nullptr);
  }
  if (ended != nullptr) nccl_.CommAbort(ended);
}

/// The first rank leaves either how it is found, or why it cannot be.
StatusOr<NcclId> ShareId(const Nccl& nccl, const RankOptions& options) {
  const std::string key = StrCat("nccl/", options.generation);
  NcclId id = {};
  if (options.rank == 0) {
    const NcclResult made = nccl.GetUniqueId(&id);
    const Status failure = made == NcclResult::kSuccess ? OkStatus() : ErrorOf(nccl, made, nullptr);
    const std::string value =
        failure.ok() ? std::string(id.bytes, sizeof(id.bytes)) : std::string(Message(failure));
    TENON_RETURN_IF_ERROR(
        options.store->Put(key, StrCat(failure.ok() ? "+" : "-", value), options.start_limit));
    if (!failure.ok()) return failure;
    return id;
  }
  StatusOr<std::string> found = options.store->Get(key, options.start_limit);
  if (!found.ok()) return Annotate(found.status(), "rank 0");
  if (found->size() != sizeof(id.bytes) + 1 || found->front() != '+') {
    return Unavailable("rank 0 cannot be joined by NCCL: ", found->substr(1));
  }
  std::copy_n(found->data() + 1, sizeof(id.bytes), id.bytes);
  return id;
}

}  // namespace

StatusOr<std::unique_ptr<CollectiveBackend>> JoinByNccl(const RankOptions& options,
                                                        CudaDriver& driver, const Nccl& nccl) {
  auto backend = std::make_unique<NcclBackend>(nccl, options.rank, driver);
  const StatusOr<NcclId> id = ShareId(nccl, options);
  const Status status = id.ok() ? backend->Join(options, *id) : id.status();
  if (!status.ok()) {
    return Annotate(status, StrCat("rank ", options.rank, " of ", options.size,
                                   " cannot join the others by NCCL"));
  }
  return backend;
}

}  // namespace tenon::cuda
