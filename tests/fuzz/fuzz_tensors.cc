// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/fuzz_tensors.h"

#include <limits>

#include "core/tensor/resource.h"
#include "core/tensor/variant.h"

namespace tenon::testing {
namespace {

constexpr int64_t kMaxFuzzElements = 4096;

template <typename T>
T OddNumber(FuzzBytes& bytes) {
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_same_v<T, bool>) {
    return bytes.Below(2) == 1;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(OddInteger(bytes));
  } else if constexpr (std::is_floating_point_v<T>) {
    static const std::vector<T> numbers = {T(0),
                                           T(1),
                                           T(-1),
                                           T(0.5),
                                           T(2),
                                           T(-0.0),
                                           Limits::quiet_NaN(),
                                           Limits::infinity(),
                                           -Limits::infinity(),
                                           Limits::denorm_min(),
                                           Limits::min(),
                                           Limits::max(),
                                           Limits::lowest(),
                                           T(1e10),
                                           T(-3e9),
                                           T(2147483648.0),
                                           T(1e-20)};
    return bytes.OneOf(numbers);
  } else if constexpr (std::is_same_v<T, std::complex<float>>) {
    const float real = OddNumber<float>(bytes);
    return T(real, OddNumber<float>(bytes));
  } else if constexpr (std::is_same_v<T, std::complex<double>>) {
    const double real = OddNumber<double>(bytes);
    return T(real, OddNumber<double>(bytes));
  } else {
    return T(OddNumber<float>(bytes));
  }
}

std::string OddText(FuzzBytes& bytes) {
  static const std::vector<std::string> texts = {
      "a", "",   "1",    "-1e400",   "9223372036854775808",  "nan",
      "(", "a*", "%s%n", "\xff\xfe", std::string("a\0b", 3), std::string(300, 'x')};
  const int i = bytes.Below(static_cast<int>(texts.size()) + 1);
  return i < static_cast<int>(texts.size()) ? texts[i] : bytes.Text(12);
}

}  // namespace

int64_t OddInteger(FuzzBytes& bytes) {
  static const std::vector<int64_t> numbers = {0,
                                               1,
                                               2,
                                               -1,
                                               3,
                                               4,
                                               -2,
                                               7,
                                               16,
                                               100,
                                               255,
                                               256,
                                               -128,
                                               65536,
                                               1000000,
                                               int64_t{1} << 28,
                                               (int64_t{1} << 31) - 1,
                                               int64_t{1} << 31,
                                               -(int64_t{1} << 31),
                                               int64_t{1} << 32,
                                               int64_t{1} << 40,
                                               int64_t{1} << 62,
                                               std::numeric_limits<int64_t>::max() / 2,
                                               std::numeric_limits<int64_t>::max(),
                                               std::numeric_limits<int64_t>::min(),
                                               std::numeric_limits<int64_t>::min() + 1,
                                               std::numeric_limits<int64_t>::max() - 1};
  const int i = bytes.Below(static_cast<int>(numbers.size()) + 2);
  return i < static_cast<int>(numbers.size()) ? numbers[i] : bytes.Raw<int64_t>();
}

Shape OddShape(FuzzBytes& bytes) {
  static const std::vector<int64_t> sizes = {2,
                                             1,
                                             0,
                                             3,
                                             4,
                                             5,
                                             7,
                                             17,
                                             64,
                                             1000,
                                             int64_t{1} << 31,
                                             int64_t{1} << 40,
                                             int64_t{1} << 62,
                                             std::numeric_limits<int64_t>::max() / 2,
                                             std::numeric_limits<int64_t>::max()};
  static const std::vector<int> ranks = {2, 1, 0, 3, 4, 5, 8, Shape::kMaxRank};
  DimVector dims(bytes.OneOf(ranks));
  for (int64_t& d : dims) d = bytes.OneOf(sizes);
  const auto small = [](const StatusOr<Shape>& s) {
    return s.ok() && s->num_elements() <= kMaxFuzzElements;
  };
  auto shape = Shape::Create(dims);
  if (!small(shape)) {
    dims[bytes.Below(static_cast<int>(dims.size()))] = 0;
    shape = Shape::Create(dims);
  }
  for (size_t i = 0; i < dims.size() && !small(shape); ++i) {
    if (dims[i] > 1) dims[i] = 1;
    shape = Shape::Create(dims);
  }
  return *shape;
}

PartialShape OddPartialShape(FuzzBytes& bytes) {
  if (bytes.Chance(20)) return PartialShape();
  const Shape shape = OddShape(bytes);
  DimVector dims(shape.dims().begin(), shape.dims().end());
  for (int changes = bytes.Below(3); changes > 0 && !dims.empty(); --changes) {
    int64_t& dim = dims[bytes.Below(static_cast<int>(dims.size()))];
    dim = bytes.Chance(50) ? std::max<int64_t>(OddInteger(bytes), -1) : -1;
  }
  const auto made = PartialShape::Create(dims);
  return made.ok() ? *made : PartialShape(shape);
}

DType AnyDType(FuzzBytes& bytes) {
  static const DTypeVector types = [] {
    DTypeVector all = DTypesOf(PlainTypes());
    all.insert(all.end(), {DType::kString, DType::kResource, DType::kVariant});
    return all;
  }();
  return bytes.OneOf(types);
}

Tensor OddTensor(FuzzBytes& bytes, DType dtype, const Shape& shape) {
  Tensor t(dtype, shape);
  const int64_t n = t.num_elements();
  const int kind = bytes.Below(4);
  if (dtype == DType::kString) {
    for (TString& text : t.flat<TString>()) text = kind == 0 ? "a" : OddText(bytes);
    return t;
  }
  const bool known = Dispatch(dtype, PlainTypes(), [&](auto zero) {
    using T = decltype(zero);
    T* values = t.data<T>();
    const T same = kind == 0 ? OddNumber<T>(bytes) : T(0);
    for (int64_t i = 0; i < n; ++i) {
      switch (kind) {
        case 0:
          values[i] = same;
          break;
        case 1:
          values[i] = static_cast<T>(static_cast<float>(i % 100));
          break;
        case 2:
          values[i] = static_cast<T>(static_cast<float>(bytes.Below(4)));
          break;
        default:
          values[i] = OddNumber<T>(bytes);
      }
    }
  });
  // Types that are only stored, such as the quantized ones.
  if (!known && IsPlain(dtype)) std::memset(t.raw_data(), bytes.Below(256), t.num_bytes());
  return t;
}

void Spoil(FuzzBytes& bytes, Tensor* t) {
  const int64_t n = std::min<int64_t>(t->num_elements(), 65536);
  if (n == 0) return;
  for (int changes = 1 + bytes.Below(3); changes > 0; --changes) {
    const int at = bytes.Below(static_cast<int>(n));
    if (t->dtype() == DType::kString) t->data<TString>()[at] = OddText(bytes);
    Dispatch(t->dtype(), PlainTypes(), [&](auto zero) {
      using T = decltype(zero);
      t->data<T>()[at] = OddNumber<T>(bytes);
    });
  }
}

}  // namespace tenon::testing
