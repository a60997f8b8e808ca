// SPDX-License-Identifier: Apache-2.0
#include "data/arrays/npy_format.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

#include "core/base/exceptions.h"

namespace tenon {
namespace {

constexpr std::string_view kNpyMagic("\x93NUMPY", 6);
/// The header is padded so that the elements begin at a multiple of this.
constexpr size_t kAlignment = 64;
/// Magic and version, after which the header's length stands.
constexpr size_t kBeforeLength = 8;
size_t LengthBytes(int version) { return version == 1 ? 2 : 4; }

/// The text after `key` and a colon in the header, a Python dict.
std::optional<std::string_view> ValueOf(std::string_view dict, std::string_view key) {
  const size_t at = dict.find(StrCat("'", key, "'"));
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = dict.substr(at + key.size() + 2);
  const size_t begin = rest.find_first_not_of(" :");
  return rest.substr(std::min(begin, rest.size()));
}

bool ParseNpyNumber(std::string_view* text, int64_t* out) {
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), *out);
  if (error != std::errc()) return false;
  text->remove_prefix(end - text->data());
  return true;
}

StatusOr<Shape> ParseNpyShape(std::string_view text) {
  const Status error = InvalidArgument("the header has no readable shape");
  if (!text.starts_with('(')) return error;
  text.remove_prefix(1);
  DimVector dims;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(" ,"), text.size()));
    if (text.starts_with(')')) return Shape::Create(dims);
    int64_t dim;
    if (!ParseNpyNumber(&text, &dim) || dims.size() > Shape::kMaxRank) return error;
    dims.push_back(dim);
  }
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

StatusOr<NpyHeader> ParseNpyDict(std::string_view dict) {
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
  if (!ParseNpyNumber(&type, &number) || !type.empty() || number < 0 || number > INT32_MAX) {
    return InvalidArgument("arrays of dtype '", name, "' cannot be read");
  }
  header.item_bytes = static_cast<size_t>(number) * (header.kind == 'U' ? 4 : 1);
  header.column_major = order->starts_with("True");
  TENON_ASSIGN_OR_RETURN(header.shape, ParseNpyShape(*shape));
  header.dtype = header.is_text() ? DType::kString : DTypeOf(header.kind, header.item_bytes);
  if (header.dtype == DType::kInvalid) {
    return InvalidArgument("arrays of dtype '", std::string_view(&header.kind, 1),
                           header.item_bytes, "' cannot be read");
  }
  return header;
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

StatusOr<Tensor> MakeNumbers(const NpyHeader& header, std::string_view data) {
  TENON_ASSIGN_OR_RETURN(Tensor t, Tensor::Allocate(CpuAllocator(), header.dtype, header.shape));
  auto* out = static_cast<char*>(t.raw_data());
  const size_t size = header.item_bytes;
  if (header.column_major && header.shape.rank() > 1) {
    ForEachElement(header, [&](int64_t to, int64_t from) {
      std::memcpy(out + to * size, data.data() + from * size, size);
    });
  } else {
    std::memcpy(out, data.data(), data.size());
  }
  NormaliseNpyNumbers(header, out, data.size());
  return t;
}

}  // namespace

StatusOr<uint64_t> NpyElementsBegin(std::string_view preamble) {
  if (!preamble.starts_with(kNpyMagic) || preamble.size() < kNpyPreambleBytes) {
    return InvalidArgument("not an .npy file");
  }
  const int version = preamble[6];
  if (version < 1 || version > 3) {
    return InvalidArgument("it is an .npy file of version ", version, "; 1 to 3 are read");
  }
  uint32_t length = 0;
  std::memcpy(&length, preamble.data() + kBeforeLength, LengthBytes(version));
  return uint64_t{kBeforeLength} + LengthBytes(version) + length;
}

StatusOr<NpyHeader> ParseNpyHeader(std::string_view start) {
  TENON_ASSIGN_OR_RETURN(const uint64_t end, NpyElementsBegin(start));
  if (end > start.size()) return DataLoss("the .npy header is cut short");
  const size_t begin = kBeforeLength + LengthBytes(start[6]);
  return ParseNpyDict(start.substr(begin, end - begin));
}

StatusOr<uint64_t> NpyElementBytes(const NpyHeader& header, uint64_t items, uint64_t most) {
  uint64_t bytes;
  if (__builtin_mul_overflow(items, header.item_bytes, &bytes) ||
      (header.item_bytes == 0 && items > most)) {
    return DataLoss("found ", most, " bytes, wanted ", items, " elements of ", header.item_bytes,
                    " bytes for shape ", header.shape.ToString());
  }
  return bytes;
}

StatusOr<Tensor> MakeNpyTensor(const NpyHeader& header, std::string_view data) {
  if (!header.is_text()) return MakeNumbers(header, data);
  return CatchExceptions([&] { return MakeStrings(header, data); });
}

void NormaliseNpyNumbers(const NpyHeader& header, char* out, size_t bytes) {
  if (header.big_endian) {  // each part of a complex number by itself
    const size_t part = IsComplex(header.dtype) ? header.item_bytes / 2 : header.item_bytes;
    for (size_t i = 0; i < bytes; i += part) std::reverse(out + i, out + i + part);
  }
  if (header.dtype == DType::kBool) {
    // A C++ bool that is neither 0 nor 1 is undefined behaviour.
    std::transform(out, out + bytes, out, [](char c) { return c != 0; });
  }
}

std::string NpyDescrOf(DType dtype) {
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

std::string NpyElementsOf(const Tensor& tensor) {
  std::string out;
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

std::string FormatNpyHeader(const std::string& descr, const Shape& shape, bool room_to_grow) {
  const auto dict_of = [&](int64_t first) {
    std::string dims;
    for (int i = 0; i < shape.rank(); ++i) {
      StrAppend(&dims, i == 0 ? first : shape.dim(i), shape.rank() == 1 ? "," : ", ");
    }
    if (dims.ends_with(", ")) dims.resize(dims.size() - 2);
    return StrCat("{'descr': '", descr, "', 'fortran_order': False, 'shape': (", dims, "), }");
  };
  std::string dict = dict_of(shape.rank() == 0 ? 0 : shape.dim(0));
  const size_t longest = room_to_grow ? dict_of(INT64_MAX).size() : dict.size();
  constexpr size_t kBefore = kBeforeLength + 2;
  const size_t total = (kBefore + longest + 1 + kAlignment - 1) / kAlignment * kAlignment;
  dict.append(total - kBefore - dict.size() - 1, ' ');
  dict.push_back('\n');
  const auto length = static_cast<uint16_t>(dict.size());
  std::string out = StrCat(kNpyMagic, std::string_view("\x01\x00", 2));
  out.append(reinterpret_cast<const char*>(&length), sizeof(length));
  return out + dict;
}

}  // namespace tenon
