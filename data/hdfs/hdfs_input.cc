// SPDX-License-Identifier: Apache-2.0
#include "data/hdfs/hdfs_input.h"

#include <algorithm>
#include <utility>

#include "data/http/block_input.h"

namespace tenon {
namespace {

constexpr int64_t kHeadBytes = 256 << 10;
/// How often a file may be replaced while it is opened.
constexpr int kMostReplacements = 10;

/// The file of that number, by whatever name.
HdfsPlace PlaceOf(const HdfsPlace& place, int64_t id) {
  return {place.scheme, place.authority, StrCat("/.reserved/.inodes/", id)};
}

}  // namespace

StatusOr<std::unique_ptr<InputFile>> OpenHdfsInput(HdfsClient& client, const HdfsPlace& place) {
  HdfsFileInfo info;
  HdfsPlace source = place;
  std::string head;
  for (int i = 0;; ++i) {
    const int64_t old_id = info.id;
    TENON_ASSIGN_OR_RETURN(info, client.Stat(place, "open"));
    if (info.is_folder) {
      return FailedPrecondition("cannot open '", place.Path(), "': it is a folder");
    }
    if (info.size == 0) break;
    // A server without such names has the file by its own alone.
    const bool by_id = info.id != 0 && (i == 0 || info.id != old_id);
    source = by_id ? PlaceOf(place, info.id) : place;
    StatusOr<std::string> bytes = client.Read(source, place, 0, std::min(info.size, kHeadBytes));
    if (bytes.ok()) {
      head = *std::move(bytes);
      break;
    }
    const bool gone = bytes.status().code() == StatusCode::kNotFound;
    if (!gone || !by_id || i == kMostReplacements) return bytes.status();
  }
  BlockInputOptions options{.path = place.Path(), .size = info.size, .head = std::move(head)};
  options.fetch = [&client, source, place](
                      int64_t begin, int64_t end,
                      const std::atomic<bool>* cancelled) -> StatusOr<std::string> {
    StatusOr<std::string> bytes = client.Read(source, place, begin, end, cancelled);
    if (bytes.status().code() != StatusCode::kNotFound) return bytes;
    return FailedPrecondition("cannot read '", place.Path(),
                              "': it was removed or replaced after it was opened");
  };
  return MakeBlockInput(std::move(options), client.workers());
}

}  // namespace tenon
