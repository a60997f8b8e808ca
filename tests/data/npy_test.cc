// SPDX-License-Identifier: Apache-2.0
#include "data/arrays/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <complex>
#include <random>

#include "core/memory/allocator.h"
#include "core/memory/memory_limit.h"
#include "data/checkpoint/tensor_bundle.h"
#include "tests/data/sample_files.h"
#include "tests/testing/memory_files.h"

namespace tenon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// An .npy file of version 1 with this header and these elements.
std::string Npy(const std::string& dict, const std::string& data) {
  return StrCat(std::string_view("\x93NUMPY\x01\x00", 8),
                std::string{static_cast<char>(dict.size()), static_cast<char>(dict.size() >> 8)},
                dict, data);
}
std::string Dict(const std::string& descr, const std::string& shape, bool column_major = false) {
  return StrCat("{'descr': ", descr, ", 'fortran_order': ", column_major ? "True" : "False",
                ", 'shape': ", shape, ", }\n");
}

std::string NpyError(const std::string& content, StatusCode code = StatusCode::kInvalidArgument) {
  const auto t = ParseNpy(content);
  EXPECT_EQ(t.status().code(), code) << t.status();
  return std::string(Message(t.status()));
}

TEST(NpyTest, TheCheckpointOfTensorFlowHoldsWhatNumPySaved) {
  const auto npz = NpzReader::Open(SamplePath("checkpoints/checkpoint_small.npz"));
  ASSERT_TRUE(npz.ok()) << npz.status();
  const auto bundle = BundleReader::Open(SamplePath("checkpoints/checkpoint_small/model.ckpt-42"));
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  EXPECT_EQ(npz->names().size(), 7u);
  for (const std::string& name : npz->names()) {
    const auto wanted = npz->Read(name);
    ASSERT_TRUE(wanted.ok()) << wanted.status();
    const auto found = (*bundle)->Read(name == "scope__b" ? "scope/b" : name);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_TRUE(found->Equals(*wanted))
        << name << ": " << found->ToString() << " for " << wanted->ToString();
  }
}

TEST(NpyTest, EveryDtypeSurvives) {
  const std::vector<Tensor> tensors = {
      Tensor::Of<float>({2, 2}, {1, 2, 3, -4}),
      Tensor::Of<double>({1}, {1e300}),
      Tensor::Of<Half>({2}, {Half(1), Half(-2)}),
      Tensor::Of<int8_t>({2}, {-128, 127}),
      Tensor::Of<uint8_t>({1}, {255}),
      Tensor::Of<int16_t>({1}, {-32768}),
      Tensor::Of<uint16_t>({1}, {65535}),
      Tensor::Of<int32_t>({1}, {INT32_MIN}),
      Tensor::Of<uint32_t>({1}, {UINT32_MAX}),
      Tensor::Of<int64_t>({1}, {INT64_MIN}),
      Tensor::Of<uint64_t>({1}, {UINT64_MAX}),
      Tensor::Of<bool>({2}, {true, false}),
      Tensor::Of<std::complex<float>>({1}, {{1, 2}}),
      Tensor::Of<std::complex<double>>({1}, {{1, 2}}),
      Tensor::Of<std::string>({3}, {"", "abc", std::string("\0x", 2)}),
      Tensor::Of<std::string>({1}, {""}),
      Tensor::Scalar<float>(7),
      Tensor::Zeros(DType::kFloat, {0, 4}),
      Tensor::Zeros(DType::kString, {0}),
  };
  for (const Tensor& t : tensors) {
    const auto content = FormatNpy(t);
    ASSERT_TRUE(content.ok()) << content.status();
    const auto back = ParseNpy(*content);
    ASSERT_TRUE(back.ok()) << t.ToString() << back.status();
    EXPECT_TRUE(back->Equals(t)) << t.ToString() << " " << back->ToString();
  }
}

TEST(NpyTest, TheHeaderIsAlignedAsNumPyWritesIt) {
  const std::string content = *FormatNpy(Tensor::Of<float>({3}, {1, 2, 3}));
  EXPECT_EQ(content.size(), 128u + 12);
  EXPECT_THAT(content, HasSubstr("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }"));
  EXPECT_THAT(*FormatNpy(Tensor::Zeros(DType::kFloat, {2, 3})), HasSubstr("'shape': (2, 3), }"));
  EXPECT_THAT(*FormatNpy(Tensor::Scalar<float>(1)), HasSubstr("'shape': (), }"));
}

TEST(NpyTest, Bfloat16IsWrittenAsFloat) {
  const auto back = ParseNpy(*FormatNpy(Tensor::Of<BFloat16>({1}, {BFloat16(1.5f)})));
  EXPECT_THAT(back->flat<float>(), ElementsAre(1.5f));
}

TEST(NpyTest, ColumnMajorAndBigEndianArraysAreConverted) {
  const auto t =
      ParseNpy(Npy(Dict("'>i2'", "(2, 3)", true), std::string("\0\1\0\4\0\2\0\5\0\3\0\6", 12)));
  ASSERT_TRUE(t.ok()) << t.status();
  EXPECT_TRUE(t->Equals(Tensor::Of<int16_t>({2, 3}, {1, 2, 3, 4, 5, 6})));
  const auto c = ParseNpy(Npy(Dict("'>c8'", "()"), std::string("\x3f\x80\0\0\x40\0\0\0", 8)));
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_EQ(c->scalar<std::complex<float>>(), std::complex<float>(1, 2));
}

TEST(NpyTest, TextBecomesUtf8) {
  const auto t = ParseNpy(Npy(Dict("'<U2'", "(2,)"), std::string("a\0\0\0\xac\x20\0\0"
                                                                 "\x1f\xf6\x01\0\0\0\0\0",
                                                                 16)));
  ASSERT_TRUE(t.ok()) << t.status();
  EXPECT_THAT(t->flat<TString>(), ElementsAre("a\xe2\x82\xac", "\xf0\x9f\x98\x9f"));
  EXPECT_THAT(NpyError(Npy(Dict("'<U1'", "(1,)"), "\xff\xff\xff\xff")), HasSubstr("code point"));
}

TEST(NpyTest, WhatCannotBeATensorIsRefused) {
  EXPECT_THAT(NpyError(Npy(Dict("'|O'", "(1,)"), "x")), HasSubstr("Python objects"));
  EXPECT_THAT(NpyError(Npy(Dict("[('a', '<f4')]", "(1,)"), "x")), HasSubstr("structured"));
  EXPECT_THAT(NpyError(Npy(Dict("'<M8[ns]'", "(1,)"), "x")), HasSubstr("'<M8[ns]'"));
  EXPECT_THAT(NpyError(Npy(Dict("'<f16'", "(1,)"), "x")), HasSubstr("'f16'"));
  EXPECT_THAT(NpyError(Npy(Dict("'<f4'", "(x,)"), "x")), HasSubstr("no readable shape"));
  EXPECT_THAT(NpyError(Npy(Dict("'<f4'", "(-1,)"), "x")), HasSubstr("negative"));
  EXPECT_THAT(NpyError(Npy("{}", "")), HasSubstr("no descr"));
  EXPECT_THAT(NpyError("hello, world"), HasSubstr("not an .npy file"));
  EXPECT_FALSE(FormatNpy(Tensor(DType::kResource, Shape())).ok());
  EXPECT_FALSE(FormatNpy(Tensor::Scalar(std::string("a\0", 2))).ok());
}

TEST(NpyTest, AWrongSizeIsDataLoss) {
  EXPECT_THAT(NpyError(Npy(Dict("'<f4'", "(2,)"), "abcdef"), StatusCode::kDataLoss),
              HasSubstr("found 6 bytes of elements, wanted 2 of 4 bytes"));
  EXPECT_FALSE(ParseNpy(Npy(Dict("'|S0'", "(1000000000000,)"), "")).ok());
  EXPECT_FALSE(ParseNpy(Npy(Dict("'<f8'", "(4611686018427387904,)"), "")).ok());
}

/// An archive that is in memory.
StatusOr<ZipReader> OpenZip(std::string content) {
  testing::MemoryFiles files;
  files["zip"] = std::move(content);
  return ZipReader::Open(*files.OpenInput("zip"));
}

TEST(NpzTest, ArraysSurviveStoredAndDeflated) {
  const TemporaryFolder folder;
  const Tensor x = Tensor::Zeros(DType::kFloat, {100, 100});
  const Tensor s = Tensor::Of<std::string>({2}, {"a", "bc"});
  for (const bool compress : {false, true}) {
    ASSERT_TRUE(WriteNpz(folder / "f.npz", {{"x", x}, {"scope/s", s}}, compress).ok());
    EXPECT_EQ(ContentOf(folder / "f.npz").size() < 2000, compress);
    const auto npz = NpzReader::Open(folder / "f.npz");
    ASSERT_TRUE(npz.ok()) << npz.status();
    EXPECT_THAT(npz->names(), ElementsAre("x", "scope/s"));
    EXPECT_TRUE(npz->Read("x")->Equals(x));
    EXPECT_TRUE(npz->Read("scope/s")->Equals(s));
    EXPECT_THAT(std::string(Message(npz->Read("y").status())),
                HasSubstr("has no array 'y'; it has x, scope/s"));
  }
}

TEST(NpzTest, AChangedElementIsDataLossAndAnArrayWithoutElementsIsNot) {
  const TemporaryFolder folder;
  for (const bool compress : {false, true}) {
    const Tensor x = Tensor::Vector<int32_t>({1, 2, 3, 4});
    const Tensor none = Tensor::Zeros(DType::kFloat, {0, 3});
    ASSERT_TRUE(WriteNpz(folder / "f", {{"x", x}, {"none", none}}, compress).ok());
    EXPECT_TRUE(NpzReader::Open(folder / "f")->Read("none")->Equals(none));
    if (compress) continue;
    std::string content = ContentOf(folder / "f");
    const size_t at = content.find(std::string("\2\0\0\0\3\0\0\0", 8));
    ASSERT_NE(at, std::string::npos);
    content[at] = 7;
    ASSERT_TRUE(WriteStringToFile(folder / "f", content).ok());
    const Status status = NpzReader::Open(folder / "f")->Read("x").status();
    EXPECT_EQ(status.code(), StatusCode::kDataLoss);
    EXPECT_THAT(std::string(Message(status)), HasSubstr("member 'x.npy' of the ZIP archive is"));
  }
}

TEST(NpzTest, NoDamageCrashes) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteNpz(folder / "f", {{"x", Tensor::Zeros(DType::kFloat, {20})}}, true).ok());
  const std::string whole = ContentOf(folder / "f");
  std::mt19937 random(2);
  const auto read_all = [](std::string content) {
    auto zip = OpenZip(std::move(content));
    if (!zip.ok()) return;
    for (const auto& member : zip->members()) {
      if (auto npy = zip->Read(member); npy.ok()) ParseNpy(*npy).status().IgnoreError();
    }
  };
  for (size_t i = 0; i < whole.size(); ++i) {
    for (int k = 0; k < 4; ++k) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(k == 0 ? 0xff : random());
      read_all(damaged);
    }
    EXPECT_EQ(OpenZip(whole.substr(0, i)).status().code(), StatusCode::kDataLoss);
  }
  const std::string npy = *FormatNpy(Tensor::Zeros(DType::kFloat, {4, 5}));
  for (size_t i = 0; i < npy.size(); ++i) {
    std::string damaged = npy;
    damaged[i] = static_cast<char>(random());
    ParseNpy(damaged).status().IgnoreError();
    ParseNpy(npy.substr(0, i)).status().IgnoreError();
  }
}

TEST(NpzTest, AMemberLargerThanTheMemoryLimitIsRefused) {
  const std::string zeros(2 << 20, '\0');
  ZipWriter writer;
  ASSERT_TRUE(writer.Add("x.npy", zeros, /*compress=*/true).ok());
  const auto zip = OpenZip(writer.Finish());
  ASSERT_TRUE(zip.ok());
  SetCpuMemoryLimit(CpuAllocator().bytes_in_use() + (1 << 20));
  EXPECT_EQ(zip->Read(zip->members()[0]).status().code(), StatusCode::kResourceExhausted);
  SetCpuMemoryLimit(int64_t{1} << 40);
  EXPECT_EQ(*zip->Read(zip->members()[0]), zeros);
}

}  // namespace
}  // namespace tenon
