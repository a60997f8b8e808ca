// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <string_view>

#include "core/tensor/tensor.h"
#include "tests/testing/random_ops.h"

namespace tenon::testing {

/// One to four random changes of a message of any kind, at any depth: fields set to corner values,
/// repeated ones made longer, shorter, doubled and reordered, bytes flipped; a graph inside it as
/// graphs are mutated (tests/testing/graph_mutation.h).
void MutateFields(google::protobuf::Message* message, Random& random);

/// Parses `bytes` as a message like `prototype`, mutates that and writes it back; bytes that are no
/// such message, and now and then others, are changed as bytes.
void MutateAsMessage(const google::protobuf::Message& prototype, std::string* bytes,
                     size_t max_size, Random& random);

/// A message of a peer stream (PeerFrames): changes one of its frames, tensors or parts, keeping
/// all lengths right, or their order.
void MutatePeerMessage(std::string* message, size_t max_size, Random& random);

/// Inputs of several pieces have the length of each, a varint, in front of it. False when nothing
/// is left; the last piece may be cut short.
bool TakePiece(std::string_view* rest, std::string_view* piece);
void AppendPiece(std::string* out, std::string_view piece);

/// Whether dtype, shape and all elements are the same, numbers bit by bit.
bool SameTensor(const Tensor& a, const Tensor& b);

}  // namespace tenon::testing
