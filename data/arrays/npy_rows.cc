// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "data/arrays/npy.h"
#include "data/files/path.h"

namespace tenon {
namespace {

/// A header of a stream that is longer is none.
constexpr uint64_t kLongestHeader = 1 << 20;

Shape WithRows(const Shape& shape, int64_t rows) {
  DimVector dims(shape.dims().begin(), shape.dims().end());
  dims[0] = rows;
  return Shape(dims);
}

std::string DimsOfRow(const Shape& shape) {
  DimVector dims(shape.dims().begin() + 1, shape.dims().end());
  return Shape(dims).ToString();
}

Status CutShort(uint64_t found, uint64_t wanted) {
  return DataLoss("found ", found, " bytes of elements, wanted ", wanted);
}

/// The bytes of all elements, of which no row and no array may overflow.
StatusOr<uint64_t> CheckedBytes(const NpyHeader& header, uint64_t most) {
  if (header.shape.rank() == 0) return InvalidArgument("a scalar has no rows");
  return NpyElementBytes(header, static_cast<uint64_t>(header.shape.num_elements()), most);
}

}  // namespace

StatusOr<NpyRows> NpyRows::Open(const std::string& path, const FileContext& context) {
  TENON_ASSIGN_OR_RETURN(std::unique_ptr<InputFile> file, OpenInput(path, context));
  const auto open = [&]() -> StatusOr<NpyRows> {
    const auto size = static_cast<uint64_t>(file->size());
    std::string start(std::min<uint64_t>(kNpyPreambleBytes, size), '\0');
    TENON_ASSIGN_OR_RETURN(const size_t found, file->ReadAt(0, start.size(), start.data()));
    TENON_ASSIGN_OR_RETURN(const uint64_t begin,
                           NpyElementsBegin(std::string_view(start).substr(0, found)));
    if (begin > size) return DataLoss("the .npy header is cut short");
    start.resize(begin);
    TENON_RETURN_IF_ERROR(file->ReadAt(0, begin, start.data()).status());
    TENON_ASSIGN_OR_RETURN(NpyHeader header, ParseNpyHeader(start));
    TENON_ASSIGN_OR_RETURN(const uint64_t wanted, CheckedBytes(header, size));
    if (size - begin != wanted) return CutShort(size - begin, wanted);
    return NpyRows(path, std::move(header), begin);
  };
  auto rows = open();
  if (!rows.ok()) return Annotate(rows.status(), StrCat("'", path, "'"));
  rows->file_ = std::move(file);
  return rows;
}

StatusOr<NpyRows> NpyRows::FromStream(std::unique_ptr<ByteSource> source, std::string name) {
  const auto open = [&]() -> StatusOr<NpyRows> {
    std::string start(kNpyPreambleBytes, '\0');
    TENON_ASSIGN_OR_RETURN(const size_t found, source->Read(start.size(), start.data()));
    TENON_ASSIGN_OR_RETURN(const uint64_t begin,
                           NpyElementsBegin(std::string_view(start).substr(0, found)));
    if (begin > kLongestHeader || begin < kNpyPreambleBytes) {
      return DataLoss("the .npy header has ", begin, " bytes");
    }
    std::string rest;
    TENON_RETURN_IF_ERROR(ReadExactly(*source, begin - start.size(), &rest));
    TENON_ASSIGN_OR_RETURN(NpyHeader header, ParseNpyHeader(start + rest));
    TENON_RETURN_IF_ERROR(CheckedBytes(header, UINT64_MAX).status());
    if (header.column_major && header.shape.rank() > 1) {
      return InvalidArgument(
          "the array is column-major, whose rows come together only at its end; save it with "
          "numpy.ascontiguousarray, or give the file's name");
    }
    return NpyRows(name, std::move(header), begin);
  };
  auto rows = open();
  if (!rows.ok()) return Annotate(rows.status(), name);
  rows->stream_ = std::move(source);
  return rows;
}

StatusOr<Tensor> NpyRows::Next(int64_t most) {
  const int64_t rows = std::clamp<int64_t>(most, 0, header_.shape.dim(0) - next_);
  StatusOr<Tensor> tensor = Read(rows);
  if (!tensor.ok()) return Annotate(tensor.status(), StrCat("'", name_, "'"));
  next_ += rows;
  if (rows < most && stream_ != nullptr) {
    char more;
    TENON_ASSIGN_OR_RETURN(const size_t found, stream_->Read(1, &more));
    if (found > 0) return DataLoss(name_, ": bytes follow the elements of the array");
  }
  return tensor;
}

StatusOr<Tensor> NpyRows::Read(int64_t rows) {
  NpyHeader header = header_;
  header.shape = WithRows(header_.shape, rows);
  const int64_t items = header.shape.num_elements();
  const size_t bytes = static_cast<size_t>(items) * header.item_bytes;
  const bool by_columns = header.column_major && header.shape.rank() > 1;
  if (!by_columns && !header.is_text()) {  // straight to where they belong
    TENON_ASSIGN_OR_RETURN(Tensor t, Tensor::Allocate(CpuAllocator(), header.dtype, header.shape));
    auto* const out = static_cast<char*>(t.raw_data());
    TENON_RETURN_IF_ERROR(ReadBytes(bytes, out));
    NormaliseNpyNumbers(header, out, bytes);
    return t;
  }
  // The tensor counts its memory, and refuses when there is not enough.
  TENON_ASSIGN_OR_RETURN(Tensor buffer, Tensor::Allocate(CpuAllocator(), DType::kUInt8,
                                                         Shape({static_cast<int64_t>(bytes)})));
  auto* const out = static_cast<char*>(buffer.raw_data());
  TENON_RETURN_IF_ERROR(by_columns ? ReadColumns(rows, rows == 0 ? 0 : items / rows, out)
                                   : ReadBytes(bytes, out));
  return MakeNpyTensor(header, {out, bytes});
}

Status NpyRows::ReadBytes(size_t size, char* out) {
  TENON_ASSIGN_OR_RETURN(const size_t found,
                         file_ != nullptr ? file_->ReadAt(static_cast<int64_t>(offset_), size, out)
                                          : stream_->Read(size, out));
  if (found != size) return CutShort(found, size);
  offset_ += size;
  return OkStatus();
}

/// In a column-major array, the elements of one column lie together.
Status NpyRows::ReadColumns(int64_t rows, int64_t columns, char* out) {
  const size_t size = static_cast<size_t>(rows) * header_.item_bytes;
  for (int64_t c = 0; c < columns; ++c) {
    const uint64_t item = static_cast<uint64_t>(c * header_.shape.dim(0) + next_);
    TENON_ASSIGN_OR_RETURN(const size_t found,
                           file_->ReadAt(static_cast<int64_t>(offset_ + item * header_.item_bytes),
                                         size, out + static_cast<size_t>(c) * size));
    if (found != size) return CutShort(found, size);
  }
  return OkStatus();
}

StatusOr<std::unique_ptr<NpyWriter>> NpyWriter::Create(const std::string& path) {
  TENON_ASSIGN_OR_RETURN(const std::string local, LocalPath(path));
  const int file = open(local.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) return StatusOfErrno(errno, "open for writing", path);
  std::unique_ptr<NpyWriter> writer(new NpyWriter(path, file));
  struct stat info;
  if (fstat(file, &info) != 0) return StatusOfErrno(errno, "open for writing", path);
  if (!S_ISREG(info.st_mode)) {
    return InvalidArgument("cannot open for writing '", path, "': it is no regular file");
  }
  return writer;
}

NpyWriter::~NpyWriter() { Close().IgnoreError(); }

Status NpyWriter::Append(const Tensor& rows) {
  if (file_ < 0) return FailedPrecondition("'", path_, "' is closed");
  const std::string descr = NpyDescrOf(rows.dtype());
  if (descr.empty() || !rows.IsHostMemory()) {
    return InvalidArgument("'", path_, "': rows of ", ToString(rows.dtype()),
                           " cannot be added to an .npy file");
  }
  if (rows.rank() == 0) return InvalidArgument("'", path_, "': found a scalar, wanted rows");
  const bool first = dtype_ == DType::kInvalid;
  if (!first && (rows.dtype() != dtype_ || DimsOfRow(rows.shape()) != DimsOfRow(shape_))) {
    return InvalidArgument("'", path_, "': found rows of ", ToString(rows.dtype()),
                           DimsOfRow(rows.shape()), ", wanted ", ToString(dtype_),
                           DimsOfRow(shape_), " as before");
  }
  const Shape shape = WithRows(rows.shape(), (first ? 0 : shape_.dim(0)) + rows.dim(0));
  const std::string header = FormatNpyHeader(descr, shape, /*room_to_grow=*/true);
  if (first) {
    if (ftruncate(file_, 0) != 0) return StatusOfErrno(errno, "write", path_);
    end_ = header.size();
  }
  const std::string wide = rows.dtype() == DType::kBFloat16 ? NpyElementsOf(rows) : "";
  const std::string_view data =
      rows.dtype() == DType::kBFloat16
          ? std::string_view(wide)
          : std::string_view(static_cast<const char*>(rows.raw_data()), rows.num_bytes());
  // The header last: until then it is that of the rows before.
  TENON_RETURN_IF_ERROR(WriteAt(end_, data));
  TENON_RETURN_IF_ERROR(WriteAt(0, header));
  end_ += data.size();
  dtype_ = rows.dtype();
  shape_ = shape;
  return OkStatus();
}

Status NpyWriter::WriteAt(uint64_t offset, std::string_view data) {
  while (!data.empty()) {
    const ssize_t n = pwrite(file_, data.data(), data.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return StatusOfErrno(errno, "write", path_);
    data.remove_prefix(n);
    offset += n;
  }
  return OkStatus();
}

Status NpyWriter::Close() {
  if (file_ < 0) return OkStatus();
  const int result = close(std::exchange(file_, -1));
  return result == 0 ? OkStatus() : StatusOfErrno(errno, "write", path_);
}

}  // namespace tenon
