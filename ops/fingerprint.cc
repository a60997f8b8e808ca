// SPDX-License-Identifier: Apache-2.0
#include "ops/fingerprint.h"

#include <bit>
#include <cstring>
#include <utility>

namespace tenon {
namespace {

static_assert(std::endian::native == std::endian::little, "the hashes read little-endian numbers");

constexpr uint64_t kFirst = 0xc3a5c85c97cb3127, kSecond = 0xb492b66fbe98f273,
                   kThird = 0x9ae16a3b2f90404f;

uint64_t Word(const char* at) {
  uint64_t word;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

uint64_t HalfWord(const char* at) {
  uint32_t word;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

uint64_t Fold(uint64_t x) { return x ^ (x >> 47); }

uint64_t Mix(uint64_t x, uint64_t y, uint64_t factor) {
  const uint64_t a = Fold((x ^ y) * factor);
  return Fold((y ^ a) * factor) * factor;
}

uint64_t UpTo16(const char* s, size_t n) {
  const uint64_t factor = kThird + n * 2;
  if (n >= 8) {
    const uint64_t a = Word(s) + kThird, b = Word(s + n - 8);
    return Mix(std::rotr(b, 37) * factor + a, (std::rotr(a, 25) + b) * factor, factor);
  }
  if (n >= 4) return Mix(n + (HalfWord(s) << 3), HalfWord(s + n - 4), factor);
  if (n == 0) return kThird;
  const auto byte = [=](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(s[i])); };
  const uint32_t y = byte(0) + (byte(n >> 1) << 8),
                 z = static_cast<uint32_t>(n) + (byte(n - 1) << 2);
  return Fold(y * kThird ^ z * kFirst) * kThird;
}

uint64_t UpTo32(const char* s, size_t n) {
  const uint64_t factor = kThird + n * 2;
  const uint64_t a = Word(s) * kSecond, b = Word(s + 8), c = Word(s + n - 8) * factor,
                 d = Word(s + n - 16) * kThird;
  return Mix(std::rotr(a + b, 43) + std::rotr(c, 30) + d, a + std::rotr(b + kThird, 18) + c,
             factor);
}

uint64_t UpTo64(const char* s, size_t n) {
  const uint64_t factor = kThird + n * 2;
  const uint64_t a = Word(s) * kThird, b = Word(s + 8), c = Word(s + n - 8) * factor,
                 d = Word(s + n - 16) * kThird;
  const uint64_t y = std::rotr(a + b, 43) + std::rotr(c, 30) + d;
  const uint64_t z = Mix(y, a + std::rotr(b + kThird, 18) + c, factor);
  const uint64_t e = Word(s + 16) * factor, f = Word(s + 24);
  const uint64_t g = (y + Word(s + n - 32)) * factor, h = (z + Word(s + n - 24)) * factor;
  return Mix(std::rotr(e + f, 43) + std::rotr(g, 30) + h, e + std::rotr(f + a, 18) + g, factor);
}

using Pair = std::pair<uint64_t, uint64_t>;

Pair Absorb32(const char* s, uint64_t a, uint64_t b) {
  a += Word(s);
  b = std::rotr(b + a + Word(s + 24), 21);
  const uint64_t before = a;
  a += Word(s + 8) + Word(s + 16);
  b += std::rotr(a, 44);
  return {a + Word(s + 24), b + before};
}

/// The state of a hash of more than 64 bytes.
struct LongState {
  uint64_t x = 81 * kThird, y = 81 * kSecond + 113, z = Fold(y * kThird + 113) * kThird;
  Pair v, w;

  /// Takes in 64 bytes. The last ones count `last` times.
  void Absorb(const char* s, uint64_t factor, uint64_t last) {
    x = std::rotr(x + y + v.first + Word(s + 8), 37) * factor;
    y = std::rotr(y + v.second + Word(s + 48), 42) * factor;
    x ^= w.second * last;
    y += v.first * last + Word(s + 40);
    z = std::rotr(z + w.first, 33) * factor;
    v = Absorb32(s, v.second * factor, x + w.first);
    w = Absorb32(s + 32, z + w.second, y + Word(s + 16));
    std::swap(x, z);
  }
};

/// One word of two.
uint64_t Folded(uint64_t low, uint64_t high) {
  constexpr uint64_t kFactor = 0x9ddfea08eb382d69;
  return Mix(low, high, kFactor);
}

/// The 128 bits of less than 128 bytes.
Pair ShortFingerprint128(std::string_view text, Pair seed) {
  const char* s = text.data();
  const size_t n = text.size();
  auto [a, b] = seed;
  uint64_t c, d;
  if (n <= 16) {
    a = Fold(a * kSecond) * kSecond;
    c = b * kSecond + UpTo16(s, n);
    d = Fold(a + (n >= 8 ? Word(s) : c));
  } else {
    c = Folded(Word(s + n - 8) + kSecond, a);
    d = Folded(b + n, c + Word(s + n - 16));
    a += d;
    for (auto left = static_cast<int64_t>(n) - 16; left > 0; left -= 16, s += 16) {
      a = (a ^ Fold(Word(s) * kSecond) * kSecond) * kSecond;
      b ^= a;
      c = (c ^ Fold(Word(s + 8) * kSecond) * kSecond) * kSecond;
      d ^= c;
    }
  }
  a = Folded(a, c);
  b = Folded(d, b);
  return {a ^ b, Folded(b, a)};
}

Pair SeededFingerprint128(std::string_view text, Pair seed) {
  if (text.size() < 128) return ShortFingerprint128(text, seed);
  const char* s = text.data();
  size_t n = text.size();
  LongState state;
  auto& [x, y, z, v, w] = state;
  x = seed.first;
  y = seed.second;
  z = n * kSecond;
  v.first = std::rotr(y ^ kSecond, 49) * kSecond + Word(s);
  v.second = std::rotr(v.first, 42) * kSecond + Word(s + 8);
  w.first = std::rotr(y + z, 35) * kSecond + x;
  w.second = std::rotr(x + Word(s + 88), 53) * kSecond;
  for (; n >= 128; n -= 128) {
    for (int i = 0; i < 2; ++i, s += 64) state.Absorb(s, kSecond, 1);
  }
  x += std::rotr(v.first + z, 49) * kFirst;
  y = y * kFirst + std::rotr(w.second, 37);
  z = z * kFirst + std::rotr(w.first, 27);
  w.first *= 9;
  v.first *= kFirst;
  // The rest from its end on, in pieces of which the last may begin before it.
  for (size_t done = 0; done < n;) {
    done += 32;
    const char* const piece = s + n - done;
    y = std::rotr(x + y, 42) * kFirst + v.second;
    w.first += Word(piece + 16);
    x = x * kFirst + w.first;
    z += w.second + Word(piece);
    w.second += v.first;
    v = Absorb32(piece, v.first + z, v.second);
    v.first *= kFirst;
  }
  x = Folded(x, v.first);
  y = Folded(y + z, w.first);
  return {Folded(x + v.second, w.second) + y, Folded(x + w.second, y + v.second)};
}

void SipRound(std::array<uint64_t, 4>& v) {
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

}  // namespace

uint64_t Fingerprint64(std::string_view text) {
  const char* s = text.data();
  const size_t n = text.size();
  if (n <= 16) return UpTo16(s, n);
  if (n <= 32) return UpTo32(s, n);
  if (n <= 64) return UpTo64(s, n);
  LongState state;
  state.x += Word(s);
  const char* const end = s + (n - 1) / 64 * 64;
  for (; s != end; s += 64) state.Absorb(s, kSecond, 1);
  const uint64_t factor = kSecond + ((state.z & 0xff) << 1);
  state.w.first += (n - 1) & 63;
  state.v.first += state.w.first;
  state.w.first += state.v.first;
  // The last 64 bytes, of which some may have been taken in before.
  state.Absorb(text.data() + n - 64, factor, 9);
  const auto& [x, y, z, v, w] = state;
  return Mix(Mix(v.first, w.first, factor) + Fold(y) * kFirst + z,
             Mix(v.second, w.second, factor) + x, factor);
}

std::pair<uint64_t, uint64_t> Fingerprint128(std::string_view text) {
  if (text.size() < 16) return SeededFingerprint128(text, {kFirst, kSecond});
  const Pair seed = {Word(text.data()), Word(text.data() + 8) + kFirst};
  return SeededFingerprint128(text.substr(16), seed);
}

uint64_t FingerprintCat64(uint64_t a, uint64_t b) {
  constexpr uint64_t kFactor = 0xc6a4a7935bd1e995;
  const uint64_t joined = (a ^ kFactor ^ Fold(b * kFactor) * kFactor) * kFactor;
  return Fold(Fold(joined) * kFactor);
}

uint64_t Murmur64(std::string_view text) {
  constexpr uint64_t kBy = 0xc6a4a7935bd1e995, kSeed = 0xDECAFCAFFE;
  uint64_t hash = kSeed ^ (text.size() * kBy);
  size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    hash = (hash ^ Fold(Word(text.data() + i) * kBy) * kBy) * kBy;
  }
  if (i < text.size()) {
    uint64_t last = 0;
    std::memcpy(&last, text.data() + i, text.size() - i);
    hash = (hash ^ last) * kBy;
  }
  return Fold(Fold(hash) * kBy);
}

uint64_t SipHash(const std::array<uint64_t, 2>& key, std::string_view text) {
  std::array<uint64_t, 4> v = {key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d,
                               key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573};
  const auto absorb = [&v](uint64_t word) {
    v[3] ^= word;
    for (int i = 0; i < 2; ++i) SipRound(v);
    v[0] ^= word;
  };
  size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) absorb(Word(text.data() + at));
  uint64_t last = static_cast<uint64_t>(text.size()) << 56;
  std::memcpy(&last, text.data() + at, text.size() - at);
  absorb(last);
  v[2] ^= 0xff;
  for (int i = 0; i < 4; ++i) SipRound(v);
  return v[0] ^ v[1] ^ v[2] ^ v[3];
}

}  // namespace tenon
