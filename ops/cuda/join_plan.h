// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include "ops/cuda/strided_index.h"

namespace tenon::cuda {

/// How some of several arrays are joined by one kernel, as elements of `bytes` bytes, which may be
/// several of the tensors' ones: those that follow each other in the rows of the result.
struct JoinPlan {
  static constexpr int kMostArrays = 64;

  int64_t bytes = 1;
  int count = 0;
  const char* arrays[kMostArrays] = {};
  /// Where each array's run begins in a row of these arrays alone; behind the last one its length.
  int64_t begins[kMostArrays + 1] = {};
  Divisor width{1, 0};         // that length
  int64_t rows = 0;            // of the result
  int64_t row = 0, first = 0;  // its length there, and where in it these arrays begin

  int64_t num_elements() const { return rows * begins[count]; }

  struct Place {
    int array;
    int64_t from, to;
  };
  /// Where element `i` of all that the plan moves is in its array and in the result.
  TENON_HD Place At(int64_t i) const {
    const int64_t r = width.Quotient(i), column = i - r * width.value();
    int array = 0;
    for (int left = count; left > 1;) {
      const int half = left / 2;
      if (begins[array + half] <= column) array += half;
      left -= half;
    }
    const int64_t run = begins[array + 1] - begins[array];
    return {array, r * run + column - begins[array], r * row + first + column};
  }
};

/// An array as such a kernel sees it: where it is, and how many bytes of it a row has.
struct JoinedBytes {
  const char* address;
  int64_t run;
};

/// Plans that together join arrays, each of which has something in each of `rows` rows, of elements
/// of `size` bytes at `to`.
inline std::vector<JoinPlan> PlanJoin(int64_t size, const std::vector<JoinedBytes>& arrays,
                                      int64_t rows, uint64_t to) {
  int64_t row = 0;
  uint64_t bits = to;  // what all addresses and lengths are multiples of, their sum has
  for (const JoinedBytes& a : arrays) {
    row += a.run;
    bits |= reinterpret_cast<uintptr_t>(a.address) | static_cast<uint64_t>(a.run);
  }
  int64_t bytes = size;
  while (bytes < 16 && bits % (2 * bytes) == 0) bytes *= 2;
  std::vector<JoinPlan> plans;
  int64_t first = 0;
  for (size_t i = 0; i < arrays.size();) {
    JoinPlan& plan = plans.emplace_back();
    plan.bytes = bytes;
    plan.rows = rows;
    plan.row = row / bytes;
    plan.first = first;
    for (; i < arrays.size() && plan.count < JoinPlan::kMostArrays; ++i, ++plan.count) {
      plan.arrays[plan.count] = arrays[i].address;
      plan.begins[plan.count + 1] = plan.begins[plan.count] + arrays[i].run / bytes;
    }
    const int64_t width = plan.begins[plan.count];
    plan.width = Divisor(width, rows * width);
    first += width;
  }
  return plans;
}

}  // namespace tenon::cuda
