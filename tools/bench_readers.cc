// SPDX-License-Identifier: Apache-2.0
//
// Rows of input pipelines over files, which are written anew, and of tensors: megabytes of the
// file, or of pixels, a second.
#include <unistd.h>

#include <cmath>
#include <cstdlib>

#include "data/arrays/npy.h"
#include "data/batch/random_sequence.h"
#include "data/files/file.h"
#include "data/records/record_file.h"
#include "ops/image/codecs.h"
#include "tools/bench.h"
#include "train/input/input_pipeline.h"

namespace tenon::tools {
namespace {

constexpr int64_t kBatch = 256;
constexpr int64_t kRecords = 65536, kRecordBytes = 1000;
constexpr int64_t kLines = 400000, kColumns = 10;
constexpr int64_t kLineBytes = kColumns * 9;  // "0.123456" and what ends it
constexpr int64_t kImages = 60000, kPixels = 784;
constexpr int64_t kPictures = 128, kSide = 256;

/// A folder that ends with the process.
class BenchFolder {
 public:
  BenchFolder() {
    const char* const base = std::getenv("TMPDIR");
    path_ = StrCat(base != nullptr ? base : "/tmp", "/tenon_bench_XXXXXX");
    if (mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  ~BenchFolder() {
    if (!path_.empty()) RemoveTree(path_).IgnoreError();
  }
  /// The path of `name`, which `write` makes the first time.
  StatusOr<std::string> Place(const std::string& name,
                              const std::function<Status(const std::string& path)>& write) {
    if (path_.empty()) return Unavailable("there is no folder for the files to read");
    const std::string path = JoinPath(path_, name);
    if (!FileExists(path)) TENON_RETURN_IF_ERROR(write(path));
    return path;
  }

 private:
  std::string path_;
};

BenchFolder& Folder() {
  static BenchFolder folder;
  return folder;
}

Status WriteRecords(const std::string& path) {
  TENON_ASSIGN_OR_RETURN(const auto writer, RecordWriter::Create(path));
  const std::string record(kRecordBytes, 'r');
  for (int64_t i = 0; i < kRecords; ++i) TENON_RETURN_IF_ERROR(writer->Write(record));
  return writer->Close();
}

Status WriteTable(const std::string& path) {
  std::string text = "c0,c1,c2,c3,c4,c5,c6,c7,c8,c9\n";
  RandomSequence random(1);
  for (int64_t line = 0; line < kLines; ++line) {
    for (int64_t c = 0; c < kColumns; ++c) {
      StrAppend(&text, c > 0 ? "," : "", "0.", absl::Dec(random.Below(1000000), absl::kZeroPad6));
    }
    text += '\n';
  }
  return WriteStringToFile(path, text);
}

/// `images` or their labels in the IDX format.
Status WriteIdx(const std::string& path, bool images) {
  const auto number = [](int64_t n) {
    std::string bytes;
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(n >> shift);
    return bytes;
  };
  std::string content = std::string("\0\0\x08", 3) + (images ? '\3' : '\1') + number(kImages);
  if (images) content += number(28) + number(28);
  content.append(kImages * (images ? kPixels : 1), '\7');
  return WriteStringToFile(path, content);
}

Tensor FloatImages() {
  Tensor images(DType::kFloat, {kImages, kPixels});
  std::fill_n(images.data<float>(), images.num_elements(), 0.5f);
  return images;
}

Status WriteArrays(const std::string& path) {
  return WriteNpz(path, {{"x", FloatImages()}, {"y", Tensor::Zeros(DType::kInt32, {kImages})}});
}

Status WritePictures(const std::string& folder) {
  TENON_RETURN_IF_ERROR(MakeFolders(folder));
  std::string pixels(kSide * kSide * 3, '\0');
  for (int64_t i = 0; i < kPictures; ++i) {
    for (size_t p = 0; p < pixels.size(); ++p) {
      const double x = static_cast<double>(p / 3 % kSide), y = static_cast<double>(p / 3 / kSide);
      pixels[p] = static_cast<char>(127 + 100 * std::sin(x / 20 + static_cast<double>(i)) *
                                              std::cos(y / 30 + static_cast<double>(p % 3)));
    }
    TENON_ASSIGN_OR_RETURN(
        const std::string file,
        EncodeJpegFile({kSide, kSide, 3}, reinterpret_cast<const uint8_t*>(pixels.data()), {}));
    TENON_RETURN_IF_ERROR(WriteStringToFile(JoinPath(folder, StrCat(i, ".jpg")), file));
  }
  return OkStatus();
}

/// Seconds that a loop over all of `input` takes.
StatusOr<double> Walk(InputPipeline input) {
  return TimeCalls(1, [&]() -> Status {
    int64_t elements = 0;
    for (const InputElement& element : input) elements += static_cast<int64_t>(element.size());
    TENON_RETURN_IF_ERROR(input.status());
    return elements > 0 ? OkStatus() : Internal("the input is empty");
  });
}

/// A row of the bytes that a file has, or that its pixels have.
BenchRow ReadRow(std::string name, std::string what, int64_t bytes,
                 std::function<StatusOr<InputPipeline>()> open) {
  return {std::move(name), std::move(what), "MB/s", true,
          [bytes, open = std::move(open)]() -> StatusOr<double> {
            TENON_ASSIGN_OR_RETURN(const InputPipeline input, open());
            TENON_ASSIGN_OR_RETURN(const double seconds, Walk(input));
            return static_cast<double>(bytes) / 1e6 / seconds;
          }};
}

std::vector<CsvColumn> TableColumns() {
  std::vector<CsvColumn> columns;
  for (int64_t c = 0; c < kColumns; ++c) columns.push_back({StrCat("c", c), DType::kFloat});
  return columns;
}

}  // namespace

std::vector<BenchRow> ReaderBenchRows() {
  return {
      ReadRow("read_records", "input: TFRecords of 1,000 bytes, batches of 256",
              kRecords * kRecordBytes,
              []() -> StatusOr<InputPipeline> {
                TENON_ASSIGN_OR_RETURN(const auto path, Folder().Place("records", WriteRecords));
                return InputPipeline::FromRecords({path}).Batch(kBatch);
              }),
      ReadRow("read_text", "input: lines of 90 characters, batches of 256", kLines * kLineBytes,
              []() -> StatusOr<InputPipeline> {
                TENON_ASSIGN_OR_RETURN(const auto path, Folder().Place("table.csv", WriteTable));
                return InputPipeline::FromText({path}).Batch(kBatch);
              }),
      ReadRow("read_csv", "input: CSV of 10 floats a line, batches of 256", kLines * kLineBytes,
              []() -> StatusOr<InputPipeline> {
                TENON_ASSIGN_OR_RETURN(const auto path, Folder().Place("table.csv", WriteTable));
                return InputPipeline::FromCsv({path}, TableColumns()).Batch(kBatch);
              }),
      ReadRow("read_idx", "input: IDX of 60,000 28x28 images, shuffled, batches", kImages * kPixels,
              []() -> StatusOr<InputPipeline> {
                TENON_ASSIGN_OR_RETURN(const auto images, Folder().Place("images", [](auto& path) {
                  return WriteIdx(path, true);
                }));
                TENON_ASSIGN_OR_RETURN(const auto labels, Folder().Place("labels", [](auto& path) {
                  return WriteIdx(path, false);
                }));
                return InputPipeline::FromIdx({images, labels}).Shuffle(kImages, 1).Batch(kBatch);
              }),
      ReadRow("read_npz", "input: .npz of 60,000x784 floats, batches of 256", kImages * kPixels * 4,
              []() -> StatusOr<InputPipeline> {
                TENON_ASSIGN_OR_RETURN(const auto path, Folder().Place("arrays.npz", WriteArrays));
                return InputPipeline::FromNpz(path, {"x", "y"}).Batch(kBatch);
              }),
      ReadRow("read_tensors", "input: 60,000x784 floats in memory, shuffled, batches",
              kImages * kPixels * 4,
              []() -> StatusOr<InputPipeline> {
                static const Tensor images = FloatImages();
                return InputPipeline::FromTensors({images}).Shuffle(kImages, 1).Batch(kBatch);
              }),
      ReadRow("read_images", "input: JPEGs of 256x256, pixels of batches of 32",
              kPictures * kSide * kSide * 3,
              []() -> StatusOr<InputPipeline> {
                TENON_ASSIGN_OR_RETURN(const auto path, Folder().Place("pictures", WritePictures));
                return InputPipeline::FromImages({path}).Batch(32);
              }),
  };
}

}  // namespace tenon::tools
