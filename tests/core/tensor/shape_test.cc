// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/shape.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/op/shape_inference.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using tenon::testing::IsError;
using tenon::testing::kInvalid;

TEST(ShapeTest, AScalarHasOneElement) {
  EXPECT_EQ(Shape().num_elements(), 1);
  EXPECT_EQ(Shape().ToString(), "[]");
}

TEST(ShapeTest, ElementsAreTheProductOfTheDimensions) {
  EXPECT_EQ((Shape{2, 3, 4}).num_elements(), 24);
  EXPECT_EQ((Shape{2, 0, 4}).num_elements(), 0);
  EXPECT_EQ((Shape{2, 3}).ToString(), "[2,3]");
}

TEST(ShapeTest, ShapesFromOutsideAreChecked) {
  EXPECT_OK(Shape::Create({0, int64_t{1} << 62}));
  EXPECT_THAT(Shape::Create({2, -1}), IsError(kInvalid, "negative dimension"));
  EXPECT_THAT(Shape::Create({int64_t{1} << 32, int64_t{1} << 32}),
              IsError(kInvalid, "too many elements"));
  EXPECT_THAT(Shape::Create({0, int64_t{1} << 32, int64_t{1} << 32}),
              IsError(kInvalid, "too many elements"));
  EXPECT_THAT(Shape::Create(DimVector(255, 1)), IsError(kInvalid, "at most 254 dimensions"));
}

TEST(ShapeTest, SizesThatDoNotFitAreNeverWrapped) {
  const int64_t big = int64_t{1} << 40, highest = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(Shape({big, big}).num_elements(), highest);
  EXPECT_EQ(*AddSizes(big, big), 2 * big);
  EXPECT_EQ(*MultiplySizes(big, 4), 4 * big);
  EXPECT_THAT(AddSizes(highest, 1), IsError(kInvalid, "does not fit in 64 bits"));
  EXPECT_THAT(MultiplySizes(big, big), IsError(kInvalid, "does not fit in 64 bits"));
}

TEST(ShapeTest, DimensionsAreSetRemovedAndInserted) {
  const Shape shape{2, 3};
  EXPECT_EQ(shape.WithDim(1, 5), (Shape{2, 5}));
  EXPECT_EQ(shape.WithoutDim(0), (Shape{3}));
  EXPECT_EQ(shape.WithInsertedDim(2, 7), (Shape{2, 3, 7}));
  EXPECT_EQ(shape.WithInsertedDim(2, 7).num_elements(), 42);
}

TEST(PartialShapeTest, MergingTakesWhatEitherKnows) {
  EXPECT_EQ(*(PartialShape{2, -1}).MergeWith({-1, 3}), (PartialShape{2, 3}));
  EXPECT_EQ(*PartialShape().MergeWith({-1, 3}), (PartialShape{-1, 3}));
  EXPECT_THAT((PartialShape{2}).MergeWith({3}), IsError(kInvalid, "[2] and [3] are incompatible"));
  EXPECT_THAT((PartialShape{2}).MergeWith({2, 2}), IsError(kInvalid, "incompatible"));
  const int64_t big = int64_t{1} << 40;
  EXPECT_THAT((PartialShape{big, -1}).MergeWith({-1, big}), IsError(kInvalid, "too many elements"));
}

TEST(PartialShapeTest, RelaxingKeepsWhatBothSay) {
  EXPECT_EQ((PartialShape{2, 3}).RelaxedWith({2, 4}), (PartialShape{2, -1}));
  EXPECT_EQ((PartialShape{2}).RelaxedWith({2, 4}), PartialShape());
}

TEST(PartialShapeTest, UnknownDimensionsAreShown) {
  EXPECT_EQ((PartialShape{2, -1}).ToString(), "[2,?]");
  EXPECT_EQ(PartialShape().ToString(), "<unknown>");
  EXPECT_THAT(PartialShape::Create({-2}), IsError(kInvalid, "must be >= -1"));
}

TEST(BroadcastTest, OnesStretchAndMissingDimensionsAreOnes) {
  EXPECT_EQ(*BroadcastShapes({2, 1}, {3}), (PartialShape{2, 3}));
  EXPECT_EQ(*BroadcastShapes({-1}, {3}), (PartialShape{3}));
  EXPECT_EQ(*BroadcastShapes({-1}, {1}), (PartialShape{-1}));
  EXPECT_EQ(*BroadcastShapes({0}, {1}), (PartialShape{0}));
  EXPECT_EQ(*BroadcastShapes(PartialShape(), {3}), PartialShape());
  EXPECT_THAT(BroadcastShapes({2}, {3}), IsError(kInvalid, "Incompatible shapes: [2] vs. [3]"));
}

}  // namespace
}  // namespace tenon
