// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/simulated_driver.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "core/base/strings.h"

namespace tenon::testing {
namespace {

/// Between blocks, so that work that goes beyond the end of one is seen.
constexpr size_t kGap = 64;
/// NaN in every floating type, -1 in the integers.
constexpr int kPoison = 0xff;
/// The most work that may be put off while nobody waits for it.
constexpr size_t kMostPatience = 48;

size_t Rounded(size_t bytes) { return (bytes + kGap - 1) / kGap * kGap + kGap; }

uint64_t Digest(const void* memory, size_t bytes) {
  return std::hash<std::string_view>()({static_cast<const char*>(memory), bytes});
}

std::atomic<int> next_number{0};

}  // namespace

struct SimulatedDriver::HostClock {
  Mutex mu;
  VectorClock clock ABSL_GUARDED_BY(mu);
};

SimulatedDriver::HostClock& SimulatedDriver::Host() {
  static auto* const host = new HostClock;
  return *host;
}

void SimulatedDriver::VectorClock::Join(const VectorClock& other) {
  times_.resize(std::max(times_.size(), other.times_.size()));
  for (size_t i = 0; i < other.times_.size(); ++i) times_[i] = std::max(times_[i], other.times_[i]);
}

int SimulatedDriver::VectorClock::FirstBefore(const VectorClock& there) const {
  for (size_t i = 0; i < there.times_.size(); ++i) {
    if ((*this)[i] < there.times_[i]) return static_cast<int>(i);
  }
  return -1;
}

SimulatedDriver::SimulatedDriver(uint64_t seed, size_t memory_bytes)
    : first_number_(next_number.fetch_add(kStreams)), size_(memory_bytes), random_(seed) {
  const int file = memfd_create("simulated device", MFD_CLOEXEC);
  TENON_CHECK(file >= 0 && ftruncate(file, static_cast<off_t>(size_)) == 0, "no memory file");
  const auto map = [&](int protection) {
    void* const at = mmap(nullptr, size_, protection, MAP_SHARED | MAP_NORESERVE, file, 0);
    TENON_CHECK(at != MAP_FAILED, "cannot map the device's memory");
    return static_cast<char*>(at);
  };
  memory_ = map(PROT_NONE);
  alias_ = map(PROT_READ | PROT_WRITE);
  close(file);
  free_[reinterpret_cast<uintptr_t>(memory_)] = size_;
  thread_ = std::thread([this] { Run(); });
}

SimulatedDriver::~SimulatedDriver() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
    cv_.NotifyAll();
  }
  thread_.join();
  for (void* block : pinned_) std::free(block);
  munmap(memory_, size_);
  munmap(alias_, size_);
}

bool SimulatedDriver::Contains(const void* memory) const {
  return memory >= memory_ && memory < memory_ + size_;
}

void* SimulatedDriver::OnDevice(const void* memory) const {
  return alias_ + (static_cast<const char*>(memory) - memory_);
}

Status SimulatedDriver::status() const {
  MutexLock lock(mu_);
  return status_;
}

void* SimulatedDriver::Allocate(Stream stream, size_t bytes) {
  const size_t wanted = Rounded(bytes);
  void* memory = nullptr;
  {
    MutexLock lock(mu_);
    // Memory that was given back a moment ago is the most likely to be in use still.
    std::vector<std::map<uintptr_t, size_t>::iterator> fits;
    for (auto it = free_.begin(); it != free_.end() && fits.size() < 16; ++it) {
      if (it->second >= wanted) fits.push_back(it);
    }
    if (fits.empty()) return nullptr;
    const auto chosen = fits[random_() % fits.size()];
    const auto [begin, length] = *chosen;
    free_.erase(chosen);
    if (length > wanted) free_[begin + wanted] = length - wanted;
    memory = reinterpret_cast<void*>(begin);
    Block block;
    block.bytes = bytes;
    block.writer = Number(Index(stream));
    block.write_time = UINT64_MAX;  // until the stream comes to it
    blocks_[begin] = block;
    std::memset(OnDevice(memory), kPoison, wanted);
  }
  // From here on in the order of its stream.
  Item item;
  item.work = [this, memory, stream] {
    MutexLock lock(mu_);
    if (auto* block = BlockOf(memory))
      block->second.write_time = clocks_[Index(stream)][Number(Index(stream))];
  };
  Enqueue(stream, std::move(item));
  return memory;
}

void SimulatedDriver::Free(void* memory, size_t bytes) {
  Item item;
  item.work = [this, memory, bytes] {
    MutexLock lock(mu_);
    Release(memory, bytes, clocks_[Index(Stream::kCompute)]);
  };
  Enqueue(Stream::kCompute, std::move(item));
}

void SimulatedDriver::Release(void* memory, size_t bytes, const VectorClock& clock) {
  const auto found = blocks_.find(reinterpret_cast<uintptr_t>(memory));
  if (found == blocks_.end())
    return Fault(StrCat("memory is freed that is not in use (", bytes, " bytes)"));
  if (found->second.bytes != bytes) Fault("memory is freed with another size than it has");
  CheckAccess({memory, bytes, true}, Number(Index(Stream::kCompute)), clock);
  const size_t whole = Rounded(bytes);
  std::memset(OnDevice(memory), kPoison, whole);
  uintptr_t begin = found->first;
  size_t length = whole;
  blocks_.erase(found);
  auto next = free_.lower_bound(begin);
  if (next != free_.end() && begin + length == next->first) {
    length += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == begin) {
      begin = before->first;
      length += before->second;
      free_.erase(before);
    }
  }
  free_[begin] = length;
}

void* SimulatedDriver::AllocatePinned(size_t bytes) {
  void* const memory = std::aligned_alloc(kGap, (bytes + kGap - 1) / kGap * kGap);
  MutexLock lock(mu_);
  pinned_.insert(memory);
  return memory;
}

void SimulatedDriver::FreePinned(void* memory, size_t) {
  MutexLock lock(mu_);
  if (pinned_.erase(memory) == 0) return Fault("pinned memory is freed that is not in use");
  std::free(memory);
}

void SimulatedDriver::Copy(Stream stream, void* to, const void* from, size_t bytes) {
  std::vector<Access> accesses;
  if (Contains(from)) accesses.push_back({from, bytes, false});
  if (Contains(to)) accesses.push_back({to, bytes, true});
  uint64_t digest = 0;
  if (!Contains(from)) digest = Digest(from, bytes);
  // Whoever reads it too soon must not find what was there by chance.
  if (!Contains(to)) std::memset(to, kPoison, bytes);
  Launch(stream, std::move(accesses), [this, to, from, bytes, digest] {
    const void* const source = Contains(from) ? OnDevice(from) : from;
    if (source == from && Digest(from, bytes) != digest) {
      MutexLock lock(mu_);
      Fault(StrCat("the host has changed or freed ", bytes, " bytes before they were copied"));
    }
    std::memmove(Contains(to) ? OnDevice(to) : to, source, bytes);
  });
}

void SimulatedDriver::CopyToPeer(Stream stream, StreamDriver& peer, Stream other, void* to,
                                 const void* from, size_t bytes) {
  auto& target = static_cast<SimulatedDriver&>(peer);
  auto event = std::make_shared<Event>();
  event->awaited_by = this;
  Item records, waits;
  records.records = event;
  waits.waits = event;
  target.Enqueue(other, std::move(records));
  Enqueue(stream, std::move(waits));
  if (bytes == 0) return;
  Launch(stream, {{from, bytes, false}}, [this, &target, stream, to, from, bytes] {
    VectorClock clock;
    {
      MutexLock lock(mu_);
      clock = clocks_[Index(stream)];
    }
    const Access written = {to, bytes, true};
    {
      MutexLock lock(target.mu_);
      target.CheckAccess(written, Number(Index(stream)), clock);
    }
    std::memcpy(target.OnDevice(to), OnDevice(from), bytes);
    MutexLock lock(target.mu_);
    target.CheckEnds(written);
  });
}

void SimulatedDriver::WaitFor(Stream stream, Stream other) {
  auto event = std::make_shared<Event>();
  Item records, waits;
  records.records = event;
  waits.waits = event;
  Enqueue(other, std::move(records));
  Enqueue(stream, std::move(waits));
}

void SimulatedDriver::CallWhenDone(Stream stream, std::function<void(const Status&)> done) {
  Item item;
  item.done = std::move(done);
  Enqueue(stream, std::move(item));
}

/// The pieces of work of one capture.
class SimulatedDriver::Captured final : public DriverCapture {
 public:
  explicit Captured(SimulatedDriver& driver) : driver_(driver) { OfThread() = this; }
  ~Captured() override {
    if (OfThread() == this) OfThread() = nullptr;
  }
  void* Native() override { return &driver_; }
  void Copy(void* to, const void* from, size_t bytes) override {
    driver_.Copy(Stream::kCompute, to, from, bytes);
  }
  Status Finish() override {
    OfThread() = nullptr;
    return status_;
  }
  void Queue() override {
    driver_.repeats_.fetch_add(1, std::memory_order_relaxed);
    for (const Item& item : items_) driver_.Enqueue(Stream::kCompute, item);
  }

  void Add(Item item) { items_.push_back(std::move(item)); }
  void Fail(const Status& status) { status_.Update(status); }

 private:
  SimulatedDriver& driver_;
  std::vector<Item> items_;
  Status status_;
};

SimulatedDriver::Captured*& SimulatedDriver::OfThread() {
  static thread_local Captured* capture = nullptr;
  return capture;
}

StatusOr<std::unique_ptr<DriverCapture>> SimulatedDriver::Capture() {
  return std::make_unique<Captured>(*this);
}

void SimulatedDriver::Launch(Stream stream, std::vector<Access> accesses,
                             std::function<void()> work) {
  launches_.fetch_add(1, std::memory_order_relaxed);
  Item item;
  item.accesses = std::move(accesses);
  item.work = std::move(work);
  if (Captured* const capture = OfThread()) return capture->Add(std::move(item));
  Enqueue(stream, std::move(item));
}

void SimulatedDriver::Enqueue(Stream stream, Item item) {
  {
    MutexLock lock(Host().mu);
    item.host = Host().clock;
  }
  MutexLock lock(mu_);
  urgent_ += IsUrgent(item);
  queues_[Index(stream)].push_back(std::move(item));
  if (HasReason()) cv_.NotifyAll();
}

/// Somebody waits, or more has been put off than the thread has patience for.
bool SimulatedDriver::HasReason() const {
  size_t queued = 0;
  for (const auto& queue : queues_) queued += queue.size();
  return queued > 0 && (urgent_ > 0 || queued >= patience_ || stopping_);
}

bool SimulatedDriver::CanRun(int stream) const {
  if (queues_[stream].empty()) return false;
  const Item& head = queues_[stream].front();
  return head.waits == nullptr || head.waits->reached;
}

bool SimulatedDriver::WaitsForPeer() const {
  bool waits = false;
  for (int s = 0; s < kStreams; ++s) {
    if (CanRun(s)) return false;
    waits |= !queues_[s].empty();
  }
  return waits;
}

void SimulatedDriver::Run() {
  while (true) {
    {
      MutexLock lock(mu_);
      while ((!HasReason() && !stopping_) || WaitsForPeer()) cv_.Wait(mu_);
    }
    if (!RunOne()) return;  // the end: nothing is queued
  }
}

bool SimulatedDriver::RunOne() {
  int stream;
  {
    MutexLock lock(mu_);
    std::array<int, kStreams> ready;
    int count = 0;
    for (int s = 0; s < kStreams; ++s) {
      if (CanRun(s)) ready[count++] = s;
    }
    if (count == 0) return false;
    stream = ready[random_() % count];
    patience_ = random_() % 4 == 0 ? 1 : random_() % kMostPatience + 1;
  }
  RunItem(stream);
  return true;
}

bool SimulatedDriver::RunAll() {
  if (Captured* const capture = OfThread()) {
    capture->Fail(FailedPrecondition("a kernel waits for what is being captured"));
    return false;
  }
  if (std::this_thread::get_id() == thread_.get_id()) {
    while (RunOne()) {
      MutexLock lock(mu_);
      while (WaitsForPeer()) cv_.Wait(mu_);
    }
    return true;
  }
  Mutex mu;
  CondVar cv;
  bool over = false;
  CallWhenDone(Stream::kCompute, [&](const Status&) {
    MutexLock lock(mu);
    over = true;
    cv.NotifyOne();
  });
  MutexLock lock(mu);
  while (!over) cv.Wait(mu);
  return true;
}

void SimulatedDriver::RunItem(int stream) {
  Item item;
  Status status;
  {
    MutexLock lock(mu_);
    item = std::move(queues_[stream].front());
    queues_[stream].pop_front();
    VectorClock& clock = clocks_[stream];
    const int number = Number(stream);
    clock.Join(item.host);
    if (item.waits != nullptr) clock.Join(item.waits->clock);
    clock.Set(number, clock[number] + 1);
    if (item.records != nullptr) {
      item.records->clock = clock;
      item.records->reached = true;
    }
    for (const Access& access : item.accesses) CheckAccess(access, number, clock);
    urgent_ -= IsUrgent(item);
    if (item.done != nullptr) {
      MutexLock host_lock(Host().mu);
      Host().clock.Join(clock);
      status = status_;
    }
  }
  if (item.records != nullptr && item.records->awaited_by != nullptr) {
    SimulatedDriver& peer = *item.records->awaited_by;
    MutexLock lock(peer.mu_);
    peer.cv_.NotifyAll();
  }
  if (item.work != nullptr) item.work();
  if (!item.accesses.empty()) {
    MutexLock lock(mu_);
    for (const Access& access : item.accesses) {
      if (access.writes) CheckEnds(access);
    }
  }
  if (item.done != nullptr) item.done(status);
}

std::pair<const uintptr_t, SimulatedDriver::Block>* SimulatedDriver::BlockOf(const void* memory) {
  const auto address = reinterpret_cast<uintptr_t>(memory);
  auto it = blocks_.upper_bound(address);
  if (it == blocks_.begin()) return nullptr;
  --it;
  return address < it->first + Rounded(it->second.bytes) ? &*it : nullptr;
}

void SimulatedDriver::CheckAccess(const Access& access, int stream, const VectorClock& clock) {
  auto* const found = BlockOf(access.memory);
  const std::string_view verb = access.writes ? "written" : "read";
  if (found == nullptr) {
    return Fault(StrCat(access.bytes, " bytes are ", verb, " that are not in use"));
  }
  Block& block = found->second;
  const uintptr_t offset = reinterpret_cast<uintptr_t>(access.memory) - found->first;
  if (offset + access.bytes > block.bytes) {
    Fault(
        StrCat(access.bytes, " bytes are ", verb, " at ", offset, " of a block of ", block.bytes));
  }
  if (access.bytes == 0) return;
  if (clock[block.writer] < block.write_time) {
    Fault(StrCat("nothing orders that ", access.bytes, " bytes are ", verb, " on ", NameOf(stream),
                 " behind what ", NameOf(block.writer), " wrote there"));
  }
  if (access.writes) {
    if (const int reader = clock.FirstBefore(block.read_times); reader >= 0) {
      Fault(StrCat("nothing orders that ", access.bytes, " bytes are written on ", NameOf(stream),
                   " behind what ", NameOf(reader), " read there"));
    }
    block.written = true;
    block.writer = stream;
    block.write_time = clock[stream];
  } else {
    if (!block.written) Fault(StrCat(access.bytes, " bytes are read that nothing has written"));
    block.read_times.Set(stream, clock[stream]);
  }
}

std::string SimulatedDriver::NameOf(int number) const {
  const bool own = number >= first_number_ && number < first_number_ + kStreams;
  return StrCat("stream ", number % kStreams, own ? "" : " of another device");
}

void SimulatedDriver::CheckEnds(const Access& access) {
  auto* const found = BlockOf(access.memory);
  if (found == nullptr) return;
  const size_t bytes = found->second.bytes;
  const char* const begin = static_cast<char*>(OnDevice(reinterpret_cast<void*>(found->first)));
  for (size_t i = bytes; i < Rounded(bytes); ++i) {
    if (static_cast<uint8_t>(begin[i]) == kPoison) continue;
    return Fault(StrCat("something is written beyond the end of a block of ", bytes, " bytes"));
  }
}

void SimulatedDriver::Fault(std::string what) {
  if (status_.ok()) status_ = Internal("the simulated device found a mistake: ", what);
}

}  // namespace tenon::testing
