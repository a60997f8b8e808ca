// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/resource.h"
#include "ops/data/dataset.h"

namespace tenon {

/// The walk through a dataset that stays from step to step: TensorFlow's IteratorResource. Elements
/// are made one after the other, on the iterator's own thread unless they are ready, so that nobody
/// waits in a kernel. A step that is cancelled leaves its element to the next. Thread-safe.
class Iterator final : public Resource {
 public:
  static constexpr std::string_view kKind = "iterator";
  static constexpr std::string_view kTypeName = "N10tensorflow4data16IteratorResourceE";
  static constexpr bool kNamedByNode = false;

  /// The attributes of a node that describe its iterator's elements.
  struct Options : ElementSpec {
    explicit Options(KernelConstruction& c) : ElementSpec(c) {}
  };

  Iterator(const ElementSpec& spec, std::string name);
  ~Iterator() override;
  std::string_view kind() const override { return kKind; }
  /// InvalidArgument when a node with `wanted` cannot have this iterator.
  Status CheckShared(const ElementSpec& wanted) const;
  Status CheckTypes(const DTypeVector& types, const std::vector<PartialShape>& shapes) const;

  /// Puts it at the beginning of `dataset`; InvalidArgument when that has other elements. Ends the
  /// walk before; steps that wait for an element get one of the new one.
  Status Begin(const DatasetPtr& dataset);
  /// The outputs of `ctx` become the next element or, where `as_optional`, output 0 an optional of
  /// it. OutOfRange at the end; FailedPrecondition before Begin. The iterator must live until
  /// `done`.
  void GetNext(KernelContext& ctx, bool as_optional, Kernel::Done done);

 private:
  class Core;

  const ElementSpec spec_;
  const std::string name_;
  const std::shared_ptr<Core> core_;
};

}  // namespace tenon
