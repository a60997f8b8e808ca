// SPDX-License-Identifier: Apache-2.0
#include "ops/strings/strings_ops.h"

#include <re2/re2.h>

#include <cstdarg>
#include <cstdio>

#include "absl/strings/numbers.h"
#include "core/interruption.h"
#include "ops/arguments.h"
#include "ops/strings/register.h"

namespace tenon {
namespace {

class JoinKernel final : public Kernel {
 public:
  explicit JoinKernel(KernelConstruction& c)
      : Kernel(c), separator_(c.Attr<std::string>("separator")) {}
  Status Compute(KernelContext& ctx) const override {
    Shape shape;
    for (int i = 0; i < ctx.num_inputs(); ++i) {
      const Shape& in = ctx.input(i).shape();
      if (in.IsScalar()) continue;
      if (!shape.IsScalar() && !(shape == in)) {
        return InvalidArgument("Input shapes do not match: ", shape.ToString(), " and ",
                               in.ToString());
      }
      shape = in;
    }
    TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    for (int64_t k = 0; k < shape.num_elements() && !Interrupted(); ++k) {
      TString& text = out->data<TString>()[k];
      for (int i = 0; i < ctx.num_inputs(); ++i) {
        if (i > 0) text += separator_;
        const Tensor& in = ctx.input(i);
        text += in.data<TString>()[in.rank() == 0 ? 0 : k];
      }
    }
    return OkStatus();
  }

 private:
  const std::string separator_;
};

Status JoinShape(ShapeContext& c) {
  PartialShape shape{};
  bool scalar = true, known = true;
  for (int i = 0; i < c.num_inputs(); ++i) {
    const PartialShape& in = c.input(i);
    if (!in.rank_known()) known = false;
    if (!in.rank_known() || in.rank() == 0) continue;
    TENON_ASSIGN_OR_RETURN(shape, shape.MergeWith(in));
    scalar = false;
  }
  // An input of unknown rank may be a scalar or the one that decides.
  if (!scalar) c.set_output(0, shape);
  if (scalar && known) c.set_output(0, tenon::Shape());
  return OkStatus();
}

std::string Printed(const char* format, ...) {
  va_list args;
  va_start(args, format);
  va_list again;
  va_copy(again, args);
  const int size = std::vsnprintf(nullptr, 0, format, args);
  std::string text(size > 0 ? size : 0, '\0');
  if (size > 0) std::vsnprintf(text.data(), text.size() + 1, format, again);
  va_end(again);
  va_end(args);
  return text;
}

/// Numbers as printf writes them; the format is composed once, from checked attributes only.
class AsStringKernel final : public Kernel {
 public:
  explicit AsStringKernel(KernelConstruction& c) : Kernel(c) {
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
      c.Fail(InvalidArgument("scientific and shortest format not supported for datatype ",
                             ToString(type)));
    }
    if (plain && precision >= 0) {
      c.Fail(InvalidArgument("precision not supported for datatype ", ToString(type)));
    }
    if (fill.size() > 1 ||
        (!fill.empty() && std::string_view(" +-0#").find(fill[0]) == std::string_view::npos)) {
      c.Fail(InvalidArgument("Fill argument not supported: \"", fill, "\""));
    }
    if (precision > kMaxField || width > kMaxField) {
      c.Fail(InvalidArgument("precision and width are at most ", kMaxField, ", found ", precision,
                             " and ", width));
    }
    padded_ = width >= 0;
    field_ = StrCat("%", fill);
    if (width >= 0) StrAppend(&field_, width);
    if (precision >= 0) StrAppend(&field_, ".", precision);
    letter_ = shortest ? "g" : scientific ? "e" : "f";
  }

  Status Compute(KernelContext& ctx) const override {
    const Tensor in = ctx.TakeInput(0);
    const bool is_text = in.dtype() == DType::kString;
    if (is_text && !padded_) {
      ctx.set_output(0, in);
      return OkStatus();
    }
    TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
    if (is_text) {
      for (int64_t i = 0; i < in.num_elements() && !Interrupted(); ++i) {
        out->data<TString>()[i] =
            Printed((field_ + "s").c_str(), in.data<TString>()[i].c_str());
      }
      return OkStatus();
    }
    const bool known = Dispatch(in.dtype(), PlainTypes(), [&](auto zero) {
      using T = decltype(zero);
      for (int64_t i = 0; i < in.num_elements() && !Interrupted(); ++i) {
        out->data<TString>()[i] = Text(in.data<T>()[i]);
      }
    });
    return known ? OkStatus() : Unimplemented("no AsString of ", ToString(in.dtype()));
  }

 private:
  static constexpr int64_t kMaxField = 1000;

  std::string Text(bool v) const { return v ? "true" : "false"; }
  std::string Text(Half v) const { return Text(static_cast<double>(static_cast<float>(v))); }
  std::string Text(BFloat16 v) const { return Text(static_cast<double>(static_cast<float>(v))); }
  std::string Text(float v) const { return Text(static_cast<double>(v)); }
  std::string Text(double v) const { return Printed((field_ + letter_).c_str(), v); }
  template <typename T>
  std::string Text(std::complex<T> v) const {
    return StrCat("(", Text(v.real()), ",", Text(v.imag()), ")");
  }
  template <typename T>
    requires std::is_integral_v<T>
  std::string Text(T v) const {
    if constexpr (std::is_signed_v<T>) {
      return Printed((field_ + "lld").c_str(), static_cast<long long>(v));
    } else {
      return Printed((field_ + "llu").c_str(), static_cast<unsigned long long>(v));
    }
  }

  std::string field_;
  std::string letter_;
  bool padded_ = false;
};

/// An integer with spaces around it and perhaps a minus, but no plus.
template <typename T>
bool ReadWhole(std::string_view text, T* value) {
  const size_t first = text.find_first_not_of(" \t\n\v\f\r");
  if (first != std::string_view::npos && text[first] == '+') return false;
  return absl::SimpleAtoi(absl::string_view(text.data(), text.size()), value);
}

Status StringToNumberKernel(KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
  for (int64_t i = 0; i < in.num_elements() && !Interrupted(); ++i) {
    const TString& text = in.data<TString>()[i];
    bool read = false;
    switch (out->dtype()) {
      case DType::kFloat:
        read = absl::SimpleAtof(text, out->data<float>() + i);
        break;
      case DType::kDouble:
        read = absl::SimpleAtod(text, out->data<double>() + i);
        break;
      case DType::kInt32:
        read = ReadWhole(text, out->data<int32_t>() + i);
        break;
      case DType::kInt64:
        read = ReadWhole(text, out->data<int64_t>() + i);
        break;
      default:
        break;
    }
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
  const Tensor& in = ctx.input(0);
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
  for (int64_t i = 0; i < in.num_elements() && !Interrupted(); ++i) {
    out->data<bool>()[i] = re2::RE2::FullMatch(Piece(in.data<TString>()[i]), pattern);
  }
  return OkStatus();
}

re2::RE2::Options Quiet() {
  re2::RE2::Options options;
  options.set_log_errors(false);
  return options;
}

class StaticMatchKernel final : public Kernel {
 public:
  explicit StaticMatchKernel(KernelConstruction& c)
      : Kernel(c), pattern_(c.Attr<std::string>("pattern"), Quiet()) {
    if (const Status s = CheckPattern(pattern_); !s.ok()) c.Fail(s);
  }
  Status Compute(KernelContext& ctx) const override { return Match(ctx, pattern_); }

 private:
  const re2::RE2 pattern_;
};

Status MatchKernel(KernelContext& ctx) {
  if (ctx.input(1).rank() != 0) {
    return InvalidArgument("Pattern must be scalar, but received ",
                           ctx.input(1).shape().ToString());
  }
  const re2::RE2 pattern(Piece(ctx.input(1).scalar<TString>()), Quiet());
  TENON_RETURN_IF_ERROR(CheckPattern(pattern));
  return Match(ctx, pattern);
}

/// The last `numbers` inputs are integers, the one before is the name.
Status ShardNameKernel(KernelContext& ctx) {
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    if (ctx.input(i).rank() == 0) continue;
    return InvalidArgument("input ", i, " must be a scalar, got shape ",
                           ctx.input(i).shape().ToString());
  }
  const bool spec = ctx.num_inputs() == 2;
  const int32_t count = ctx.input(spec ? 1 : 2).scalar<int32_t>();
  const std::string shard =
      spec ? std::string(5, '?') : Printed("%05d", ctx.input(1).scalar<int32_t>());
  ctx.set_output(0, Tensor::Scalar(StrCat(ctx.input(0).scalar<TString>(), "-", shard, "-of-",
                                          Printed("%05d", count))));
  return OkStatus();
}

Status ScalarsShape(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) TENON_RETURN_IF_ERROR(c.WithRank(i, 0));
  return ScalarShape(c);
}

const Tensor& TwoTexts() {
  static const Tensor texts = Tensor::Vector<std::string>({"ab", "b"});
  return texts;
}

}  // namespace

void RegisterStringOps(OpRegistry& ops) {
  ops.Get("StringJoin")
      .Shape(JoinShape)
      .Kernel<JoinKernel>(kCpu)
      .NotDifferentiable()
      .Example({TwoTexts(), Tensor::Scalar("c")}, {{"N", 2}, {"separator", "-"}});
  ops.Get("AsString")
      .Shape(UnchangedShape)
      .Kernel<AsStringKernel>(kCpu)
      .NotDifferentiable()
      .Example({Shape{2}}, {{"T", DType::kFloat}, {"precision", 2}});
  ops.Get("StringToNumber")
      .Shape(UnchangedShape)
      .Kernel(kCpu, StringToNumberKernel)
      .NotDifferentiable()
      .Example({Tensor::Vector<std::string>({"15", "-2"})});
  ops.Get("RegexFullMatch")
      .Shape(UnchangedShape)
      .Kernel(kCpu, MatchKernel)
      .Example({TwoTexts(), Tensor::Scalar("a.*")});
  ops.Get("StaticRegexFullMatch")
      .Shape(UnchangedShape)
      .Kernel<StaticMatchKernel>(kCpu)
      .Example({TwoTexts()}, {{"pattern", "a.*"}});
  ops.Get("ShardedFilename")
      .Shape(ScalarsShape)
      .Kernel(kCpu, ShardNameKernel)
      .Example({Tensor::Scalar("model"), Tensor::Scalar<int32_t>(1), Tensor::Scalar<int32_t>(4)});
  ops.Get("ShardedFilespec")
      .Shape(ScalarsShape)
      .Kernel(kCpu, ShardNameKernel)
      .Example({Tensor::Scalar("model"), Tensor::Scalar<int32_t>(4)});
}

}  // namespace tenon
