// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "core/memory/allocator.h"
#include "core/memory/memory_limit.h"
#include "data/arrays/npy.h"
#include "tests/data/sample_files.h"

namespace tenon {
namespace {

using ::testing::HasSubstr;

/// [rows, 3] with the elements 0, 1, 2, ...
Tensor Counting(int64_t rows) {
  Tensor t(DType::kFloat, {rows, 3});
  std::iota(t.data<float>(), t.data<float>() + t.num_elements(), 0.0f);
  return t;
}

std::string MessageOf(const Status& status) { return std::string(Message(status)); }

/// An .npy file of version 1 with this header and these elements.
std::string NpyFile(const std::string& descr, bool column_major, const std::string& shape,
                    const std::string& data) {
  const std::string dict =
      StrCat("{'descr': '", descr, "', 'fortran_order': ", column_major ? "True" : "False",
             ", 'shape': ", shape, ", }\n");
  return StrCat(std::string_view("\x93NUMPY\x01\x00", 8),
                std::string{static_cast<char>(dict.size()), static_cast<char>(dict.size() >> 8)},
                dict, data);
}

StatusOr<NpyRows> FromBytes(const std::string& bytes) {
  return NpyRows::FromStream(MakeSource(bytes, Compression::kNone), "the input");
}

TEST(NpyRowsTest, PiecesMakeTheWholeArray) {
  const TemporaryFolder folder;
  const Tensor whole = Counting(10);
  ASSERT_TRUE(WriteNpy(folder / "x.npy", whole).ok());
  auto rows = NpyRows::Open(folder / "x.npy");
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->shape(), Shape({10, 3}));
  for (int64_t at = 0; at < 10; at += 4) {
    const auto piece = rows->Next(4);
    ASSERT_TRUE(piece.ok()) << piece.status();
    EXPECT_TRUE(piece->Equals(whole.Slice(at, std::min<int64_t>(at + 4, 10))));
  }
  EXPECT_EQ(rows->Next(4)->shape(), Shape({0, 3}));
}

TEST(NpyRowsTest, AStreamGivesTheSame) {
  const std::string bytes = *FormatNpy(Counting(5));
  auto rows = FromBytes(bytes);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_TRUE(rows->Next(3)->Equals(Counting(5).Slice(0, 3)));
  EXPECT_TRUE(rows->Next(3)->Equals(Counting(5).Slice(3, 5)));
}

TEST(NpyRowsTest, MemoryHoldsNoMoreThanThePiece) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteNpy(folder / "x.npy", Counting(100000)).ok());
  auto rows = NpyRows::Open(folder / "x.npy");
  ASSERT_TRUE(rows.ok()) << rows.status();
  SetCpuMemoryLimit(CpuAllocator().bytes_in_use() + 200000);  // of 1,200,000 bytes
  EXPECT_TRUE(rows->Next(1000).ok());
  EXPECT_EQ(rows->Next(100000).status().code(), StatusCode::kResourceExhausted);
  SetCpuMemoryLimit(int64_t{1} << 40);
  EXPECT_TRUE(rows->Next(1000)->Equals(Counting(2000).Slice(1000, 2000)));
}

TEST(NpyRowsTest, ColumnMajorAndBigEndianArraysAreConverted) {
  const TemporaryFolder folder;
  const std::string data("\0\1\0\4\0\2\0\5\0\3\0\6", 12);
  ASSERT_TRUE(WriteStringToFile(folder / "x.npy", NpyFile(">i2", true, "(2, 3)", data)).ok());
  auto rows = NpyRows::Open(folder / "x.npy");
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_TRUE(rows->Next(1)->Equals(Tensor::Of<int16_t>({1, 3}, {1, 2, 3})));
  EXPECT_TRUE(rows->Next(1)->Equals(Tensor::Of<int16_t>({1, 3}, {4, 5, 6})));
  EXPECT_THAT(MessageOf(FromBytes(NpyFile(">i2", true, "(2, 3)", data)).status()),
              HasSubstr("the array is column-major"));
}

TEST(NpyRowsTest, TextIsRead) {
  const std::string bytes = *FormatNpy(Tensor::Of<std::string>({3}, {"a", "bcd", ""}));
  auto rows = FromBytes(bytes);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_TRUE(rows->Next(2)->Equals(Tensor::Of<std::string>({2}, {"a", "bcd"})));
  EXPECT_TRUE(rows->Next(2)->Equals(Tensor::Of<std::string>({1}, {""})));
}

TEST(NpyRowsTest, WhatHasNoRowsOrIsCutShortIsRefused) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteNpy(folder / "scalar.npy", Tensor::Scalar(1.0f)).ok());
  EXPECT_THAT(MessageOf(NpyRows::Open(folder / "scalar.npy").status()),
              HasSubstr("scalar.npy': a scalar has no rows"));
  const std::string whole = *FormatNpy(Counting(4));
  for (const size_t size : {size_t{0}, size_t{5}, size_t{11}, size_t{60}, whole.size() - 1}) {
    ASSERT_TRUE(WriteStringToFile(folder / "cut.npy", whole.substr(0, size)).ok());
    EXPECT_FALSE(NpyRows::Open(folder / "cut.npy").ok()) << size;
    const std::string cut = whole.substr(0, size);
    auto rows = FromBytes(cut);
    if (rows.ok()) {
      EXPECT_EQ(rows->Next(4).status().code(), StatusCode::kDataLoss) << size;
    }
  }
}

TEST(NpyWriterTest, TheFileIsAWholeArrayAfterEachPiece) {
  const TemporaryFolder folder;
  const Tensor whole = Counting(12);
  ASSERT_TRUE(WriteStringToFile(folder / "y.npy", std::string(5000, 'x'))
                  .ok());  // what was there is replaced
  auto writer = NpyWriter::Create(folder / "y.npy");
  ASSERT_TRUE(writer.ok()) << writer.status();
  for (int64_t at = 0; at < 12; at += 5) {
    const int64_t end = std::min<int64_t>(at + 5, 12);
    ASSERT_TRUE((*writer)->Append(whole.Slice(at, end)).ok());
    const auto read = ReadNpy(folder / "y.npy");
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(read->Equals(whole.Slice(0, end)));
  }
  EXPECT_TRUE((*writer)->Close().ok());
}

TEST(NpyWriterTest, RowsMustBeAlike) {
  const TemporaryFolder folder;
  auto writer = NpyWriter::Create(folder / "y.npy");
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE((*writer)->Append(Counting(2)).ok());
  EXPECT_THAT(MessageOf((*writer)->Append(Tensor::Of<float>({1, 2}, {1, 2}))),
              HasSubstr("found rows of float[2], wanted float[3] as before"));
  EXPECT_FALSE((*writer)->Append(Tensor::Of<int32_t>({1, 3}, {1, 2, 3})).ok());
  EXPECT_FALSE((*writer)->Append(Tensor::Scalar(1.0f)).ok());
  EXPECT_THAT(MessageOf(NpyWriter::Create(folder / "none/y.npy").status()),
              HasSubstr("No such file or directory"));
  EXPECT_FALSE(NpyWriter::Create("/dev/null").ok());
}

}  // namespace
}  // namespace tenon
