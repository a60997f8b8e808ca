// SPDX-License-Identifier: Apache-2.0
//
// A permutation of [0, max_index] whose elements are computed one by one: a block cipher on as many
// bits as max_index needs, repeated until the result is in the range. The cipher is Simon (Beaulieu
// and others: "The Simon and Speck families of lightweight block ciphers", 2013) with any size of
// words and few rounds.
#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/interruption.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/maths.h"

namespace tenon {
namespace {

using Key = std::array<uint32_t, 3>;
using Types = TypeList<int32_t, int64_t, uint32_t, uint64_t>;

/// Words of so many bits.
class Cipher {
 public:
  Cipher(int bits, const Key& key, int64_t rounds)
      : bits_(bits), mask_((uint64_t{1} << bits) - 1), keys_(rounds) {
    uint64_t z = 0x7369f885192c0ef5 & mask_;
    for (int64_t i = 0; i < rounds; ++i) {
      if (i < 3) {
        keys_[i] = key[i] & mask_;
        continue;
      }
      keys_[i] = (0xfffffffc & mask_) ^ (z & 1) ^ keys_[i - 3] ^ Left(keys_[i - 1], bits_ - 3) ^
                 Left(keys_[i - 1], bits_ - 4);
      z >>= 1;
    }
  }

  uint64_t Encrypt(uint64_t value) const {
    uint64_t left = value >> bits_ & mask_, right = value & mask_;
    for (size_t i = 0; i + 1 < keys_.size(); i += 2) {
      left ^= Mix(right) ^ keys_[i];
      right ^= Mix(left) ^ keys_[i + 1];
    }
    return left << bits_ | right;
  }

 private:
  uint64_t Left(uint64_t x, int by) const { return (x << by | x >> (bits_ - by)) & mask_; }
  uint64_t Mix(uint64_t x) const { return (Left(x, 1) & Left(x, 8)) ^ Left(x, 2); }

  const int bits_;
  const uint64_t mask_;
  CountedVector<uint64_t> keys_;
};

uint64_t Shuffled(uint64_t index, uint64_t max, const Key& key, int64_t rounds) {
  if (max == 0) return 0;
  const int needed = static_cast<int>(std::ceil(std::log2(static_cast<double>(max))));
  const Cipher cipher(std::clamp(needed + needed % 2, 16, 64) / 2, key, rounds);
  do index = cipher.Encrypt(index);
  while (index > max);
  return index;
}

/// One for all, or one for each of `n`.
bool IsOneOrEach(const Tensor& t, int64_t n) {
  return t.rank() == 0 || (t.rank() == 1 && t.dim(0) == n);
}

Status RandomIndexShuffleKernel(KernelContext& ctx, int64_t rounds) {
  const Tensor &index = ctx.input(0), &seed = ctx.input(1), &max = ctx.input(2);
  if (rounds < 4 || rounds % 2 != 0 || rounds > 256) {
    return InvalidArgument("rounds must be even and in [4, 256], found ", rounds);
  }
  if (seed.rank() < 1 || seed.rank() > 2 || seed.dim(seed.rank() - 1) != 3) {
    return InvalidArgument("seed must have shape [3] or [n, 3], found ", seed.shape());
  }
  const bool many = index.rank() > 0 || max.rank() > 0 || seed.rank() > 1;
  const int64_t n = index.rank() > 0  ? index.dim(0)
                    : max.rank() > 0  ? max.dim(0)
                    : seed.rank() > 1 ? seed.dim(0)
                                      : 1;
  if (!IsOneOrEach(index, n) || !IsOneOrEach(max, n) || (seed.rank() > 1 && seed.dim(0) != n)) {
    return InvalidArgument("index, seed and max_index must be one or one for each, found shapes ",
                           index.shape(), ", ", seed.shape(), " and ", max.shape());
  }
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, many ? DimVector{n} : DimVector{}));
  const auto at = [](const Tensor& t, int64_t i) { return t.rank() == 0 ? 0 : i; };
  return DispatchStatus(out->dtype(), Types(), [&]<typename T>(T) -> Status {
    for (int64_t i = 0; i < n && !Interrupted(); ++i) {
      const T from = index.data<T>()[at(index, i)], limit = max.data<T>()[at(max, i)];
      if (from < T(0)) return InvalidArgument("index must be >= 0, found ", from);
      if (limit < T(0)) return InvalidArgument("max_index must be >= 0, found ", limit);
      if (from > limit) {
        return InvalidArgument("max_index must be >= index, found ", limit, " and ", from);
      }
      Key key;
      Dispatch(seed.dtype(), Types(), [&]<typename S>(S) {
        const S* const words = seed.data<S>() + (seed.rank() > 1 ? 3 * i : 0);
        for (int k = 0; k < 3; ++k) key[k] = static_cast<uint32_t>(words[k]);
      });
      out->data<T>()[i] = static_cast<T>(
          Shuffled(static_cast<uint64_t>(from), static_cast<uint64_t>(limit), key, rounds));
    }
    return OkStatus();
  });
}

Status RandomIndexShuffleShape(ShapeContext& c) {
  const PartialShape &index = c.input(0), &seed = c.input(1), &max = c.input(2);
  if (!index.rank_known() || !seed.rank_known() || !max.rank_known()) return OkStatus();
  if (index.rank() > 0) return c.Return(PartialShape::OfRank(1));
  if (max.rank() > 0 || seed.rank() > 1) return c.Return(PartialShape::OfRank(1));
  return c.Return(Shape{});
}

}  // namespace

void RegisterIndexShuffle(OpRegistry& ops) {
  ops.Add("RandomIndexShuffle", RandomIndexShuffleShape, RandomIndexShuffleKernel,
          {.attrs = {"rounds"}})
      .Example({Tensor::Vector({3, 4}), Tensor::Vector({1, 2, 3}), Tensor::Scalar(9)});
}

}  // namespace tenon
