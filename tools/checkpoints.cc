// SPDX-License-Identifier: Apache-2.0
#include "tools/checkpoints.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <map>
#include <tuple>

#include "core/base/closest_name.h"
#include "core/base/plural.h"
#include "data/checkpoint/tensor_bundle.h"
#include "data/files/file.h"
#include "train/saver/checkpoint_state.h"

namespace tenon::tools {
namespace {

constexpr std::string_view kIndex = ".index";

/// At most this many checkpoints are named.
constexpr size_t kMostCheckpoints = 8;

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

/// The prefix of "<prefix>.index" and "<prefix>.data-00000-of-00001", or nothing.
std::optional<std::string> PrefixOfFile(const std::string& path) {
  if (path.ends_with(kIndex)) return path.substr(0, path.size() - kIndex.size());
  const size_t data = path.rfind(".data-");
  if (data != std::string::npos && path.find('/', data) == std::string::npos) {
    return path.substr(0, data);
  }
  return std::nullopt;
}

/// "model-9" before "model-10".
bool ByStep(const std::string& a, const std::string& b) {
  const auto split = [](const std::string& name) {
    const size_t digits = name.find_last_not_of("0123456789") + 1;
    const std::string number = name.substr(std::min(digits, name.size()));
    return std::tuple(name.substr(0, digits), number.size(), number);
  };
  return split(a) < split(b);
}

std::string PrefixList(const std::vector<std::string>& prefixes) {
  const size_t known = prefixes.size();
  const size_t first = known - std::min(known, kMostCheckpoints);
  return StrCat(
      Join(std::vector(prefixes.begin() + static_cast<ptrdiff_t>(first), prefixes.end()), ", "),
      first > 0 ? StrCat(" and ", first, " before them") : "");
}

/// What is wrong with the data files, a line each.
std::vector<std::string> FindMissingData(const BundleReader& reader) {
  std::map<int32_t, int64_t> ends;  // how long each data file must be
  for (int32_t shard = 0; shard < reader.num_shards(); ++shard) ends[shard] = 0;
  std::map<int32_t, int> tensors;
  for (const std::string& name : reader.names()) {
    const auto entry = reader.Find(name);
    if (!entry.ok() || !(*entry)->slices.empty()) continue;
    int64_t& end = ends[(*entry)->shard];
    end = std::max(end, (*entry)->offset + (*entry)->size);
    ++tensors[(*entry)->shard];
  }
  std::vector<std::string> lines;
  for (const auto& [shard, end] : ends) {
    const std::string file = BundleDataName(reader.prefix(), shard, reader.num_shards());
    const auto opened = OpenInput(file);
    if (!opened.ok()) {
      lines.push_back(StrCat(Message(opened.status()), ": the values of ", tensors[shard],
                             " tensors are missing"));
    } else if ((*opened)->size() < end) {
      lines.push_back(StrCat("'", file, "' has ", (*opened)->size(), " bytes, wanted ", end));
    }
  }
  return lines;
}

}  // namespace

std::vector<std::string> CheckpointsIn(const std::string& folder) {
  std::vector<std::string> prefixes;
  const auto names = ListFolder(folder.empty() ? "." : folder);
  if (!names.ok()) return prefixes;
  for (const std::string& name : *names) {
    if (!name.ends_with(kIndex)) continue;
    const std::string prefix = name.substr(0, name.size() - kIndex.size());
    prefixes.push_back(folder.empty() ? prefix : JoinPath(folder, prefix));
  }
  std::sort(prefixes.begin(), prefixes.end(), ByStep);
  return prefixes;
}

std::optional<std::string> FindCheckpoint(const std::string& path) {
  if (const auto prefix = PrefixOfFile(path); prefix && CheckpointExists(*prefix)) return prefix;
  if (CheckpointExists(path)) return path;
  const auto paths = GetCheckpointState(path);
  if (paths.ok() && CheckpointExists(paths->latest)) return paths->latest;
  // The files of a prefix that is a folder are FOLDER/.index and FOLDER/.data-*.
  if (!path.ends_with('/') && CheckpointExists(path + "/")) return path + "/";
  return std::nullopt;
}

Status NoCheckpoint(const std::string& path) {
  if (IsFolder(path)) {
    const std::vector<std::string> prefixes = CheckpointsIn(path);
    const auto state = GetCheckpointState(path);
    const std::string why =
        state.ok() ? StrCat("its state file names '", state->latest, "', which is not there")
                   : StrCat("it has no state file '", kCheckpointStateFile, "'");
    if (prefixes.empty()) {
      return NotFound("there is no checkpoint in the folder '", path, "': ", why,
                      ", and no .index file");
    }
    return NotFound("there is no latest checkpoint in the folder '", path, "': ", why, "; it has ",
                    PrefixList(prefixes));
  }
  const std::vector<std::string> near = CheckpointsIn(FolderOf(path));
  if (near.empty()) {
    return NotFound("there is no checkpoint '", path, "', nor any other in its folder");
  }
  std::vector<std::string> names;
  for (const std::string& prefix : near) names.push_back(NameOf(prefix));
  const std::string closest = ClosestName(NameOf(path), names);
  return NotFound("there is no checkpoint '", path, "', but ", PrefixList(near),
                  closest.empty() ? "" : StrCat("; did you mean ", closest, "?"));
}

std::string DescribeKeys(const BundleReader& reader, size_t most) {
  std::vector<std::string> keys;
  for (const std::string& name : reader.names()) {
    if (keys.size() == most) break;
    const auto described = Describe(reader, name);
    keys.push_back(StrCat(name, " ", described.ok() ? *described : ""));
  }
  const size_t more = reader.names().size() - keys.size();
  if (keys.empty()) return "nothing";
  return StrCat(Join(keys, ", "), more > 0 ? StrCat(" and ", more, " more") : "");
}

Status CheckKeys(const BundleReader& reader, const std::vector<std::string>& wanted) {
  std::vector<std::string> missing;
  for (const std::string& name : wanted) {
    if (!reader.Contains(name)) missing.push_back(StrCat("'", name, "'"));
  }
  if (missing.empty()) return OkStatus();
  constexpr size_t kMost = 8;
  const size_t more = missing.size() - std::min(missing.size(), kMost);
  missing.resize(missing.size() - more);
  std::string name = missing[0].substr(1, missing[0].size() - 2);
  return NotFound("the checkpoint '", reader.prefix(), "' lacks ", Join(missing, ", "),
                  more > 0 ? StrCat(" and ", more, " more") : "", "; it has ", DescribeKeys(reader),
                  missing.size() == 1 ? DidYouMean(name, reader.names()) : "");
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
  std::printf("%s: %s, %s, %s, in %s\n", prefix.c_str(), Plural(names.size(), "tensor").c_str(),
              Plural(elements, "element").c_str(), Plural(bytes, "byte").c_str(),
              Plural(reader->num_shards(), "data file").c_str());
  const std::vector<std::string> missing = FindMissingData(*reader);
  return missing.empty() ? OkStatus() : DataLoss(Join(missing, "; "));
}

Status PrintTensor(const std::string& prefix, const std::string& name) {
  TENON_ASSIGN_OR_RETURN(const auto reader, BundleReader::Open(prefix));
  TENON_RETURN_IF_ERROR(CheckKeys(*reader, {name}));
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
