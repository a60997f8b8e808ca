// SPDX-License-Identifier: Apache-2.0
#include "data/arrays/npy.h"

#include <algorithm>

#include "data/arrays/npy_format.h"
#include "data/files/byte_stream.h"
#include "data/files/file.h"

namespace tenon {

namespace {

/// Reads into a new tensor as many bytes as it has. Looks now and then whether that was cancelled.
StatusOr<Tensor> ReadElements(ByteSource& source, DType dtype, const Shape& shape,
                              const FileContext& context) {
  constexpr size_t kPiece = 16 << 20;
  TENON_ASSIGN_OR_RETURN(Tensor t, Tensor::Allocate(CpuAllocator(), dtype, shape));
  auto* const out = static_cast<char*>(t.raw_data());
  const size_t bytes = t.num_bytes();
  for (size_t done = 0; done < bytes;) {
    TENON_RETURN_IF_ERROR(context.CheckCancelled());
    const size_t piece = std::min(bytes - done, kPiece);
    TENON_ASSIGN_OR_RETURN(const size_t n, source.Read(piece, out + done));
    if (n < piece) return DataLoss("found ", done + n, " bytes of elements, wanted ", bytes);
    done += n;
  }
  return t;
}

/// The array of the `size` bytes that `source` gives. Numbers go straight to where they belong.
StatusOr<Tensor> ReadArray(ByteSource& source, uint64_t size, const FileContext& context) {
  std::string start(std::min<uint64_t>(kNpyPreambleBytes, size), '\0');
  TENON_ASSIGN_OR_RETURN(const size_t found, source.Read(start.size(), start.data()));
  TENON_ASSIGN_OR_RETURN(const uint64_t begin,
                         NpyElementsBegin(std::string_view(start).substr(0, found)));
  if (begin > size) return DataLoss("the .npy header is cut short");
  if (begin < start.size()) return InvalidArgument("not an .npy file");
  std::string rest;
  TENON_RETURN_IF_ERROR(ReadExactly(source, begin - start.size(), &rest));
  TENON_ASSIGN_OR_RETURN(const NpyHeader header, ParseNpyHeader(start + rest));
  const auto n = static_cast<uint64_t>(header.shape.num_elements());
  TENON_ASSIGN_OR_RETURN(const uint64_t wanted, NpyElementBytes(header, n, size));
  if (wanted != size - begin) {
    return DataLoss("found ", size - begin, " bytes of elements, wanted ", n, " of ",
                    header.item_bytes, " bytes for shape ", header.shape.ToString());
  }
  if (!header.is_text() && !(header.column_major && header.shape.rank() > 1)) {
    TENON_ASSIGN_OR_RETURN(Tensor t, ReadElements(source, header.dtype, header.shape, context));
    NormaliseNpyNumbers(header, static_cast<char*>(t.raw_data()), wanted);
    return t;
  }
  // The tensor counts its memory, and refuses when there is not enough.
  const Shape bytes = {static_cast<int64_t>(wanted)};
  TENON_ASSIGN_OR_RETURN(const Tensor buffer, ReadElements(source, DType::kUInt8, bytes, context));
  return MakeNpyTensor(header, {static_cast<const char*>(buffer.raw_data()), wanted});
}

}  // namespace

StatusOr<Tensor> ParseNpy(std::string_view content) {
  return ReadArray(*MakeSource(content, Compression::kNone), content.size(), {});
}

StatusOr<std::string> FormatNpy(const Tensor& tensor) {
  if (!tensor.valid() || !tensor.IsHostMemory()) {
    return InvalidArgument("the tensor has no value in host memory");
  }
  if (tensor.dtype() == DType::kString) {
    size_t longest = 1;  // NumPy has no strings of no length
    for (const TString& s : tensor.flat<TString>()) {
      if (s.ends_with('\0')) {
        return InvalidArgument(
            "a string that ends with a zero byte cannot be kept in NumPy's "
            "fixed-length strings");
      }
      longest = std::max(longest, s.size());
    }
    std::string out = FormatNpyHeader(StrCat("|S", longest), tensor.shape());
    for (const TString& s : tensor.flat<TString>()) {
      out.append(std::string_view(s));
      out.append(longest - s.size(), '\0');
    }
    return out;
  }
  const std::string descr = NpyDescrOf(tensor.dtype());
  if (descr.empty()) {
    return InvalidArgument("a tensor of ", ToString(tensor.dtype()), " has no NumPy form");
  }
  return FormatNpyHeader(descr, tensor.shape()) + NpyElementsOf(tensor);
}

StatusOr<Tensor> ReadNpy(const std::string& path, const FileContext& context) {
  TENON_ASSIGN_OR_RETURN(std::unique_ptr<InputFile> file, OpenInput(path, context));
  const auto size = static_cast<uint64_t>(file->size());
  const auto source = MakeSource(std::move(file), Compression::kNone);
  StatusOr<Tensor> tensor = ReadArray(*source, size, context);
  if (!tensor.ok()) return Annotate(tensor.status(), StrCat("'", path, "'"));
  return tensor;
}

Status WriteNpy(const std::string& path, const Tensor& tensor, const FileContext& context) {
  StatusOr<std::string> content = FormatNpy(tensor);
  if (!content.ok()) return Annotate(content.status(), StrCat("'", path, "'"));
  return WriteStringToFile(path, *content, context);
}

StatusOr<NpzReader> NpzReader::Open(const std::string& path, const FileContext& context) {
  TENON_ASSIGN_OR_RETURN(std::unique_ptr<InputFile> file, OpenInput(path, context));
  StatusOr<ZipReader> zip = ZipReader::Open(std::move(file));
  if (!zip.ok()) return Annotate(zip.status(), StrCat("'", path, "'"));
  return NpzReader(path, *std::move(zip), context);
}

std::vector<std::string> NpzReader::names() const {
  std::vector<std::string> names;
  for (const ZipReader::Member& m : zip_.members()) {
    if (m.name.ends_with(".npy")) names.push_back(m.name.substr(0, m.name.size() - 4));
  }
  return names;
}

StatusOr<Tensor> NpzReader::Read(std::string_view name) const {
  const ZipReader::Member* member = zip_.Find(StrCat(name, ".npy"));
  if (member == nullptr) {
    return NotFound("'", path_, "' has no array '", name, "'; it has ", Join(names(), ", "));
  }
  const std::string where = StrCat("'", path_, "', array '", name, "'");
  const auto source = zip_.Stream(*member);
  if (!source.ok()) return Annotate(source.status(), where);
  StatusOr<Tensor> tensor = ReadArray(**source, member->size, context_);
  if (!tensor.ok()) return Annotate(tensor.status(), where);
  return tensor;
}

Status WriteNpz(const std::string& path, const std::vector<std::pair<std::string, Tensor>>& arrays,
                bool compress, const FileContext& context) {
  ZipWriter zip;
  for (const auto& [name, tensor] : arrays) {
    StatusOr<std::string> content = FormatNpy(tensor);
    if (!content.ok()) {
      return Annotate(content.status(), StrCat("'", path, "', array '", name, "'"));
    }
    TENON_RETURN_IF_ERROR(zip.Add(StrCat(name, ".npy"), *content, compress));
  }
  return WriteStringToFile(path, zip.Finish(), context);
}

}  // namespace tenon
