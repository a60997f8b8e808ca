// SPDX-License-Identifier: Apache-2.0
#include "core/op/op_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/op/op_declaration.h"
#include "tests/core/tiny_registry.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using tenon::testing::IsError;
using tenon::testing::kInvalid;
using ::testing::ElementsAre;

/// What `text` declares after "op Op".
OpSchema Declared(std::string_view text) {
  auto ops = ParseOpDeclarations(StrCat("op Op", text), "test.ops");
  EXPECT_OK(ops);
  return ops.ok() ? ops->front() : OpSchema();
}

TEST(ApplySchemaTest, AddsDefaultsAndKeepsUnknownAttributes) {
  const OpSchema schema = Declared("() N: int = 3, L: list(string) = []");
  AttributeMap attrs = {{"other", 1.5f}};
  ASSERT_OK(ApplySchema(schema, &attrs));
  EXPECT_EQ(attrs.GetOr<int64_t>("N", 0), 3);
  EXPECT_NE(attrs.Find("other"), nullptr);
}

TEST(ApplySchemaTest, GivesAnEmptyListItsKind) {
  const OpSchema schema = Declared("() L: list(type)");
  AttributeMap attrs = {{"L", std::vector<int64_t>()}};
  ASSERT_OK(ApplySchema(schema, &attrs));
  EXPECT_EQ(attrs.Find("L")->kind(), "list(type)");
}

TEST(ApplySchemaTest, WrongAttributesAreRefused) {
  const OpSchema schema = Declared(
      "() N: int >= 2, T: {float, half} = float, mode: {'a', 'b'} = 'a', L: list(int) >= 1 = [1]");
  const auto apply = [&](AttributeMap attrs) { return ApplySchema(schema, &attrs); };
  const AttributeMap::Entry n("N", 2);
  EXPECT_OK(apply({n}));
  EXPECT_THAT(apply({}), IsError(kInvalid, "attr 'N' of op Op is missing"));
  EXPECT_THAT(apply({{"N", 1}}), IsError(kInvalid, "must be at least 2, found 1"));
  EXPECT_THAT(apply({{"N", "x"}}), IsError(kInvalid, "found string, wanted int"));
  EXPECT_THAT(apply({n, {"T", DType::kInt8}}),
              IsError(kInvalid, "not in the list of allowed values: float, half"));
  EXPECT_THAT(apply({n, {"mode", "c"}}),
              IsError(kInvalid, "\"c\" is not in the list of allowed values: \"a\", \"b\""));
  EXPECT_THAT(apply({n, {"L", std::vector<int64_t>()}}), IsError(kInvalid, "at least 1 long"));
}

TEST(ApplySchemaTest, TypesAreThoseOfValues) {
  const OpSchema schema = Declared("() T: type, L: list(type) >= 0");
  const auto apply = [&](DType one, DType listed) {
    AttributeMap attrs = {{"T", one}, {"L", DTypeVector{DType::kFloat, listed}}};
    return ApplySchema(schema, &attrs);
  };
  const DType reference = MakeRef(DType::kFloat);
  EXPECT_OK(apply(DType::kHalf, DType::kHalf));
  EXPECT_THAT(apply(reference, DType::kHalf),
              IsError(kInvalid, "attr 'T' must not be the reference type float_ref"));
  EXPECT_THAT(apply(DType::kHalf, reference),
              IsError(kInvalid, "attr 'L' must not be the reference type float_ref"));
  EXPECT_THAT(apply(DType::kHalf, DType::kInvalid), IsError(kInvalid, "attr 'L' is not a dtype"));
}

TEST(ArgTypesTest, ListsAndNumbersExpand) {
  const OpSchema op = Declared("(a: N * T, b: L, c: Ref(T)) T: type, N: int, L: list(type)");
  const AttributeMap attrs = {
      {"T", DType::kHalf}, {"N", 2}, {"L", DTypeVector{DType::kInt8, DType::kBool}}};
  const std::vector<ArgSchema>& args = op.inputs;
  EXPECT_THAT(*ArgTypes(args, attrs), ElementsAre(DType::kHalf, DType::kHalf, DType::kInt8,
                                                  DType::kBool, MakeRef(DType::kHalf)));
  EXPECT_THAT(ArgTypes(args, {{"T", DType::kHalf}, {"N", int64_t{1} << 40}}),
              IsError(kInvalid, "attr 'N' is out of range"));
}

TEST(OpRegistryTest, AnUnknownOpHasTensorFlowsText) {
  EXPECT_THAT(TinyRegistry().Lookup("Quux"),
              IsError(StatusCode::kNotFound, "Op type not registered 'Quux' in binary running on"));
  EXPECT_EQ(TinyRegistry().Find("Add")->schema.inputs.size(), 2u);
}

TEST(AttributeTest, AbsenceAndAWrongTypeAreToldApart) {
  const AttributeMap attrs = {{"n", 3}};
  EXPECT_EQ(*attrs.Get<int64_t>("n"), 3);
  EXPECT_THAT(attrs.Get<int64_t>("m"), IsError(StatusCode::kNotFound, "attr 'm' is missing"));
  EXPECT_THAT(attrs.Get<float>("n"), IsError(kInvalid, "found int, wanted float"));
  EXPECT_EQ(attrs.GetOr("n", 1.5f), 1.5f);
}

TEST(AttributeTest, EqualityIsOfKindAndContent) {
  EXPECT_TRUE(Attribute(Tensor::Scalar<float>(1)).Equals(Tensor::Scalar<float>(1)));
  EXPECT_FALSE(Attribute(1).Equals(1.0f));
  EXPECT_FALSE(Attribute(std::vector<int64_t>{1}).Equals(std::vector<int64_t>{1, 2}));
}

TEST(AttributeTest, AMapIsSortedAndSettingReplaces) {
  AttributeMap attrs = {{"b", 1}, {"a", 2}};
  attrs.Set("b", 3);
  attrs.Erase("missing");
  ASSERT_EQ(attrs.size(), 2u);
  EXPECT_EQ(attrs.begin()->first, "a");
  EXPECT_EQ(attrs.GetOr<int64_t>("b", 0), 3);
  attrs.Erase("b");
  EXPECT_EQ(attrs.Find("b"), nullptr);
}

}  // namespace
}  // namespace tenon
