// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/mutex.h"
#include "core/op_registry.h"
#include "core/parallel.h"
#include "ops/arguments.h"
#include "ops/maths.h"
#include "ops/strings/read_number.h"

namespace tenon {
namespace {

using CsvTypes = TypeList<float, double, int32_t, int64_t, TString>;

/// How a node's lines are written, and which of their fields it wants.
struct CsvFormat : KernelState {
  explicit CsvFormat(KernelConstruction& c)
      : columns(c.Attr<std::vector<int64_t>>("select_cols")),
        not_there(c.Attr<std::string>("na_value")),
        quotes(c.Attr<bool>("use_quote_delim")),
        wanted(c.output_types().size()) {
    const std::string text = c.Attr<std::string>("field_delim");
    if (text.size() != 1) {
      c.Fail(InvalidArgument("field_delim should be only 1 char, found '", text, "'"));
    }
    delimiter = text.empty() ? ',' : text[0];
    if (columns.empty()) return;
    if (columns.size() != wanted) {
      c.Fail(InvalidArgument("select_cols should match output size: ", columns.size(), " for ",
                             wanted));
    }
    if (columns[0] < 0 ||
        std::adjacent_find(columns.begin(), columns.end(), std::greater_equal()) != columns.end()) {
      c.Fail(InvalidArgument("select_cols should be non-negative and strictly increasing"));
    }
  }

  std::vector<int64_t> columns;  // all when empty
  std::string not_there;
  bool quotes;
  size_t wanted;
  char delimiter = ',';
};

/// One line, cut into its fields.
class CsvLine {
 public:
  explicit CsvLine(const CsvFormat& format) : format_(format), unquoted_(format.wanted) {}

  /// Gives the fields that are wanted, which stay as long as the line and until the next call.
  /// InvalidArgument for quotes and ends of lines where there may be none.
  Status Cut(std::string_view line, std::vector<std::string_view>* fields) {
    fields->clear();
    int64_t column = 0;
    size_t at = 0;
    while (at < line.size()) {
      if (IsLineEnd(line[at])) {
        ++at;
        continue;
      }
      const bool keep = Wants(column++, fields->size());
      std::string_view field;
      if (format_.quotes && line[at] == '"') {
        std::string* const unquoted =
            keep && fields->size() < unquoted_.size() ? &unquoted_[fields->size()] : &dropped_;
        TENON_RETURN_IF_ERROR(TakeQuoted(line, &at, unquoted, &field));
      } else {
        TENON_RETURN_IF_ERROR(TakePlain(line, &at, &field));
      }
      if (!keep) continue;
      fields->push_back(field);
      if (fields->size() == format_.columns.size()) return OkStatus();
      // More than are wanted is an error that need not hold them all.
      if (fields->size() > format_.wanted) return OkStatus();
    }
    if (!line.empty() && line.back() == format_.delimiter && Wants(column, fields->size())) {
      fields->push_back({});
    }
    return OkStatus();
  }

 private:
  static bool IsLineEnd(char c) { return c == '\n' || c == '\r'; }
  bool Wants(int64_t column, size_t fields) const {
    return format_.columns.empty() || format_.columns[fields] == column;
  }

  Status TakePlain(std::string_view line, size_t* at, std::string_view* field) const {
    const size_t begin = *at;
    for (; *at < line.size() && line[*at] != format_.delimiter; ++*at) {
      if ((format_.quotes && line[*at] == '"') || IsLineEnd(line[*at])) {
        return InvalidArgument("Unquoted fields cannot have quotes/CRLFs inside");
      }
    }
    *field = line.substr(begin, *at - begin);
    ++*at;
    return OkStatus();
  }

  /// A field in quotes ends with a quote before a delimiter or the end; any other quote inside is
  /// doubled. `unquoted` takes the text of one that has such.
  Status TakeQuoted(std::string_view line, size_t* at, std::string* unquoted,
                    std::string_view* field) const {
    const size_t begin = ++*at;
    const auto ends = [&](size_t i) {
      return i + 1 == line.size() || line[i + 1] == format_.delimiter;
    };
    bool doubled = false;
    for (;; ++*at) {
      *at = line.find('"', *at);
      if (*at == std::string_view::npos) {
        return InvalidArgument("Quoted field has to end with quote followed by delim or end");
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

  const CsvFormat& format_;
  std::vector<std::string> unquoted_;
  std::string dropped_;
};

/// Makes a field element `i` of `out`.
Status Convert(std::string_view field, int64_t number, int64_t i, const Tensor& fallback,
               const CsvFormat& format, Tensor* out) {
  const bool missing = field.empty() || field == format.not_there;
  if (missing && fallback.num_elements() != 1) {
    return InvalidArgument("Field ", number, " is required but missing in record ", i, "!");
  }
  return DispatchStatus(out->dtype(), CsvTypes(), [&]<typename T>(T) {
    T& value = out->data<T>()[i];
    if (missing) {
      value = fallback.scalar<T>();
    } else if constexpr (std::is_same_v<T, TString>) {
      value = TString(field);
    } else if (!ReadNumber(field, &value)) {
      return InvalidArgument("Field ", number, " in record ", i, " is not a valid ", out->dtype(),
                             ": ", field);
    }
    return OkStatus();
  });
}

Status DecodeCsvKernel(KernelContext& ctx, const CsvFormat& format) {
  const Tensor& records = ctx.input(0);
  const int count = ctx.num_outputs();
  for (int f = 0; f < count; ++f) {
    const Tensor& fallback = ctx.input(1 + f);
    if (fallback.rank() <= 1 && fallback.num_elements() < 2) continue;
    return InvalidArgument("There should only be 1 default per field but field ", f,
                           " has one of shape ", fallback.shape());
  }
  std::vector<Tensor*> outs(count);
  for (int f = 0; f < count; ++f) {
    TENON_ASSIGN_OR_RETURN(outs[f], ctx.AllocateOutput(f, records.shape()));
  }
  Mutex mu;
  Status first;
  int64_t first_record = INT64_MAX;
  ParallelFor(records.num_elements(), 30. * count, [&](int64_t begin, int64_t end) {
    CsvLine line(format);
    std::vector<std::string_view> fields;
    for (int64_t i = begin; i < end; ++i) {
      Status status = line.Cut(records.data<TString>()[i], &fields);
      if (status.ok() && fields.size() != static_cast<size_t>(count)) {
        status = InvalidArgument("Expect ", count, " fields but have ",
                                 fields.size() > format.wanted ? "more" : StrCat(fields.size()),
                                 " in record ", i);
      }
      for (int f = 0; f < count && status.ok(); ++f) {
        status = Convert(fields[f], f, i, ctx.input(1 + f), format, outs[f]);
      }
      if (status.ok()) continue;
      MutexLock lock(mu);
      if (i < first_record) std::tie(first_record, first) = std::tie(i, status);
      return;
    }
  });
  return first;
}

Status DecodeCsvShape(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) {
    const PartialShape& fallback = c.input(1 + i);
    if (fallback.rank() > 1 || (fallback.rank() == 1 && fallback.dim(0) > 1)) {
      return InvalidArgument("the default of field ", i,
                             " must be a scalar or one element, found shape ", fallback);
    }
    c.set_output(i, c.input(0));
  }
  return OkStatus();
}

}  // namespace

void RegisterCsvOps(OpRegistry& ops) {
  ops.Add("DecodeCSV", DecodeCsvShape, DecodeCsvKernel)
      .Example({Tensor::Vector({"1,ab", "2,\"c,\"\"d\"\"\""}), Tensor::Scalar(0.5f),
                Tensor::Vector({"none"})});
}

}  // namespace tenon
