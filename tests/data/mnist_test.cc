// SPDX-License-Identifier: Apache-2.0
#include "data/arrays/mnist.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/arrays/idx.h"
#include "tests/data/sample_files.h"

namespace tenon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Idx(char code, const std::vector<uint32_t>& dims, const std::string& elements) {
  std::string out = {0, 0, code, static_cast<char>(dims.size())};
  for (const uint32_t d : dims) {
    for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(d >> shift);
  }
  return out + elements;
}

std::string Gzip(const TemporaryFolder& folder, const std::string& content) {
  auto file = MakeCompressor(*OpenOutput(folder / "tmp"), Compression::kGzip);
  EXPECT_TRUE(file->Append(content).ok() && file->Close().ok());
  return ContentOf(folder / "tmp");
}

StatusOr<Tensor> Read(const std::string& content) {
  const auto source = MakeSource(content, DetectCompression(content));
  return ReadIdx(*source, "file");
}

std::string ErrorOf(const std::string& content, StatusCode code) {
  const auto t = Read(content);
  EXPECT_EQ(t.status().code(), code) << t.status();
  return std::string(Message(t.status()));
}

TEST(IdxTest, ReadsEveryDtypeInBigEndianOrder) {
  EXPECT_THAT(Read(Idx(0x08, {3}, "\x01\x02\xff"))->flat<uint8_t>(), ElementsAre(1, 2, 255));
  EXPECT_THAT(Read(Idx(0x09, {1}, "\xff"))->flat<int8_t>(), ElementsAre(-1));
  EXPECT_THAT(Read(Idx(0x0b, {1}, "\x01\x02"))->flat<int16_t>(), ElementsAre(0x102));
  EXPECT_THAT(Read(Idx(0x0c, {1}, "\x01\x02\x03\x04"))->flat<int32_t>(), ElementsAre(0x1020304));
  EXPECT_THAT(Read(Idx(0x0d, {1}, std::string("\x3f\x80\0\0", 4)))->flat<float>(), ElementsAre(1));
  EXPECT_THAT(Read(Idx(0x0e, {1}, std::string("\x3f\xf0\0\0\0\0\0\0", 8)))->flat<double>(),
              ElementsAre(1));
  EXPECT_EQ(Read(Idx(0x08, {2, 0}, ""))->shape(), (Shape{2, 0}));
}

TEST(IdxTest, AGzippedFileIsToldByItsContent) {
  const TemporaryFolder folder;
  EXPECT_THAT(Read(Gzip(folder, Idx(0x08, {2}, "ab")))->flat<uint8_t>(), ElementsAre('a', 'b'));
}

TEST(IdxTest, AFileCutShortNamesFoundAndWantedBytes) {
  EXPECT_EQ(ErrorOf(Idx(0x08, {2, 3}, "abcd"), StatusCode::kDataLoss),
            "'file': found 4 bytes, wanted 6 for the elements uint8[2,3]");
  EXPECT_EQ(ErrorOf(Idx(0x08, {2, 3}, "").substr(0, 7), StatusCode::kDataLoss),
            "'file': found 3 bytes, wanted 8 for the 2 dimensions of an IDX file");
  EXPECT_EQ(ErrorOf("", StatusCode::kDataLoss),
            "'file': found 0 bytes, wanted 4 for the header of an IDX file");
  const TemporaryFolder folder;
  const std::string gzipped = Gzip(folder, Idx(0x08, {5}, "abcde"));
  EXPECT_THAT(ErrorOf(gzipped.substr(0, gzipped.size() - 10), StatusCode::kDataLoss),
              HasSubstr("compressed data is cut short"));
}

TEST(IdxTest, AnythingElseIsRefused) {
  EXPECT_EQ(ErrorOf("PNG....", StatusCode::kInvalidArgument),
            "'file': not an IDX file: it begins with the bytes 50 4e 47 2e");
  EXPECT_THAT(ErrorOf(Idx(0x08, {2}, "abc"), StatusCode::kDataLoss), HasSubstr("more than the 2"));
  EXPECT_THAT(
      ErrorOf(Idx(0x08, {0xffffffff, 0xffffffff, 0xffffffff}, ""), StatusCode::kInvalidArgument),
      HasSubstr("too many elements"));
  EXPECT_THAT(ErrorOf(Idx(0x0e, {0x7fffffff, 0x7fffffff}, "a"), StatusCode::kInvalidArgument),
              HasSubstr("is too large"));
  // A claim of 2 TiB takes no memory.
  EXPECT_THAT(ErrorOf(Idx(0x08, {0x40000000, 2048}, "a"), StatusCode::kDataLoss),
              HasSubstr("found 1 bytes, wanted 2199023255552"));
}

/// A folder with six training and three test images of 2 by 2 pixels.
class MnistTest : public ::testing::Test {
 protected:
  MnistTest() {
    std::string pixels;
    for (int i = 0; i < 24; ++i) pixels += static_cast<char>(i * 10);
    Write("train-images-idx3-ubyte", Idx(0x08, {6, 2, 2}, pixels));
    Write("train-labels-idx1-ubyte", Idx(0x08, {6}, std::string("\0\1\2\3\4\11", 6)));
    Write("t10k-images-idx3-ubyte.gz",
          Gzip(folder_, Idx(0x08, {3, 2, 2}, std::string(12, '\xff'))));
    Write("t10k-labels-idx1-ubyte", Idx(0x08, {3}, "\7\7\7"));
  }
  void Write(const std::string& name, const std::string& content) {
    EXPECT_TRUE(WriteStringToFile(folder_ / name, content).ok());
  }
  std::string ErrorOf() {
    return std::string(Message(LoadMnist(folder_.path(), {.validation_size = 2}).status()));
  }
  const TemporaryFolder folder_;
};

TEST_F(MnistTest, TheFirstImagesAreHeldOutForValidation) {
  const auto mnist = LoadMnist(folder_.path(), {.validation_size = 2});
  ASSERT_TRUE(mnist.ok()) << mnist.status();
  EXPECT_EQ(mnist->validation.images.shape(), (Shape{2, 4}));
  EXPECT_EQ(mnist->train.images.shape(), (Shape{4, 4}));
  EXPECT_EQ(mnist->test.images.shape(), (Shape{3, 4}));
  EXPECT_FLOAT_EQ(mnist->train.images.data<float>()[0], 80 / 255.0f);
  EXPECT_FLOAT_EQ(mnist->test.images.data<float>()[11], 1);
}

TEST_F(MnistTest, LabelsAreOneHotOrNumbers) {
  const auto hot = LoadMnist(folder_.path(), {.validation_size = 5});
  ASSERT_TRUE(hot.ok());
  EXPECT_THAT(hot->train.labels.flat<float>(), ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 0, 1));
  const auto numbers = LoadMnist(folder_.path(), {.one_hot = false, .validation_size = 0});
  ASSERT_TRUE(numbers.ok());
  EXPECT_THAT(numbers->train.labels.flat<int64_t>(), ElementsAre(0, 1, 2, 3, 4, 9));
}

TEST_F(MnistTest, WrongFilesAreNamed) {
  Write("t10k-labels-idx1-ubyte", Idx(0x08, {2}, "\7\7"));
  EXPECT_THAT(ErrorOf(), HasSubstr("has 3 t10k images and 2 labels"));
  Write("t10k-labels-idx1-ubyte", Idx(0x08, {3}, "\7\12\7"));
  EXPECT_THAT(ErrorOf(), HasSubstr("label 1 of t10k-labels-idx1-ubyte is 10, wanted 0 to 9"));
  Write("train-images-idx3-ubyte", Idx(0x08, {6}, "abcdef"));
  EXPECT_THAT(ErrorOf(), HasSubstr("holds uint8[6], wanted uint8 of rank 3"));
  ASSERT_TRUE(RemoveFile(folder_ / "train-images-idx3-ubyte").ok());
  EXPECT_THAT(ErrorOf(), HasSubstr("has neither train-images-idx3-ubyte nor"));
}

TEST_F(MnistTest, MoreValidationThanThereIsIsRefused) {
  EXPECT_EQ(LoadMnist(folder_.path()).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tenon
