// SPDX-License-Identifier: Apache-2.0
#include "data/npy.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "core/exceptions.h"
#include "data/file.h"

namespace tenon {
namespace {

constexpr std::string_view kNpyMagic("\x93NUMPY", 6);
/// The header is padded so that the elements begin at a multiple of this.
constexpr size_t kAlignment = 64;

struct NpyHeader {
  char kind = 0;  // as in NumPy's dtype.kind: f i u b c S U
  bool big_endian = false;
  bool column_major = false;
  size_t item_bytes = 0;
  Shape shape;
};

/// The text after `key` and a colon in the header, a Python dict.
std::optional<std::string_view> ValueOf(std::string_view dict, std::string_view key) {
  const size_t at = dict.find(StrCat("'", key, "'"));
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = dict.substr(at + key.size() + 2);
  const size_t begin = rest.find_first_not_of(" :");
  return rest.substr(std::min(begin, rest.size()));
}

bool ParseNumber(std::string_view* text, int64_t* out) {
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), *out);
  if (error != std::errc()) return false;
  text->remove_prefix(end - text->data());
  return true;
}

StatusOr<Shape> ParseShape(std::string_view text) {
  const Status error = InvalidArgument("the header has no readable shape");
  if (!text.starts_with('(')) return error;
  text.remove_prefix(1);
  DimVector dims;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(" ,"), text.size()));
    if (text.starts_with(')')) return Shape::Create(dims);
    int64_t dim;
    if (!ParseNumber(&text, &dim) || dims.size() > Shape::kMaxRank) return error;
    dims.push_back(dim);
  }
}

StatusOr<NpyHeader> ParseHeader(std::string_view dict) {
  NpyHeader header;
  const auto descr = ValueOf(dict, "descr"), order = ValueOf(dict, "fortran_order"),
             shape = ValueOf(dict, "shape");
  if (!descr || descr->empty() || !order || !shape) {
    return InvalidArgument("the header has no descr, fortran_order or shape");
  }
  if (descr->starts_with('[')) return InvalidArgument("structured arrays cannot be read");
  std::string_view type = descr->substr(std::min<size_t>(1, descr->size()));
  type = type.substr(0, type.find((*descr)[0]));
  const std::string_view name = type;
  if (type.size() >= 2 && type.substr(1, 1) == "O") {
    return InvalidArgument(
        "arrays of Python objects cannot be read; save numbers or fixed-length "
        "strings (dtype S or U)");
  }
  int64_t number = 0;
  if (type.size() >= 3) {
    header.big_endian = type[0] == '>';
    header.kind = type[1];
    type.remove_prefix(2);
  }
  if (!ParseNumber(&type, &number) || !type.empty() || number < 0 || number > INT32_MAX) {
    return InvalidArgument("arrays of dtype '", name, "' cannot be read");
  }
  header.item_bytes = static_cast<size_t>(number) * (header.kind == 'U' ? 4 : 1);
  header.column_major = order->starts_with("True");
  TENON_ASSIGN_OR_RETURN(header.shape, ParseShape(*shape));
  return header;
}

/// Invalid when there is none.
DType DTypeOf(char kind, size_t bytes) {
  struct Row {
    char kind;
    size_t bytes;
    DType dtype;
  };
  static constexpr Row kRows[] = {
      {'f', 2, DType::kHalf},      {'f', 4, DType::kFloat},       {'f', 8, DType::kDouble},
      {'i', 1, DType::kInt8},      {'i', 2, DType::kInt16},       {'i', 4, DType::kInt32},
      {'i', 8, DType::kInt64},     {'u', 1, DType::kUInt8},       {'u', 2, DType::kUInt16},
      {'u', 4, DType::kUInt32},    {'u', 8, DType::kUInt64},      {'b', 1, DType::kBool},
      {'c', 8, DType::kComplex64}, {'c', 16, DType::kComplex128},
  };
  for (const Row& row : kRows) {
    if (row.kind == kind && row.bytes == bytes) return row.dtype;
  }
  return DType::kInvalid;
}

/// "<f4" of a dtype; empty when NumPy has none.
std::string DescrOf(DType dtype) {
  switch (dtype) {
    case DType::kHalf:
      return "<f2";
    case DType::kFloat:
    case DType::kBFloat16:
      return "<f4";
    case DType::kDouble:
      return "<f8";
    case DType::kBool:
      return "|b1";
    case DType::kComplex64:
      return "<c8";
    case DType::kComplex128:
      return "<c16";
    case DType::kInt8:
    case DType::kQInt8:
      return "|i1";
    case DType::kUInt8:
    case DType::kQUInt8:
      return "|u1";
    case DType::kInt16:
    case DType::kQInt16:
      return "<i2";
    case DType::kUInt16:
    case DType::kQUInt16:
      return "<u2";
    case DType::kInt32:
    case DType::kQInt32:
      return "<i4";
    case DType::kUInt32:
      return "<u4";
    case DType::kInt64:
      return "<i8";
    case DType::kUInt64:
      return "<u8";
    default:
      return "";
  }
}

bool AppendUtf8(std::string* out, uint32_t c) {
  if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) return false;
  if (c < 0x80) {
    out->push_back(static_cast<char>(c));
    return true;
  }
  const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  static constexpr unsigned char kFirst[] = {0, 0xc0, 0xe0, 0xf0};
  out->push_back(static_cast<char>(kFirst[more] | (c >> (6 * more))));
  for (int i = more - 1; i >= 0; --i) {
    out->push_back(static_cast<char>(0x80 | ((c >> (6 * i)) & 0x3f)));
  }
  return true;
}

StatusOr<std::string> TextOf(const NpyHeader& header, std::string_view item) {
  if (header.kind == 'S') return std::string(item.substr(0, item.find_last_not_of('\0') + 1));
  std::string text;
  size_t zeros = 0;  // those at the end are filling
  for (size_t i = 0; i + 4 <= item.size(); i += 4) {
    uint32_t c;
    std::memcpy(&c, item.data() + i, sizeof(c));
    if (header.big_endian) c = __builtin_bswap32(c);
    if (c == 0) {
      ++zeros;
      continue;
    }
    text.append(std::exchange(zeros, 0), '\0');
    if (!AppendUtf8(&text, c)) return InvalidArgument("found the code point ", c, " in text");
  }
  return text;
}

/// Calls put(row-major index, file index) for every element.
template <typename Fn>
void ForEachElement(const NpyHeader& header, Fn put) {
  const int64_t n = header.shape.num_elements();
  if (!header.column_major || header.shape.rank() < 2) {
    for (int64_t i = 0; i < n; ++i) put(i, i);
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    int64_t rest = i, target = 0, stride = n;
    for (const int64_t d : header.shape.dims()) {
      stride /= d;
      target += (rest % d) * stride;
      rest /= d;
    }
    put(target, i);
  }
}

StatusOr<Tensor> MakeStrings(const NpyHeader& header, std::string_view data) {
  TENON_ASSIGN_OR_RETURN(Tensor t, Tensor::Allocate(CpuAllocator(), DType::kString, header.shape));
  Status status;
  ForEachElement(header, [&](int64_t to, int64_t from) {
    auto text = TextOf(header, data.substr(from * header.item_bytes, header.item_bytes));
    if (text.ok()) {
      t.data<TString>()[to] = *std::move(text);
    } else {
      status = text.status();
    }
  });
  if (!status.ok()) return status;
  return t;
}

StatusOr<Tensor> MakeNumbers(const NpyHeader& header, DType dtype, std::string_view data) {
  TENON_ASSIGN_OR_RETURN(Tensor t, Tensor::Allocate(CpuAllocator(), dtype, header.shape));
  auto* out = static_cast<char*>(t.raw_data());
  const size_t size = header.item_bytes;
  if (header.column_major && header.shape.rank() > 1) {
    ForEachElement(header, [&](int64_t to, int64_t from) {
      std::memcpy(out + to * size, data.data() + from * size, size);
    });
  } else {
    std::memcpy(out, data.data(), data.size());
  }
  if (header.big_endian) {  // each part of a complex number by itself
    const size_t part = IsComplex(dtype) ? size / 2 : size;
    for (size_t i = 0; i < data.size(); i += part) std::reverse(out + i, out + i + part);
  }
  if (dtype == DType::kBool) {
    // A C++ bool that is neither 0 nor 1 is undefined behaviour.
    std::transform(out, out + data.size(), out, [](char c) { return c != 0; });
  }
  return t;
}

std::string HeaderText(const std::string& descr, const Shape& shape) {
  std::string dims;
  for (const int64_t d : shape.dims()) StrAppend(&dims, d, shape.rank() == 1 ? "," : ", ");
  if (dims.ends_with(", ")) dims.resize(dims.size() - 2);
  std::string dict =
      StrCat("{'descr': '", descr, "', 'fortran_order': False, 'shape': (", dims, "), }");
  constexpr size_t kBefore = 10;  // magic, version, length
  const size_t total = (kBefore + dict.size() + 1 + kAlignment - 1) / kAlignment * kAlignment;
  dict.append(total - kBefore - dict.size() - 1, ' ');
  dict.push_back('\n');
  const auto length = static_cast<uint16_t>(dict.size());
  std::string out = StrCat(kNpyMagic, std::string_view("\x01\x00", 2));
  out.append(reinterpret_cast<const char*>(&length), sizeof(length));
  return out + dict;
}

}  // namespace

StatusOr<Tensor> ParseNpy(std::string_view content) {
  if (!content.starts_with(kNpyMagic) || content.size() < 12) {
    return InvalidArgument("not an .npy file");
  }
  const int version = content[6];
  uint32_t length = 0;
  const size_t length_bytes = version == 1 ? 2 : 4;
  if (version < 1 || version > 3) {
    return InvalidArgument("it is an .npy file of version ", version, "; 1 to 3 are read");
  }
  std::memcpy(&length, content.data() + 8, length_bytes);
  const size_t begin = 8 + length_bytes;
  if (length > content.size() - begin) return DataLoss("the .npy header is cut short");
  TENON_ASSIGN_OR_RETURN(const NpyHeader header, ParseHeader(content.substr(begin, length)));
  const std::string_view data = content.substr(begin + length);

  const bool text = header.kind == 'S' || header.kind == 'U';
  const DType dtype = DTypeOf(header.kind, header.item_bytes);
  if (!text && dtype == DType::kInvalid) {
    return InvalidArgument("arrays of dtype '", std::string_view(&header.kind, 1),
                           header.item_bytes, "' cannot be read");
  }
  const auto n = static_cast<uint64_t>(header.shape.num_elements());
  uint64_t wanted;
  if (__builtin_mul_overflow(n, header.item_bytes, &wanted) || wanted != data.size() ||
      (header.item_bytes == 0 && n > content.size())) {
    return DataLoss("found ", data.size(), " bytes of elements, wanted ", n, " of ",
                    header.item_bytes, " bytes for shape ", header.shape.ToString());
  }
  if (!text) return MakeNumbers(header, dtype, data);
  return CatchExceptions([&] { return MakeStrings(header, data); });
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
    std::string out = HeaderText(StrCat("|S", longest), tensor.shape());
    for (const TString& s : tensor.flat<TString>()) {
      out.append(std::string_view(s));
      out.append(longest - s.size(), '\0');
    }
    return out;
  }
  const std::string descr = DescrOf(tensor.dtype());
  if (descr.empty()) {
    return InvalidArgument("a tensor of ", ToString(tensor.dtype()), " has no NumPy form");
  }
  std::string out = HeaderText(descr, tensor.shape());
  if (tensor.dtype() == DType::kBFloat16) {
    for (const BFloat16 value : tensor.flat<BFloat16>()) {
      const float wide = value;
      out.append(reinterpret_cast<const char*>(&wide), sizeof(wide));
    }
  } else {
    out.append(static_cast<const char*>(tensor.raw_data()), tensor.num_bytes());
  }
  return out;
}

StatusOr<Tensor> ReadNpy(const std::string& path) {
  TENON_ASSIGN_OR_RETURN(const std::string content, ReadFile(path));
  StatusOr<Tensor> tensor = ParseNpy(content);
  if (!tensor.ok()) return Annotate(tensor.status(), StrCat("'", path, "'"));
  return tensor;
}

Status WriteNpy(const std::string& path, const Tensor& tensor) {
  StatusOr<std::string> content = FormatNpy(tensor);
  if (!content.ok()) return Annotate(content.status(), StrCat("'", path, "'"));
  return WriteFile(path, *content);
}

StatusOr<NpzReader> NpzReader::Open(const std::string& path) {
  TENON_ASSIGN_OR_RETURN(std::string content, ReadFile(path));
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
                bool compress) {
  ZipWriter zip;
  for (const auto& [name, tensor] : arrays) {
    StatusOr<std::string> content = FormatNpy(tensor);
    if (!content.ok()) {
      return Annotate(content.status(), StrCat("'", path, "', array '", name, "'"));
    }
    TENON_RETURN_IF_ERROR(zip.Add(StrCat(name, ".npy"), *content, compress));
  }
  return WriteFile(path, zip.Finish());
}

}  // namespace tenon
