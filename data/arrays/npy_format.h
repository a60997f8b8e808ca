// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

// The parts of an .npy file (numpy.lib.format): its header, and its elements as bytes. What
// data/arrays/npy.h reads and writes whole files and rows with. Functions of bytes, without state.

namespace tenon {

/// The contents of an array's header.
struct NpyHeader {
  char kind = 0;  // as in NumPy's dtype.kind: f i u b c S U
  bool big_endian = false;
  bool column_major = false;
  size_t item_bytes = 0;
  Shape shape;
  /// The dtype of the tensor that the array becomes.
  DType dtype = DType::kInvalid;

  bool is_text() const { return kind == 'S' || kind == 'U'; }
};

/// How many bytes of a file tell where its elements begin.
inline constexpr size_t kNpyPreambleBytes = 12;

/// Where the elements begin of a file with this beginning, of kNpyPreambleBytes at least.
/// InvalidArgument when it is no .npy file, or one of a later version than 3.
StatusOr<uint64_t> NpyElementsBegin(std::string_view preamble);

/// The header of a file that begins with `start`, whose size is what NpyElementsBegin says.
/// InvalidArgument for what cannot be a tensor: objects, structured arrays, dtypes that Tenon
/// lacks.
StatusOr<NpyHeader> ParseNpyHeader(std::string_view start);

/// The bytes of `items` elements; DataLoss when their number overflows, or elements of no bytes are
/// more than `most`, so that a short file is no tensor of any size.
StatusOr<uint64_t> NpyElementBytes(const NpyHeader& header, uint64_t items, uint64_t most);

/// The tensor of the elements, which are as many bytes as the header wants. InvalidArgument for
/// text that is none; ResourceExhausted when memory is out.
StatusOr<Tensor> MakeNpyTensor(const NpyHeader& header, std::string_view data);

/// Turns numbers that came into `out` as the file has them, rows one after another, into those of
/// this machine. Not for text.
void NormaliseNpyNumbers(const NpyHeader& header, char* out, size_t bytes);

/// "<f4" of a dtype; empty when NumPy has none. bfloat16 is that of float.
std::string NpyDescrOf(DType dtype);

/// The bytes of the elements of a tensor that NpyDescrOf knows, as they stand in a file.
std::string NpyElementsOf(const Tensor& tensor);

/// The beginning of a file, whose elements follow it. It is as long for every shape that differs
/// from `shape` in the first dimension only when `room_to_grow`.
std::string FormatNpyHeader(const std::string& descr, const Shape& shape,
                            bool room_to_grow = false);

}  // namespace tenon
