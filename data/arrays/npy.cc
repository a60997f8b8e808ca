// SPDX-License-Identifier: Apache-2.0
#include "data/arrays/npy.h"

#include <algorithm>

#include "data/arrays/npy_format.h"
#include "data/files/file.h"

namespace tenon {

StatusOr<Tensor> ParseNpy(std::string_view content) {
  TENON_ASSIGN_OR_RETURN(const uint64_t begin, NpyElementsBegin(content));
  if (begin > content.size()) return DataLoss("the .npy header is cut short");
  TENON_ASSIGN_OR_RETURN(const NpyHeader header, ParseNpyHeader(content.substr(0, begin)));
  const std::string_view data = content.substr(begin);
  const auto n = static_cast<uint64_t>(header.shape.num_elements());
  TENON_ASSIGN_OR_RETURN(const uint64_t wanted, NpyElementBytes(header, n, content.size()));
  if (wanted != data.size()) {
    return DataLoss("found ", data.size(), " bytes of elements, wanted ", n, " of ",
                    header.item_bytes, " bytes for shape ", header.shape.ToString());
  }
  return MakeNpyTensor(header, data);
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
  TENON_ASSIGN_OR_RETURN(const std::string content, ReadFileToString(path, context));
  StatusOr<Tensor> tensor = ParseNpy(content);
  if (!tensor.ok()) return Annotate(tensor.status(), StrCat("'", path, "'"));
  return tensor;
}

Status WriteNpy(const std::string& path, const Tensor& tensor, const FileContext& context) {
  StatusOr<std::string> content = FormatNpy(tensor);
  if (!content.ok()) return Annotate(content.status(), StrCat("'", path, "'"));
  return WriteStringToFile(path, *content, context);
}

StatusOr<NpzReader> NpzReader::Open(const std::string& path, const FileContext& context) {
  TENON_ASSIGN_OR_RETURN(std::string content, ReadFileToString(path, context));
  StatusOr<ZipReader> zip = ZipReader::Open(std::move(content));
  if (!zip.ok()) return Annotate(zip.status(), StrCat("'", path, "'"));
  return NpzReader(path, *std::move(zip));
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
  StatusOr<std::string> content = zip_.Read(*member);
  if (!content.ok()) return Annotate(content.status(), where);
  StatusOr<Tensor> tensor = ParseNpy(*content);
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
