// SPDX-License-Identifier: Apache-2.0
#include "core/op/op_declaration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/op/op_traits.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using tenon::testing::IsError;
using tenon::testing::kInvalid;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<OpSchema> Parse(std::string_view text) {
  auto ops = ParseOpDeclarations(text, "test.ops");
  EXPECT_OK(ops);
  return ops.ok() ? *std::move(ops) : std::vector<OpSchema>(1);
}

TEST(OpDeclarationTest, AnOpWithEverything) {
  const std::vector<OpSchema> ops = Parse(R"(
# A comment.
op Mix(a: T, list: N * T,
    var: Ref(T), more: Tlist) -> out: T, count: int32 [stateful, commutative]
  "Mixes \"all\"."
  "And more."
  a, more "What goes in."
  N: int >= 2
  T: {float, half} = half, flag: bool = true "Of both."
  Tlist: list(type) >= 0
op Next() -> out: string [reads_outside]  # nothing else
op op(types: Host(int32)) -> y: Host(int64) 
    [aggregate, allows_uninitialized_input, no_gradient, basic])");
  ASSERT_THAT(ops, SizeIs(3));
  const OpSchema& mix = ops[0];
  EXPECT_EQ(mix.name, "Mix");
  EXPECT_EQ(mix.doc, "Mixes \"all\". And more.");
  EXPECT_TRUE(mix.is_stateful && mix.is_commutative && !mix.is_aggregate && !mix.reads_outside);
  ASSERT_THAT(mix.inputs, SizeIs(4));
  EXPECT_EQ(mix.inputs[0].type_attr, "T");
  EXPECT_EQ(mix.inputs[0].doc, "What goes in.");
  EXPECT_EQ(mix.inputs[1].number_attr, "N");
  EXPECT_EQ(mix.inputs[1].doc, "");
  EXPECT_TRUE(mix.inputs[2].is_ref);
  EXPECT_EQ(mix.inputs[3].type_list_attr, "Tlist");
  EXPECT_EQ(mix.inputs[3].doc, "What goes in.");
  ASSERT_THAT(mix.outputs, SizeIs(2));
  EXPECT_EQ(mix.outputs[1].type, DType::kInt32);
  ASSERT_THAT(mix.attrs, SizeIs(4));
  EXPECT_EQ(mix.attrs[0].minimum, 2);
  EXPECT_EQ(mix.attrs[0].doc, "");
  EXPECT_THAT(mix.attrs[1].allowed_types, ElementsAre(DType::kFloat, DType::kHalf));
  EXPECT_EQ(mix.attrs[1].doc, "Of both.");
  EXPECT_EQ(mix.attrs[2].doc, "Of both.");
  EXPECT_EQ(mix.attrs[3].kind, "list(type)");
  EXPECT_EQ(ops[1].name, "Next");
  EXPECT_TRUE(ops[1].reads_outside && !ops[1].is_stateful);
  EXPECT_THAT(ops[1].inputs, IsEmpty());
  EXPECT_TRUE(ops[2].is_aggregate && ops[2].allows_uninitialized_input);
  EXPECT_TRUE(ops[2].inputs[0].on_host && ops[2].outputs[0].on_host && !mix.inputs[0].on_host);
  EXPECT_TRUE(mix.is_differentiable && !ops[2].is_differentiable);
  EXPECT_TRUE(!mix.is_basic && ops[2].is_basic);
}

TEST(OpDeclarationTest, KindsAndDefaults) {
  const OpSchema op = Parse(R"(op Op()
      i: int = -3, f: float = 1e-05, b: bool = false, s: string = 'it\'s\n', t: type = int64
      k: shape = ?, d: shape = [2, -1], l: list(int) = [1, -2], e: list(string) = []
      h: list(shape) = [[1], ?], w: list(float) = [0.5, 2], m: {'SAME', 'VALID'} = 'SAME'
      x: index = int32, n: numeric, fn: list(func) >= 1, any: tensor
      bytes: tensor = uint8 [255, 0])")[0];
  const auto text = [&op](std::string_view name) {
    return op.FindAttr(name)->default_value->ToString();
  };
  EXPECT_EQ(text("i"), "-3");
  EXPECT_EQ(text("f"), "1e-05");
  EXPECT_EQ(text("b"), "false");
  EXPECT_EQ(text("s"), "\"it's\n\"");
  EXPECT_EQ(text("t"), "int64");
  EXPECT_EQ(text("k"), "<unknown>");
  EXPECT_EQ(text("d"), "[2,?]");
  EXPECT_EQ(text("l"), "[1, -2]");
  EXPECT_EQ(op.FindAttr("e")->default_value->kind(), "list(string)");
  EXPECT_EQ(text("h"), "[[1], <unknown>]");
  EXPECT_EQ(text("w"), "[0.5, 2]");
  EXPECT_THAT(op.FindAttr("m")->allowed_strings, ElementsAre("SAME", "VALID"));
  EXPECT_THAT(op.FindAttr("x")->allowed_types, ElementsAre(DType::kInt32, DType::kInt64));
  EXPECT_THAT(op.FindAttr("n")->allowed_types, SizeIs(19));
  EXPECT_EQ(op.FindAttr("fn")->kind, "list(func)");
  EXPECT_THAT(op.FindAttr("bytes")->default_value->get_if<Tensor>()->flat<uint8_t>(),
              ElementsAre(255, 0));
  EXPECT_FALSE(op.FindAttr("any")->default_value);
}

TEST(OpDeclarationTest, FlagsSayWhatTheRuntimeAsks) {
  const std::vector<OpSchema> ops = Parse(R"(
op _Turn(x: T) -> y: T [flow enter, hands_on, may_share]
  T: type
op Branch() [call if]
op Times() [neutral_one either, function TimesOf]
op Bring() [arg]
op Send() [flow transfer]
op Plain())");
  ASSERT_THAT(ops, SizeIs(6));
  EXPECT_EQ(ops[0].flow, FlowKind::kEnter);
  EXPECT_TRUE(ops[0].Has(OpTrait::kHandsOn) && ops[0].Has(OpTrait::kMayShare) &&
              ops[0].is_internal());
  EXPECT_EQ(ops[1].call, CallKind::kIf);
  EXPECT_EQ(ops[2].neutral_one, NeutralOne::kEither);
  EXPECT_EQ(ops[2].function, "TimesOf");
  EXPECT_TRUE(ops[3].is_runtime_only() && ops[4].is_runtime_only());
  EXPECT_FALSE(ops[5].is_runtime_only() || ops[5].is_internal());
  EXPECT_EQ(ops[5].traits, 0u);
  EXPECT_EQ(ops[5].flow, FlowKind::kPlain);
  EXPECT_EQ(ops[5].call, CallKind::kNone);
}

TEST(OpDeclarationTest, ATextGoesOnInTheNextLine) {
  const OpSchema op =
      Parse("op Op(a: int32)\n  \"Two  \n    lines.\" \"Three.\"\n  a \"x\n y\"")[0];
  EXPECT_EQ(op.doc, "Two lines. Three.");
  EXPECT_EQ(op.inputs[0].doc, "x y");
}

TEST(OpDeclarationTest, ATwinHasWhatItDoesNotSayFromItsBase) {
  const std::vector<OpSchema> ops = Parse(R"(
op Queue = QueueV2 with handle: Ref(string)
op QueueV2(size: int32 [], unused: float) -> handle: resource, more: T [stateful]
  "A queue."
  size "How long."
  handle "The queue."
  T: type, name: string = '' "Its name."
op Stack = Queue with depth: int64 before unused without unused, more, T [no_gradient]
  "A stack."
  name: string = 'stack' limit: int = 1
op Own(size: int64, x: float) -> y: float = QueueV2 without T
  name "Its own.")");
  ASSERT_THAT(ops, SizeIs(4));
  EXPECT_TRUE(ops[0].is_stateful && ops[0].outputs[0].is_ref && !ops[1].outputs[0].is_ref);
  EXPECT_EQ(ops[0].outputs[0].type, DType::kString);
  EXPECT_EQ(ops[0].outputs[0].doc, "The queue.");
  EXPECT_EQ(ops[0].doc, "A queue.");
  EXPECT_EQ(ops[0].inputs[0].doc, "How long.");
  EXPECT_EQ(ops[0].inputs[0].shape->ToString(), "[]");
  const OpSchema& stack = ops[2];
  EXPECT_TRUE(!stack.is_stateful && !stack.is_differentiable);
  EXPECT_EQ(stack.doc, "A stack.");
  ASSERT_THAT(stack.inputs, SizeIs(2));
  EXPECT_EQ(stack.inputs[1].name, "depth");
  ASSERT_THAT(stack.outputs, SizeIs(1));
  ASSERT_THAT(stack.attrs, SizeIs(2));
  EXPECT_EQ(stack.attrs[0].default_value->ToString(), "\"stack\"");
  EXPECT_EQ(stack.attrs[0].doc, "Its name.");
  const OpSchema& own = ops[3];
  EXPECT_TRUE(own.is_stateful);
  EXPECT_EQ(own.inputs[0].doc, "How long.");
  EXPECT_EQ(own.inputs[1].doc, "");
  EXPECT_EQ(own.attrs[0].doc, "Its own.");
}

TEST(OpDeclarationTest, ShapesAreDeclaredAfterTypes) {
  const OpSchema op = Parse(R"(
op Op(a: T [..., n, 3], b: int32 [], k: int32 []) -> y: T [..., n + 1, m, k, ?] [stateful]
  T: type, m: int)")[0];
  EXPECT_TRUE(op.is_stateful && op.has_shapes());
  EXPECT_EQ(op.inputs[0].shape->ToString(), "[..., n, 3]");
  EXPECT_TRUE(op.inputs[1].shape->dims.empty() && !op.inputs[1].shape->open);
  EXPECT_EQ(op.outputs[0].shape->ToString(), "[..., n + 1, m, k, ?]");
  using Kind = DimPattern::Kind;
  std::vector<Kind> kinds;
  for (const DimPattern& dim : op.outputs[0].shape->dims) kinds.push_back(dim.kind);
  EXPECT_THAT(kinds, ElementsAre(Kind::kSymbol, Kind::kAttr, Kind::kInput, Kind::kAny));

  DimNames names;
  EXPECT_OK(names.Match(*op.inputs[0].shape, {7, -1, 3}, "a"));
  DimVector dims;
  EXPECT_TRUE(*names.Dims(*op.outputs[0].shape, &dims));
  EXPECT_THAT(dims, ElementsAre(7, -1, -1, -1, -1));
  EXPECT_OK(names.Match(*op.inputs[0].shape, {7, 5, -1}, "a"));
  EXPECT_TRUE(*names.Dims(*op.outputs[0].shape, &dims));
  EXPECT_THAT(dims, ElementsAre(7, 6, -1, -1, -1));
  EXPECT_THAT(names.Match(*op.inputs[0].shape, {7, 4, 3}, "a"),
              IsError(kInvalid,
                      "a must have shape [..., n, 3], where n = 5, ... = [7], found "
                      "shape [7,4,3]"));
  EXPECT_THAT(names.Match(*op.inputs[1].shape, {2}, "b"),
              IsError(kInvalid, "b must have shape [], found shape [2]"));
}

TEST(OpDeclarationTest, WhatCannotBeReadIsNamedWithItsLine) {
  const struct {
    const char* text;
    const char* error;
  } cases[] = {
      {"Op()", "test.ops:1: found 'Op', wanted 'op'"},
      {"op\n\n(a: int32)", "test.ops:3: found '(', wanted a name"},
      {"op Op(a int32)", "found 'int32', wanted ':'"},
      {"op Op(a: int32 b: int32)", "found 'b', wanted ',' or ')'"},
      {"op Op(a: T)", "'T' is no type and no attribute"},
      {"op Op(a: T) T: int", "attribute T is no type"},
      {"op Op(a: N * T) T: type, N: float", "there is no int attribute N"},
      {"op Op(a: Guest(T)) T: type", "found 'Guest', wanted Ref or Host"},
      {"op Op(a: Host(T) T: type", "found 'T', wanted ',' or ')'"},
      {"op Op(a: Ref(T) T: type", "found 'T', wanted ',' or ')'"},
      {"op Op(a: int32, a: int32)", "op Op has two of the name a"},
      {"op Op(a: int32) a: int", "op Op has two of the name a"},
      {"op Op() [fast]", "found 'fast', wanted function, flow, call, neutral_one, stateful"},
      {"op Op() [flow up]", "found 'up', wanted switch, merge, enter, exit, next_iteration"},
      {"op Op() [call]", "found ']', wanted function, gradient, remote, if, case, while, for"},
      {"op Op() [neutral_one first]", "found 'first', wanted second, either"},
      {"op Op(a: int32) b \"doc\"", "found 'b', wanted an argument's or attribute's name"},
      {"op Op(a: int32) a \"doc\" a \"doc\"", "a has two texts"},
      {"op Op(a: int32) a", "found the end, wanted a text"},
      {"op Op() N: integer", "found 'integer', wanted a kind of attribute"},
      {"op Op() N: int = x", "found 'x', wanted an integer"},
      {"op Op() N: int = 1.5", "found '1.5', wanted an integer"},
      {"op Op() N: bool >= 1", "wanted no minimum"},
      {"op Op() T: {float", "found the end, wanted ',' or '}'"},
      {"op Op() T: {nope}", "found 'nope', wanted a type"},
      {"op Op() l: list(int", "found the end, wanted ')'"},
      {"op Op() s: string = 'open", "a text has no end"},
      {"op Op() s: string = '\\x'", "a backslash stands before"},
      {"op Op() s: string = \"doc\"", "wanted a text in ''"},
      {"op Op() b: bool = maybe", "found 'maybe', wanted true or false"},
      {"op Op() t: tensor = 1", "found '1', wanted a type"},
      {"op Op() t: tensor = float [1]", "wanted a tensor of uint8"},
      {"op Op() t: tensor = uint8 [1, 256]", "wanted integers from 0 to 255 before"},
      {"op Op() f: func = x", "there is none for a func"},
      {"op Op() k: shape = 3", "found '3', wanted '[' or '?'"},
      {"op Op(a: int32) ->", "found the end, wanted a name"},
      {"op Op() \"doc", "a text has no end"},
      {"op Op() %", "found '%'"},
      {"op Op a", "found 'a', wanted '(' or '='"},
      {"op A = B", "there is no op B"},
      {"op A = B op B = A", "the op is its own twin"},
      {"op A = B without x op B()", "B has no x"},
      {"op A = B with x: int32 before y op B()", "there is no input y"},
      {"op Op(a: int32 [n)", "found ')', wanted ',' or ']'"},
      {"op Op(a: int32 ['x'])", "wanted a size"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(ParseOpDeclarations(c.text, "test.ops"), IsError(kInvalid, c.error)) << c.text;
  }
}

}  // namespace
}  // namespace tenon
