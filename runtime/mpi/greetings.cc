// SPDX-License-Identifier: Apache-2.0
#include "runtime/mpi/greetings.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon {
namespace {

/// The tag of messages to and from ranks.
constexpr int kGreeting = 1;

/// Rounds of single messages, which cost half of what MPI's own collectives do. In each a rank gets
/// as many greetings as it has, from the rank after those that it has.
class GreetingMessages final : public Greetings {
 public:
  GreetingMessages(MPI_Comm ranks, int rank, int size)
      : Greetings(rank, size), ranks_(ranks), all_(static_cast<size_t>(size)) {}

  StatusOr<bool> Advance() override {
    while (under_way()) {
      for (MPI_Request& message : round_) {
        TENON_ASSIGN_OR_RETURN(const bool is_done, IsDone(&message));
        if (!is_done) return false;
      }
      has_come_ += std::min(has_come_, size_ - has_come_);
      if (under_way()) TENON_RETURN_IF_ERROR(BeginRound());
    }
    return true;
  }

 protected:
  Greeting& Own() override { return all_[0]; }

  Status Tell() override { return size_ > 1 ? BeginRound() : OkStatus(); }

  const Greeting& Of(int rank) const override {
    const int after = rank - rank_;
    return all_[static_cast<size_t>(after < 0 ? after + size_ : after)];
  }

 private:
  Status BeginRound() {
    const int count = std::min(has_come_, size_ - has_come_);
    const int bytes = count * static_cast<int>(sizeof(Greeting));
    TENON_RETURN_IF_ERROR(
        StatusOfMpi(MPI_Irecv(all_.data() + has_come_, bytes, MPI_BYTE, (rank_ + has_come_) % size_,
                              kGreeting, ranks_, &round_[0])));
    return StatusOfMpi(MPI_Isend(all_.data(), bytes, MPI_BYTE, (rank_ - has_come_ + size_) % size_,
                                 kGreeting, ranks_, &round_[1]));
  }

  const MPI_Comm ranks_;
  std::vector<Greeting> all_;  // this rank's, the next one's, and so on
  std::array<MPI_Request, 2> round_ = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
};

/// Memory that the ranks of one host share. Each has two places, which it uses in turn: it may
/// write the next greeting while another one still reads this one.
class GreetingMemory final : public Greetings {
 public:
  /// A greeting of one rank; its number is in a cache line with the tag and the first of the bytes.
  struct alignas(64) Place {
    std::atomic<int64_t> number{0};
    Greeting greeting;
  };
  using Places = std::array<Place, 2>;

  GreetingMemory(int rank, int size, MPI_Win window, std::vector<Places*> all)
      : Greetings(rank, size), window_(window), all_(std::move(all)) {}
  ~GreetingMemory() override { MPI_Win_free(&window_); }

  StatusOr<bool> Advance() override {
    while (under_way()) {
      const int next = (rank_ + has_come_) % size_;
      if (PlaceOf(next).number.load(std::memory_order_acquire) != count_) return false;
      ++has_come_;
    }
    return true;
  }

 protected:
  Greeting& Own() override { return PlaceOf(rank_).greeting; }

  Status Tell() override {
    PlaceOf(rank_).number.store(count_, std::memory_order_release);
    return OkStatus();
  }

  const Greeting& Of(int rank) const override { return PlaceOf(rank).greeting; }

 private:
  Place& PlaceOf(int rank) const {
    return (*all_[static_cast<size_t>(rank)])[static_cast<size_t>(count_ % 2)];
  }

  MPI_Win window_;
  const std::vector<Places*> all_;  // of each rank
};

static_assert(std::atomic<int64_t>::is_always_lock_free);

bool IsTurnedOff() {
  const char* const memory = std::getenv("TENON_HOST_MEMORY");
  return memory != nullptr && std::string_view(memory) == "off";
}

/// Whether there is room where MPI puts shared memory. Without it the first rank of Open MPI would
/// fail, and the others wait for it.
bool HasRoom(int ranks) {
  struct statvfs room = {};
  return statvfs("/dev/shm", &room) != 0 ||
         room.f_bavail * room.f_frsize / sizeof(GreetingMemory::Places) >
             2 * static_cast<uint64_t>(ranks);
}

/// The places in memory from `begin` on, which MPI may begin anywhere in a page: at the same place
/// of it in every process.
GreetingMemory::Places* PlacesIn(void* begin) {
  constexpr auto kAlignment = alignof(GreetingMemory::Places);
  const auto address = reinterpret_cast<uintptr_t>(begin);
  const uintptr_t padding = (kAlignment - address % kAlignment) % kAlignment;
  return reinterpret_cast<GreetingMemory::Places*>(static_cast<char*>(begin) + padding);
}

/// Null where the ranks are not all on one host, or have no memory to share.
StatusOr<std::unique_ptr<Greetings>> ShareMemory(MPI_Comm ranks, int rank, int size) {
  using Places = GreetingMemory::Places;
  MPI_Comm neighbours = MPI_COMM_NULL;
  TENON_RETURN_IF_ERROR(StatusOfMpi(
      MPI_Comm_split_type(ranks, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &neighbours)));
  int count = 0;
  MPI_Comm_size(neighbours, &count);
  int shares = count == size && size > 1 && !IsTurnedOff() && HasRoom(size) ? 1 : 0;
  const auto agree = [&] {
    return StatusOfMpi(MPI_Allreduce(MPI_IN_PLACE, &shares, 1, MPI_INT, MPI_MIN, ranks));
  };
  TENON_RETURN_IF_ERROR(agree());
  std::unique_ptr<Greetings> greetings;
  if (shares != 0) {
    MPI_Comm_set_errhandler(neighbours, MPI_ERRORS_RETURN);
    void* own = nullptr;
    MPI_Win window = MPI_WIN_NULL;
    if (MPI_Win_allocate_shared(sizeof(Places) + alignof(Places), 1, MPI_INFO_NULL, neighbours,
                                static_cast<void*>(&own), &window) != MPI_SUCCESS) {
      shares = 0;
    } else {
      std::vector<Places*> all;
      for (int r = 0; r < size; ++r) {
        MPI_Aint bytes = 0;
        int unit = 0;
        void* places = nullptr;
        MPI_Win_shared_query(window, r, &bytes, &unit, static_cast<void*>(&places));
        all.push_back(PlacesIn(places));
      }
      new (PlacesIn(own)) Places;
      greetings = std::make_unique<GreetingMemory>(rank, size, window, std::move(all));
    }
    // No rank reads a place before its owner has made it.
    TENON_RETURN_IF_ERROR(agree());
    // Its end would wait for ranks that have none.
    if (shares == 0) static_cast<void>(greetings.release());
  }
  MPI_Comm_free(&neighbours);
  return greetings;
}

}  // namespace

StatusOr<std::unique_ptr<Greetings>> Greetings::Make(MPI_Comm ranks) {
  int rank = 0, size = 1;
  MPI_Comm_rank(ranks, &rank);
  MPI_Comm_size(ranks, &size);
  TENON_ASSIGN_OR_RETURN(std::unique_ptr<Greetings> by_memory, ShareMemory(ranks, rank, size));
  if (by_memory != nullptr) return by_memory;
  return std::make_unique<GreetingMessages>(ranks, rank, size);
}

Status Greetings::Begin(uint32_t tag, const void* data, size_t bytes) {
  ++count_;
  has_come_ = 1;
  Greeting& own = Own();
  own.tag = tag;
  if (bytes > 0) std::memcpy(own.payload.data(), data, bytes);
  return Tell();
}

}  // namespace tenon
