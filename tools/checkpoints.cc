// SPDX-License-Identifier: Apache-2.0
#include "tools/checkpoints.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

#include "data/file.h"
#include "data/tensor_bundle.h"
#include "train/saver/checkpoint_state.h"

namespace tenon::tools {
namespace {

StatusOr<std::string> Describe(const BundleReader& reader, const std::string& name) {
  TENON_ASSIGN_OR_RETURN(const BundleEntry* entry, reader.Find(name));
  return ToString(entry->dtype) + entry->shape.ToString();
}

/// Bytes of the elements; of texts, as they are stored.
int64_t BytesOf(const BundleEntry& entry) {
  return IsPlain(entry.dtype)
             ? entry.shape.num_elements() * static_cast<int64_t>(SizeOf(entry.dtype))
             : entry.size;
}

struct Difference {
  int64_t elements = 0;
  double largest = 0;  // of numbers
  int64_t where = -1;
};

template <typename T>
Difference CompareElements(const Tensor& a, const Tensor& b) {
  Difference found;
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    const T &x = a.data<T>()[i], &y = b.data<T>()[i];
    if constexpr (std::is_same_v<T, TString>) {
      if (x == y) continue;
    } else if (std::memcmp(&x, &y, sizeof(T)) == 0) {  // the same NaN too
      continue;
    }
    ++found.elements;
    double by = 0;
    if constexpr (std::is_convertible_v<T, double> && !std::is_same_v<T, bool>) {
      by = std::abs(static_cast<double>(x) - static_cast<double>(y));
      if (std::isnan(by)) by = std::numeric_limits<double>::infinity();
    }
    if (found.where < 0 || by > found.largest) {
      found.largest = by;
      found.where = i;
    }
  }
  return found;
}

/// "[1,0,2]", the coordinates of an element.
std::string Coordinates(int64_t element, const Shape& shape) {
  std::vector<int64_t> at(shape.rank());
  for (int i = shape.rank() - 1; i >= 0; --i) {
    at[i] = element % shape.dim(i);
    element /= shape.dim(i);
  }
  return StrCat("[", Join(at, ","), "]");
}

/// A line when the tensors differ, whose dtype and shape are the same; else empty.
std::string DescribeDifference(const Tensor& a, const Tensor& b) {
  Difference found;
  using Types = decltype(ConcatTypes(PlainTypes(), TypeList<TString>()));
  Dispatch(a.dtype(), Types(), [&](auto zero) { found = CompareElements<decltype(zero)>(a, b); });
  if (found.elements == 0) return "";
  std::string line = StrCat(found.elements, " of ", a.num_elements(), " elements differ");
  if (found.largest > 0) {
    StrAppend(&line, ", by up to ", found.largest, " at ", Coordinates(found.where, a.shape()));
  }
  return line;
}

}  // namespace

std::optional<std::string> FindCheckpoint(const std::string& path) {
  constexpr std::string_view kIndex = ".index";
  if (path.ends_with(kIndex) && FileExists(path)) {
    return path.substr(0, path.size() - kIndex.size());
  }
  if (CheckpointExists(path)) return path;
  const auto paths = GetCheckpointState(path);
  if (paths.ok()) return paths->latest;
  return std::nullopt;
}

Status PrintCheckpoint(const std::string& prefix) {
  TENON_ASSIGN_OR_RETURN(const auto reader, BundleReader::Open(prefix));
  int64_t elements = 0, bytes = 0;
  const std::vector<std::string>& names = reader->names();
  for (const std::string& name : names) {
    TENON_ASSIGN_OR_RETURN(const BundleEntry* entry, reader->Find(name));
    const std::string slices =
        entry->slices.empty() ? "" : StrCat(", in ", entry->slices.size(), " slices");
    std::printf("%s  %s%s, %lld bytes%s\n", name.c_str(), ToString(entry->dtype).c_str(),
                entry->shape.ToString().c_str(), static_cast<long long>(BytesOf(*entry)),
                slices.c_str());
    elements += entry->shape.num_elements();
    bytes += BytesOf(*entry);
  }
  std::printf("%s: %zu tensors, %lld elements, %lld bytes, in %d data files\n", prefix.c_str(),
              names.size(), static_cast<long long>(elements), static_cast<long long>(bytes),
              reader->num_shards());
  return OkStatus();
}

Status PrintTensor(const std::string& prefix, const std::string& name) {
  TENON_ASSIGN_OR_RETURN(const auto reader, BundleReader::Open(prefix));
  TENON_ASSIGN_OR_RETURN(const Tensor value, reader->Read(name));
  std::printf("%s = %s\n", name.c_str(), value.ToString(INT32_MAX).c_str());
  return OkStatus();
}

StatusOr<bool> CompareCheckpoints(const std::string& prefix, const std::string& other) {
  TENON_ASSIGN_OR_RETURN(const auto a, BundleReader::Open(prefix));
  TENON_ASSIGN_OR_RETURN(const auto b, BundleReader::Open(other));
  int same = 0, differ = 0;
  const auto print = [&](const std::string& name, const std::string& what) {
    ++differ;
    std::printf("%s: %s\n", name.c_str(), what.c_str());
  };
  for (const std::string& name : a->names()) {
    if (!b->Contains(name)) {
      print(name, StrCat("only in ", prefix));
      continue;
    }
    TENON_ASSIGN_OR_RETURN(const std::string here, Describe(*a, name));
    TENON_ASSIGN_OR_RETURN(const std::string there, Describe(*b, name));
    if (here != there) {
      print(name, StrCat(here, " and ", there));
      continue;
    }
    TENON_ASSIGN_OR_RETURN(const Tensor x, a->Read(name));
    TENON_ASSIGN_OR_RETURN(const Tensor y, b->Read(name));
    const std::string difference = DescribeDifference(x, y);
    if (difference.empty()) {
      ++same;
    } else {
      print(name, difference);
    }
  }
  for (const std::string& name : b->names()) {
    if (!a->Contains(name)) print(name, StrCat("only in ", other));
  }
  std::printf("%d tensors are the same, %d differ\n", same, differ);
  return differ == 0;
}

}  // namespace tenon::tools
