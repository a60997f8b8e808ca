// SPDX-License-Identifier: Apache-2.0
#include "runtime/collectives/group_parts.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "core/base/strings.h"
#include "core/device/device_name.h"
#include "runtime/collectives/reductions.h"

namespace tenon {
namespace {

auto OrderOfDevice(const std::string& device) {
  const StatusOr<DeviceName> name = DeviceName::Parse(device);
  const DeviceName parts = name.ok() ? *name : DeviceName();
  return std::tuple(parts.job, parts.replica, parts.task, parts.type, parts.id, device);
}

template <typename T>
void Divide(int64_t by, Tensor* data) {
  T* const values = data->data<T>();
  for (int64_t i = 0; i < data->num_elements(); ++i) {
    values[i] = static_cast<T>(values[i] / static_cast<T>(by));
  }
}

void DivideBy(int64_t by, Tensor* data) {
  switch (data->dtype()) {
    case DType::kFloat:
      return Divide<float>(by, data);
    case DType::kDouble:
      return Divide<double>(by, data);
    case DType::kHalf:
      return Divide<Half>(by, data);
    case DType::kBFloat16:
      return Divide<BFloat16>(by, data);
    case DType::kInt32:
      return Divide<int32_t>(by, data);
    default:
      return Divide<int64_t>(by, data);
  }
}

/// One of `size` equal shares of the rows.
Tensor ShareOf(const Tensor& rows, int member, int size) {
  const int64_t share = rows.dim(0) / size;
  return rows.Slice(share * member, share * (member + 1));
}

char* Append(const Tensor& rows, char* to) {
  return std::copy_n(static_cast<const char*>(rows.raw_data()), rows.num_bytes(), to);
}

/// Memory for so many rows like those of the part.
StatusOr<Tensor> AllocateRows(const GroupPart& part, int64_t rows) {
  TENON_ASSIGN_OR_RETURN(const Shape shape, ShapeOfRows(part, rows));
  return part.what.allocate(shape);
}

}  // namespace

GroupLayout GroupLayout::OfOneTask(int members) {
  GroupLayout layout;
  layout.task_of.assign(static_cast<size_t>(members), 0);
  layout.place_of.resize(static_cast<size_t>(members));
  std::iota(layout.place_of.begin(), layout.place_of.end(), 0);
  return layout;
}

std::vector<int> GroupLayout::MembersOf(int task) const {
  std::vector<int> members;
  for (int i = 0; i < size(); ++i) {
    if (task_of[i] == task) members.push_back(i);
  }
  return members;
}

StatusOr<Shape> ShapeOfRows(const GroupPart& part, int64_t rows) {
  const Shape& shape = part.what.data.shape();
  DimVector dims(shape.dims().begin(), shape.dims().end());
  dims[0] = rows;
  return Shape::Create(dims);
}

std::string InstanceName(const GroupPart& part) {
  return StrCat("instance ", part.instance, " of group ", part.group);
}

bool IsDeviceBefore(const std::string& a, const std::string& b) {
  return OrderOfDevice(a) < OrderOfDevice(b);
}

bool IsMemberBefore(const GroupPart& a, const GroupPart& b) {
  return a.rank != b.rank ? a.rank < b.rank : IsDeviceBefore(a.device, b.device);
}

std::string SignatureOf(const GroupPart& part) {
  const Collective& what = part.what;
  return StrCat(static_cast<int>(what.kind), " ", static_cast<int>(what.reduction), " ",
                part.divides ? "mean " : "", part.scatters ? "shares " : "",
                ToString(what.data.dtype()), what.data.shape().ToString());
}

Status CheckFits(const GroupPart& part, const WaitingParts& others) {
  for (const auto& [other, done] : others) {
    if (part.device == other.device) {
      return InvalidArgument(part.device, " takes part in ", InstanceName(part),
                             " twice at once: by '", other.what.name, "' and by '", part.what.name,
                             "'");
    }
    if (part.rank >= 0 && part.rank == other.rank) {
      return InvalidArgument(part.device, " and ", other.device, " are both rank ", part.rank,
                             " in ", InstanceName(part));
    }
    if (SignatureOf(part) != SignatureOf(other)) {
      return InvalidArgument("the members do not do the same in ", InstanceName(part), ": ",
                             part.device, " is in ", part.what.ToString(), ", ", other.device,
                             " in ", other.what.ToString());
    }
    if (part.is_source && other.is_source) {
      return InvalidArgument(InstanceName(part), " has two sources, ", other.device, " and ",
                             part.device);
    }
  }
  return OkStatus();
}

Status NoSource(const GroupPart& part) {
  return InvalidArgument("of the ", part.size, " members in ", InstanceName(part),
                         " none is the source of the broadcast");
}

Status ReduceInto(const Tensor& data, Reduction reduction, Tensor* sum) {
  const ReductionFunction reduce = ReductionOf(data.dtype(), reduction);
  if (reduce == nullptr) return Unimplemented("no sums of ", ToString(data.dtype()));
  reduce(sum->raw_data(), sum->raw_data(), data.raw_data(),
         static_cast<size_t>(sum->num_elements()));
  return OkStatus();
}

StatusOr<Tensor> ReduceParts(const WaitingParts& parts) {
  TENON_ASSIGN_OR_RETURN(Tensor sum, parts[0].part.what.data.Copy());
  for (size_t i = 1; i < parts.size(); ++i) {
    const Collective& what = parts[i].part.what;
    TENON_RETURN_IF_ERROR(ReduceInto(what.data, what.reduction, &sum));
  }
  return sum;
}

StatusOr<Tensor> JoinParts(const WaitingParts& parts) {
  const GroupPart& first = parts[0].part;
  const auto count = static_cast<int64_t>(parts.size());
  TENON_ASSIGN_OR_RETURN(const int64_t rows, MultiplySizes(first.what.data.dim(0), count));
  TENON_ASSIGN_OR_RETURN(Tensor out, AllocateRows(first, rows));
  auto* to = static_cast<char*>(out.raw_data());
  for (const WaitingPart& p : parts) to = Append(p.part.what.data, to);
  return out;
}

StatusOr<Tensor> SharesFor(const std::vector<int>& members, const WaitingParts& parts) {
  const GroupPart& first = parts[0].part;
  const int64_t share = first.what.data.dim(0) / first.size;
  const auto shares = static_cast<int64_t>(members.size() * parts.size());
  TENON_ASSIGN_OR_RETURN(Tensor out, AllocateRows(first, share * shares));
  auto* to = static_cast<char*>(out.raw_data());
  for (const int member : members) {
    for (const auto& [part, done] : parts) {
      to = Append(ShareOf(part.what.data, member, part.size), to);
    }
  }
  return out;
}

void FinishReduce(WaitingParts parts, const std::vector<int>& members, StatusOr<Tensor> sum) {
  const GroupPart& first = parts[0].part;
  if (sum.ok() && first.divides) DivideBy(first.size, &*sum);
  if (!sum.ok() || !first.scatters) return FinishWithSame(parts, sum);
  for (size_t i = 0; i < parts.size(); ++i) {
    const int size = parts[i].part.size;
    parts[i].done(CollectiveResult{ShareOf(*sum, members[i], size), {}});
  }
}

void FinishWithSame(const WaitingParts& parts, const StatusOr<Tensor>& result) {
  for (const WaitingPart& p : parts) {
    if (result.ok()) p.done(CollectiveResult{*result, {}});
    if (!result.ok()) p.done(result.status());
  }
}

void FinishAllToAll(WaitingParts parts, const GroupLayout& layout,
                    const std::vector<Tensor>& shares) {
  std::vector<int> members_of(shares.size(), 0);
  for (const int task : layout.task_of) ++members_of[task];
  for (size_t to = 0; to < parts.size(); ++to) {
    const GroupPart& part = parts[to].part;
    StatusOr<Tensor> out = AllocateRows(part, part.what.data.dim(0));
    if (!out.ok()) {
      parts[to].done(out.status());
      continue;
    }
    auto* end = static_cast<char*>(out->raw_data());
    for (int from = 0; from < layout.size(); ++from) {
      const int task = layout.task_of[from];
      const int share = static_cast<int>(to) * members_of[task] + layout.place_of[from];
      end = Append(ShareOf(shares[task], share, static_cast<int>(parts.size()) * members_of[task]),
                   end);
    }
    parts[to].done(CollectiveResult{*std::move(out), {}});
  }
}

}  // namespace tenon
