// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/mutex.h"
#include "core/op/kernel.h"
#include "core/tensor/resource.h"
#include "data/table/table_shard.h"

namespace tenon {

/// The part of a table that a task holds. Thread-safe: an op has it for itself.
class TableResource : public Resource {
 public:
  static constexpr std::string_view kKind = "table";
  static constexpr std::string_view kTypeName = "N5tenon13TableResourceE";
  static constexpr bool kNamedByNode = false;
  /// Nothing about a node matters but its name.
  struct Options {
    explicit Options(KernelConstruction&) {}
  };

  TableResource(const Options&, std::string name) : name_(std::move(name)) {}
  std::string_view kind() const override { return kKind; }
  Status CheckShared(const Options&) const { return OkStatus(); }

  void Open(std::unique_ptr<TableShard> shard) {
    MutexLock lock(mu_);
    shard_ = std::move(shard);
  }
  /// Calls `use(const TableShard*)`, which returns a Status, while nobody changes the shard.
  /// FailedPrecondition before the table is opened: its task was started anew.
  template <typename F>
  Status Use(F use) {
    MutexLock lock(mu_);
    TENON_RETURN_IF_ERROR(CheckOpen());
    return use(static_cast<const TableShard*>(shard_.get()));
  }
  /// The same for what changes the shard: FailedPrecondition while somebody shares it.
  template <typename F>
  Status Change(F change) {
    MutexLock lock(mu_);
    TENON_RETURN_IF_ERROR(CheckOpen());
    if (shard_.use_count() > 1) {
      return FailedPrecondition("table '", name_, "' is read by a stream, and cannot be changed");
    }
    return change(shard_.get());
  }
  /// The shard, which does not change while the result lives.
  StatusOr<std::shared_ptr<const TableShard>> Share() {
    MutexLock lock(mu_);
    TENON_RETURN_IF_ERROR(CheckOpen());
    return std::shared_ptr<const TableShard>(shard_);
  }

 private:
  Status CheckOpen() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (shard_ != nullptr) return OkStatus();
    return FailedPrecondition("table '", name_, "' was not opened on this task");
  }

  const std::string name_;
  Mutex mu_;
  std::shared_ptr<TableShard> shard_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tenon
