// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/data/line_dataset.h"
#include "ops/parsing/csv.h"

namespace tenon {
namespace {

constexpr std::string_view kUnclosed = "Reached end of file without closing quoted field in record";

/// The records of CSV files, a scalar for each field that is wanted.
struct CsvDataset final : DatasetOver<CsvDataset> {
  CsvDataset(DatasetPtr lines, const ElementSpec& spec, CsvFormat of, std::vector<Tensor> missing)
      : DatasetOver(std::move(lines), spec), format(std::move(of)), defaults(std::move(missing)) {}

  class Walk final : public WalkOver<CsvDataset> {
   public:
    Walk(std::shared_ptr<const CsvDataset> of, IteratorPtr input, ContextPtr context)
        : WalkOver(of, std::move(input), std::move(context)), line_(of->format) {}
    StatusOr<bool> Next(DatasetElement* out) override {
      TENON_ASSIGN_OR_RETURN(const Taken taken, TakeRecord());
      if (taken == Taken::kNothing) return false;
      if (text_.empty() && of_->format.Wants(0, 0)) {
        fields_ = {text_};  // the record of one empty field
      } else {
        TENON_RETURN_IF_ERROR(
            CsvError(line_.Cut(text_, &fields_), line_, of_->format, record_, kUnclosed));
        // The field that is not closed may be one that nobody wants.
        if (taken == Taken::kUnclosed) return InvalidArgument(kUnclosed);
      }
      std::vector<Tensor*> outs;
      out->clear();
      for (const DType type : of_->types()) out->emplace_back(type, Shape());
      for (Tensor& t : *out) outs.push_back(&t);
      TENON_RETURN_IF_ERROR(
          ConvertCsvFields(fields_, of_->format, record_++, of_->defaults, outs, 0));
      return true;
    }

   private:
    enum class Taken { kNothing, kRecord, kUnclosed };

    /// Makes `text_` the next record: a line, or more of its file when a line ends within quotes.
    StatusOr<Taken> TakeRecord() {
      text_.clear();
      bool within_quotes = false, first = true;
      int64_t file = 0;
      do {
        if (next_line_.empty()) {
          TENON_ASSIGN_OR_RETURN(const bool found, input_->Next(&next_line_));
          if (!found) return first ? Taken::kNothing : Taken::kUnclosed;
        }
        const auto number = next_line_[1].scalar<int64_t>();
        if (!first && number != file) return Taken::kUnclosed;
        if (!first) text_.push_back('\n');
        const std::string_view part = next_line_[0].scalar<TString>();
        text_.append(part);
        within_quotes = of_->format.EndsWithinQuotes(part, within_quotes);
        file = number;
        first = false;
        next_line_.clear();
      } while (within_quotes);
      return Taken::kRecord;
    }

    CsvLine line_;
    DatasetElement next_line_;  // with the number of its file; empty: still to be read
    std::string text_;
    std::vector<std::string_view> fields_;
    int64_t record_ = 0;
  };

  const CsvFormat format;
  const std::vector<Tensor> defaults;
};

/// filenames, compression_type, buffer_size, header, field_delim, use_quote_delim, na_value,
/// select_cols, a default for each field and, of version 2, exclude_cols.
Status CsvDatasetKernel(KernelContext& ctx, const ElementSpec& spec) {
  if (ctx.input(2).scalar<int64_t>() <= 0) {
    return InvalidArgument("buffer_size should be positive, found ",
                           ctx.input(2).scalar<int64_t>());
  }
  const int fields = static_cast<int>(spec.types.size());
  CsvFormat format{.columns = {},
                   .excluded = {},
                   .not_there = std::string(std::string_view(ctx.input(6).scalar<TString>())),
                   .quotes = ctx.input(5).scalar<bool>(),
                   .wanted = spec.types.size()};
  TENON_ASSIGN_OR_RETURN(const DimVector columns, ReadIntegerVector(ctx.input(7), "select_cols"));
  format.columns.assign(columns.begin(), columns.end());
  if (8 + fields < ctx.num_inputs()) {
    TENON_ASSIGN_OR_RETURN(const DimVector excluded,
                           ReadIntegerVector(ctx.input(8 + fields), "exclude_cols"));
    if (!excluded.empty() && !columns.empty()) {
      return InvalidArgument("Either select_cols or exclude_cols should be empty");
    }
    if (!std::is_sorted(excluded.begin(), excluded.end())) {
      return InvalidArgument("exclude_cols should be strictly increasing indices");
    }
    format.excluded.assign(excluded.begin(), excluded.end());
  }
  TENON_RETURN_IF_ERROR(FinishCsvFormat(ctx.input(4).scalar<TString>(), &format));
  std::vector<Tensor> defaults;
  for (int i = 0; i < fields; ++i) {
    defaults.push_back(ctx.input(8 + i));
    TENON_RETURN_IF_ERROR(CheckCsvDefault(defaults.back(), i));
  }
  TENON_ASSIGN_OR_RETURN(DatasetPtr lines,
                         ReadLineDataset(ctx, ctx.input(3).scalar<bool>() ? 1 : 0, true));
  return ReturnDataset(ctx, std::make_shared<CsvDataset>(std::move(lines), spec, std::move(format),
                                                         std::move(defaults)));
}

}  // namespace

void RegisterCsvDatasets(OpRegistry& ops) {
  for (const char* name : {"CSVDataset", "CSVDatasetV2"}) {
    ops.Add(name, ScalarShape, CsvDatasetKernel)
        .NoExample("needs files; tests/interop/input_pipelines_test.py covers it");
  }
}

}  // namespace tenon
