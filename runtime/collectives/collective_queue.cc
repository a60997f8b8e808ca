// SPDX-License-Identifier: Apache-2.0
#include "runtime/collectives/collective_queue.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/base/denormals.h"
#include "core/base/exceptions.h"
#include "core/base/interruption.h"
#include "core/base/strings.h"
#include "runtime/collectives/digest.h"

namespace tenon {
namespace {

/// After how long ranks compare what they wait in, how often, and how long each waits then for the
/// others' notes.
constexpr std::chrono::milliseconds kCompareAfter{2000}, kComparePause{1000}, kComparePatience{0};
/// Who has failed waits so long for the notes of the others, which fail at about the same time.
constexpr std::chrono::milliseconds kLastPatience{500};
constexpr std::chrono::seconds kNoticeAfter{10};

int64_t RowBytes(const Tensor& data) {
  int64_t elements = 1;
  for (int i = 1; i < data.rank(); ++i) elements *= data.dim(i);
  return elements * static_cast<int64_t>(SizeOf(data.dtype()));
}

std::string Ranks(const std::vector<int>& ranks) {
  return StrCat(ranks.size() == 1 ? "rank " : "ranks ", Join(ranks, ", "));
}

/// A shape as so many numbers: the dtype, how many dimensions, and those but the first.
constexpr int kMostDims = 12;
constexpr int kShapeWords = 2 + kMostDims;

}  // namespace

CollectiveQueue::CollectiveQueue(CollectiveBackends backends, CollectiveQueueOptions options)
    : backend_(std::move(backends.host)),
      on_device_(std::move(backends.device)),
      options_(std::move(options)),
      clock_(*options_.clock),
      notes_(options_.rank, options_.size, options_.store, options_.clock) {
  worker_ = std::jthread([this] { Work(); });
  if (options_.size > 1) watcher_ = std::jthread([this] { Watch(); });
}

CollectiveQueue::~CollectiveQueue() {
  {
    MutexLock lock(mu_);
    ending_ = true;
    changed_.NotifyAll();
    ends_.NotifyAll();
  }
  watcher_ = {};  // after it has told the others what they have to know
  Break(Cancelled("the ranks of this process have ended"));
  worker_ = {};
}

const Allocator* CollectiveQueue::device_memory() const {
  MutexLock lock(mu_);
  return on_device_ == nullptr ? nullptr : options_.device_memory;
}

void CollectiveQueue::Start(Collective what, Done done) {
  Status broken;
  {
    MutexLock lock(mu_);
    broken = broken_;
    if (broken.ok()) {
      waiting_.push_back({std::move(what), std::move(done)});
      changed_.NotifyOne();
      return;
    }
  }
  done(broken);
}

void CollectiveQueue::Abort(const Status& why) {
  std::deque<Entry> failed;
  {
    MutexLock lock(mu_);
    if (!broken_.ok() || ending_) return;
    broken_ = why;
    failed.swap(waiting_);
    // The store is asked by a thread that may wait.
    if (options_.size > 1) untold_ = why;
    ends_.NotifyAll();
  }
  for (Entry& entry : failed) entry.done(why);
}

void CollectiveQueue::Break(const Status& why) {
  std::deque<Entry> failed;
  std::shared_ptr<CollectiveBackend> backend, on_device;
  bool has_failed = false;
  {
    MutexLock lock(mu_);
    const bool is_end = broken_.ok() && ending_;
    if (broken_.ok()) broken_ = why;
    has_failed = !is_end && broken_.code() != StatusCode::kOutOfRange;
    failed.swap(waiting_);
    backend = backend_;
    on_device = on_device_;
  }
  if (backend != nullptr) backend->Abort(has_failed);
  if (on_device != nullptr) on_device->Abort(has_failed);
  for (Entry& entry : failed) entry.done(why);
}

void CollectiveQueue::Tell(const Status& why) {
  // The first reason of all ranks stays. Who cannot be told finds a rank that has gone.
  notes_.LeaveReason(why, kLastPatience).IgnoreError();
  Break(why);
  MutexLock lock(mu_);
  untold_.reset();
  idle_.NotifyAll();
}

Status CollectiveQueue::BeginAnew(const Status& why) {
  if (why.code() != StatusCode::kOutOfRange) {
    return InvalidArgument("ranks begin anew after OutOfRange, found ", why.ToString());
  }
  Abort(why);
  std::shared_ptr<CollectiveBackend> backend, on_device;  // which take a while to end
  {
    MutexLock lock(mu_);
    while (busy_ || untold_) idle_.Wait(mu_);
    if (broken_.code() != StatusCode::kOutOfRange) return broken_;
    backend = std::exchange(backend_, nullptr);
    on_device = std::exchange(on_device_, nullptr);
  }
  backend.reset();
  on_device.reset();
  CollectiveBackends backends;
  Status joined;
  if (options_.size > 1) {
    StatusOr<CollectiveBackends> again = options_.join(notes_.generation() + 1);
    joined = again.status();
    if (again.ok()) backends = *std::move(again);
  }
  MutexLock lock(mu_);
  backend_ = std::move(backends.host);
  on_device_ = std::move(backends.device);
  notes_.BeginAnew();
  next_ = 1;
  broken_ = joined;
  return joined;
}

int64_t CollectiveQueue::Begin(const Collective& what) {
  busy_ = true;
  // The copy for messages shares no memory, which would then not be the collective's to write.
  current_ = Collective{.kind = what.kind,
                        .name = what.name,
                        .data = what.data.valid()
                                    ? Tensor(what.data.dtype(), what.data.shape(), BufferRef())
                                    : Tensor(),
                        .on_device = what.on_device,
                        .reduction = what.reduction,
                        .root = what.root};
  sequence_ = next_++;
  since_ = clock_.Now();
  return sequence_;
}

StatusOr<CollectiveResult> CollectiveQueue::Do(Collective& what, int64_t sequence, bool ends_well) {
  // The bits must not depend on whose thread this is.
  const FlushDenormals flush;
  const InterruptibleBy nothing(nullptr);
  StatusOr<CollectiveResult> result = CatchExceptions([&] { return Execute(what, sequence); });
  Status broken;
  {
    MutexLock lock(mu_);
    current_.reset();
    broken = broken_;
    if (ends_well && result.ok()) End();
  }
  if (!result.ok()) {
    const bool is_first = broken.ok();
    if (is_first) broken = Explain(what, sequence, result.status());
    Break(broken);
    result = broken;
    if (is_first && what.on_device) {  // whose library may not tell the others
      MutexLock lock(mu_);
      untold_ = broken;
      ends_.NotifyAll();
    }
  }
  return result;
}

void CollectiveQueue::End() {
  busy_ = false;
  idle_.NotifyAll();
  if (!waiting_.empty()) changed_.NotifyOne();
}

StatusOr<CollectiveResult> CollectiveQueue::Run(Collective what) {
  int64_t sequence = 0;
  {
    MutexLock lock(mu_);
    if (!broken_.ok()) return broken_;
    if (!busy_ && waiting_.empty()) sequence = Begin(what);
  }
  if (sequence == 0) return Communicator::Run(std::move(what));
  StatusOr<CollectiveResult> result = Do(what, sequence, /*ends_well=*/true);
  if (!result.ok()) {
    MutexLock lock(mu_);
    End();
  }
  return result;
}

void CollectiveQueue::Work() {
  while (true) {
    Entry entry;
    int64_t sequence = 0;
    {
      MutexLock lock(mu_);
      while ((waiting_.empty() || busy_) && !ending_) changed_.Wait(mu_);
      if (waiting_.empty() || busy_) return;
      entry = std::move(waiting_.front());
      waiting_.pop_front();
      sequence = Begin(entry.what);
    }
    StatusOr<CollectiveResult> result = Do(entry.what, sequence, /*ends_well=*/false);
    entry.done(std::move(result));
    MutexLock lock(mu_);
    End();
  }
}

Status CollectiveQueue::Check(Collective* what) const {
  using Kind = Collective::Kind;
  if (what->kind == Kind::kBarrier) return OkStatus();
  Tensor& data = what->data;
  const bool is_there =
      what->on_device ? on_device_ != nullptr && !data.IsHostMemory() : data.IsHostMemory();
  if (!IsPlain(data.dtype()) || !is_there) {
    return InvalidArgument(
        what->ToString(), ": wanted numbers in ",
        what->on_device ? "the memory of the ranks' device" : "the host's memory");
  }
  if (what->reduction == Reduction::kMean && !IsFloating(data.dtype())) {
    return InvalidArgument(what->ToString(), ": means are of floats");
  }
  if (what->kind == Kind::kBroadcast && (what->root < 0 || what->root >= options_.size)) {
    return InvalidArgument("there is no rank ", what->root, " among ", options_.size);
  }
  const bool has_rows = what->kind == Kind::kAllGather || what->kind == Kind::kAllToAll;
  if (has_rows && data.rank() == 0) {
    return InvalidArgument(what->ToString(), ": a scalar has no rows");
  }
  // Memory that is written in place must be nobody else's.
  if (!has_rows && !what->on_device && !data.HasOneReference()) {
    TENON_ASSIGN_OR_RETURN(data, data.Copy());
  }
  return OkStatus();
}

StatusOr<CollectiveResult> CollectiveQueue::Execute(Collective& what, int64_t sequence) {
  TENON_RETURN_IF_ERROR(Check(&what));
  switch (what.kind) {
    case Collective::Kind::kAllGather:
      return Gather(what, sequence);
    case Collective::Kind::kAllToAll:
      return Exchange(what, sequence);
    default:
      if (options_.size > 1) TENON_RETURN_IF_ERROR(ExecuteInPlace(what, sequence));
      return CollectiveResult{std::move(what.data), {}};
  }
}

Status CollectiveQueue::ExecuteInPlace(Collective& what, int64_t sequence) {
  const CollectiveCall call = CallOf(what, sequence, 0);
  if (what.on_device || what.kind == Collective::Kind::kBarrier) {
    TENON_RETURN_IF_ERROR(backend_->Barrier(call));
  }
  switch (what.kind) {
    case Collective::Kind::kAllReduce:
      return LibraryFor(what).AllReduce(what.data.raw_data(), what.data.num_elements(),
                                        what.data.dtype(), what.reduction, call);
    case Collective::Kind::kBroadcast:
      return LibraryFor(what).Broadcast(
          what.data.raw_data(), static_cast<int64_t>(what.data.num_bytes()), what.root, call);
    default:
      return OkStatus();
  }
}

StatusOr<CollectiveResult> CollectiveQueue::Gather(Collective& what, int64_t sequence) {
  std::vector<int64_t> rows;
  TENON_RETURN_IF_ERROR(ShareShapes(what, sequence, {what.data.dim(0)}, &rows));
  int64_t total = 0;
  for (const int64_t count : rows) {
    TENON_ASSIGN_OR_RETURN(total, AddSizes(total, count));
  }
  TENON_ASSIGN_OR_RETURN(Tensor out, what.allocate(what.data.shape().WithDim(0, total)));
  const int64_t row = RowBytes(what.data);
  for (int64_t& count : rows) count *= row;
  if (options_.size == 1) {
    std::copy_n(static_cast<const char*>(what.data.raw_data()), rows[0],
                static_cast<char*>(out.raw_data()));
  } else {
    CollectiveCall call = CallOf(what, sequence, 1);
    call.out = out;
    TENON_RETURN_IF_ERROR(MeetBeforeDevices(what, sequence));
    TENON_RETURN_IF_ERROR(
        LibraryFor(what).AllGather(what.data.raw_data(), out.raw_data(), rows, call));
  }
  return CollectiveResult{std::move(out), {}};
}

StatusOr<CollectiveResult> CollectiveQueue::Exchange(Collective& what, int64_t sequence) {
  const auto size = static_cast<size_t>(options_.size);
  const int64_t sum = std::accumulate(what.rows_to.begin(), what.rows_to.end(), int64_t{0});
  const bool has_negative =
      std::any_of(what.rows_to.begin(), what.rows_to.end(), [](int64_t n) { return n < 0; });
  if (what.rows_to.size() != size || has_negative || sum != what.data.dim(0)) {
    return InvalidArgument("the splits [", Join(what.rows_to, ", "), "] do not deal ",
                           what.data.dim(0), " rows to ", options_.size, " ranks");
  }
  std::vector<int64_t> rows;  // of each rank to each
  TENON_RETURN_IF_ERROR(ShareShapes(what, sequence, what.rows_to, &rows));
  CollectiveResult result;
  int64_t total = 0;
  for (size_t from = 0; from < size; ++from) {
    result.rows_from.push_back(rows[from * size + static_cast<size_t>(options_.rank)]);
    TENON_ASSIGN_OR_RETURN(total, AddSizes(total, result.rows_from.back()));
  }
  TENON_ASSIGN_OR_RETURN(result.data, what.allocate(what.data.shape().WithDim(0, total)));
  const int64_t row = RowBytes(what.data);
  std::vector<int64_t> sent, received;
  for (const int64_t count : what.rows_to) sent.push_back(count * row);
  for (const int64_t count : result.rows_from) received.push_back(count * row);
  if (options_.size == 1) {
    std::copy_n(static_cast<const char*>(what.data.raw_data()), sent[0],
                static_cast<char*>(result.data.raw_data()));
  } else {
    CollectiveCall call = CallOf(what, sequence, 1);
    call.out = result.data;
    TENON_RETURN_IF_ERROR(MeetBeforeDevices(what, sequence));
    TENON_RETURN_IF_ERROR(LibraryFor(what).AllToAll(what.data.raw_data(), sent,
                                                    result.data.raw_data(), received, call));
  }
  return result;
}

Status CollectiveQueue::ShareShapes(const Collective& what, int64_t sequence,
                                    absl::Span<const int64_t> rows,
                                    std::vector<int64_t>* all_rows) {
  const Tensor& data = what.data;
  if (data.rank() > kMostDims + 1) {
    return InvalidArgument(what.ToString(), ": at most ", kMostDims + 1,
                           " dimensions can be gathered");
  }
  if (options_.size == 1) {
    all_rows->assign(rows.begin(), rows.end());
    return OkStatus();
  }
  const auto size = static_cast<size_t>(options_.size);
  const int64_t words = kShapeWords + static_cast<int64_t>(rows.size());
  CollectiveCall call = CallOf(what, sequence, 0);
  TENON_ASSIGN_OR_RETURN(call.in, Tensor::Allocate(CpuAllocator(), DType::kInt64, {words}));
  TENON_ASSIGN_OR_RETURN(call.out,
                         Tensor::Allocate(CpuAllocator(), DType::kInt64, {options_.size, words}));
  auto* const own = call.in.data<int64_t>();
  std::fill_n(own, words, 0);
  own[0] = static_cast<int64_t>(data.dtype());
  own[1] = data.rank();
  for (int i = 1; i < data.rank(); ++i) own[i + 1] = data.dim(i);
  std::copy(rows.begin(), rows.end(), own + kShapeWords);
  const std::vector<int64_t> bytes(size, words * static_cast<int64_t>(sizeof(int64_t)));
  TENON_RETURN_IF_ERROR(backend_->AllGather(call.in.raw_data(), call.out.raw_data(), bytes, call));
  for (int r = 0; r < options_.size; ++r) {
    const int64_t* const theirs = call.out.data<int64_t>() + r * words;
    if (!std::equal(own, own + kShapeWords, theirs)) {
      std::vector<std::string> dims = {"?"};
      for (int64_t i = 1; i < theirs[1]; ++i) dims.push_back(StrCat(theirs[i + 1]));
      return InvalidArgument(what.ToString(), " on rank ", options_.rank, ", of ",
                             ToString(static_cast<DType>(theirs[0])), "[", Join(dims, ","),
                             "] on rank ", r, ": only the first dimensions may differ");
    }
    all_rows->insert(all_rows->end(), theirs + kShapeWords, theirs + words);
  }
  return OkStatus();
}

CollectiveCall CollectiveQueue::CallOf(const Collective& what, int64_t sequence, int part) const {
  Digest digest;
  digest.Add(sequence);
  digest.Add(what.name);
  const bool has_rows =
      what.kind == Collective::Kind::kAllGather || what.kind == Collective::Kind::kAllToAll;
  const int64_t dtype = has_rows ? 0 : static_cast<int64_t>(what.data.dtype());
  // Each of these is less than 256.
  digest.Add(static_cast<int64_t>(what.kind) | static_cast<int64_t>(what.reduction) << 8 |
             static_cast<int64_t>(what.on_device) << 16 | dtype << 24 |
             static_cast<int64_t>(part) << 32);
  digest.Add(what.root);
  if (!has_rows) {
    for (const int64_t d : what.data.shape().dims()) digest.Add(d);
  }
  return {digest.value(), options_.limit, what.data, {}};
}

void CollectiveQueue::Watch() {
  int64_t said = 0;  // the number of the collective that a line was about
  while (true) {
    Collective what;
    int64_t sequence = 0;
    Clock::Duration waited{0};
    std::optional<Status> untold;
    {
      MutexLock lock(mu_);
      if (!ending_ && !untold_) clock_.WaitUntil(ends_, mu_, clock_.Now() + kComparePause);
      untold = untold_;
      if (!untold && ending_) return;
      if (!untold && (!current_ || !broken_.ok())) continue;
      if (!untold) {
        waited = clock_.Now() - since_;
        what = *current_;
        sequence = sequence_;
      }
    }
    if (untold) {
      Tell(*untold);
      continue;
    }
    // The library of the devices may not notice that another rank has let go.
    const std::optional<Status> told =
        what.on_device && waited >= kComparePause ? notes_.ReasonOfOthers() : std::nullopt;
    if (told) Break(OfOthers(what, *told));
    if (told || waited < kCompareAfter) continue;
    const StatusOr<RankFindings> found = notes_.Compare(what, sequence, kComparePatience);
    if (!found.ok()) continue;
    if (!found->of_others.empty()) {
      Break(FailedPrecondition("the ranks do not do the same: rank ", options_.rank, " is in ",
                               what.ToString(), ", ", Join(found->of_others, ", ")));
    } else if (waited >= kNoticeAfter && said != sequence && options_.notice) {
      said = sequence;
      const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(waited).count();
      options_.notice(StrCat(what.ToString(), " has taken ", seconds, " s: ",
                             found->missing.empty()
                                 ? "all ranks are in it"
                                 : StrCat("waiting for ", Ranks(found->missing))));
    }
  }
}

Status CollectiveQueue::OfOthers(const Collective& what, const Status& told) const {
  if (told.code() == StatusCode::kOutOfRange) return told;
  return Annotate(told, StrCat(what.ToString(), " on rank ", options_.rank));
}

Status CollectiveQueue::Explain(const Collective& what, int64_t sequence, const Status& error) {
  if (error.code() != StatusCode::kUnavailable && error.code() != StatusCode::kDeadlineExceeded) {
    return error;
  }
  // Neighbours of a rank that has failed fail at once; so do theirs when this rank lets go.
  backend_->Abort(/*has_failed=*/false);
  if (on_device_ != nullptr) on_device_->Abort(/*has_failed=*/false);
  if (const std::optional<Status> told = notes_.ReasonOfOthers()) {
    return OfOthers(what, *told);
  }
  const StatusOr<RankFindings> found = notes_.Compare(what, sequence, kLastPatience);
  const bool is_late = error.code() == StatusCode::kDeadlineExceeded;
  std::string why;
  if (!found.ok()) {
    why = StrCat("rank 0, which keeps the notes of all, does not answer");
  } else if (!found->of_others.empty()) {
    why = StrCat("the ranks do not do the same: ", Join(found->of_others, ", "));
  } else if (!found->missing.empty()) {
    why = StrCat(Ranks(found->missing),
                 is_late                      ? " did not come within "
                 : found->missing.size() == 1 ? " has gone"
                                              : " have gone",
                 is_late ? StrCat(options_.limit.count(), " ms") : "");
  } else {
    why = is_late ? StrCat("it took longer than ", options_.limit.count(), " ms")
                  : std::string(Message(error));
  }
  const std::string text = StrCat(what.ToString(), " on rank ", options_.rank, ": ", why);
  return is_late ? DeadlineExceeded(text) : Unavailable(text);
}

}  // namespace tenon
