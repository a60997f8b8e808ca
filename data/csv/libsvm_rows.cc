// SPDX-License-Identifier: Apache-2.0
#include "data/csv/libsvm_rows.h"

#include <algorithm>
#include <utility>

#include "data/batch/block_source.h"
#include "data/csv/csv.h"
#include "data/csv/csv_blocks.h"
#include "data/csv/read_number.h"

namespace tenon {
namespace {

/// A block is of so many lines, and of fewer when their dense rows would be larger than so many
/// floats.
constexpr int64_t kBlockLines = 16384;
constexpr int64_t kBlockFloats = 4 << 20;
/// The cost of converting a byte of a line, and of a feature that is not there, in ns.
constexpr double kByteCost = 2;
constexpr double kZeroCost = 0.2;

/// Takes the next word off `line`; empty at its end.
std::string_view TakeWord(std::string_view* line) {
  constexpr std::string_view kBlanks = " \t\r\v\f";
  line->remove_prefix(std::min(line->find_first_not_of(kBlanks), line->size()));
  const std::string_view word = line->substr(0, line->find_first_of(kBlanks));
  line->remove_prefix(word.size());
  return word;
}

/// Converts a line without its comment; a mistake says what was found and wanted.
Status ConvertLine(std::string_view line, absl::Span<float> features, float* label) {
  const std::string_view first = TakeWord(&line);
  if (!ReadFieldNumber(first, label)) {
    return InvalidArgument("found ", ShownField(first), ", wanted a number as the label");
  }
  std::fill(features.begin(), features.end(), 0.0f);
  const auto num_features = static_cast<int64_t>(features.size());
  int64_t last = 0;
  while (true) {
    const std::string_view pair = TakeWord(&line);
    if (pair.empty()) return OkStatus();
    const size_t colon = pair.find(':');
    int64_t index = 0;
    float value = 0;
    if (colon == std::string_view::npos || !ReadFieldNumber(pair.substr(0, colon), &index) ||
        !ReadFieldNumber(pair.substr(colon + 1), &value)) {
      return InvalidArgument("found ", ShownField(pair), ", wanted index:value");
    }
    if (index < 1 || index > num_features) {
      return InvalidArgument("found the index ", index, ", wanted one from 1 to ", num_features);
    }
    if (index <= last) {
      return InvalidArgument("found the index ", index, " behind ", last,
                             ", wanted ascending ones");
    }
    features[index - 1] = value;
    last = index;
  }
}

class LibsvmRows final : public BlockSource {
 public:
  LibsvmRows(std::vector<std::string> paths, int64_t num_features, const FileContext& context)
      : BlockSource({{"features", DType::kFloat, PartialShape({num_features})},
                     {"label", DType::kFloat, PartialShape(Shape())}}),
        paths_(std::move(paths)),
        num_features_(num_features),
        context_(context) {
    format_.quotes = false;
  }

 private:
  StatusOr<bool> ReadBlock(RowBatch* block) override {
    const int64_t most = std::clamp<int64_t>(kBlockFloats / num_features_, 1, kBlockLines);
    std::vector<CsvRecord> lines;
    while (lines.empty()) {
      TENON_RETURN_IF_ERROR(context_.CheckCancelled());
      if (file_ == nullptr) {
        if (next_file_ == paths_.size()) return false;
        const std::string& path = paths_[next_file_++];
        TENON_ASSIGN_OR_RETURN(auto bytes, OpenTextSource(path, context_));
        file_ = std::make_unique<CsvBlocks>(std::move(bytes), path, format_);
      }
      TENON_RETURN_IF_ERROR(file_->Next(static_cast<size_t>(most), &lines));
      if (lines.empty()) file_ = nullptr;
      DropComments(&lines);
    }
    const auto rows = static_cast<int64_t>(lines.size());
    TENON_ASSIGN_OR_RETURN(const Shape shape, Shape::Create({rows, num_features_}));
    TENON_ASSIGN_OR_RETURN(Tensor features, Tensor::Allocate(CpuAllocator(), DType::kFloat, shape));
    TENON_ASSIGN_OR_RETURN(Tensor labels, Tensor::Allocate(CpuAllocator(), DType::kFloat, {rows}));
    const auto convert = [&](int64_t i) -> Status {
      float* const row = features.data<float>() + i * num_features_;
      const Status status = ConvertLine(lines[i].text, {row, static_cast<size_t>(num_features_)},
                                        labels.data<float>() + i);
      if (status.ok()) return status;
      return Annotate(status, StrCat("'", file_->name(), "', line ", lines[i].line));
    };
    int64_t good = 0;
    const Status mistake = ConvertRows(
        rows, CostOf(lines), [&] { return convert; }, &good);
    *block = RowBatch{schema(), {std::move(features), std::move(labels)}}.Slice(0, good);
    TENON_RETURN_IF_ERROR(mistake);
    return true;
  }

  /// Leaves the lines that have more than a comment, without it.
  static void DropComments(std::vector<CsvRecord>* lines) {
    std::erase_if(*lines, [](CsvRecord& line) {
      line.text = line.text.substr(0, line.text.find('#'));
      std::string_view rest = line.text;
      return TakeWord(&rest).empty();
    });
  }

  double CostOf(const std::vector<CsvRecord>& lines) const {
    size_t bytes = 0;
    for (const CsvRecord& line : lines) bytes += line.text.size();
    return kByteCost * static_cast<double>(bytes) / static_cast<double>(lines.size()) +
           kZeroCost * static_cast<double>(num_features_);
  }

  const std::vector<std::string> paths_;
  const int64_t num_features_;
  const FileContext context_;
  CsvFormat format_;
  size_t next_file_ = 0;
  std::unique_ptr<CsvBlocks> file_;
};

}  // namespace

StatusOr<BatchSourcePtr> ReadLibsvm(std::vector<std::string> paths, int64_t num_features,
                                    const FileContext& context) {
  if (num_features < 1) {
    return InvalidArgument("rows of LIBSVM files need at least 1 feature, found ", num_features);
  }
  return std::make_unique<LibsvmRows>(std::move(paths), num_features, context);
}

}  // namespace tenon
