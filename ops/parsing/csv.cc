// SPDX-License-Identifier: Apache-2.0
#include "ops/parsing/csv.h"

#include <algorithm>

#include "data/csv/read_number.h"
#include "ops/maths.h"

namespace tenon {
namespace {

using CsvTypes = TypeList<float, double, int32_t, int64_t, TString>;

/// Makes field `number` element `at` of `out`.
Status Convert(std::string_view field, int64_t number, int64_t record, const Tensor& fallback,
               const CsvFormat& format, Tensor* out, int64_t at) {
  const bool missing = field.empty() || field == format.not_there;
  if (missing && fallback.num_elements() != 1) {
    return InvalidArgument("Field ", number, " is required but missing in record ", record, "!");
  }
  return DispatchStatus(out->dtype(), CsvTypes(), [&]<typename T>(T) {
    T& value = out->data<T>()[at];
    if (missing) {
      value = *fallback.data<T>();
    } else if constexpr (std::is_same_v<T, TString>) {
      value = TString(field);
    } else if (!ReadNumber(field, &value)) {
      return InvalidArgument("Field ", number, " in record ", record, " is not a valid ",
                             out->dtype(), ": ", field);
    }
    return OkStatus();
  });
}

Status WrongFieldCount(size_t wanted, size_t found, int64_t record) {
  return InvalidArgument("Expect ", wanted, " fields but have ", found, " in record ", record);
}

}  // namespace

Status FinishCsvFormat(std::string_view delimiter, CsvFormat* format) {
  if (delimiter.size() != 1) {
    return InvalidArgument("field_delim should be only 1 char, found '", delimiter, "'");
  }
  format->delimiter = delimiter[0];
  const std::vector<int64_t>& columns = format->columns;
  if (columns.empty()) return OkStatus();
  if (columns.size() != format->wanted) {
    return InvalidArgument("select_cols should match output size: ", columns.size(), " for ",
                           format->wanted);
  }
  if (columns[0] < 0 ||
      std::adjacent_find(columns.begin(), columns.end(), std::greater_equal()) != columns.end()) {
    return InvalidArgument("select_cols should be non-negative and strictly increasing");
  }
  return OkStatus();
}

Status CsvError(CsvMistake mistake, const CsvLine& line, const CsvFormat& format, int64_t record,
                std::string_view unclosed) {
  switch (mistake) {
    case CsvMistake::kNone:
      break;
    case CsvMistake::kQuoteInPlainField:
      return InvalidArgument("Unquoted fields cannot have quotes/CRLFs inside");
    case CsvMistake::kSingleQuoteInQuotes:
      return InvalidArgument("Quote inside a string has to be escaped by another quote");
    case CsvMistake::kUnclosedQuotes:
      return InvalidArgument(unclosed);
    case CsvMistake::kTooManyFields:
      return WrongFieldCount(format.wanted, line.num_wanted(), record);
  }
  return OkStatus();
}

Status CheckCsvDefault(const Tensor& fallback, int64_t number) {
  if (fallback.rank() <= 1 && fallback.num_elements() < 2) return OkStatus();
  if (fallback.rank() > 1) {
    return InvalidArgument("Each record default should be at most rank 1, field ", number,
                           " has one of shape ", fallback.shape());
  }
  return InvalidArgument("There should only be 1 default per field but field ", number,
                         " has one of shape ", fallback.shape());
}

Status ConvertCsvFields(const std::vector<std::string_view>& fields, const CsvFormat& format,
                        int64_t record, absl::Span<const Tensor> defaults,
                        absl::Span<Tensor* const> outs, int64_t at) {
  if (fields.size() != outs.size()) {
    return WrongFieldCount(outs.size(), fields.size(), record);
  }
  for (size_t f = 0; f < fields.size(); ++f) {
    TENON_RETURN_IF_ERROR(
        Convert(fields[f], static_cast<int64_t>(f), record, defaults[f], format, outs[f], at));
  }
  return OkStatus();
}

}  // namespace tenon
