// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "data/checkpoint/tensor_bundle.h"

namespace tenon {

class TensorSliceProto;

/// The content of a checkpoint's .index file.
struct BundleIndex {
  int num_shards = 1;
  /// By key: a tensor's name, or the key of a slice.
  std::map<std::string, BundleEntry> entries;
};

/// Slices to and from their messages.
TensorSlice SliceFromProto(const TensorSliceProto& proto);
void SliceToProto(const TensorSlice& slice, TensorSliceProto* out);
/// The key of one slice of a tensor: OrderedCode of 0, the name, the rank, and each extent.
std::string SliceKey(std::string_view name, const TensorSlice& slice);
/// True for a key that SliceKey may have made.
inline bool IsSliceKey(std::string_view key) { return key.starts_with('\0'); }

/// Reads <prefix>.index. NotFound when there is none, DataLoss when it is damaged, Unimplemented
/// for one that was written on a big-endian machine; the message names the file.
StatusOr<BundleIndex> ReadBundleIndex(const std::string& prefix, const FileContext& context = {});

/// Writes <prefix>.index, whole or not at all.
Status WriteBundleIndex(const std::string& prefix, const BundleIndex& index,
                        const FileContext& context = {});

}  // namespace tenon
