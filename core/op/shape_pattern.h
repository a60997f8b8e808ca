// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/attribute.h"
#include "core/tensor/shape.h"

// Shapes as declarations of ops write them: `[n, ?, 4]`, `[..., m, m]`.

namespace tenon {

/// One size of a declared shape.
struct DimPattern {
  enum class Kind : uint8_t {
    kAny,     // ?
    kNumber,  // 4
    kSymbol,  // n, n + 1: the same wherever the op's declaration has the name
    kAttr,    // the int attribute of that name; any when that is negative
    kInput,   // the value of the input of that name, a scalar, or one of its elements
  };
  Kind kind = Kind::kAny;
  int64_t number = 0;  // the size, or what is added to what the name stands for
  int index = 0;       // of a symbol, or of an input argument
  int element = -1;    // of an input that is a vector; -1: it is a scalar
  std::string name;
};

/// The declared shape of an argument.
struct ShapePattern {
  static constexpr int kMaxSymbols = 16;

  bool open = false;  // begins with "...", any dimensions, which are the same wherever an op has it
  std::vector<DimPattern> dims;

  /// "[..., n, n + 1]"
  std::string ToString() const;
  /// With numbers in the place of attributes.
  ShapePattern Resolved(const AttributeMap& attrs) const;
};

/// The sizes behind the names in the declared shapes of one op, as far as its inputs have told.
class DimNames {
 public:
  DimNames() { sizes_.fill(-1); }

  /// Learns from an argument called `name`, whose shape is `dims` with -1 where a size is not
  /// known. InvalidArgument, naming found and wanted, when that contradicts what is declared.
  Status Match(const ShapePattern& pattern, absl::Span<const int64_t> dims, std::string_view name) {
    if (static_cast<size_t>(dims.size()) == pattern.dims.size() && !pattern.open) {
      size_t at = 0;
      while (at < dims.size() && Fits(pattern.dims[at], dims[at])) ++at;
      if (at == dims.size()) return OkStatus();
    } else if (pattern.open && MatchOpen(pattern, dims)) {
      return OkStatus();
    }
    return Contradiction(pattern, dims, name);
  }
  /// The sizes that an argument has, -1 where one is not known; false when their number is not
  /// known. InvalidArgument when one does not fit in an int64_t.
  StatusOr<bool> Dims(const ShapePattern& pattern, DimVector* dims) const;

 private:
  bool Fits(const DimPattern& wanted, int64_t size) {
    if (wanted.kind == DimPattern::Kind::kNumber) return size < 0 || size == wanted.number;
    if (wanted.kind != DimPattern::Kind::kSymbol || size < 0) return true;
    int64_t& known = sizes_[wanted.index];
    if (size < wanted.number || (known >= 0 && known != size - wanted.number)) return false;
    known = size - wanted.number;
    return true;
  }
  bool MatchOpen(const ShapePattern& pattern, absl::Span<const int64_t> dims);
  Status Contradiction(const ShapePattern& pattern, absl::Span<const int64_t> dims,
                       std::string_view name) const;

  std::array<int64_t, ShapePattern::kMaxSymbols> sizes_;  // -1: not known
  bool open_known_ = false;
  DimVector open_;
};

}  // namespace tenon
