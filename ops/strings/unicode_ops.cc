// SPDX-License-Identifier: Apache-2.0
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/ragged/splits.h"
#include "ops/strings/map_elements.h"
#include "ops/strings/unicode.h"

namespace tenon {
namespace {

/// What a node does about what is no character.
struct Replacing : KernelState {
  explicit Replacing(KernelConstruction& c)
      : replacement(static_cast<int32_t>(c.Attr<int64_t>("replacement_char"))) {
    const std::string errors = c.Attr<std::string>("errors");
    strict = errors == "strict";
    ignore = errors == "ignore";
    if (c.attrs().Find("replace_control_characters")) {
      controls = c.Attr<bool>("replace_control_characters");
    }
    const int64_t wanted = c.Attr<int64_t>("replacement_char");
    if (wanted < 0 || wanted > 0x10FFFF) {
      c.Fail(InvalidArgument("replacement_char out of unicode codepoint range: ", wanted));
    }
    // A surrogate alone has no form in any encoding.
    if (wanted >= 0xD800 && wanted < 0xE000) replacement = 0xFFFD;
  }

  /// Calls `fn(code point, start)` for each character of `text`.
  template <typename Fn>
  Status ForEach(Encoding encoding, std::string_view text, Fn fn) const {
    for (std::string_view rest = text; !rest.empty();) {
      const size_t start = text.size() - rest.size();
      int32_t c = TakeCodePoint(encoding, &rest);
      if (c == kNoCharacter && strict) return InvalidArgument("Invalid formatting on input string");
      if (c == kNoCharacter || (controls && c < 32)) {
        if (ignore) continue;
        c = replacement;
      }
      fn(c, static_cast<int64_t>(start));
    }
    return OkStatus();
  }

  int32_t replacement;
  bool strict = false, ignore = false, controls = false;
};

Status UnicodeDecodeKernel(KernelContext& ctx, const std::string& name,
                           const Replacing& replacing) {
  TENON_ASSIGN_OR_RETURN(const Encoding encoding, ParseEncoding(name));
  CountedVector<int64_t> splits(1, 0), starts;
  CountedVector<int32_t> values;
  for (const TString& text : ctx.input(0).flat<TString>()) {
    if (Interrupted()) return OkStatus();
    TENON_RETURN_IF_ERROR(replacing.ForEach(encoding, text, [&](int32_t c, int64_t start) {
      values.push_back(c);
      if (ctx.num_outputs() == 3) starts.push_back(start);
    }));
    splits.push_back(static_cast<int64_t>(values.size()));
  }
  TENON_RETURN_IF_ERROR(WriteSplits(ctx, 0, splits));
  const auto count = static_cast<int64_t>(values.size());
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(1, {count}));
  std::copy(values.begin(), values.end(), out->data<int32_t>());
  if (ctx.num_outputs() < 3) return OkStatus();
  TENON_ASSIGN_OR_RETURN(Tensor * places, ctx.AllocateOutput(2, {count}));
  std::copy(starts.begin(), starts.end(), places->data<int64_t>());
  return OkStatus();
}

Status UnicodeDecodeShape(ShapeContext& c) {
  const auto count = c.input(0).num_elements();
  TENON_ASSIGN_OR_RETURN(const int64_t splits, count ? AddSizes(*count, 1) : int64_t{-1});
  c.set_output(0, PartialShape{splits});
  for (int i = 1; i < c.num_outputs(); ++i) c.set_output(i, PartialShape{-1});
  return OkStatus();
}

Status TranscodeKernel(KernelContext& ctx, const std::string& from, const std::string& to,
                       const Replacing& replacing) {
  TENON_ASSIGN_OR_RETURN(const Encoding in, ParseEncoding(from));
  TENON_ASSIGN_OR_RETURN(const Encoding out, ParseEncoding(to));
  const bool no_controls = replacing.strict && replacing.controls;
  Status status;
  TENON_RETURN_IF_ERROR((MapElements<TString, TString>(ctx, [&](const TString& text) {
    std::string made;
    status.Update(replacing.ForEach(in, text, [&](int32_t c, int64_t start) {
      std::string_view rest = std::string_view(text).substr(start);
      if (no_controls && TakeCodePoint(in, &rest) < 32) {
        status.Update(InvalidArgument("a control character at byte ", start));
      }
      AppendCodePoint(out, c, &made);
    }));
    return TString(made);
  })));
  return status;
}

Status UnicodeEncodeKernel(KernelContext& ctx, const Tensor& values, const std::string& name,
                           const Replacing& replacing) {
  TENON_ASSIGN_OR_RETURN(const Encoding encoding, ParseEncoding(name));
  TENON_RETURN_IF_ERROR(CheckRank(values, 1, "input_values"));
  TENON_ASSIGN_OR_RETURN(const IndexVector splits, ReadSplits(ctx.input(1)));
  if (splits.front() != 0 || splits.back() != values.num_elements()) {
    return InvalidArgument("input_splits go from ", splits.front(), " to ", splits.back(),
                           ", wanted from 0 to ", values.num_elements());
  }
  const auto rows = static_cast<int64_t>(splits.size()) - 1;
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, {rows}));
  for (int64_t i = 0; i < rows && !Interrupted(); ++i) {
    std::string text;
    for (int64_t k = splits[i]; k < splits[i + 1]; ++k) {
      int32_t c = values.data<int32_t>()[k];
      if (!IsCharacter(c)) {
        if (replacing.strict) {
          return InvalidArgument("Code point ", c,
                                 " is out of range for Unicode, or a noncharacter");
        }
        // What has a number is written, though it is no character.
        if (replacing.ignore && (c < 0 || c > 0x10FFFF)) continue;
        if (!replacing.ignore) c = replacing.replacement;
        if (c >= 0xD800 && c < 0xE000) c = 0xFFFD;
      }
      AppendCodePoint(encoding, c, &text);
    }
    out->data<TString>()[i] = TString(text);
  }
  return OkStatus();
}

}  // namespace

void RegisterUnicodeOps(OpRegistry& ops) {
  const Tensor texts = Tensor::Vector({"a\xc3\xa4", "", "\xff"});
  const AttributeMap utf8 = {{"input_encoding", "UTF-8"}};
  ops.Add("UnicodeDecode", UnicodeDecodeShape, UnicodeDecodeKernel, {.attrs = {"input_encoding"}})
      .Example({texts}, utf8);
  ops.Add("UnicodeDecodeWithOffsets", UnicodeDecodeShape, UnicodeDecodeKernel,
          {.attrs = {"input_encoding"}})
      .Example({texts}, utf8);
  ops.Add("UnicodeTranscode", UnchangedShape, TranscodeKernel,
          {.attrs = {"input_encoding", "output_encoding"}})
      .Example({texts}, {{"input_encoding", "UTF-8"}, {"output_encoding", "UTF-16-BE"}});
  ops.Add("UnicodeEncode", UnicodeEncodeKernel, {.attrs = {"output_encoding"}})
      .Example({Tensor::Vector<int32_t>({97, 0x1f600, -1}), Tensor::Vector<int64_t>({0, 2, 3})},
               {{"output_encoding", "UTF-8"}});
}

}  // namespace tenon
