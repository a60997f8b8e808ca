// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace tenon {

/// The seed of one of several draws that have one seed, told apart by `salt`: the first 31 bits of
/// the MD5 digest of the seed's digits and the salt, as tf.nn.rnn_cell.DropoutWrapper takes them.
/// 0, which is no seed, stays 0.
int64_t SaltedSeed(int64_t seed, const std::string& salt);

}  // namespace tenon
