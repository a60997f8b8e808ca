// SPDX-License-Identifier: Apache-2.0
#include "train/input/image_files.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/match.h"
#include "core/base/exceptions.h"
#include "core/base/parallel.h"
#include "data/files/file.h"
#include "ops/image/codecs.h"

namespace tenon {
namespace {

/// The cost of decoding an image, in ns.
constexpr double kImageCost = 1e6;

bool IsImageName(std::string_view name) {
  constexpr std::array<std::string_view, 3> kEndings = {".png", ".jpg", ".jpeg"};
  return !name.starts_with('.') &&
         std::any_of(kEndings.begin(), kEndings.end(), [&](std::string_view ending) {
           return absl::EndsWithIgnoreCase(ToAbsl(name), ToAbsl(ending));
         });
}

StatusOr<std::vector<InputElement>> DecodeImages(const RowBatch& files, int64_t channels) {
  const int64_t count = files.num_rows();
  std::vector<InputElement> elements(count);
  std::vector<Status> statuses(count);
  const TString* const paths = files.columns[0].data<TString>();
  ParallelFor(count, kImageCost, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      statuses[i] = CatchExceptions([&]() -> Status {
        TENON_ASSIGN_OR_RETURN(Tensor image,
                               ReadImage(std::string(std::string_view(paths[i])), channels));
        elements[i] = {std::move(image), Tensor::Scalar(files.columns[1].data<int64_t>()[i])};
        return OkStatus();
      });
    }
  });
  for (const Status& status : statuses) TENON_RETURN_IF_ERROR(status);
  return elements;
}

/// The rows of one batch, of which the stages of a pipeline take some at a time.
class ListedRows final : public BatchSource {
 public:
  explicit ListedRows(RowBatch rows) : rows_(std::move(rows)) {}
  const std::shared_ptr<const RowSchema>& schema() const override { return rows_.schema; }

  StatusOr<bool> Next(int64_t most, RowBatch* batch) override {
    const int64_t end = next_ + std::min(most, rows_.num_rows() - next_);
    if (end == next_) return false;
    *batch = rows_.Slice(next_, end);
    next_ = end;
    return true;
  }

 private:
  const RowBatch rows_;
  int64_t next_ = 0;
};

}  // namespace

StatusOr<Tensor> ReadImage(const std::string& path, int64_t channels) {
  TENON_ASSIGN_OR_RETURN(const std::string file, ReadFileToString(path));
  Tensor pixels;
  const PixelMemory memory = [&pixels](const ImageSize& size) -> StatusOr<void*> {
    TENON_ASSIGN_OR_RETURN(const Shape shape,
                           Shape::Create({size.height, size.width, size.channels}));
    TENON_ASSIGN_OR_RETURN(pixels, Tensor::Allocate(CpuAllocator(), DType::kUInt8, shape));
    return pixels.raw_data();
  };
  Status decoded;
  switch (DetectFormat(file)) {
    case ImageFormat::kPng:
      decoded = DecodePngFile(file, channels, /*wide=*/false, memory);
      break;
    case ImageFormat::kJpeg:
      decoded = DecodeJpegFile(file, {.channels = channels}, memory);
      break;
    default:
      decoded = InvalidArgument("found ", file.empty() ? "an empty file" : "another format",
                                ", wanted a PNG or JPEG image");
  }
  if (!decoded.ok()) return Annotate(decoded, StrCat("'", path, "'"));
  return pixels;
}

StatusOr<RowWalk> ImagesOfFolders(const std::vector<std::string>& folders, int64_t channels) {
  if (channels != 0 && channels != 1 && channels != 3) {
    return InvalidArgument("images of an input pipeline have 1 or 3 channels, or 0 for those of ",
                           "the files, found ", channels);
  }
  std::vector<std::string> paths;
  std::vector<int64_t> labels;
  for (size_t f = 0; f < folders.size(); ++f) {
    TENON_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(folders[f]));
    const size_t before = paths.size();
    for (const std::string& name : names) {
      if (IsImageName(name)) paths.push_back(JoinPath(folders[f], name));
    }
    if (paths.size() == before) {
      return NotFound("the folder '", folders[f], "' has no .png, .jpg or .jpeg file");
    }
    labels.resize(paths.size(), static_cast<int64_t>(f));
  }
  if (paths.empty()) return InvalidArgument("an input pipeline of images needs a folder");
  const auto schema =
      std::make_shared<RowSchema>(RowSchema{{"path", DType::kString, PartialShape(Shape())},
                                            {"folder", DType::kInt64, PartialShape(Shape())}});
  RowWalk walk;
  walk.form = RowWalk::Form::kFiles;
  walk.rows = std::make_unique<ListedRows>(
      RowBatch{schema, {Tensor::Vector(paths), Tensor::Vector(labels)}});
  walk.read = [channels](const RowBatch& files) { return DecodeImages(files, channels); };
  return walk;
}

}  // namespace tenon
