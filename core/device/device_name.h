// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/base/status.h"

namespace tenon {

/// A device name taken apart: "/job:ps/replica:0/task:1/device:CPU:0". A part that is absent, or
/// written "*", is unconstrained. Also read: "/cpu:0", "/gpu:0" in either case, and "/device:GPU"
/// without a number. A later part replaces an earlier one of its kind.
struct DeviceName {
  std::optional<std::string> job;
  std::optional<int> replica;
  std::optional<int> task;
  std::optional<std::string> type;  // "CPU", "GPU"
  std::optional<int> id;

  /// InvalidArgument "'...' is not a device name" when it cannot be read.
  static StatusOr<DeviceName> Parse(std::string_view text);
  /// The parts that are set, in canonical order and spelling.
  std::string ToString() const;

  /// Every part is set.
  bool IsFull() const { return job && replica && task && type && id; }
  /// Every part that is set here is the same there.
  bool Matches(const DeviceName& device) const;
  /// Both on one process: job, replica and task are set and equal.
  bool SameTask(const DeviceName& other) const {
    return job && job == other.job && replica == other.replica && task == other.task;
  }
  /// Takes over the parts that `other` sets where they do not contradict; InvalidArgument when they
  /// do. With `soft`, a contradiction in type or number drops both instead.
  Status MergeConstraint(const DeviceName& other, bool soft);
  /// Takes over the parts that `other` sets, replacing.
  void Override(const DeviceName& other);

  friend bool operator==(const DeviceName&, const DeviceName&) = default;
};

/// `over`'s parts replacing those of `base`: how nested device scopes combine.
StatusOr<std::string> MergeDeviceNames(std::string_view base, std::string_view over);

/// The two halves of the text of a full device name, "/job:J/replica:0/task:T" and "/device:CPU:0";
/// views of it.
std::string_view TaskPartOf(std::string_view device);
std::string_view DevicePartOf(std::string_view device);

}  // namespace tenon
