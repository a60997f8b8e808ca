// SPDX-License-Identifier: Apache-2.0
#include "tools/run/text_rows.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "core/base/plural.h"

namespace tenon::tools {
namespace {

constexpr size_t kChunk = 1 << 16;
constexpr std::string_view kBlanks = " \t\r";

std::string_view Trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

/// What stands between the values of a line; a blank for any number of them.
char DelimiterOf(std::string_view line) {
  for (const char c : {',', ';', '\t'}) {
    if (line.find(c) != std::string_view::npos) return c;
  }
  return ' ';
}

std::vector<std::string_view> Cells(std::string_view line, char delimiter) {
  std::vector<std::string_view> cells;
  while (true) {
    if (delimiter == ' ') line = Trimmed(line);
    const size_t end = delimiter == ' ' ? line.find_first_of(kBlanks) : line.find(delimiter);
    cells.push_back(Trimmed(line.substr(0, end)));
    if (end == std::string_view::npos) return cells;
    line.remove_prefix(end + 1);
  }
}

template <typename T>
bool ParseCell(std::string_view cell, T* out) {
  if (cell.size() > 1 && cell.starts_with('"') && cell.ends_with('"')) {
    cell = cell.substr(1, cell.size() - 2);
  }
  const absl::string_view text = ToAbsl(cell);
  if constexpr (std::is_same_v<T, TString>) {
    *out = std::string(cell);
    return true;
  } else if constexpr (std::is_same_v<T, bool>) {
    *out = cell == "1" || cell == "true" || cell == "True";
    return *out || cell == "0" || cell == "false" || cell == "False";
  } else if constexpr (std::is_integral_v<T>) {
    std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t> whole;
    if (!absl::SimpleAtoi(text, &whole)) {
      double value;  // as numpy.savetxt writes integers
      if (!absl::SimpleAtod(text, &value) || value != std::floor(value) ||
          std::abs(value) >= 1e15 || (value < 0 && !std::is_signed_v<T>)) {
        return false;
      }
      whole = static_cast<decltype(whole)>(value);
    }
    *out = static_cast<T>(whole);
    return std::in_range<T>(whole);
  } else {
    double value;
    if (!absl::SimpleAtod(text, &value)) return false;
    *out = static_cast<T>(value);
    return true;
  }
}

bool IsNumber(std::string_view cell) {
  double number;
  bool flag;
  return ParseCell(cell, &number) || ParseCell(cell, &flag);
}

}  // namespace

std::string TextRows::Where() const { return StrCat(name_, ", line ", line_); }

StatusOr<bool> TextRows::ReadLine(std::string* line) {
  line->clear();
  while (true) {
    const size_t end = buffer_.find('\n', at_);
    if (end != std::string::npos) {
      line->append(buffer_, at_, end - at_);
      at_ = end + 1;
      ++line_;
      return true;
    }
    line->append(buffer_, at_);
    at_ = 0;
    buffer_.clear();
    if (ended_) {
      line_ += line->empty() ? 0 : 1;
      return !line->empty();
    }
    buffer_.resize(kChunk);
    TENON_ASSIGN_OR_RETURN(const size_t found, source_->Read(kChunk, buffer_.data()));
    buffer_.resize(found);
    ended_ = found < kChunk;
  }
}

StatusOr<bool> TextRows::NextLine(std::string* line) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // that spreadsheets write
  while (true) {
    TENON_ASSIGN_OR_RETURN(const bool found, ReadLine(line));
    if (!found) return false;
    if (line_ == 1 && line->starts_with(kByteOrderMark)) line->erase(0, kByteOrderMark.size());
    if (dtype_ == DType::kString) {
      if (line->ends_with('\r')) line->pop_back();
      return true;
    }
    const std::string_view text = Trimmed(*line);
    if (text.empty() || text.starts_with('#')) continue;
    if (rows_ == 0 && delimiter_ == '\0') {
      delimiter_ = DelimiterOf(text);
      const auto cells = Cells(text, delimiter_);
      const bool has_number = std::any_of(cells.begin(), cells.end(), IsNumber);
      // A name may have brackets, as those of the columns that are written.
      const bool is_list = text.starts_with('[') || text.starts_with('{');
      const bool is_header = !has_number && !is_list;
      if (is_header) {
        has_names_ = true;
        continue;
      }
    }
    return true;
  }
}

Status TextRows::CheckCells(size_t cells) {
  if (rows_ == 0) {
    cells_ = cells;
    return ShapeOf(1).status();
  }
  if (cells == cells_) return OkStatus();
  return InvalidArgument(Where(), ": found ", Plural(cells, "value"), ", wanted ", cells_,
                         " as in the lines before");
}

/// The shape of so many rows: [rows] when a row is one value, else [rows, values of a row], or the
/// values of a row as what is wanted divides them.
StatusOr<Shape> TextRows::ShapeOf(int64_t rows) const {
  DimVector dims = {rows};
  const auto cells = static_cast<int64_t>(cells_);
  if (!wanted_.rank_known() || wanted_.rank() <= 1) {
    if (cells > 1) dims.push_back(cells);
    return Shape(dims);
  }
  int64_t known = 1;
  int unknown = -1;
  for (int i = 1; i < wanted_.rank(); ++i) {
    dims.push_back(wanted_.dim(i));
    if (wanted_.dim(i) >= 0) {
      TENON_ASSIGN_OR_RETURN(known, MultiplySizes(known, wanted_.dim(i)));
    } else if (std::exchange(unknown, i) >= 0) {
      return InvalidArgument(name_, ": text has rows of values, wanted ", wanted_,
                             ", whose rows could be of several shapes");
    }
  }
  if (unknown >= 0 && known > 0 && cells % known == 0) {
    dims[unknown] = cells / known;
    return Shape(dims);
  }
  if (unknown < 0 && cells == known) return Shape(dims);
  return InvalidArgument(Where(), ": found ", Plural(cells, "value"), ", wanted ", known,
                         unknown >= 0 ? " or a multiple" : "", " for a row of ", wanted_);
}

Shape TextRows::ShapeOfNone() const {
  DimVector dims = {0};
  for (int i = 1; wanted_.rank_known() && i < wanted_.rank(); ++i) {
    dims.push_back(std::max<int64_t>(wanted_.dim(i), 0));
  }
  return Shape(dims);
}

template <typename T>
Status TextRows::ParseRow(const std::string& line, std::vector<T>* values) {
  if constexpr (std::is_same_v<T, TString>) {
    TENON_RETURN_IF_ERROR(CheckCells(1));
    values->emplace_back(line);
    return OkStatus();
  } else {
    const std::vector<std::string_view> cells = Cells(Trimmed(line), delimiter_);
    TENON_RETURN_IF_ERROR(CheckCells(cells.size()));
    for (size_t i = 0; i < cells.size(); ++i) {
      T value{};
      if (!ParseCell(cells[i], &value)) {
        return InvalidArgument(Where(), ", value ", i + 1, ": found '", cells[i], "', wanted ",
                               ToString(dtype_));
      }
      values->push_back(value);
    }
    return OkStatus();
  }
}

template <typename T>
StatusOr<Tensor> TextRows::Read(int64_t most) {
  std::vector<T> values;
  int64_t rows = 0;
  std::string line;
  for (; rows < most; ++rows) {
    TENON_ASSIGN_OR_RETURN(const bool found, NextLine(&line));
    if (!found) break;
    TENON_RETURN_IF_ERROR(ParseRow(line, &values));
    ++rows_;
  }
  TENON_ASSIGN_OR_RETURN(const Shape shape, rows_ == 0 ? ShapeOfNone() : ShapeOf(rows));
  TENON_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(CpuAllocator(), dtype_, shape));
  std::copy(values.begin(), values.end(), tensor.data<T>());
  return tensor;
}

StatusOr<Tensor> TextRows::Next(int64_t most) {
  StatusOr<Tensor> rows = Unimplemented("no values of dtype ", ToString(dtype_), " in text");
  using Types = decltype(ConcatTypes(RealTypes(), TypeList<bool, TString>()));
  Dispatch(dtype_, Types(), [&](auto zero) { rows = Read<decltype(zero)>(most); });
  return rows;
}

StatusOr<Tensor> TextRows::All() {
  TENON_ASSIGN_OR_RETURN(const Tensor rows, Next(INT64_MAX));
  if (rows_ == 0) {
    return InvalidArgument(name_, " has no values", has_names_ ? " after a line of names" : "");
  }
  const bool one_line = rows.dim(0) == 1;
  const int rank = wanted_.rank_known() ? wanted_.rank() : -1;
  if (one_line && cells_ == 1 && rank <= 0) return rows.Reshaped(Shape());
  if (one_line && cells_ > 1 && rank == 1) return rows.Reshaped(Shape({rows.num_elements()}));
  return rows;
}

}  // namespace tenon::tools
