// SPDX-License-Identifier: Apache-2.0
#include "core/proto/proto_io_tensor.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <complex>

#include "absl/strings/escaping.h"
#include "core/base/varint.h"
#include "core/tensor/variant.h"

namespace tenon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TensorProto TensorProtoFromText(const std::string& text) {
  TensorProto proto;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &proto)) << text;
  return proto;
}

StatusOr<Tensor> Read(const std::string& text) {
  return TensorFromProto(TensorProtoFromText(text));
}

std::string TensorError(const std::string& text) {
  const auto t = Read(text);
  EXPECT_FALSE(t.ok()) << text;
  if (t.ok()) return "";
  EXPECT_EQ(t.status().code(), StatusCode::kInvalidArgument);
  return std::string(Message(t.status()));
}

TEST(TensorProtoTest, ReadsTheSplatThatTensorFlowWrites) {
  TensorProto proto;
  ASSERT_TRUE(
      proto.ParseFromString(absl::HexStringToBytes("0801120812020802120208032a040000803f")));
  const auto t = TensorFromProto(proto);
  ASSERT_TRUE(t.ok()) << t.status();
  EXPECT_TRUE(t->Equals(Tensor::Of<float>({2, 3}, {1, 1, 1, 1, 1, 1})));
}

TEST(TensorProtoTest, ReadsAndWritesTheContentThatTensorFlowWrites) {
  const std::string bytes = absl::HexStringToBytes("080112041202080222080000803f00000040");
  TensorProto proto;
  ASSERT_TRUE(proto.ParseFromString(bytes));
  const auto t = TensorFromProto(proto);
  ASSERT_TRUE(t.ok()) << t.status();
  EXPECT_THAT(t->flat<float>(), ElementsAre(1, 2));
  TensorProto written;
  ASSERT_TRUE(TensorToProto(*t, &written).ok());
  EXPECT_EQ(written.SerializeAsString(), bytes);
}

TEST(TensorProtoTest, FillsMissingElementsWithTheLastValue) {
  const auto t = Read("dtype: DT_INT32 tensor_shape { dim { size: 4 } } int_val: [5, 6]");
  ASSERT_TRUE(t.ok()) << t.status();
  EXPECT_THAT(t->flat<int32_t>(), ElementsAre(5, 6, 6, 6));
}

TEST(TensorProtoTest, NoValueAtAllMeansZerosAndEmptyStrings) {
  const auto n = Read("dtype: DT_INT64 tensor_shape { dim { size: 2 } }");
  ASSERT_TRUE(n.ok());
  EXPECT_THAT(n->flat<int64_t>(), ElementsAre(0, 0));
  const auto s = Read("dtype: DT_STRING tensor_shape { dim { size: 2 } }");
  ASSERT_TRUE(s.ok());
  EXPECT_THAT(s->flat<TString>(), ElementsAre("", ""));
}

TEST(TensorProtoTest, IgnoresExtraValues) {
  const auto t = Read("dtype: DT_DOUBLE tensor_shape { dim { size: 1 } } double_val: [1.5, 9]");
  ASSERT_TRUE(t.ok());
  EXPECT_THAT(t->flat<double>(), ElementsAre(1.5));
}

TEST(TensorProtoTest, AnAbsentShapeIsAScalar) {
  const auto t = Read("dtype: DT_BOOL bool_val: true");
  ASSERT_TRUE(t.ok());
  EXPECT_EQ(t->rank(), 0);
  EXPECT_TRUE(t->scalar<bool>());
}

TEST(TensorProtoTest, ReadsHalfAndBfloat16FromHalfVal) {
  const auto h = Read("dtype: DT_HALF half_val: 15360");  // 0x3c00
  ASSERT_TRUE(h.ok());
  EXPECT_EQ(static_cast<float>(h->scalar<Half>()), 1.0f);
  const auto b = Read("dtype: DT_BFLOAT16 half_val: 16256");  // 0x3f80
  ASSERT_TRUE(b.ok());
  EXPECT_EQ(static_cast<float>(b->scalar<BFloat16>()), 1.0f);
}

TEST(TensorProtoTest, ReadsComplexValuesInPairs) {
  const auto t =
      Read("dtype: DT_COMPLEX64 tensor_shape { dim { size: 3 } } scomplex_val: [1, 2, 3, 4]");
  ASSERT_TRUE(t.ok());
  EXPECT_THAT(
      t->flat<std::complex<float>>(),
      ElementsAre(std::complex<float>(1, 2), std::complex<float>(3, 4), std::complex<float>(3, 4)));
}

TEST(TensorProtoTest, ReadsStringsFromContentAsVarintLengthsThenBytes) {
  TensorProto proto = TensorProtoFromText("dtype: DT_STRING tensor_shape { dim { size: 3 } }");
  const std::string longer(200, 'x');
  proto.set_tensor_content(std::string("\x00\x02\xc8\x01", 4) + "ab" + longer);
  const auto t = TensorFromProto(proto);
  ASSERT_TRUE(t.ok()) << t.status();
  EXPECT_THAT(t->flat<TString>(), ElementsAre("", "ab", longer));
}

TEST(TensorProtoTest, EveryDtypeSurvivesBothEncodings) {
  const std::vector<Tensor> tensors = {
      Tensor::Of<float>({2}, {1.5f, -2}),
      Tensor::Of<double>({1, 2}, {1e300, -0.0}),
      Tensor::Of<int8_t>({2}, {-128, 127}),
      Tensor::Of<uint8_t>({2}, {0, 255}),
      Tensor::Of<int16_t>({2}, {-32768, 32767}),
      Tensor::Of<uint16_t>({2}, {0, 65535}),
      Tensor::Of<int32_t>({2}, {INT32_MIN, INT32_MAX}),
      Tensor::Of<uint32_t>({2}, {0, UINT32_MAX}),
      Tensor::Of<int64_t>({2}, {INT64_MIN, INT64_MAX}),
      Tensor::Of<uint64_t>({2}, {0, UINT64_MAX}),
      Tensor::Of<bool>({2}, {true, false}),
      Tensor::Of<Half>({2}, {Half(1.5f), Half(-2)}),
      Tensor::Of<BFloat16>({2}, {BFloat16(1.5f), BFloat16(-2)}),
      Tensor::Of<std::complex<float>>({1}, {{1, -2}}),
      Tensor::Of<std::complex<double>>({1}, {{1, -2}}),
      Tensor::Of<std::string>({3}, {"", "abc", std::string("\0\xff", 2)}),
      Tensor::Zeros(DType::kQUInt16, {3}),
      Tensor::Zeros(DType::kFloat8E4M3FN, {3}),
      Tensor::Zeros(DType::kInt4, {3}),
      Tensor::Zeros(DType::kFloat, {0, 4}),
      Tensor::Scalar<float>(3),
  };
  for (const Tensor& t : tensors) {
    for (const auto encoding : {TensorEncoding::kContent, TensorEncoding::kTyped}) {
      TensorProto proto;
      ASSERT_TRUE(TensorToProto(t, &proto, encoding).ok()) << t.ToString();
      const auto back = TensorFromProto(proto);
      ASSERT_TRUE(back.ok()) << t.ToString() << ": " << back.status();
      EXPECT_TRUE(back->Equals(t)) << t.ToString() << " became " << back->ToString();
    }
  }
}

TEST(TensorProtoTest, ResourceHandlesSurvive) {
  ResourceHandle handle{"/job:ps/task:0", "ps", "W", "variable", 77, {}, nullptr};
  handle.dtypes_and_shapes.emplace_back(DType::kFloat, PartialShape{2, -1});
  TensorProto proto;
  ASSERT_TRUE(TensorToProto(Tensor::Scalar(handle), &proto).ok());
  const auto t = TensorFromProto(proto);
  ASSERT_TRUE(t.ok()) << t.status();
  const ResourceHandle& back = t->scalar<ResourceHandle>();
  EXPECT_EQ(back.device, handle.device);
  EXPECT_EQ(back.container, "ps");
  EXPECT_EQ(back.name, "W");
  EXPECT_EQ(back.type_name, "variable");
  EXPECT_EQ(back.hash_code, 77u);
  EXPECT_EQ(back.dtypes_and_shapes, handle.dtypes_and_shapes);
}

/// A tensor of one element, whose message is in tensor_content, as TensorFlow's servers send it.
template <typename Message>
TensorProto InContent(DataType type, const Message& element) {
  const std::string bytes = element.SerializeAsString();
  std::string content;
  AppendVarint(&content, bytes.size());
  TensorProto proto;
  proto.set_dtype(type);
  proto.mutable_tensor_shape();
  proto.set_tensor_content(content + bytes);
  return proto;
}

TEST(TensorProtoTest, ReadsResourceHandlesFromContent) {
  TensorProto listed;
  const ResourceHandle handle{"/job:ps/task:0", "ps", "W", "variable", 77, {}, nullptr};
  ASSERT_TRUE(TensorToProto(Tensor::Scalar(handle), &listed).ok());
  const auto t = TensorFromProto(InContent(DT_RESOURCE, listed.resource_handle_val(0)));
  ASSERT_TRUE(t.ok()) << t.status();
  EXPECT_EQ(t->scalar<ResourceHandle>().name, "W");
  EXPECT_EQ(t->scalar<ResourceHandle>().device, handle.device);
  EXPECT_THAT(TensorError("dtype: DT_RESOURCE tensor_shape { } tensor_content: '\\001\\377'"),
              HasSubstr("unreadable resource handles"));
  EXPECT_THAT(TensorError("dtype: DT_RESOURCE tensor_shape { } tensor_content: '\\002\\377'"),
              HasSubstr("has 1 bytes of elements, wanted 2"));
}

TEST(TensorProtoTest, ReadsVariantsFromContent) {
  VariantTensorDataProto variant;
  variant.set_type_name("no such type");
  EXPECT_THAT(TensorFromProto(InContent(DT_VARIANT, variant)).status().ToString(),
              HasSubstr("no such type"));
  EXPECT_THAT(TensorError("dtype: DT_VARIANT tensor_shape { } tensor_content: '\\001\\377'"),
              HasSubstr("unreadable variants"));
}

TEST(TensorProtoTest, VariantsInContentMayNotLieTooDeep) {
  TensorProto proto = InContent(DT_VARIANT, VariantTensorDataProto());
  for (int i = 0; i < 60; ++i) {
    VariantTensorDataProto around;
    *around.add_tensors() = proto;
    proto = InContent(DT_VARIANT, around);
  }
  EXPECT_THAT(TensorFromProto(proto).status().ToString(), HasSubstr("more than 50 deep"));
}

TEST(TensorProtoTest, BooleansFromContentAreNormalised) {
  TensorProto proto = TensorProtoFromText("dtype: DT_BOOL tensor_shape { dim { size: 2 } }");
  proto.set_tensor_content(std::string("\x02\x00", 2));
  const auto t = TensorFromProto(proto);
  ASSERT_TRUE(t.ok());
  EXPECT_TRUE(t->Equals(Tensor::Of<bool>({2}, {true, false})));
}

TEST(TensorProtoTest, ContentOfTheWrongSizeNamesBothSizes) {
  EXPECT_EQ(TensorError("dtype: DT_FLOAT tensor_shape { dim { size: 2 } } tensor_content: 'abcde'"),
            "tensor_content has 5 bytes, wanted 8 for a tensor float[2]");
}

TEST(TensorProtoTest, BrokenStringContentIsRefused) {
  const std::string head = "dtype: DT_STRING tensor_shape { dim { size: 2 } } tensor_content: ";
  EXPECT_THAT(TensorError(head + "'\\001'"), HasSubstr("cannot hold the 2 lengths"));
  EXPECT_THAT(TensorError(head + "'\\001\\377\\377'"), HasSubstr("unreadable lengths"));
  EXPECT_THAT(TensorError(head + "'\\001\\001abc'"),
              HasSubstr("has 3 bytes of elements, wanted 2"));
  EXPECT_THAT(TensorError(head + "'\\001\\005a'"), HasSubstr("unreadable lengths"));
}

TEST(TensorProtoTest, AFewBytesCannotTakeAllMemory) {
  EXPECT_THAT(
      TensorError("dtype: DT_FLOAT tensor_shape { dim { size: 1000000000000 } } float_val: 1"),
      HasSubstr("would fill more memory"));
  EXPECT_THAT(TensorError("dtype: DT_STRING tensor_shape { dim { size: 1000000000 } }"),
              HasSubstr("would fill more memory"));
  EXPECT_THAT(
      TensorError("dtype: DT_STRING tensor_shape { dim { size: 1000000000 } } tensor_content: 'a'"),
      HasSubstr("cannot hold"));
  EXPECT_THAT(TensorError("dtype: DT_RESOURCE tensor_shape { dim { size: 1000000000 } }"),
              HasSubstr("found 0 resource handles, wanted 1000000000"));
}

TEST(TensorProtoTest, TheFillBudgetIsSharedByTheTensorsOfOneMessage) {
  const TensorProto proto =
      TensorProtoFromText("dtype: DT_FLOAT tensor_shape { dim { size: 100 } }");
  int64_t budget = 1000;
  EXPECT_TRUE(TensorFromProto(proto, &budget).ok());
  EXPECT_TRUE(TensorFromProto(proto, &budget).ok());
  EXPECT_FALSE(TensorFromProto(proto, &budget).ok());
}

TEST(TensorProtoTest, ImpossibleShapesAndDtypesAreRefused) {
  EXPECT_THAT(TensorError("dtype: DT_FLOAT tensor_shape { dim { size: -1 } }"),
              HasSubstr("negative dimension"));
  EXPECT_THAT(TensorError("dtype: DT_FLOAT tensor_shape { unknown_rank: true }"),
              HasSubstr("must have a rank"));
  EXPECT_THAT(TensorError("dtype: DT_FLOAT tensor_shape { dim { size: 4000000000000 } "
                          "dim { size: 4000000000000 } }"),
              HasSubstr("too many elements"));
  EXPECT_THAT(TensorError("tensor_shape { }"), HasSubstr("data type 0 is not known"));
  EXPECT_THAT(TensorError("dtype: DT_FLOAT_REF"), HasSubstr("float_ref"));
  EXPECT_THAT(TensorError("dtype: DT_VARIANT"), HasSubstr("variant"));
  TensorProto unknown;
  unknown.set_dtype(static_cast<DataType>(77));
  EXPECT_FALSE(TensorFromProto(unknown).ok());
}

TEST(TensorProtoTest, AnInvalidTensorHasNoMessage) {
  TensorProto proto;
  EXPECT_EQ(TensorToProto(Tensor(), &proto).code(), StatusCode::kInvalidArgument);
}

TEST(TensorProtoTest, VariantsOfNumbersAndEmptyOnesSurvive) {
  Tensor t(DType::kVariant, Shape{5});
  Variant* v = t.data<Variant>();
  const std::pair<const char*, std::string> numbers[] = {{"int", std::string("\7\0\0\0", 4)},
                                                         {"float", std::string("\0\0\200?", 4)},
                                                         {"double", std::string(8, '\0')},
                                                         {"bool", "\1"}};
  for (const auto& [type, bytes] : numbers) {
    const auto value = DecodeVariant({type, bytes, {}});
    ASSERT_TRUE(value.ok()) << value.status();
    (v++)->value = *value;
    EXPECT_FALSE(DecodeVariant({type, bytes + " ", {}}).ok()) << type;
  }
  TensorProto proto;
  ASSERT_TRUE(TensorToProto(t, &proto).ok());
  const auto back = TensorFromProto(proto);
  ASSERT_TRUE(back.ok()) << back.status();
  const Variant* const found = back->data<Variant>();
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(found[i].value->type_name(), numbers[i].first);
    EXPECT_EQ(found[i].value->Encode()->metadata, numbers[i].second);
  }
  EXPECT_EQ(found[4].value, nullptr);
  EXPECT_EQ(found[0].value->Text(), "7");
  EXPECT_EQ((*found[0].value->Plus(*found[0].value))->Text(), "14");
  EXPECT_EQ((*found[1].value->ZerosLike())->Text(), "0");
  EXPECT_FALSE(found[0].value->Plus(*found[1].value).ok());
  EXPECT_EQ((*DecodeVariant({"bool", "\7", {}}))->Text(), "1");
}

TEST(TensorProtoTest, AVariantWithoutATypeHasNothingElse) {
  EXPECT_EQ(*DecodeVariant({"", "", {}}), nullptr);
  EXPECT_FALSE(DecodeVariant({"", "x", {}}).ok());
  EXPECT_FALSE(DecodeVariant({"", "", {Tensor::Scalar(1.0f)}}).ok());
}

TEST(ShapeProtoTest, PartialShapesSurvive) {
  for (const PartialShape& shape :
       {PartialShape(), PartialShape(Shape()), PartialShape{2, -1}, PartialShape{0}}) {
    TensorShapeProto proto;
    ShapeToProto(shape, &proto);
    const auto back = PartialShapeFromProto(proto);
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(*back, shape);
  }
}

TEST(ShapeProtoTest, AnUnknownRankWithDimensionsIsRefused) {
  TensorShapeProto proto;
  proto.set_unknown_rank(true);
  proto.add_dim()->set_size(1);
  EXPECT_FALSE(PartialShapeFromProto(proto).ok());
}

}  // namespace
}  // namespace tenon
