// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/exceptions.h"
#include "data/batch/batch_stages.h"
#include "data/files/file.h"

namespace tenon {

/// Texts of files, one file after the other, as rows of one column. Reader is made by `open` for a
/// path, and its `Next(TString*)` gives the next text, false at the end.
template <typename Reader>
class TextColumn final : public BatchSource {
 public:
  using Open = std::function<StatusOr<std::unique_ptr<Reader>>(const std::string& path)>;
  TextColumn(std::string name, std::vector<std::string> paths, Open open)
      : schema_(std::make_shared<RowSchema>(
            RowSchema{{std::move(name), DType::kString, PartialShape(Shape())}})),
        paths_(std::move(paths)),
        open_(std::move(open)) {}
  const std::shared_ptr<const RowSchema>& schema() const override { return schema_; }

  StatusOr<bool> Next(int64_t most, RowBatch* batch) override {
    return CatchExceptions([&] { return Read(std::min(most, kMostRows), batch); });
  }

 private:
  static constexpr int64_t kMostRows = 1024;
  /// A batch that has grown so large is given: memory does not hold a thousand long texts.
  static constexpr size_t kMostBytes = 1 << 20;

  StatusOr<bool> Read(int64_t most, RowBatch* batch) {
    TENON_RETURN_IF_ERROR(mistake_);
    TENON_ASSIGN_OR_RETURN(Tensor texts, Tensor::Allocate(CpuAllocator(), DType::kString, {most}));
    int64_t rows = 0;
    for (size_t bytes = 0; rows < most && bytes < kMostBytes;) {
      TString* const text = &texts.data<TString>()[rows];
      const StatusOr<bool> found = ReadOne(text);
      if (!found.ok()) mistake_ = found.status();
      if (!found.ok() || !*found) break;
      bytes += text->size();
      ++rows;
    }
    if (rows == 0) TENON_RETURN_IF_ERROR(mistake_);
    *batch = {schema_, {rows == most ? std::move(texts) : texts.Slice(0, rows)}};
    return rows > 0;
  }

  StatusOr<bool> ReadOne(TString* text) {
    while (true) {
      if (reader_ == nullptr) {
        if (next_ == paths_.size()) return false;
        TENON_ASSIGN_OR_RETURN(reader_, open_(paths_[next_++]));
      }
      TENON_ASSIGN_OR_RETURN(const bool found, reader_->Next(text));
      if (found) return true;
      reader_ = nullptr;
    }
  }

  const std::shared_ptr<const RowSchema> schema_;
  const std::vector<std::string> paths_;
  const Open open_;
  size_t next_ = 0;  // file to open
  std::unique_ptr<Reader> reader_;
  Status mistake_;
};

}  // namespace tenon
