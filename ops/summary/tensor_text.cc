// SPDX-License-Identifier: Apache-2.0
#include "ops/summary/tensor_text.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "core/base/float_text.h"
#include "core/base/interruption.h"
#include "core/tensor/variant.h"
#include "ops/maths.h"

namespace tenon {
namespace {

std::string ElementText(const Tensor& t, int64_t i) {
  if (t.dtype() == DType::kString) return absl::CEscape(t.data<TString>()[i]);
  if (t.dtype() == DType::kVariant) {
    const VariantRef& value = t.data<Variant>()[i].value;
    return StrCat("<", value == nullptr ? "[empty]" : value->Text(), ">");
  }
  std::string text = "?";
  Dispatch(t.dtype(), PlainTypes(), [&]<typename T>(T) {
    const T v = t.data<T>()[i];
    if constexpr (kIsComplex<T>) {
      text = StrCat("(", v.real(), ",", v.imag(), ")");
    } else if constexpr (sizeof(T) == 1) {
      text = StrCat(static_cast<int>(v));
    } else if constexpr (std::is_integral_v<T>) {
      text = StrCat(v);
    } else {
      text = FloatText(static_cast<ComputeType<T>>(v));
    }
  });
  return text;
}

/// Appends elements up to `limit`, from dimension `dim` on; `*next` is the first one not printed.
void AppendRows(const Tensor& t, int dim, int64_t limit, int64_t* next, std::string* out) {
  if (*next >= limit) return;
  const bool last = dim == t.rank() - 1;
  for (int64_t i = 0; i < t.dim(dim); ++i) {
    if (*next >= limit) {
      if (last && dim != 0) out->append("...");
      return;
    }
    if (last) {
      if (i > 0) out->append(" ");
      out->append(ElementText(t, (*next)++));
      continue;
    }
    out->append("[");
    AppendRows(t, dim + 1, limit, next, out);
    out->append("]");
  }
}

/// Appends what lies below an element of dimension `dim`, from element `i` of `size` on.
void AppendBrackets(const Tensor& t, int dim, int64_t i, int64_t size, int64_t ends,
                    std::string* out) {
  if (Interrupted()) return;
  if (dim == t.rank()) {
    if (t.dtype() == DType::kString) {
      StrAppend(out, "\"", absl::Utf8SafeCEscape(t.data<TString>()[i]), "\"");
    } else {
      out->append(ElementText(t, i));
    }
    return;
  }
  const int64_t count = t.dim(dim), step = count == 0 ? 0 : size / count;
  const int further = t.rank() - dim - 1;
  const std::string space =
      further == 0 ? " " : std::string(further, '\n') + std::string(dim + 1, ' ');
  out->push_back('[');
  for (int64_t k = 0; k < count; ++k) {
    if (k == ends && count > 2 * ends) {
      StrAppend(out, space, "...");
      k = count - ends;
      if (k == count) break;
    }
    if (k > 0) out->append(space);
    AppendBrackets(t, dim + 1, i + k * step, step, ends, out);
  }
  out->push_back(']');
}

}  // namespace

std::string FormatTensor(const Tensor& t, int64_t ends) {
  const int64_t n = t.num_elements(), limit = ends < 0 ? n : std::min(ends, n);
  if (t.dtype() == DType::kBool && n == 0) return "";  // TensorFlow's text.
  if (t.dtype() == DType::kString || Dispatch(t.dtype(), PlainTypes(), [](auto) {})) {
    if (t.rank() == 0 && limit == 0) return "...";
    if (!IsComplex(t.dtype())) {
      std::string text;
      AppendBrackets(t, 0, 0, n, limit, &text);
      return text;
    }
  }
  // TensorFlow does not look into the others.
  std::string text;
  for (int64_t i = 0; i < limit; ++i) {
    StrAppend(&text, i > 0 ? " " : "", t.dtype() == DType::kVariant ? ElementText(t, i) : "?");
  }
  if (limit < n) text += "...";
  return t.rank() == 0 ? text : StrCat("[", text, "]");
}

std::string SummarizeTensor(const Tensor& t, int64_t max_entries) {
  const int64_t n = t.num_elements();
  const int64_t limit = max_entries < 0 ? n : std::min(max_entries, n);
  std::string text;
  if (t.dtype() == DType::kString || t.rank() == 0) {
    for (int64_t i = 0; i < limit; ++i) {
      if (i > 0) text.append(" ");
      text.append(ElementText(t, i));
    }
  } else if (n > 0) {
    int64_t next = 0;
    AppendRows(t, 0, limit, &next, &text);
  }
  if (n > limit) text.append("...");
  return text;
}

}  // namespace tenon
