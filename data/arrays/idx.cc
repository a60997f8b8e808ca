// SPDX-License-Identifier: Apache-2.0
#include "data/arrays/idx.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "data/files/memory_claim.h"

namespace tenon {
namespace {

std::optional<DType> DTypeOfCode(unsigned char code) {
  switch (code) {
    case 0x08:
      return DType::kUInt8;
    case 0x09:
      return DType::kInt8;
    case 0x0b:
      return DType::kInt16;
    case 0x0c:
      return DType::kInt32;
    case 0x0d:
      return DType::kFloat;
    case 0x0e:
      return DType::kDouble;
    default:
      return std::nullopt;
  }
}

}  // namespace

StatusOr<Tensor> ReadIdx(ByteSource& source, const std::string& name) {
  const auto fail = [&](const Status& status) { return Annotate(status, StrCat("'", name, "'")); };
  std::string head;
  if (Status s = ReadExactly(source, 4, &head); !s.ok()) {
    return fail(AppendToMessage(s, " for the header of an IDX file"));
  }
  const auto dtype = DTypeOfCode(head[2]);
  if (head[0] != 0 || head[1] != 0 || !dtype) {
    const auto byte = [&](int i) {
      return absl::Hex(static_cast<unsigned char>(head[i]), absl::kZeroPad2);
    };
    return fail(InvalidArgument("not an IDX file: it begins with the bytes ", byte(0), " ", byte(1),
                                " ", byte(2), " ", byte(3)));
  }
  const auto rank = static_cast<unsigned char>(head[3]);
  if (Status s = ReadExactly(source, 4 * rank, &head); !s.ok()) {
    return fail(AppendToMessage(s, StrCat(" for the ", rank, " dimensions of an IDX file")));
  }
  DimVector dims;
  for (int i = 0; i < rank; ++i) {
    uint32_t dim;
    std::memcpy(&dim, head.data() + 4 * i, sizeof(dim));
    dims.push_back(__builtin_bswap32(dim));
  }
  StatusOr<Shape> shape = Shape::Create(dims);
  if (!shape.ok()) return fail(shape.status());
  const size_t size = SizeOf(*dtype);
  const uint64_t wanted = static_cast<uint64_t>(shape->num_elements()) * size;
  if (wanted / size != static_cast<uint64_t>(shape->num_elements())) {
    return fail(InvalidArgument("shape ", shape->ToString(), " is too large"));
  }
  std::string elements;
  if (Status s = ReadExactly(source, wanted, &elements); !s.ok()) {
    return fail(
        AppendToMessage(s, StrCat(" for the elements ", ToString(*dtype), shape->ToString())));
  }
  MemoryClaim claim;
  if (Status s = claim.GrowTo(elements.size()); !s.ok()) return fail(s);
  char extra;
  StatusOr<size_t> rest = source.Read(1, &extra);
  if (!rest.ok()) return fail(rest.status());
  if (*rest != 0) {
    return fail(DataLoss("found more than the ", wanted, " bytes wanted for the elements ",
                         ToString(*dtype), shape->ToString()));
  }
  TENON_ASSIGN_OR_RETURN(Tensor t, Tensor::Allocate(CpuAllocator(), *dtype, *shape));
  for (size_t i = 0; size > 1 && i < elements.size(); i += size) {
    std::reverse(elements.begin() + i, elements.begin() + i + size);
  }
  std::memcpy(t.raw_data(), elements.data(), elements.size());
  return t;
}

StatusOr<Tensor> ReadIdx(const std::string& path, const FileContext& context) {
  TENON_ASSIGN_OR_RETURN(const auto source, OpenSource(path, std::nullopt, context));
  return ReadIdx(*source, path);
}

}  // namespace tenon
