// SPDX-License-Identifier: Apache-2.0
//
// ZIP archives: every member read, the archive made again of what was read.
#include "core/memory/memory_limit.h"
#include "data/arrays/npy.h"
#include "data/arrays/zip.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/testing/memory_files.h"

namespace tenon::testing {
namespace {

constexpr int64_t kZipMemory = int64_t{256} << 20;
/// Many members may share the same bytes.
constexpr size_t kMembersRead = 20;

StatusOr<ZipReader> OpenZip(std::string content) {
  MemoryFiles files;
  files["zip"] = std::move(content);
  return ZipReader::Open(*files.OpenInput("zip"));
}

void FuzzZip(absl::Span<const uint8_t> data) {
  SetCpuMemoryLimit(kZipMemory);
  const auto zip = OpenZip({reinterpret_cast<const char*>(data.data()), data.size()});
  if (!zip.ok()) {
    TENON_CHECK(zip.status().code() != StatusCode::kInternal, zip.status().ToString());
    return;
  }
  ZipWriter writer;
  std::vector<std::string> contents;
  for (const ZipReader::Member& member : zip->members()) {
    if (contents.size() == kMembersRead) break;
    const auto content = zip->Read(member);
    if (!content.ok()) {
      TENON_CHECK(content.status().code() != StatusCode::kInternal, content.status().ToString());
      continue;
    }
    TENON_CHECK(content->size() == member.size);
    if (member.name.size() > 1000 || content->size() > (1 << 20)) continue;
    TENON_CHECK(writer.Add(StrCat(contents.size()), *content, contents.size() % 2 == 0).ok());
    contents.push_back(*content);
  }
  const auto again = OpenZip(writer.Finish());
  TENON_CHECK(again.ok(), again.status().ToString());
  TENON_CHECK(again->members().size() == contents.size());
  for (size_t i = 0; i < contents.size(); ++i) {
    const ZipReader::Member* member = again->Find(StrCat(i));
    TENON_CHECK(member != nullptr);
    const auto content = again->Read(*member);
    TENON_CHECK(content.ok() && *content == contents[i]);
  }
}

std::vector<std::string> ZipSeeds() {
  ZipWriter writer;
  TENON_CHECK(writer.Add("stored", "some text", false).ok());
  TENON_CHECK(writer.Add("deflated", std::string(200, 'x') + "y", true).ok());
  TENON_CHECK(writer.Add("none", "", true).ok());
  return {writer.Finish(), ZipWriter().Finish(), SampleFile("graphs/summary.npz"),
          SampleFile("checkpoints/checkpoint_small.npz")};
}

const bool zip_registered = RegisterFuzzTarget({.name = "zip", .run = FuzzZip, .seeds = ZipSeeds});

}  // namespace
}  // namespace tenon::testing
