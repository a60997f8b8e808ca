// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/resource.h"
#include "ops/data/dataset.h"

namespace tenon {

/// The walk through a dataset whose elements several devices take in turn: element i is for shard
/// i mod n, whoever asks first. It stays from step to step. Elements are made one after the other
/// on the iterator's own thread, which goes ahead of the steps. A step that is cancelled leaves its
/// element to the next one of its shard. Thread-safe.
class MultiDeviceIterator final : public Resource {
 public:
  static constexpr std::string_view kKind = "multi-device iterator";
  static constexpr std::string_view kTypeName =
      "N10tensorflow4data12_GLOBAL__N_119MultiDeviceIteratorE";
  static constexpr bool kNamedByNode = false;

  /// The attributes of a node that describe its iterator: its elements, and a shard per device.
  struct Options : ElementSpec {
    explicit Options(KernelConstruction& c)
        : ElementSpec(c),
          num_shards(static_cast<int>(c.Attr<std::vector<std::string>>("devices").size())) {}
    int num_shards;
  };

  MultiDeviceIterator(const Options& options, std::string name);
  ~MultiDeviceIterator() override;
  std::string_view kind() const override { return kKind; }
  /// InvalidArgument when a node with `wanted` cannot have this iterator.
  Status CheckShared(const Options& wanted) const;
  Status CheckTypes(const DTypeVector& types, const std::vector<PartialShape>& shapes) const;

  /// Puts it at the beginning of `dataset`; InvalidArgument when that has other elements. Up to
  /// `max_buffer_size` elements of a shard are made ahead of its steps, from the first step on.
  /// Ends the walk before; steps that wait for an element of that are Cancelled. Gives the number
  /// by which steps say that they mean this walk: 1, then 2, and so on.
  StatusOr<int64_t> Begin(const DatasetPtr& dataset, int64_t max_buffer_size);
  /// The outputs of `ctx` become the next element of `shard` in the walk `incarnation`.
  /// OutOfRange at the end; FailedPrecondition before Begin; InvalidArgument for a shard that is
  /// not there and for another walk. The iterator must live until `done`.
  void GetNext(KernelContext& ctx, int64_t shard, int64_t incarnation, Kernel::Done done);

 private:
  class Core;

  const Options options_;
  const std::string name_;
  const std::shared_ptr<Core> core_;
};

}  // namespace tenon
