// SPDX-License-Identifier: Apache-2.0
#include <re2/re2.h>

#include <cstdarg>
#include <cstdio>

#include "core/base/interruption.h"
#include "core/op/op_registry.h"
#include "core/tensor/variant.h"
#include "data/csv/read_number.h"
#include "ops/arguments.h"
#include "ops/maths.h"
#include "ops/strings/map_elements.h"

namespace tenon {
namespace {

Status JoinKernel(KernelContext& ctx, const std::string& separator) {
  Shape shape;
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    const Shape& in = ctx.input(i).shape();
    if (in.IsScalar()) continue;
    if (!shape.IsScalar() && shape != in) {
      return InvalidArgument("Input shapes do not match: ", shape, " and ", in);
    }
    shape = in;
  }
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  for (int64_t k = 0; k < shape.num_elements() && !Interrupted(); ++k) {
    TString& text = out->data<TString>()[k];
    for (int i = 0; i < ctx.num_inputs(); ++i) {
      if (i > 0) text += separator;
      const Tensor& in = ctx.input(i);
      text += in.data<TString>()[in.rank() == 0 ? 0 : k];
    }
  }
  return OkStatus();
}

/// An input of unknown rank may be a scalar or the one that decides.
Status JoinShape(ShapeContext& c) {
  PartialShape shape;
  bool scalars = true;
  for (int i = 0; i < c.num_inputs(); ++i) {
    scalars &= c.input(i).rank() == 0;
    if (c.input(i).rank() != 0) {
      TENON_ASSIGN_OR_RETURN(shape, shape.MergeWith(c.input(i)));
    }
  }
  return c.Return(scalars ? Shape() : shape);
}

std::string Printed(const char* format, ...) {
  va_list args;
  va_start(args, format);
  va_list again;
  va_copy(again, args);
  char room[128];
  const int size = std::vsnprintf(room, sizeof(room), format, args);
  std::string text;
  if (size > 0 && size < static_cast<int>(sizeof(room))) {
    text.assign(room, size);
  } else if (size > 0) {
    text.resize(size);
    std::vsnprintf(text.data(), text.size() + 1, format, again);
  }
  va_end(again);
  va_end(args);
  return text;
}

/// How a node writes numbers: a format of printf, composed once, from checked attributes only.
class Format : public KernelState {
 public:
  explicit Format(KernelConstruction& c) {
    const int64_t precision = c.Attr<int64_t>("precision");
    const int64_t width = c.Attr<int64_t>("width");
    const bool scientific = c.Attr<bool>("scientific"), shortest = c.Attr<bool>("shortest");
    const std::string fill = c.Attr<std::string>("fill");
    const DType type = c.Attr<DType>("T");
    const bool real = IsFloating(type) || IsComplex(type);
    if (scientific && shortest) {
      c.Fail(InvalidArgument("Cannot select both scientific and shortest notation"));
    }
    const bool plain = !real && type != DType::kString;
    if (plain && (scientific || shortest)) {
      c.Fail(InvalidArgument("scientific and shortest format not supported for datatype ", type));
    }
    if (plain && precision >= 0) {
      c.Fail(InvalidArgument("precision not supported for datatype ", type));
    }
    if (fill.size() > 1) {
      c.Fail(InvalidArgument("Fill string must be one or fewer characters, found \"", fill, "\""));
    }
    if (std::string_view(" +-0#").find(fill) == std::string_view::npos) {
      c.Fail(InvalidArgument("Fill argument not supported: \"", fill, "\""));
    }
    if (precision > kMaxField || width > kMaxField) {
      c.Fail(InvalidArgument("precision and width are at most ", kMaxField, ", found ", precision,
                             " and ", width));
    }
    field_ = StrCat("%", fill);
    if (width >= 0) StrAppend(&field_, width);
    if (precision >= 0) StrAppend(&field_, ".", precision);
    letter_ = shortest ? "g" : scientific ? "e" : "f";
  }

  template <typename T>
  std::string Text(const T& v) const {
    if constexpr (std::is_same_v<T, TString>) {
      return Printed((field_ + "s").c_str(), v.c_str());
    } else if constexpr (std::is_same_v<T, Variant>) {
      if (v.value == nullptr) return "Variant<type:  value: [empty]>";
      return StrCat("Variant<type: ", v.value->type_name(), " value: ", v.value->Text(), ">");
    } else if constexpr (std::is_same_v<T, bool>) {
      return v ? "true" : "false";
    } else if constexpr (kIsComplex<T>) {
      return StrCat("(", Text(v.real()), ",", Text(v.imag()), ")");
    } else if constexpr (std::is_signed_v<T> && std::is_integral_v<T>) {
      if (IsPlain()) return StrCat(static_cast<long long>(v));
      return Printed((field_ + "lld").c_str(), static_cast<long long>(v));
    } else if constexpr (std::is_integral_v<T>) {
      if (IsPlain()) return StrCat(static_cast<unsigned long long>(v));
      return Printed((field_ + "llu").c_str(), static_cast<unsigned long long>(v));
    } else {
      return Printed((field_ + letter_).c_str(), static_cast<double>(ComputeType<T>(v)));
    }
  }

 private:
  /// Whether an integer is just its digits.
  bool IsPlain() const { return field_ == "%"; }

  static constexpr int64_t kMaxField = 1000;
  std::string field_;
  std::string letter_;
};

Status AsStringKernel(KernelContext& ctx, const Format& format, int64_t width) {
  const DType type = ctx.input(0).dtype();
  if (type == DType::kString && width < 0) return ctx.Return(ctx.TakeInput(0));
  using Types = decltype(ConcatTypes(PlainTypes(), TypeList<TString, Variant>()));
  return DispatchStatus(type, Types(), [&]<typename T>(T) {
    return MapElements<T, TString>(ctx, [&](const T& v) { return format.Text(v); });
  });
}

Status StringToNumberKernel(KernelContext& ctx, const Tensor& in) {
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
  for (int64_t i = 0; i < in.num_elements() && !Interrupted(); ++i) {
    const TString& text = in.data<TString>()[i];
    bool read = false;
    Dispatch(out->dtype(), TypeList<float, double, int32_t, int64_t>(),
             [&]<typename T>(T) { read = ReadNumber(std::string_view(text), out->data<T>() + i); });
    if (!read) {
      return InvalidArgument("StringToNumberOp could not correctly convert string: ", text);
    }
  }
  return OkStatus();
}

re2::StringPiece Piece(const TString& text) { return {text.data(), text.size()}; }

Status CheckPattern(const re2::RE2& pattern) {
  if (pattern.ok()) return OkStatus();
  return InvalidArgument("Invalid pattern: ", pattern.pattern(), ", error: ", pattern.error());
}

Status Match(KernelContext& ctx, const re2::RE2& pattern) {
  return MapElements<TString, bool>(
      ctx, [&](const TString& text) { return re2::RE2::FullMatch(Piece(text), pattern); });
}

re2::RE2::Options Quiet() {
  re2::RE2::Options options;
  options.set_log_errors(false);
  return options;
}

/// The pattern of a node's attribute.
struct Pattern : KernelState {
  explicit Pattern(KernelConstruction& c) : pattern(c.Attr<std::string>("pattern"), Quiet()) {
    c.Fail(CheckPattern(pattern));
  }
  const re2::RE2 pattern;
};

Status StaticMatchKernel(KernelContext& ctx, const Pattern& p) { return Match(ctx, p.pattern); }

Status MatchKernel(KernelContext& ctx) {
  const re2::RE2 pattern(Piece(ctx.input(1).scalar<TString>()), Quiet());
  TENON_RETURN_IF_ERROR(CheckPattern(pattern));
  return Match(ctx, pattern);
}

Status Replace(KernelContext& ctx, const re2::RE2& pattern, std::string_view rewrite, bool all) {
  const re2::StringPiece by(rewrite.data(), rewrite.size());
  return MapElements<TString, TString>(ctx, [&](const TString& text) {
    std::string changed(text);
    if (all) re2::RE2::GlobalReplace(&changed, pattern, by);
    if (!all) re2::RE2::Replace(&changed, pattern, by);
    return TString(changed);
  });
}

Status StaticReplaceKernel(KernelContext& ctx, std::string rewrite, bool all, const Pattern& p) {
  return Replace(ctx, p.pattern, rewrite, all);
}

Status ReplaceKernel(KernelContext& ctx, bool all) {
  const re2::RE2 pattern(Piece(ctx.input(1).scalar<TString>()), Quiet());
  TENON_RETURN_IF_ERROR(CheckPattern(pattern));
  return Replace(ctx, pattern, ctx.input(2).scalar<TString>(), all);
}

/// The kernel for (name, shard, number of shards), or (name, number of shards) for all of them.
Status ShardNameKernel(KernelContext& ctx) {
  const bool spec = ctx.num_inputs() == 2;
  const int32_t count = ctx.input(spec ? 1 : 2).scalar<int32_t>();
  const std::string shard =
      spec ? std::string(5, '?') : Printed("%05d", ctx.input(1).scalar<int32_t>());
  return ctx.Return(Tensor::Scalar(
      StrCat(ctx.input(0).scalar<TString>(), "-", shard, "-of-", Printed("%05d", count))));
}

}  // namespace

void RegisterText(OpRegistry& ops) {
  const Tensor texts = Tensor::Vector<std::string>({"ab", "b"}), model = Tensor::Scalar("model");
  ops.Add("StringJoin", JoinShape, JoinKernel, {.attrs = {"separator"}})
      .Example({texts, Tensor::Scalar("c")}, {{"N", 2}, {"separator", "-"}});
  ops.Add("AsString", UnchangedShape, AsStringKernel, {.attrs = {"width"}})
      .Example({Shape{2}}, {{"T", DType::kFloat}, {"precision", 2}});
  ops.Add("StringToNumber", UnchangedShape, StringToNumberKernel)
      .Example({Tensor::Vector<std::string>({"15", "-2"})});
  ops.Add("RegexFullMatch", UnchangedShape, MatchKernel).Example({texts, Tensor::Scalar("a.*")});
  ops.Add("RegexReplace", UnchangedShape, ReplaceKernel, {.attrs = {"replace_global"}})
      .Example({Shape{2, 3}, Tensor::Scalar("a"), Tensor::Scalar("b")});
  ops.Add("StaticRegexReplace", UnchangedShape, StaticReplaceKernel,
          {.attrs = {"rewrite", "replace_global"}})
      .Example({Shape{2, 3}}, {{"pattern", "a"}, {"rewrite", "b"}});
  ops.Add("StaticRegexFullMatch", UnchangedShape, StaticMatchKernel)
      .Example({texts}, {{"pattern", "a.*"}});
  ops.Add("ShardedFilename", ShardNameKernel)
      .Example({model, Tensor::Scalar<int32_t>(1), Tensor::Scalar<int32_t>(4)});
  ops.Add("ShardedFilespec", ShardNameKernel).Example({model, Tensor::Scalar<int32_t>(4)});
}

}  // namespace tenon
