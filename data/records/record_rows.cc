// SPDX-License-Identifier: Apache-2.0
#include "data/records/record_rows.h"

#include "data/records/record_file.h"
#include "data/records/text_column.h"

namespace tenon {
namespace {

class RecordTexts {
 public:
  explicit RecordTexts(std::unique_ptr<RecordReader> reader) : reader_(std::move(reader)) {}
  StatusOr<bool> Next(TString* text) {
    TENON_ASSIGN_OR_RETURN(const bool found, reader_->Read(&record_));
    if (found) text->assign(record_);
    return found;
  }

 private:
  const std::unique_ptr<RecordReader> reader_;
  std::string record_;
};

}  // namespace

BatchSourcePtr ReadRecords(std::vector<std::string> paths, std::optional<Compression> compression,
                           const FileContext& context) {
  return std::make_unique<TextColumn<RecordTexts>>(
      "record", std::move(paths),
      [compression, context](const std::string& path) -> StatusOr<std::unique_ptr<RecordTexts>> {
        TENON_ASSIGN_OR_RETURN(auto reader, RecordReader::Open(path, compression, context));
        return std::make_unique<RecordTexts>(std::move(reader));
      });
}

}  // namespace tenon
