// SPDX-License-Identifier: Apache-2.0
#include "ops/array/plane_copy.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/tensor/dtype.h"

// Planes are copied in tiles, in vectors or one by one, as their sizes and strides say: all give
// what one loop over the elements gives, and touch nothing beside the plane.

namespace tenon::testing {
namespace {

template <typename T>
T Numbered(int64_t i) {
  if constexpr (std::is_same_v<T, std::string>) {
    return std::to_string(i);
  } else {
    return static_cast<T>(static_cast<float>(i % 251 + 1));
  }
}

/// How far the elements of a side reach.
int64_t Extent(const CopyAxis& a, const CopyAxis& b, int64_t CopyAxis::*stride) {
  return (a.size - 1) * (a.*stride) + (b.size - 1) * (b.*stride) + 1;
}

template <typename T>
class PlaneCopyTest : public ::testing::Test {
 protected:
  static void Expect(const CopyAxis& a, const CopyAxis& b) {
    constexpr int64_t kBeside = 5;
    std::vector<T> from(Extent(a, b, &CopyAxis::from));
    for (size_t i = 0; i < from.size(); ++i) from[i] = Numbered<T>(static_cast<int64_t>(i));
    std::vector<T> wanted(Extent(a, b, &CopyAxis::to) + 2 * kBeside, T());
    std::vector<T> found = wanted;
    for (int64_t i = 0; i < a.size; ++i) {
      for (int64_t j = 0; j < b.size; ++j) {
        wanted[kBeside + i * a.to + j * b.to] = from[i * a.from + j * b.from];
      }
    }
    CopyPlane(from.data(), found.data() + kBeside, a, b);
    EXPECT_TRUE(found == wanted) << a.size << "x" << b.size << ", read " << a.from << " and "
                                 << b.from << " apart, written " << a.to << " and " << b.to;
  }
};

using Types = ::testing::Types<uint8_t, int16_t, Half, float, double, std::complex<float>,
                               std::complex<double>, std::string>;
TYPED_TEST_SUITE(PlaneCopyTest, Types, );

TYPED_TEST(PlaneCopyTest, EveryPlaneIsTransposed) {
  for (const int64_t n : {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 63, 64, 65, 130}) {
    for (const int64_t m : {1, 2, 3, 4, 5, 7, 8, 9, 16, 23, 64, 71}) {
      this->Expect({n, 1, m}, {m, n, 1});          // whole matrices
      this->Expect({n, 1, m + 3}, {m, n + 2, 1});  // parts of larger ones
    }
  }
}

TYPED_TEST(PlaneCopyTest, LongRowsOfFewChannels) {
  constexpr int64_t kPixels = 40001;
  for (const int64_t channels : {2, 3, 4, 5}) {
    this->Expect({channels, 1, kPixels}, {kPixels, channels, 1});
    this->Expect({kPixels, 1, channels}, {channels, kPixels, 1});
  }
}

TYPED_TEST(PlaneCopyTest, NeighboursOfNeitherSide) {
  this->Expect({20, 2, 50}, {12, 41, 3});
  this->Expect({20, 1, 50}, {12, 20, 2});
  this->Expect({3, 1, 40}, {20, 5, 2});
}

TYPED_TEST(PlaneCopyTest, FewArraysBecomeColumns) {
  for (const int64_t count : {1, 2, 3, 4, 5}) {
    for (const int64_t n : {1, 7, 1000, 40001}) {
      std::vector<std::vector<TypeParam>> arrays(count, std::vector<TypeParam>(n));
      std::vector<TypeParam> wanted(n * count), found(n * count);
      for (int64_t i = 0; i < n * count; ++i) {
        arrays[i % count][i / count] = wanted[i] = Numbered<TypeParam>(i);
      }
      const auto row = [&arrays](int64_t k) { return arrays[k].data(); };
      const bool done = InterleaveFew(count, row, found.data(), n);
      EXPECT_EQ(done, sizeof(TypeParam) <= 8 && count >= 2 && count <= 4);
      EXPECT_TRUE(!done || found == wanted) << n << " of " << count;
    }
  }
}

}  // namespace
}  // namespace tenon::testing
