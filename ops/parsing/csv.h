// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "core/base/status.h"
#include "core/tensor/tensor.h"
#include "data/csv/csv.h"

// Comma-separated values (data/csv/csv.h) as ops take them, with TensorFlow's words for mistakes.

namespace tenon {

/// Takes the op's argument for the delimiter over into `format`. InvalidArgument when it is not one
/// character, or the columns are not increasing numbers, as many as are wanted.
Status FinishCsvFormat(std::string_view delimiter, CsvFormat* format);

/// OK without a mistake. Otherwise InvalidArgument for record number `record`, which `line` has
/// cut; `unclosed` is the message for quotes that are not closed.
Status CsvError(CsvMistake mistake, const CsvLine& line, const CsvFormat& format, int64_t record,
                std::string_view unclosed);

/// InvalidArgument unless `fallback` is what may stand for a missing field number `number`: one
/// element, or none where the field must be there.
Status CheckCsvDefault(const Tensor& fallback, int64_t number);

/// Makes the fields of record number `record`, of which there must be as many as are wanted,
/// elements `at` of `outs`. InvalidArgument for missing ones without a default, and those that are
/// no value of their dtype.
Status ConvertCsvFields(const std::vector<std::string_view>& fields, const CsvFormat& format,
                        int64_t record, absl::Span<const Tensor> defaults,
                        absl::Span<Tensor* const> outs, int64_t at);

}  // namespace tenon
