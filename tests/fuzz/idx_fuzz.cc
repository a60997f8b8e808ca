// SPDX-License-Identifier: Apache-2.0
//
// IDX files, compressed as the first byte says.
#include "core/memory/memory_limit.h"
#include "data/arrays/idx.h"
#include "tests/fuzz/fuzz_target.h"

namespace tenon::testing {
namespace {

constexpr int64_t kIdxMemory = int64_t{256} << 20;

void FuzzIdx(absl::Span<const uint8_t> data) {
  SetCpuMemoryLimit(kIdxMemory);
  if (data.empty()) return;
  constexpr Compression kKinds[] = {Compression::kNone, Compression::kGzip, Compression::kZlib};
  const Compression compression = kKinds[data[0] % 3];
  const std::string_view bytes(reinterpret_cast<const char*>(data.data()) + 1, data.size() - 1);
  const auto source = MakeSource(bytes, compression);
  const auto tensor = ReadIdx(*source, "input");
  if (!tensor.ok()) {
    TENON_CHECK(tensor.status().code() != StatusCode::kInternal, tensor.status().ToString());
    return;
  }
  TENON_CHECK(tensor->valid());
  if (compression != Compression::kNone) return;
  // Every byte of the file is a part of the header or of the tensor.
  const size_t header = 4 + 4 * static_cast<size_t>(tensor->rank());
  TENON_CHECK(bytes.size() == header + tensor->num_bytes());
}

std::vector<std::string> IdxSeeds() {
  using namespace std::string_literals;
  std::vector<std::string> seeds;
  for (const auto& [type, bytes] :
       {std::pair('\x08', 1), std::pair('\x09', 1), std::pair('\x0b', 2), std::pair('\x0c', 4),
        std::pair('\x0d', 4), std::pair('\x0e', 8)}) {
    seeds.push_back("\0\0\0"s + type + "\2\0\0\0\2\0\0\0\3"s + std::string(6 * bytes, '\1'));
  }
  // The first one gzipped, without the header of a file: gzip's own, a stored block, CRC and size.
  seeds.push_back("\1\x1f\x8b\x08\0\0\0\0\0\0\xff"s);
  seeds.push_back("\2\x78\x9c"s);
  return seeds;
}

const bool idx_registered = RegisterFuzzTarget({.name = "idx", .run = FuzzIdx, .seeds = IdxSeeds});

}  // namespace
}  // namespace tenon::testing
