// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/base/status.h"
#include "runtime/mpi/mpi_library.h"

namespace tenon {

/// Words that ranks exchange before a collective: a tag and some bytes, which are aligned for
/// numbers. No rank is ever two greetings ahead of another one. One thread's at a time.
class Greetings {
 public:
  /// The number of bytes of each rank that travel with a greeting.
  static constexpr size_t kPayload = 248;

  /// Greetings by memory where all of these ranks are on one host and share some, else by messages
  /// among them; also where TENON_HOST_MEMORY is "off" for one of them. A collective of the ranks,
  /// and so is its end.
  static StatusOr<std::unique_ptr<Greetings>> Make(MPI_Comm ranks);

  virtual ~Greetings() = default;
  Greetings(const Greetings&) = delete;
  Greetings& operator=(const Greetings&) = delete;

  /// How many have begun.
  int64_t count() const { return count_; }
  /// Whether one has begun that has not come to its end.
  bool under_way() const { return has_come_ < size_; }

  /// Tells all ranks; at most kPayload bytes.
  Status Begin(uint32_t tag, const void* data, size_t bytes);
  /// Goes on with one that has begun; true when those of all ranks have come.
  virtual StatusOr<bool> Advance() = 0;

  /// The last greeting of a rank, until the next one begins.
  uint32_t TagOf(int rank) const { return Of(rank).tag; }
  const void* PayloadOf(int rank) const { return Of(rank).payload.data(); }

 protected:
  struct Greeting {
    uint32_t tag = 0, padding = 0;
    std::array<std::byte, kPayload> payload = {};
  };

  Greetings(int rank, int size) : rank_(rank), size_(size), has_come_(size) {}

  /// This rank's own, to be written before Tell.
  virtual Greeting& Own() = 0;
  virtual Status Tell() = 0;
  virtual const Greeting& Of(int rank) const = 0;

  const int rank_, size_;
  int has_come_;  // so many of the greetings, from this rank's on
  int64_t count_ = 0;
};

}  // namespace tenon
