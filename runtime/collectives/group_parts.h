// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/device/device_groups.h"

namespace tenon {

/// A part that has come, and who is told its result.
struct WaitingPart {
  GroupPart part;
  Communicator::Done done;
};
/// Parts of one instance, in the order of the members.
using WaitingParts = std::vector<WaitingPart>;

/// Where the members of a group are, each in its order: the task, and the place among the members
/// of that task.
struct GroupLayout {
  std::vector<int> task_of, place_of;

  /// The layout of a group whose members are all in one task.
  static GroupLayout OfOneTask(int members);
  int size() const { return static_cast<int>(task_of.size()); }
  /// The members in a task, by their numbers.
  std::vector<int> MembersOf(int task) const;
};

/// The shape of so many rows like those of the part; InvalidArgument when they are too many.
StatusOr<Shape> ShapeOfRows(const GroupPart& part, int64_t rows);
/// "instance 3 of group 1".
std::string InstanceName(const GroupPart& part);
/// Whether a device, such as "/job:a/replica:0/task:1/device:CPU:10", comes before another one.
bool IsDeviceBefore(const std::string& a, const std::string& b);
/// The same of members.
bool IsMemberBefore(const GroupPart& a, const GroupPart& b);
/// InvalidArgument for a part that does not fit those that have come before it.
Status CheckFits(const GroupPart& part, const WaitingParts& others);
/// The error of a broadcast that nobody sends.
Status NoSource(const GroupPart& part);
/// A text that is equal for two parts that do the same.
std::string SignatureOf(const GroupPart& part);

/// The reduction of the data of these parts, in memory of its own.
StatusOr<Tensor> ReduceParts(const WaitingParts& parts);
/// Reduces `data` into `sum`, which has the same shape and dtype.
Status ReduceInto(const Tensor& data, Reduction reduction, Tensor* sum);
/// The rows of these parts, one after the other.
StatusOr<Tensor> JoinParts(const WaitingParts& parts);
/// The shares of rows that these parts have for `members`: for one member those of all parts, then
/// for the next one.
StatusOr<Tensor> SharesFor(const std::vector<int>& members, const WaitingParts& parts);

/// These give each part its result. `members` are the numbers of the parts' members.
void FinishReduce(WaitingParts parts, const std::vector<int>& members, StatusOr<Tensor> sum);
void FinishWithSame(const WaitingParts& parts, const StatusOr<Tensor>& result);
/// `shares` are what each task has given by SharesFor(members).
void FinishAllToAll(WaitingParts parts, const GroupLayout& layout,
                    const std::vector<Tensor>& shares);

}  // namespace tenon
