// SPDX-License-Identifier: Apache-2.0
#include "ops/summary/tensor_text.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "ops/maths.h"

namespace tenon {
namespace {

std::string ElementText(const Tensor& t, int64_t i) {
  if (t.dtype() == DType::kString) return absl::CEscape(t.data<TString>()[i]);
  std::string text = "?";
  Dispatch(t.dtype(), PlainTypes(), [&]<typename T>(T) {
    const T v = t.data<T>()[i];
    if constexpr (kIsComplex<T>) {
      text = StrCat("(", v.real(), ",", v.imag(), ")");
    } else if constexpr (sizeof(T) == 1) {
      text = StrCat(static_cast<int>(v));
    } else {
      text = StrCat(static_cast<ComputeType<T>>(v));
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

}  // namespace

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
