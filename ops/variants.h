// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tenon {

/// Has messages with variants of this library read: lists of tensors, sparse tensors and ragged
/// ones. They may come before an op that makes them is known to the process.
void AddVariantDecoders();

/// The part of it that ops/ragged has.
void AddRaggedVariantDecoder();

}  // namespace tenon
