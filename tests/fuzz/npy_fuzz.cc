// SPDX-License-Identifier: Apache-2.0
//
// NumPy's .npy files: read, written, and read again.
#include "core/memory/memory_limit.h"
#include "data/arrays/npy.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/message_mutation.h"

namespace tenon::testing {
namespace {

constexpr int64_t kNpyMemory = int64_t{256} << 20;

/// A stream of the same bytes gives the same rows, two at a time.
void CheckRows(std::string_view bytes, const StatusOr<Tensor>& whole) {
  auto rows = NpyRows::FromStream(MakeSource(bytes, Compression::kNone), "the bytes");
  if (!rows.ok()) return;
  for (int64_t at = 0; at < std::min<int64_t>(rows->shape().dim(0), 8); at += 2) {
    const auto piece = rows->Next(2);
    if (!piece.ok()) {
      TENON_CHECK(!whole.ok() && piece.status().code() != StatusCode::kInternal,
                  piece.status().ToString());
      return;
    }
    if (whole.ok()) TENON_CHECK(SameTensor(*piece, whole->Slice(at, at + piece->dim(0))));
  }
}

void FuzzNpy(absl::Span<const uint8_t> data) {
  SetCpuMemoryLimit(kNpyMemory);
  const std::string_view bytes(reinterpret_cast<const char*>(data.data()), data.size());
  const auto tensor = ParseNpy(bytes);
  CheckRows(bytes, tensor);
  if (!tensor.ok()) {
    TENON_CHECK(tensor.status().code() != StatusCode::kInternal, tensor.status().ToString());
    return;
  }
  TENON_CHECK(tensor->valid());
  const auto written = FormatNpy(*tensor);
  TENON_CHECK(written.ok(), written.status().ToString());
  const auto again = ParseNpy(*written);
  TENON_CHECK(again.ok(), again.status().ToString());
  TENON_CHECK(SameTensor(*tensor, *again));
}

std::vector<std::string> NpySeeds() {
  std::vector<std::string> seeds;
  for (const Tensor& tensor :
       {Tensor::Of<float>({2, 2}, {1, 2, 3, 4}), Tensor::Of<bool>({2}, {true, false}),
        Tensor::Of<std::string>({2}, {"text", "te"}), Tensor::Zeros(DType::kComplex64, {2}),
        Tensor::Zeros(DType::kHalf, {3}), Tensor::Scalar(int64_t{-5}),
        Tensor::Zeros(DType::kUInt16, {0, 4})}) {
    seeds.push_back(*FormatNpy(tensor));
  }
  // What NumPy writes and we do not: text, other orders, other versions.
  const auto hand_made = [&seeds](const std::string& header, size_t bytes) {
    std::string npy("\x93NUMPY\1\0", 8);
    npy += static_cast<char>(header.size());
    npy += '\0';
    seeds.push_back(npy + header + std::string(bytes, '\1'));
  };
  hand_made("{'descr': '<U3', 'fortran_order': False, 'shape': (2,), }\n", 24);
  hand_made("{'descr': '>i4', 'fortran_order': True, 'shape': (2, 3), }\n", 24);
  hand_made("{'descr': '|S4', 'fortran_order': True, 'shape': (2, 2, 1), }\n", 16);
  hand_made("{'descr': '>c16', 'fortran_order': False, 'shape': (), }\n", 16);
  return seeds;
}

const bool npy_registered = RegisterFuzzTarget({.name = "npy", .run = FuzzNpy, .seeds = NpySeeds});

}  // namespace
}  // namespace tenon::testing
