// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"

// A fuzzing target: a function that must survive any bytes. tests/fuzz/<name>_fuzz.cc has one:
//
//   void FuzzRecords(absl::Span<const uint8_t> data) { ... }
//   const bool records_registered = RegisterFuzzTarget({.name = "records", .run = FuzzRecords});
//
// In a fuzzing build that makes the program fuzz_records, elsewhere tests of fuzz_tests that run it
// on its seeds and on each file of tests/fuzz/inputs/records.

namespace tenon::testing {

struct FuzzTarget {
  std::string_view name;
  /// Ends by itself whatever the bytes are, soon and with all memory given back; reports a mistake
  /// by ending the process (TENON_CHECK). Called from one thread, again and again.
  void (*run)(absl::Span<const uint8_t> data) = nullptr;
  /// Changes `data` a little, where changing bytes at random would mostly give what is refused at
  /// once; at most `max_size` bytes. Null: libFuzzer's own mutations.
  void (*mutate)(std::string* data, size_t max_size, uint64_t seed) = nullptr;
  /// Where fuzzing begins. Null: with nothing.
  std::vector<std::string> (*seeds)() = nullptr;
};

/// Called once a target, before main. Always true.
bool RegisterFuzzTarget(const FuzzTarget& target);

/// libFuzzer's mutation of bytes, for a `mutate` that leaves some cases to it; outside a fuzzing
/// build it changes nothing.
void MutateAsLibFuzzer(std::string* data, size_t max_size);

}  // namespace tenon::testing
