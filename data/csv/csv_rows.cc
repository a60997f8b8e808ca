// SPDX-License-Identifier: Apache-2.0
#include "data/csv/csv_rows.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "data/batch/block_source.h"
#include "data/csv/csv.h"
#include "data/csv/csv_blocks.h"
#include "data/csv/read_number.h"

namespace tenon {
namespace {

/// How many records are converted at once.
constexpr size_t kBlockRows = 16384;
/// The cost of converting a field, in ns.
constexpr double kFieldCost = 20;

bool IsCsvType(DType dtype) {
  return dtype == DType::kFloat || dtype == DType::kDouble || dtype == DType::kInt32 ||
         dtype == DType::kInt64 || dtype == DType::kBool || dtype == DType::kString;
}

bool ReadBool(std::string_view text, bool* value) {
  const absl::string_view word = absl::StripAsciiWhitespace(ToAbsl(text));
  *value = word == "1" || absl::EqualsIgnoreCase(word, "true");
  return *value || word == "0" || absl::EqualsIgnoreCase(word, "false");
}

/// Makes the field element `at` of a column; false when it is no value of its dtype.
bool ReadField(std::string_view field, Tensor* column, int64_t at) {
  switch (column->dtype()) {
    case DType::kFloat:
      return ReadFieldNumber(field, column->data<float>() + at);
    case DType::kDouble:
      return ReadFieldNumber(field, column->data<double>() + at);
    case DType::kInt32:
      return ReadFieldNumber(field, column->data<int32_t>() + at);
    case DType::kInt64:
      return ReadFieldNumber(field, column->data<int64_t>() + at);
    case DType::kBool:
      return ReadBool(field, column->data<bool>() + at);
    default:
      column->data<TString>()[at] = TString(field);
      return true;
  }
}

Status CheckCsvColumns(const std::vector<CsvColumn>& columns, const std::string& line_column) {
  if (columns.empty()) return InvalidArgument("rows of CSV files need a column");
  for (size_t i = 0; i < columns.size(); ++i) {
    const CsvColumn& column = columns[i];
    const auto name = [&] { return StrCat("column ", i, ", '", column.name, "'"); };
    if (!IsCsvType(column.dtype)) {
      return InvalidArgument(name(), " of CSV files is ", ToString(column.dtype),
                             ", wanted float, double, int32, int64, bool or string");
    }
    if (column.fallback &&
        (column.fallback->dtype() != column.dtype || column.fallback->num_elements() != 1)) {
      return InvalidArgument(name(), " of CSV files has the default ", column.fallback->ToString(),
                             ", wanted one ", ToString(column.dtype));
    }
    for (size_t j = 0; j < i; ++j) {
      if (columns[j].name == column.name) {
        return InvalidArgument(name(), " of CSV files is wanted twice");
      }
    }
    if (!line_column.empty() && column.name == line_column) {
      return InvalidArgument(name(), " of CSV files is called as the column of line numbers");
    }
  }
  return OkStatus();
}

Status CheckDelimiter(const CsvOptions& options) {
  const char c = options.delimiter;
  if (c != '"' && c != '\n' && c != '\r') return OkStatus();
  return InvalidArgument("a quote or the end of a line cannot be the delimiter of CSV files");
}

/// The names in the first record of a file, for which `format` becomes one that wants all fields.
StatusOr<std::vector<std::string>> TakeNames(CsvBlocks* blocks, CsvFormat* format) {
  std::vector<CsvRecord> records;
  TENON_RETURN_IF_ERROR(blocks->Next(1, &records));
  if (records.empty()) {
    return InvalidArgument("'", blocks->name(),
                           "' is empty, wanted a first line with the names of columns");
  }
  format->wanted = records[0].text.size() + 1;
  CsvLine line(*format);
  std::vector<std::string_view> fields;
  if (line.Cut(records[0].text, &fields) != CsvMistake::kNone) {
    return InvalidArgument("'", blocks->name(), "', line ", records[0].line,
                           ": the names of columns have wrong quotes");
  }
  std::vector<std::string> names;
  for (const std::string_view field : fields) {
    names.emplace_back(absl::StripAsciiWhitespace(ToAbsl(field)));
  }
  return names;
}

class CsvRows final : public BlockSource {
 public:
  CsvRows(std::vector<std::string> paths, std::vector<CsvColumn> columns, const CsvOptions& options,
          const FileContext& context)
      : BlockSource(SchemaOf(columns, options.line_column)),
        paths_(std::move(paths)),
        columns_(std::move(columns)),
        options_(options),
        context_(context) {}

 private:
  struct File {
    CsvFormat format;
    std::vector<size_t> column_of;  // which of `columns_` each wanted field is
    int64_t num_columns = 0;
    std::unique_ptr<CsvBlocks> blocks;
  };

  static RowSchema SchemaOf(const std::vector<CsvColumn>& columns, const std::string& line_column) {
    RowSchema schema;
    for (const CsvColumn& c : columns) schema.push_back({c.name, c.dtype, PartialShape(Shape())});
    if (!line_column.empty()) {
      schema.push_back({line_column, DType::kInt64, PartialShape(Shape())});
    }
    return schema;
  }

  StatusOr<bool> ReadBlock(RowBatch* block) override {
    std::vector<CsvRecord> records;
    while (true) {
      TENON_RETURN_IF_ERROR(context_.CheckCancelled());
      if (file_ == nullptr) {
        if (next_file_ == paths_.size()) return false;
        TENON_ASSIGN_OR_RETURN(file_, OpenFile(paths_[next_file_++]));
      }
      TENON_RETURN_IF_ERROR(file_->blocks->Next(kBlockRows, &records));
      if (!records.empty()) break;
      file_ = nullptr;
    }
    const auto rows = static_cast<int64_t>(records.size());
    RowBatch all{schema(), {}};
    for (const CsvColumn& column : columns_) {
      TENON_ASSIGN_OR_RETURN(Tensor values, Tensor::Allocate(CpuAllocator(), column.dtype, {rows}));
      all.columns.push_back(std::move(values));
    }
    if (!options_.line_column.empty()) {
      TENON_ASSIGN_OR_RETURN(Tensor lines, Tensor::Allocate(CpuAllocator(), DType::kInt64, {rows}));
      std::transform(records.begin(), records.end(), lines.data<int64_t>(),
                     [](const CsvRecord& record) { return record.line; });
      all.columns.push_back(std::move(lines));
    }
    const auto converter = [&]() -> ConvertRow {
      return [&, line = CsvLine(file_->format),
              fields = std::vector<std::string_view>()](int64_t i) mutable {
        return ConvertRecord(records[i], i, &line, &fields, &all.columns);
      };
    };
    int64_t good = 0;
    const double cost = kFieldCost * static_cast<double>(file_->num_columns);
    const Status mistake = ConvertRows(rows, cost, converter, &good);
    *block = good == rows ? std::move(all) : all.Slice(0, good);
    TENON_RETURN_IF_ERROR(mistake);
    return true;
  }

  Status ConvertRecord(const CsvRecord& record, int64_t at, CsvLine* line,
                       std::vector<std::string_view>* fields, std::vector<Tensor>* columns) const {
    const CsvMistake mistake = line->Cut(record.text, fields);
    if (mistake != CsvMistake::kNone || line->num_columns() != file_->num_columns) {
      return WrongRecord(mistake, *line, record);
    }
    for (size_t f = 0; f < fields->size(); ++f) {
      const size_t c = file_->column_of[f];
      const std::string_view field = (*fields)[f];
      const bool missing = field == options_.not_there || IsBlank(field);
      if (missing && columns_[c].fallback) {
        CopyRow(*columns_[c].fallback, 0, &(*columns)[c], at);
      } else if ((missing && columns_[c].dtype != DType::kString) ||
                 !ReadField(field, &(*columns)[c], at)) {
        return Mistake(record.line, "column '", columns_[c].name, "': found ",
                       field.empty() ? "no value" : ShownField(field), ", wanted ",
                       ToString(columns_[c].dtype));
      } else if (missing) {
        (*columns)[c].data<TString>()[at].clear();
      }
    }
    return OkStatus();
  }

  static bool IsBlank(std::string_view field) {
    return std::all_of(field.begin(), field.end(), [](char c) { return c == ' ' || c == '\t'; });
  }

  template <typename... Text>
  Status Mistake(int64_t line, const Text&... text) const {
    return InvalidArgument("'", file_->blocks->name(), "', line ", line, ": ", text...);
  }

  Status WrongRecord(CsvMistake mistake, const CsvLine& line, const CsvRecord& record) const {
    switch (mistake) {
      case CsvMistake::kQuoteInPlainField:
        return Mistake(record.line, "field ", line.num_columns(),
                       " holds a quote or the end of a line and is not in quotes");
      case CsvMistake::kSingleQuoteInQuotes:
        return Mistake(record.line, "field ", line.num_columns(),
                       " goes on behind its closing quote; one within it is doubled");
      case CsvMistake::kUnclosedQuotes:
        return Mistake(record.line, "field ", line.num_columns(),
                       " begins with a quote that is not closed until the end of the file");
      default:
        return Mistake(record.line, "found ", line.num_columns(), " fields, wanted ",
                       file_->num_columns);
    }
  }

  StatusOr<std::unique_ptr<File>> OpenFile(const std::string& path) {
    TENON_ASSIGN_OR_RETURN(auto bytes, OpenTextSource(path, context_));
    auto file = std::make_unique<File>();
    file->format.quotes = options_.quotes;
    file->format.delimiter = options_.delimiter;
    file->format.count_all = true;
    file->blocks = std::make_unique<CsvBlocks>(std::move(bytes), path, file->format);
    file->column_of.resize(columns_.size());
    std::iota(file->column_of.begin(), file->column_of.end(), 0);
    file->num_columns = static_cast<int64_t>(columns_.size());
    if (options_.header) TENON_RETURN_IF_ERROR(ReadHeader(file.get()));
    file->format.wanted = columns_.size();
    return file;
  }

  /// Finds the columns by the names in the first line.
  Status ReadHeader(File* file) const {
    const std::string& path = file->blocks->name();
    TENON_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                           TakeNames(file->blocks.get(), &file->format));
    std::vector<std::pair<int64_t, size_t>> found;  // where each column is
    for (size_t c = 0; c < columns_.size(); ++c) {
      const auto at = std::find(names.begin(), names.end(), columns_[c].name);
      if (at == names.end()) {
        return NotFound("'", path, "' has no column '", columns_[c].name, "'; it has ",
                        Join(names, ", "));
      }
      if (std::find(at + 1, names.end(), columns_[c].name) != names.end()) {
        return InvalidArgument("'", path, "' has two columns '", columns_[c].name, "'");
      }
      found.emplace_back(at - names.begin(), c);
    }
    std::sort(found.begin(), found.end());
    for (size_t i = 0; i < found.size(); ++i) {
      file->format.columns.push_back(found[i].first);
      file->column_of[i] = found[i].second;
    }
    file->num_columns = static_cast<int64_t>(names.size());
    return OkStatus();
  }

  const std::vector<std::string> paths_;
  const std::vector<CsvColumn> columns_;
  const CsvOptions options_;
  const FileContext context_;
  size_t next_file_ = 0;
  std::unique_ptr<File> file_;
};

}  // namespace

StatusOr<BatchSourcePtr> ReadCsv(std::vector<std::string> paths, std::vector<CsvColumn> columns,
                                 const CsvOptions& options, const FileContext& context) {
  TENON_RETURN_IF_ERROR(CheckCsvColumns(columns, options.line_column));
  TENON_RETURN_IF_ERROR(CheckDelimiter(options));
  // A default is copied as a row.
  for (CsvColumn& column : columns) {
    if (column.fallback) {
      TENON_ASSIGN_OR_RETURN(column.fallback, column.fallback->Reshaped({1}));
    }
  }
  return std::make_unique<CsvRows>(std::move(paths), std::move(columns), options, context);
}

StatusOr<std::vector<std::string>> ReadCsvNames(const std::string& path, const CsvOptions& options,
                                                const FileContext& context) {
  TENON_RETURN_IF_ERROR(CheckDelimiter(options));
  TENON_ASSIGN_OR_RETURN(auto bytes, OpenTextSource(path, context));
  CsvFormat format;
  format.quotes = options.quotes;
  format.delimiter = options.delimiter;
  CsvBlocks blocks(std::move(bytes), path, format);
  return TakeNames(&blocks, &format);
}

}  // namespace tenon
