// SPDX-License-Identifier: Apache-2.0
#include "ops/io/record_source.h"

#include <utility>

#include "core/base/interruption.h"
#include "data/records/lines.h"
#include "data/records/record_file.h"

namespace tenon {
namespace {

class LineSource final : public RecordSource {
 public:
  LineSource(std::string file, std::unique_ptr<ByteSource> bytes, int64_t skip)
      : file_(std::move(file)), lines_(std::move(bytes)), skip_(skip) {}

  StatusOr<bool> Next(std::string* key, std::string* value) override {
    std::string_view line;
    do {
      TENON_ASSIGN_OR_RETURN(const bool found, lines_.Next(&line));
      if (!found) return false;
    } while (++line_ <= skip_);
    *value = line;
    *key = StrCat(file_, ":", line_);
    return true;
  }

 private:
  const std::string file_;
  LineReader lines_;
  const int64_t skip_;
  int64_t line_ = 0;
};

class TFRecordSource final : public RecordSource {
 public:
  TFRecordSource(std::string file, std::unique_ptr<ByteSource> bytes)
      : file_(file), reader_(std::move(bytes), std::move(file)) {}

  StatusOr<bool> Next(std::string* key, std::string* value) override {
    *key = StrCat(file_, ":", reader_.offset());
    return reader_.Read(value);
  }

 private:
  const std::string file_;
  RecordReader reader_;
};

/// Records of one length in memory: where a footer begins is only known at the end of a compressed
/// file.
class FixedLengthSource final : public RecordSource {
 public:
  FixedLengthSource(std::string file, std::string content, const FixedLengths& lengths)
      : file_(std::move(file)),
        content_(std::move(content)),
        record_(lengths.record),
        hop_(lengths.hop == 0 ? lengths.record : lengths.hop),
        end_(static_cast<int64_t>(content_.size()) - lengths.footer),
        at_(lengths.header) {}

  StatusOr<bool> Next(std::string* key, std::string* value) override {
    if (at_ > end_ || record_ > end_ - at_) return false;
    *key = StrCat(file_, ":", number_++);
    *value = content_.substr(at_, record_);
    at_ += hop_;
    return true;
  }

 private:
  const std::string file_;
  const std::string content_;
  const int64_t record_, hop_, end_;
  int64_t at_;
  int64_t number_ = 0;
};

/// One record, which is named as its file is.
class OneRecordSource final : public RecordSource {
 public:
  OneRecordSource(std::string key, std::string value)
      : key_(std::move(key)), value_(std::move(value)) {}

  StatusOr<bool> Next(std::string* key, std::string* value) override {
    *key = key_;
    *value = std::move(value_);
    return !std::exchange(given_, true);
  }

 private:
  const std::string key_;
  std::string value_;
  bool given_ = false;
};

}  // namespace

std::unique_ptr<RecordSource> MakeLineSource(std::string file, std::unique_ptr<ByteSource> bytes,
                                             int64_t skip) {
  return std::make_unique<LineSource>(std::move(file), std::move(bytes), skip);
}

std::unique_ptr<RecordSource> MakeTFRecordSource(std::string file,
                                                 std::unique_ptr<ByteSource> bytes) {
  return std::make_unique<TFRecordSource>(std::move(file), std::move(bytes));
}

std::unique_ptr<RecordSource> MakeFixedLengthSource(std::string file, std::string content,
                                                    const FixedLengths& lengths) {
  return std::make_unique<FixedLengthSource>(std::move(file), std::move(content), lengths);
}

std::unique_ptr<RecordSource> MakeOneRecordSource(std::string key, std::string value) {
  return std::make_unique<OneRecordSource>(std::move(key), std::move(value));
}

StatusOr<std::string> ReadToEnd(ByteSource& bytes) {
  constexpr size_t kPiece = 1 << 20;
  std::string content;
  while (true) {
    const size_t before = content.size();
    content.resize(before + kPiece);
    TENON_ASSIGN_OR_RETURN(const size_t n, bytes.Read(kPiece, content.data() + before));
    content.resize(before + n);
    if (n < kPiece) return content;
    if (Interrupted()) return Cancelled("reading a file was interrupted");
  }
}

}  // namespace tenon
