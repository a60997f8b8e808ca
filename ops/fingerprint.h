// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

// Hashes that TensorFlow's models are built on: they are the same everywhere, and never change.

namespace tenon {

/// FarmHash's 64-bit fingerprint.
uint64_t Fingerprint64(std::string_view text);
/// FarmHash's 128-bit fingerprint, its lower half first.
std::pair<uint64_t, uint64_t> Fingerprint128(std::string_view text);
/// One fingerprint of two, in this order.
uint64_t FingerprintCat64(uint64_t a, uint64_t b);
/// MurmurHash64A (Austin Appleby) with TensorFlow's seed.
uint64_t Murmur64(std::string_view text);
/// SipHash-2-4 with a key of 128 bits: without the key nobody finds texts of one hash.
uint64_t SipHash(const std::array<uint64_t, 2>& key, std::string_view text);

}  // namespace tenon
