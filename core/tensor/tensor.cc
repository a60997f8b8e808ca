// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/tensor.h"

#include <cstring>

#include "core/base/exceptions.h"
#include "core/base/parallel.h"
#include "core/memory/memory_account.h"
#include "core/memory/memory_description.h"
#include "core/tensor/buffer_versions.h"
#include "core/tensor/resource.h"
#include "core/tensor/variant_element.h"

namespace tenon {
namespace {

/// Appends the text in quotes as Python writes bytes, without the b before: on one line, whatever
/// the bytes are.
void AppendQuoted(std::string* out, std::string_view text) {
  constexpr char kDigits[] = "0123456789abcdef";
  const bool in_double = text.find('\'') != text.npos && text.find('"') == text.npos;
  const char quote = in_double ? '"' : '\'';
  *out += quote;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == quote || c == '\\') {
      *out += {'\\', c};
    } else if (c == '\t' || c == '\n' || c == '\r') {
      *out += {'\\', c == '\t' ? 't' : c == '\n' ? 'n' : 'r'};
    } else if (byte < 0x20 || byte >= 0x7f) {
      *out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    } else {
      *out += c;
    }
  }
  *out += quote;
}

template <typename T>
void AppendElement(std::string* out, const T& value) {
  if constexpr (std::is_same_v<T, TString>) {
    AppendQuoted(out, value);
  } else if constexpr (std::is_same_v<T, bool>) {
    out->append(value ? "true" : "false");
  } else if constexpr (requires { value.real(); }) {
    StrAppend(out, "(", value.real(), ",", value.imag(), ")");
  } else if constexpr (std::is_floating_point_v<T>) {
    StrAppend(out, value);
  } else if constexpr (std::is_integral_v<T>) {
    StrAppend(out, static_cast<int64_t>(value));
  } else {
    StrAppend(out, static_cast<float>(value));
  }
}

template <typename T>
Status CopyObjects(const Tensor& from, Tensor* to) {
  return CatchExceptions([&] {
    std::copy_n(from.data<T>(), from.num_elements(), to->data<T>());
    return OkStatus();
  });
}

size_t ElementBytes(DType dtype) {
  switch (dtype) {
    case DType::kString:
      return sizeof(TString);
    case DType::kResource:
      return sizeof(ResourceHandle);
    case DType::kVariant:
      return sizeof(Variant);
    default:
      return SizeOf(dtype);
  }
}

}  // namespace

Tensor::Tensor(DType dtype, const Shape& shape)
    : Tensor(dtype, shape, AllocateBuffer(CpuAllocator(), dtype, shape.num_elements())) {
  TENON_CHECK(buffer_, "out of memory for ", ToString(dtype), shape.ToString());
}

Tensor::Tensor(DType dtype, const Shape& shape, BufferRef buffer)
    : dtype_(dtype), shape_(shape), buffer_(std::move(buffer)) {
  if (buffer_) data_ = buffer_->data();
}

Tensor Tensor::WrongCount(const Shape& shape, size_t values, const std::source_location& at) {
  // A tensor without a dtype has no elements: the message is kept in their place.
  Tensor t;
  t.buffer_ = AllocateBuffer(CpuAllocator(), DType::kString, 1);
  if (!t.buffer_) return t;
  const std::string_view file = at.file_name();
  *static_cast<TString*>(t.buffer_->data()) =
      StrCat(file.substr(file.rfind('/') + 1), ":", at.line(), ": found ", values,
             " values for a tensor of shape ", shape.ToString(), ", wanted ", shape.num_elements());
  return t;
}

Status Tensor::mistake() const {
  if (!buffer_) return InvalidArgument("the tensor has no value");
  return InvalidArgument(std::string_view(*static_cast<const TString*>(buffer_->data())));
}

StatusOr<Tensor> Tensor::Allocate(Allocator& allocator, DType dtype, const Shape& shape) {
  BufferRef buffer = AllocateBuffer(allocator, dtype, shape.num_elements());
  if (!buffer) {
    const MemoryAccount* const account = CurrentMemoryAccount();
    const double wanted = static_cast<double>(shape.num_elements()) * ElementBytes(dtype) +
                          Allocator::kAlignment;  // the buffer's header
    if (account != nullptr && allocator.IsHostMemory() &&
        wanted > static_cast<double>(account->limit() - account->bytes_in_use())) {
      return ResourceExhausted("the session's tensors take ", account->bytes_in_use(),
                               " bytes of at most ", account->limit(),
                               ", which leaves too little for ", ToString(dtype), shape.ToString());
    }
    const auto* const more = dynamic_cast<const MemoryDescription*>(&allocator);
    return ResourceExhausted("out of ", allocator.name(), " memory for a tensor ", ToString(dtype),
                             shape.ToString(), more == nullptr ? "" : more->DescribeMemory());
  }
  return Tensor(dtype, shape, std::move(buffer));
}

Tensor Tensor::Zeros(DType dtype, const Shape& shape) {
  Tensor t(dtype, shape);
  if (IsPlain(dtype)) std::memset(t.raw_data(), 0, t.num_bytes());
  return t;
}

size_t Tensor::num_bytes() const {
  if (dtype_ != DType::kString) return num_elements() * SizeOf(dtype_);
  size_t bytes = 0;
  for (const TString& s : flat<TString>()) bytes += s.size();
  return bytes;
}

StatusOr<Tensor> Tensor::Reshaped(const Shape& shape) const {
  if (shape.num_elements() != num_elements()) {
    return InvalidArgument("a tensor of ", num_elements(), " elements ", shape_.ToString(),
                           " cannot have shape ", shape.ToString(), " of ", shape.num_elements());
  }
  Tensor t = *this;
  t.shape_ = shape;
  return t;
}

Tensor Tensor::BitcastTo(DType dtype, const Shape& shape) const {
  TENON_CHECK(IsPlain(dtype) && IsPlain(dtype_) &&
              shape.num_elements() * SizeOf(dtype) == num_elements() * SizeOf(dtype_));
  Tensor t = *this;
  t.dtype_ = dtype;
  t.shape_ = shape;
  return t;
}

Tensor Tensor::Slice(int64_t begin, int64_t end) const {
  TENON_CHECK(rank() >= 1 && 0 <= begin && begin <= end && end <= dim(0));
  Tensor t = *this;
  t.shape_ = shape_.WithDim(0, end - begin);
  const int64_t row = shape_.WithoutDim(0).num_elements();
  t.data_ = static_cast<char*>(data_) + begin * row * ElementBytes(dtype_);
  return t;
}

StatusOr<Tensor> Tensor::Copy() const {
  if (!valid()) return Tensor();
  TENON_ASSIGN_OR_RETURN(Tensor copy, Allocate(allocator(), dtype_, shape_));
  if (!IsHostMemory()) {
    allocator().Copy(copy.data_, data_, num_bytes());
    return copy;
  }
  switch (dtype_) {
    case DType::kString:
      TENON_RETURN_IF_ERROR(CopyObjects<TString>(*this, &copy));
      break;
    case DType::kResource:
      TENON_RETURN_IF_ERROR(CopyObjects<ResourceHandle>(*this, &copy));
      break;
    case DType::kVariant:
      TENON_RETURN_IF_ERROR(CopyObjects<Variant>(*this, &copy));
      break;
    default:
      SerialFor(static_cast<int64_t>(num_bytes()), 0.1, [&](int64_t begin, int64_t end) {
        std::memcpy(static_cast<char*>(copy.data_) + begin, static_cast<const char*>(data_) + begin,
                    end - begin);
      });
  }
  return copy;
}

void Tensor::TakeNewest() {
  if (!buffer_ || !buffer_->superseded()) return;
  BufferRef newest = buffer_->versions()->Newest();
  const auto offset = static_cast<char*>(data_) - static_cast<char*>(buffer_->data());
  data_ = static_cast<char*>(newest->data()) + offset;
  buffer_ = std::move(newest);
}

bool Tensor::Equals(const Tensor& other) const {
  if (dtype_ != other.dtype_ || !(shape_ == other.shape_)) return false;
  if (!valid() || num_elements() == 0) return true;
  switch (dtype_) {
    case DType::kString:
      return flat<TString>() == other.flat<TString>();
    case DType::kVariant:
      return std::equal(flat<Variant>().begin(), flat<Variant>().end(), other.data<Variant>(),
                        [](const Variant& a, const Variant& b) { return a.value == b.value; });
    case DType::kResource:
      return SharesBufferWith(other) && data_ == other.data_;
    default:
      return std::memcmp(raw_data(), other.raw_data(), num_bytes()) == 0;
  }
}

std::string Tensor::ToString(int max_elements) const {
  if (!valid()) return "invalid";
  std::string out = StrCat(ToString(dtype_), shape_.ToString());
  if (!IsHostMemory()) return out + " on a device";
  const int64_t shown = std::min<int64_t>(max_elements, num_elements());
  using Printable = decltype(ConcatTypes(PlainTypes(), TypeList<TString>()));
  Dispatch(dtype_, Printable(), [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < shown; ++i) {
      out += ' ';
      AppendElement(&out, data<T>()[i]);
    }
  });
  if (shown < num_elements()) out += " ...";
  return out;
}

}  // namespace tenon
