// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cstring>

#include "core/interruption.h"
#include "core/op_registry.h"
#include "ops/strings/strings_ops.h"

// Hashes of texts that programs have stored: each must give the same number for ever.

namespace tenon {
namespace {

template <typename T>
T Load(const char* s) {
  static_assert(std::endian::native == std::endian::little);
  T value;
  std::memcpy(&value, s, sizeof(T));
  return value;
}
uint64_t Word(const char* s) { return Load<uint64_t>(s); }

/// FarmHash's Fingerprint64 (Geoff Pike, 2014): mixes by length, 64 bytes a time of long texts.
class Farm {
 public:
  static uint64_t Hash(std::string_view text) {
    const size_t n = text.size();
    if (n <= 16) return UpTo16(text.data(), n);
    if (n <= 32) return UpTo32(text.data(), n);
    if (n <= 64) return UpTo64(text.data(), n);
    return Long(text.data(), n);
  }

 private:
  static constexpr uint64_t k0 = 0xc3a5c85c97cb3127, k1 = 0xb492b66fbe98f273,
                            k2 = 0x9ae16a3b2f90404f;
  using Pair = std::pair<uint64_t, uint64_t>;

  static uint64_t Rotate(uint64_t x, int by) { return std::rotr(x, by); }
  static uint64_t Fold(uint64_t x) { return x ^ (x >> 47); }
  static uint64_t Mix(uint64_t u, uint64_t v, uint64_t by) {
    const uint64_t a = Fold((u ^ v) * by);
    return Fold((v ^ a) * by) * by;
  }

  static uint64_t UpTo16(const char* s, size_t n) {
    const uint64_t by = k2 + n * 2;
    if (n >= 8) {
      const uint64_t a = Word(s) + k2, b = Word(s + n - 8);
      return Mix(Rotate(b, 37) * by + a, (Rotate(a, 25) + b) * by, by);
    }
    if (n >= 4) return Mix(n + (uint64_t{Load<uint32_t>(s)} << 3), Load<uint32_t>(s + n - 4), by);
    if (n == 0) return k2;
    const auto byte = [s](size_t i) { return uint32_t{Load<uint8_t>(s + i)}; };
    const uint32_t y = byte(0) + (byte(n / 2) << 8);
    const uint32_t z = static_cast<uint32_t>(n) + (byte(n - 1) << 2);
    return Fold(y * k2 ^ z * k0) * k2;
  }

  static uint64_t UpTo32(const char* s, size_t n) {
    const uint64_t by = k2 + n * 2;
    const uint64_t a = Word(s) * k1, b = Word(s + 8), c = Word(s + n - 8) * by,
                   d = Word(s + n - 16) * k2;
    return Mix(Rotate(a + b, 43) + Rotate(c, 30) + d, a + Rotate(b + k2, 18) + c, by);
  }

  static uint64_t UpTo64(const char* s, size_t n) {
    const uint64_t by = k2 + n * 2;
    const uint64_t a = Word(s) * k2, b = Word(s + 8), c = Word(s + n - 8) * by,
                   d = Word(s + n - 16) * k2;
    const uint64_t y = Rotate(a + b, 43) + Rotate(c, 30) + d;
    const uint64_t z = Mix(y, a + Rotate(b + k2, 18) + c, by);
    const uint64_t e = Word(s + 16) * by, f = Word(s + 24), g = (y + Word(s + n - 32)) * by,
                   h = (z + Word(s + n - 24)) * by;
    return Mix(Rotate(e + f, 43) + Rotate(g, 30) + h, e + Rotate(f + a, 18) + g, by);
  }

  /// Two words made of 32 bytes and two others.
  static Pair Mix32(const char* s, uint64_t a, uint64_t b) {
    a += Word(s);
    b = Rotate(b + a + Word(s + 24), 21);
    const uint64_t c = a;
    a += Word(s + 8) + Word(s + 16);
    b += Rotate(a, 44);
    return {a + Word(s + 24), b + c};
  }

  /// What goes from one 64 bytes to the next.
  struct State {
    uint64_t x, y, z;
    Pair v = {0, 0}, w = {0, 0};

    void Add(const char* s, uint64_t by, uint64_t factor) {
      x = Rotate(x + y + v.first + Word(s + 8), 37) * by;
      y = Rotate(y + v.second + Word(s + 48), 42) * by;
      x ^= w.second * factor;
      y += v.first * factor + Word(s + 40);
      z = Rotate(z + w.first, 33) * by;
      v = Mix32(s, v.second * by, x + w.first);
      w = Mix32(s + 32, z + w.second, y + Word(s + 16));
      std::swap(z, x);
    }
  };

  static uint64_t Long(const char* s, size_t n) {
    constexpr uint64_t kSeed = 81;
    State state{kSeed * k2 + Word(s), kSeed * k1 + 113, Fold((kSeed * k1 + 113) * k2 + 113) * k2};
    const size_t last = (n - 1) & 63;
    const char* const end = s + (n - 1) / 64 * 64;
    for (; s != end; s += 64) state.Add(s, k1, 1);
    const uint64_t by = k1 + ((state.z & 0xff) << 1);
    state.w.first += last;
    state.v.first += state.w.first;
    state.w.first += state.v.first;
    state.Add(end + last - 63, by, 9);
    const auto& [x, y, z, v, w] = state;
    return Mix(Mix(v.first, w.first, by) + Fold(y) * k0 + z, Mix(v.second, w.second, by) + x, by);
  }
};

/// SipHash-2-4 (Aumasson and Bernstein, 2012) with a key of two words.
uint64_t SipHash(uint64_t key0, uint64_t key1, std::string_view text) {
  uint64_t v[] = {key0 ^ 0x736f6d6570736575, key1 ^ 0x646f72616e646f6d, key0 ^ 0x6c7967656e657261,
                  key1 ^ 0x7465646279746573};
  const auto rounds = [&v](int count) {
    for (; count > 0; --count) {
      v[0] += v[1];
      v[2] += v[3];
      v[1] = std::rotl(v[1], 13) ^ v[0];
      v[3] = std::rotl(v[3], 16) ^ v[2];
      v[0] = std::rotl(v[0], 32);
      v[2] += v[1];
      v[0] += v[3];
      v[1] = std::rotl(v[1], 17) ^ v[2];
      v[3] = std::rotl(v[3], 21) ^ v[0];
      v[2] = std::rotl(v[2], 32);
    }
  };
  const auto add = [&](uint64_t word) {
    v[3] ^= word;
    rounds(2);
    v[0] ^= word;
  };
  size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) add(Word(text.data() + i));
  uint64_t last = uint64_t{text.size()} << 56;
  for (size_t k = 0; i + k < text.size(); ++k)
    last |= uint64_t{static_cast<uint8_t>(text[i + k])} << 8 * k;
  add(last);
  v[2] ^= 0xff;
  rounds(4);
  return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/// MurmurHash64A (Austin Appleby) with TensorFlow's seed.
uint64_t Murmur(std::string_view text) {
  constexpr uint64_t kBy = 0xc6a4a7935bd1e995, kSeed = 0xDECAFCAFFE;
  const auto fold = [](uint64_t x) { return x ^ (x >> 47); };
  uint64_t hash = kSeed ^ (text.size() * kBy);
  size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    hash = (hash ^ fold(Word(text.data() + i) * kBy) * kBy) * kBy;
  }
  if (i < text.size()) {
    uint64_t last = 0;
    for (size_t k = 0; i + k < text.size(); ++k)
      last |= uint64_t{static_cast<uint8_t>(text[i + k])} << 8 * k;
    hash = (hash ^ last) * kBy;
  }
  return fold(fold(hash) * kBy);
}

template <typename Hash>
Status HashTexts(KernelContext& ctx, int64_t buckets, Hash hash) {
  const Tensor& in = ctx.input(0);
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
  for (int64_t i = 0; i < in.num_elements(); ++i) {
    if (i % kStepsBetweenLooks == 0 && Interrupted()) break;
    out->data<int64_t>()[i] =
        static_cast<int64_t>(hash(in.data<TString>()[i]) % static_cast<uint64_t>(buckets));
  }
  return OkStatus();
}

Status MurmurKernel(KernelContext& ctx, int64_t buckets) { return HashTexts(ctx, buckets, Murmur); }

Status FarmKernel(KernelContext& ctx, int64_t buckets) {
  return HashTexts(ctx, buckets, Farm::Hash);
}

Status StrongKernel(KernelContext& ctx, int64_t buckets, std::vector<int64_t> key) {
  if (key.size() != 2) {
    return InvalidArgument("the key must have 2 elements, found ", key.size());
  }
  return HashTexts(ctx, buckets,
                   [&](std::string_view text) { return SipHash(key[0], key[1], text); });
}

}  // namespace

void RegisterHashBuckets(OpRegistry& ops) {
  ops.Add("StringToHashBucket", UnchangedShape, MurmurKernel, {.attrs = {"num_buckets"}})
      .Example({Shape{2, 3}}, {{"num_buckets", 10}});
  ops.Add("StringToHashBucketFast", UnchangedShape, FarmKernel, {.attrs = {"num_buckets"}})
      .Example({Shape{2, 3}}, {{"num_buckets", 10}});
  ops.Add("StringToHashBucketStrong", UnchangedShape, StrongKernel,
          {.attrs = {"num_buckets", "key"}})
      .Example({Shape{2, 3}}, {{"num_buckets", 10}, {"key", std::vector<int64_t>{1, 2}}});
}

}  // namespace tenon
