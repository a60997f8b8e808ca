// SPDX-License-Identifier: Apache-2.0
#include "ops/parsing/csv.h"

#include <algorithm>

#include "ops/maths.h"
#include "ops/strings/read_number.h"

namespace tenon {
namespace {

using CsvTypes = TypeList<float, double, int32_t, int64_t, TString>;

bool IsCsvLineEnd(char c) { return c == '\n' || c == '\r'; }

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

}  // namespace

Status CsvFormat::Finish(std::string_view delimiters) {
  if (delimiters.size() != 1) {
    return InvalidArgument("field_delim should be only 1 char, found '", delimiters, "'");
  }
  delimiter = delimiters[0];
  if (columns.empty()) return OkStatus();
  if (columns.size() != wanted) {
    return InvalidArgument("select_cols should match output size: ", columns.size(), " for ",
                           wanted);
  }
  if (columns[0] < 0 ||
      std::adjacent_find(columns.begin(), columns.end(), std::greater_equal()) != columns.end()) {
    return InvalidArgument("select_cols should be non-negative and strictly increasing");
  }
  return OkStatus();
}

bool CsvFormat::Wants(int64_t column, size_t before) const {
  if (columns.empty()) return !std::binary_search(excluded.begin(), excluded.end(), column);
  return columns[before] == column;
}

bool CsvFormat::EndsWithinQuotes(std::string_view line, bool within) const {
  if (!quotes || line.find('"') == std::string_view::npos) return within;
  size_t at = 0;
  while (true) {
    if (!within) {  // at the beginning of a field
      while (at < line.size() && IsCsvLineEnd(line[at])) ++at;
      if (at == line.size()) return false;
      if (line[at] != '"') {
        at = std::min(line.find(delimiter, at), line.size());
        if (at++ == line.size()) return false;
        continue;
      }
      ++at;
    }
    at = line.find('"', at);
    if (at == std::string_view::npos) return true;
    const bool last = ++at == line.size();
    within = !last && line[at] == '"';  // two stand for one
    if (last || (!within && line[at] != delimiter)) return false;
    ++at;
  }
}

namespace {

Status WrongFieldCount(size_t wanted, size_t found, int64_t record) {
  return InvalidArgument("Expect ", wanted, " fields but have ", found, " in record ", record);
}

}  // namespace

Status CsvLine::Cut(std::string_view line, int64_t record, std::vector<std::string_view>* fields) {
  fields->clear();
  int64_t column = 0;
  size_t more = 0;
  // Those that are too many are counted and not held.
  const auto add = [&](std::string_view field) {
    fields->size() < format_.wanted ? fields->push_back(field) : void(++more);
  };
  size_t at = 0;
  while (at < line.size()) {
    if (IsCsvLineEnd(line[at])) {
      ++at;
      continue;
    }
    const bool keep = format_.Wants(column++, fields->size());
    std::string_view field;
    if (format_.quotes && line[at] == '"') {
      std::string* const unquoted =
          keep && fields->size() < unquoted_.size() ? &unquoted_[fields->size()] : &dropped_;
      TENON_RETURN_IF_ERROR(TakeQuoted(line, &at, unquoted, &field));
    } else {
      TENON_RETURN_IF_ERROR(TakePlain(line, &at, &field));
    }
    if (!keep) continue;
    add(field);
    if (!format_.columns.empty() && fields->size() == format_.columns.size()) return OkStatus();
  }
  if (!line.empty() && line.back() == format_.delimiter && format_.Wants(column, fields->size())) {
    add({});
  }
  return more == 0 ? OkStatus() : WrongFieldCount(format_.wanted, format_.wanted + more, record);
}

Status CsvLine::TakePlain(std::string_view line, size_t* at, std::string_view* field) const {
  const size_t begin = *at;
  for (; *at < line.size() && line[*at] != format_.delimiter; ++*at) {
    if ((format_.quotes && line[*at] == '"') || IsCsvLineEnd(line[*at])) {
      return InvalidArgument("Unquoted fields cannot have quotes/CRLFs inside");
    }
  }
  *field = line.substr(begin, *at - begin);
  ++*at;
  return OkStatus();
}

/// A field in quotes ends with a quote before a delimiter or the end; any other quote inside is
/// doubled. `unquoted` takes the text of one that has such.
Status CsvLine::TakeQuoted(std::string_view line, size_t* at, std::string* unquoted,
                           std::string_view* field) const {
  const size_t begin = ++*at;
  const auto ends = [&](size_t i) {
    return i + 1 == line.size() || line[i + 1] == format_.delimiter;
  };
  bool doubled = false;
  for (;; ++*at) {
    *at = line.find('"', *at);
    if (*at == std::string_view::npos) {
      return InvalidArgument(format_.unclosed);
    }
    if (ends(*at)) break;
    if (line[++*at] != '"') {
      return InvalidArgument("Quote inside a string has to be escaped by another quote");
    }
    doubled = true;
  }
  *field = line.substr(begin, *at - begin);
  *at += 2;
  if (!doubled) return OkStatus();
  unquoted->clear();
  for (size_t i = 0; i < field->size(); ++i) {
    unquoted->push_back((*field)[i]);
    if ((*field)[i] == '"') ++i;
  }
  *field = *unquoted;
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
