// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/base/status.h"
#include "core/tensor/tensor.h"
#include "data/files/byte_stream.h"

namespace tenon {

/// Reads a file in the IDX format of the MNIST database, plain or gzipped (its content decides):
/// two zero bytes, a dtype code, the rank, the dimensions as big-endian 32-bit numbers, then the
/// elements, big-endian and row-major. The tensor is uint8, int8, int16, int32, float or double.
/// InvalidArgument for a file that is none; DataLoss, naming how many bytes were found and wanted,
/// for one that is cut short or too long.
StatusOr<Tensor> ReadIdx(const std::string& path, const FileContext& context = {});

/// The same from a stream; `name` is what messages call it.
StatusOr<Tensor> ReadIdx(ByteSource& source, const std::string& name);

}  // namespace tenon
