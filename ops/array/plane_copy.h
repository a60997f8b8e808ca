// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/base/interruption.h"
#include "ops/array/copy_axis.h"
#include "ops/math/vector_reductions.h"
#include "ops/maths.h"

// How a plane is copied that is contiguous along one of its axes where it is read, and along the
// other where it is written: matrices that are transposed, channels that go first or last, rows
// that become columns.

namespace tenon {

namespace plane_internal {

/// Elements that vectors can hold.
template <typename T>
inline constexpr bool kFitsVectors = std::is_trivially_copyable_v<T> &&
                                     (sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 ||
                                      sizeof(T) == 8);

/// The unsigned integer of so many bytes.
template <size_t kBytes>
using Bits = std::conditional_t<
    kBytes == 1, uint8_t,
    std::conditional_t<kBytes == 2, uint16_t, std::conditional_t<kBytes == 4, uint32_t, uint64_t>>>;

/// Rows and columns of a tile, which fits in eight registers.
inline constexpr int64_t kTile = 8;

/// The lane that becomes lane `lane` of the first or the second of two rows, of which squares of
/// kSpan by kSpan elements change places. Lanes of the second row count from kTile on.
template <int kSpan>
constexpr int ExchangedLane(bool second, int lane) {
  const bool right = (lane & kSpan) != 0;
  if (second) return right ? static_cast<int>(kTile) + lane : lane + kSpan;
  return right ? static_cast<int>(kTile) + lane - kSpan : lane;
}

/// Has the squares of kSpan by kSpan elements change places in each square twice as wide.
template <int kSpan, typename Row>
void ExchangeSquares(Row (&rows)[kTile]) {
  for (int i = 0; i < kTile; ++i) {
    if ((i & kSpan) != 0) continue;
    const Row x = rows[i], y = rows[i + kSpan];
#define TENON_EXCHANGED(SECOND)                                                                   \
  __builtin_shufflevector(x, y, ExchangedLane<kSpan>(SECOND, 0), ExchangedLane<kSpan>(SECOND, 1), \
                          ExchangedLane<kSpan>(SECOND, 2), ExchangedLane<kSpan>(SECOND, 3),       \
                          ExchangedLane<kSpan>(SECOND, 4), ExchangedLane<kSpan>(SECOND, 5),       \
                          ExchangedLane<kSpan>(SECOND, 6), ExchangedLane<kSpan>(SECOND, 7))
    rows[i] = TENON_EXCHANGED(false);
    rows[i + kSpan] = TENON_EXCHANGED(true);
#undef TENON_EXCHANGED
  }
}

/// Makes the columns of `to` of the rows of `from`, eight of each, whose rows are so far apart.
template <typename T>
void TransposeTile(const T* from, int64_t from_row, T* to, int64_t to_row) {
  using Row = typename Eight<Bits<sizeof(T)>>::Type;
  static_assert(Eight<Bits<sizeof(T)>>::kLanes == kTile);
  Row rows[kTile];
  for (int i = 0; i < kTile; ++i) std::memcpy(&rows[i], from + i * from_row, sizeof(Row));
  ExchangeSquares<1>(rows);
  ExchangeSquares<2>(rows);
  ExchangeSquares<4>(rows);
  for (int i = 0; i < kTile; ++i) std::memcpy(to + i * to_row, &rows[i], sizeof(Row));
}

/// Takes n groups of kCount neighbours apart: the i-th of each goes to a row of its own.
template <int kCount, typename T>
void TakeApart(const T* from, T* to, int64_t to_row, int64_t n) {
  TENON_SIMD
  for (int64_t j = 0; j < n; ++j) {
    for (int i = 0; i < kCount; ++i) to[i * to_row + j] = from[j * kCount + i];
  }
}

/// Puts kCount rows of n elements together: the j-th of all become neighbours.
template <int kCount, typename T>
void PutTogether(const T* const (&rows)[kCount], T* to, int64_t n) {
  TENON_SIMD
  for (int64_t j = 0; j < n; ++j) {
    for (int i = 0; i < kCount; ++i) to[j * kCount + i] = rows[i][j];
  }
}

/// Any such plane, whatever its strides.
template <typename T>
void CopyByElements(const T* from, T* to, const CopyAxis& a, const CopyAxis& b) {
  constexpr int64_t kBlock = 16;  // so that the cache lines of both sides are used whole
  for (int64_t i0 = 0; i0 < a.size; i0 += kBlock) {
    const int64_t i1 = std::min(i0 + kBlock, a.size);
    for (int64_t j0 = 0; j0 < b.size; j0 += kBlock) {
      if (j0 % kStepsBetweenLooks == 0 && Interrupted()) return;
      const int64_t j1 = std::min(j0 + kBlock, b.size);
      for (int64_t i = i0; i < i1; ++i) {
        for (int64_t j = j0; j < j1; ++j) {
          to[i * a.to + j * b.to] = from[i * a.from + j * b.from];
        }
      }
    }
  }
}

/// A plane of at least a tile, with neighbours where a.from and b.to say so.
template <typename T>
void CopyByTiles(const T* from, T* to, const CopyAxis& a, const CopyAxis& b) {
  constexpr int64_t kBlock = std::max<int64_t>(kTile, 64 / sizeof(T));  // a cache line's elements
  // The last tile of a row or column that no tiles divide begins within the one before.
  const auto tiles = [](int64_t begin, int64_t size, auto&& tile) {
    const int64_t end = std::min(begin + kBlock, size);
    for (int64_t at = begin; at < end; at += kTile) tile(std::min(at, size - kTile));
  };
  for (int64_t i0 = 0; i0 < a.size; i0 += kBlock) {
    for (int64_t j0 = 0; j0 < b.size; j0 += kBlock) {
      if (j0 % kStepsBetweenLooks == 0 && Interrupted()) return;
      tiles(i0, a.size, [&](int64_t i) {
        tiles(j0, b.size, [&](int64_t j) {
          TransposeTile(from + j * b.from + i, b.from, to + i * a.to + j, a.to);
        });
      });
    }
  }
}

/// Calls action(begin, size) for pieces of n elements, until the kernel is interrupted.
template <typename Action>
void InPieces(int64_t n, const Action& action) {
  constexpr int64_t kPiece = 1 << 14;
  for (int64_t begin = 0; begin < n && !Interrupted(); begin += kPiece) {
    action(begin, std::min(kPiece, n - begin));
  }
}

/// Calls action(std::integral_constant<int, count>()) where `count` is 2, 3 or 4; whether it was.
template <typename Action>
bool WithFew(int64_t count, const Action& action) {
  if (count == 2) action(std::integral_constant<int, 2>());
  if (count == 3) action(std::integral_constant<int, 3>());
  if (count == 4) action(std::integral_constant<int, 4>());
  return count >= 2 && count <= 4;
}

}  // namespace plane_internal

/// Puts the i-th elements of `count` arrays of n, whose first ones row(0), row(1), … point to,
/// beside each other in `to`, where they are 2 to 4 and of a type that vectors hold; whether they
/// were.
template <typename T, typename Row>
bool InterleaveFew(int64_t count, const Row& row, T* to, int64_t n) {
  if constexpr (plane_internal::kFitsVectors<T>) {
    return plane_internal::WithFew(count, [&](auto few) {
      plane_internal::InPieces(n, [&](int64_t begin, int64_t size) {
        const T* rows[few];
        for (int k = 0; k < few; ++k) rows[k] = row(k) + begin;
        plane_internal::PutTogether<few>(rows, to + begin * few, size);
      });
    });
  }
  return false;
}

/// Copies a plane, as along `a` and `b`. Those whose a.from and b.to are 1 are copied in vectors.
/// The copy ends early when the kernel is interrupted.
template <typename T>
void CopyPlane(const T* from, T* to, const CopyAxis& a, const CopyAxis& b) {
  using namespace plane_internal;  // NOLINT: parts of this function
  if constexpr (kFitsVectors<T>) {
    if (a.from == 1 && b.to == 1) {
      if (a.size >= kTile && b.size >= kTile) return CopyByTiles(from, to, a, b);
      const auto apart = [&](auto count) {
        InPieces(b.size, [&](int64_t j, int64_t n) {
          TakeApart<count>(from + j * count, to + j, a.to, n);
        });
      };
      if (b.from == a.size && WithFew(a.size, apart)) return;
      const auto row = [&](int k) { return from + k * b.from; };
      if (a.to == b.size && InterleaveFew<T>(b.size, row, to, a.size)) return;
    }
  }
  CopyByElements(from, to, a, b);
}

}  // namespace tenon
