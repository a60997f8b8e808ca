// SPDX-License-Identifier: Apache-2.0
#include "train/input/input_pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>

#include "data/arrays/npy.h"
#include "data/files/file.h"
#include "data/records/record_file.h"
#include "ops/image/codecs.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAreArray;

Tensor UpTo(int n) {
  Tensor numbers(DType::kInt32, Shape({n}));
  for (int i = 0; i < n; ++i) numbers.data<int32_t>()[i] = i;
  return numbers;
}

/// The first tensors' first numbers.
std::vector<int> Walk(InputPipeline input) {
  std::vector<int> numbers;
  for (const InputElement& element : input) numbers.push_back(element[0].scalar<int32_t>());
  EXPECT_OK(input.status());
  return numbers;
}

InputPipeline Numbers(int n) { return InputPipeline::FromTensors({UpTo(n)}); }

TEST(InputPipelineTest, RowsThatBelongTogetherStayTogether) {
  const Tensor pairs = Tensor::Of<float>({3, 2}, {0, 1, 10, 11, 20, 21});
  InputPipeline input = InputPipeline::FromTensors({UpTo(3), pairs}).Shuffle(3, 4).Batch(2);
  int rows = 0;
  for (const InputElement& batch : input) {
    ASSERT_EQ(batch.size(), 2);
    EXPECT_EQ(batch[1].dim(1), 2);
    for (int64_t i = 0; i < batch[0].dim(0); ++i, ++rows) {
      EXPECT_EQ(batch[1].data<float>()[2 * i + 1],
                10 * static_cast<float>(batch[0].data<int32_t>()[i]) + 1);
    }
  }
  EXPECT_OK(input.status());
  EXPECT_EQ(rows, 3);
}

TEST(InputPipelineTest, StagesDoWhatTheySay) {
  EXPECT_THAT(Walk(Numbers(10).Shard(3, 1)), ElementsAre(1, 4, 7));
  EXPECT_THAT(Walk(Numbers(5).Skip(1).Take(2)), ElementsAre(1, 2));
  EXPECT_THAT(Walk(Numbers(2).Repeat(3)), ElementsAre(0, 1, 0, 1, 0, 1));
  EXPECT_THAT(Walk(Numbers(3).Repeat().Take(5)), ElementsAre(0, 1, 2, 0, 1));
  EXPECT_THAT(Walk(Numbers(7).Batch(3)), ElementsAre(0, 3, 6));
  EXPECT_THAT(Walk(Numbers(7).Batch(3, {.drop_remainder = true})), ElementsAre(0, 3));
  EXPECT_THAT(Walk(Numbers(6).Filter(
                  [](const InputElement& e) { return e[0].scalar<int32_t>() % 2 == 0; })),
              ElementsAre(0, 2, 4));
  EXPECT_THAT(Walk(Numbers(3).Map([](InputElement* e) {
                (*e)[0] = Tensor::Scalar((*e)[0].scalar<int32_t>() * 5);
                return OkStatus();
              })),
              ElementsAre(0, 5, 10));
  EXPECT_THAT(Walk(Numbers(100).Prefetch(7).Take(3)), ElementsAre(0, 1, 2));
}

TEST(InputPipelineTest, ShufflingIsSeededAndDiffersByRepetition) {
  const std::vector<int> once = Walk(Numbers(50).Shuffle(50, 1));
  EXPECT_EQ(once, Walk(Numbers(50).Shuffle(50, 1).Prefetch(4)));
  EXPECT_NE(once, Walk(Numbers(50).Shuffle(50, 2)));
  EXPECT_THAT(once, UnorderedElementsAreArray(Walk(Numbers(50))));
  const std::vector<int> twice = Walk(Numbers(50).Shuffle(50, 1).Repeat(2));
  const std::vector<int> first(twice.begin(), twice.begin() + 50);
  const std::vector<int> second(twice.begin() + 50, twice.end());
  EXPECT_EQ(first, once);
  EXPECT_NE(second, first);
  EXPECT_THAT(second, UnorderedElementsAreArray(first));
}

TEST(InputPipelineTest, ASmallBufferShufflesNearby) {
  const std::vector<int> numbers = Walk(Numbers(100).Shuffle(5, 3));
  for (int i = 0; i < 100; ++i) EXPECT_LT(numbers[i], i + 5);
  EXPECT_THAT(numbers, UnorderedElementsAreArray(Walk(Numbers(100))));
}

TEST(InputPipelineTest, AllOrdersAreAsLikely) {
  std::map<std::vector<int>, int> counts;
  for (int seed = 0; seed < 6000; ++seed) ++counts[Walk(Numbers(3).Shuffle(3, seed))];
  ASSERT_EQ(counts.size(), 6);
  for (const auto& [order, count] : counts) EXPECT_NEAR(count, 1000, 150);
}

TEST(InputPipelineTest, ReadsRecordsAndArrays) {
  const std::string folder = ::testing::TempDir();
  const std::string records = folder + "input_pipeline.tfrecord",
                    npz = folder + "input_pipeline.npz";
  {
    auto writer = RecordWriter::Create(records);
    ASSERT_OK(writer.status());
    ASSERT_OK((*writer)->Write("one"));
    ASSERT_OK((*writer)->Write("two"));
    ASSERT_OK((*writer)->Close());
  }
  ASSERT_OK(WriteNpz(npz, {{"x", UpTo(4)}, {"y", UpTo(4)}}));
  std::vector<std::string> found;
  InputPipeline input = InputPipeline::FromRecords({records, records});
  for (const InputElement& e : input) found.emplace_back(e[0].scalar<TString>());
  EXPECT_THAT(found, ElementsAre("one", "two", "one", "two"));
  EXPECT_THAT(Walk(InputPipeline::FromNpz(npz, {"y", "x"})), ElementsAre(0, 1, 2, 3));
}

TEST(InputPipelineTest, StagesComeInAnyOrder) {
  const auto doubled = [](InputElement* e) {
    (*e)[0] = Tensor::Scalar((*e)[0].scalar<int32_t>() * 2);
    return OkStatus();
  };
  EXPECT_THAT(Walk(Numbers(3).Map(doubled).Repeat(2).Skip(1).Take(3)), ElementsAre(2, 4, 0));
  EXPECT_THAT(Walk(Numbers(8).Batch(2).Shard(2, 1)), ElementsAre(2, 6));
  EXPECT_THAT(Walk(Numbers(4).Batch(2).Repeat(2).Prefetch(1)), ElementsAre(0, 2, 0, 2));
  EXPECT_THAT(Walk(Numbers(4).Repeat(2).Batch(3)), ElementsAre(0, 3, 2));
  EXPECT_THAT(Walk(Numbers(4).Map(doubled).Repeat(2).Batch(3)), ElementsAre(0, 6, 4));
  // A shuffle chooses the same order of rows and of what was made of them.
  const std::vector<int> order = Walk(Numbers(40).Shuffle(10, 5));
  std::vector<int> twice = Walk(Numbers(40).Map(doubled).Shuffle(10, 5));
  for (int& n : twice) n /= 2;
  EXPECT_EQ(twice, order);
  InputPipeline batches = Numbers(6).Batch(2).Batch(2);
  std::vector<Shape> shapes;
  for (const InputElement& e : batches) shapes.push_back(e[0].shape());
  EXPECT_THAT(shapes, ElementsAre(Shape({2, 2}), Shape({1, 2})));
}

TEST(InputPipelineTest, ABatchIsAnElementsOwn) {
  const Tensor rows = UpTo(4);
  InputPipeline input = InputPipeline::FromTensors({rows}).Batch(2).Map([](InputElement* e) {
    EXPECT_TRUE((*e)[0].HasOneReference());
    (*e)[0].data<int32_t>()[0] = -1;
    return OkStatus();
  });
  EXPECT_THAT(Walk(input), ElementsAre(-1, -1));
  EXPECT_EQ(rows.data<int32_t>()[0], 0);
}

TEST(InputPipelineTest, FilesThatStayInMemoryAreReadAgainWhenTheyChange) {
  const std::string npz = ::testing::TempDir() + "input_pipeline_kept.npz";
  ASSERT_OK(WriteNpz(npz, {{"x", UpTo(2)}}));
  const InputPipeline input = InputPipeline::FromNpz(npz, {"x"});
  EXPECT_THAT(Walk(input.Repeat(2)), ElementsAre(0, 1, 0, 1));
  ASSERT_OK(WriteNpz(npz, {{"x", UpTo(3)}}));
  EXPECT_THAT(Walk(input), ElementsAre(0, 1, 2));
  InputPipeline endless = input.Repeat();
  int seen = 0;
  for (const InputElement& element : endless) {
    if (++seen == 2) ASSERT_OK(WriteNpz(npz, {{"x", UpTo(4)}}));
    ASSERT_LT(element[0].scalar<int32_t>(), 3);
  }
  EXPECT_THAT(std::string(endless.status().message()), HasSubstr("changed while it was repeated"));
}

TEST(InputPipelineTest, ReadsTextAndTables) {
  const std::string path = ::testing::TempDir() + "input_pipeline.csv";
  ASSERT_OK(WriteStringToFile(path, "name,n\nann,0\nbob,1\n,2\n"));
  std::vector<std::string> lines;
  InputPipeline text = InputPipeline::FromText({path}).Skip(1);
  for (const InputElement& e : text) lines.emplace_back(e[0].scalar<TString>());
  EXPECT_THAT(lines, ElementsAre("ann,0", "bob,1", ",2"));
  const InputPipeline table = InputPipeline::FromCsv(
      {path}, {{"n", DType::kInt32}, {"name", DType::kString, Tensor::Scalar("nobody")}});
  EXPECT_THAT(Walk(table.Repeat(2)), ElementsAre(0, 1, 2, 0, 1, 2));
  InputPipeline batches = table.Batch(3);
  for (const InputElement& e : batches) {
    EXPECT_EQ(e[0].shape(), Shape({3}));
    EXPECT_EQ(e[1].data<TString>()[2], "nobody");
  }
  EXPECT_OK(batches.status());
}

TEST(InputPipelineTest, ReadsLibsvmFiles) {
  const std::string path = ::testing::TempDir() + "input_pipeline.svm";
  ASSERT_OK(WriteStringToFile(path, "1 1:5\n-1 2:6 3:7\n0.5\n"));
  const InputPipeline rows = InputPipeline::FromLibsvm({path}, 3);
  std::vector<float> labels;
  InputPipeline sharded = rows.Shard(2, 0).Repeat(2);
  for (const InputElement& e : sharded) {
    EXPECT_EQ(e[0].shape(), Shape({3}));
    labels.push_back(e[1].scalar<float>());
  }
  EXPECT_OK(sharded.status());
  EXPECT_THAT(labels, ElementsAre(1, 0.5, 1, 0.5));
  InputPipeline batches = rows.Batch(4);
  for (const InputElement& e : batches) {
    EXPECT_EQ(e[0].shape(), Shape({3, 3}));
    EXPECT_THAT(e[0].flat<float>(), ElementsAre(5, 0, 0, 0, 6, 7, 0, 0, 0));
    EXPECT_THAT(e[1].flat<float>(), ElementsAre(1, -1, 0.5));
  }
  EXPECT_OK(batches.status());
  InputPipeline narrow = InputPipeline::FromLibsvm({path}, 2).Shuffle(2, 1).Prefetch(1);
  for (const InputElement& e : narrow) EXPECT_EQ(e[0].dim(0), 2);
  EXPECT_THAT(std::string(narrow.status().message()),
              HasSubstr("svm', line 2: found the index 3, wanted one from 1 to 2"));
}

/// Writes an image of one colour, whose first channel is `red`.
void WriteImage(const std::string& path, uint8_t red, bool png) {
  std::vector<uint8_t> pixels;
  for (int i = 0; i < 8 * 8; ++i) pixels.insert(pixels.end(), {red, 20, 30});
  const ImageSize size{8, 8, 3};
  const auto file =
      png ? EncodePngFile(size, pixels.data(), false, -1) : EncodeJpegFile(size, pixels.data(), {});
  ASSERT_OK(file.status());
  ASSERT_OK(WriteStringToFile(path, *file));
}

TEST(InputPipelineTest, ReadsImagesOfFolders) {
  const std::string folder = ::testing::TempDir() + TemporaryName("images");
  const std::string cats = folder + "/cats", dogs = folder + "/dogs";
  ASSERT_OK(MakeFolders(cats));
  ASSERT_OK(MakeFolders(dogs));
  for (int i = 0; i < 9; ++i) WriteImage(StrCat(cats, "/", i, ".png"), 10 * i, true);
  WriteImage(dogs + "/a.JPG", 200, false);
  ASSERT_OK(WriteStringToFile(dogs + "/notes.txt", "not an image"));
  const InputPipeline images = InputPipeline::FromImages({cats, dogs});
  std::vector<int> reds, labels;
  for (const InputElement& e : InputPipeline(images)) {
    EXPECT_EQ(e[0].shape(), Shape({8, 8, 3}));
    reds.push_back(e[0].data<uint8_t>()[0]);
    labels.push_back(static_cast<int>(e[1].scalar<int64_t>()));
  }
  ASSERT_EQ(reds.size(), 10u);
  EXPECT_NEAR(reds.back(), 200, 3);
  reds.pop_back();
  EXPECT_THAT(reds, ElementsAre(0, 10, 20, 30, 40, 50, 60, 70, 80));
  EXPECT_THAT(labels, ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 0, 1));
  InputPipeline batches = images.Shuffle(10, 3).Repeat(2).Batch(20).Prefetch(1);
  int64_t dogs_found = 0;
  for (const InputElement& e : batches) {
    EXPECT_EQ(e[0].shape(), Shape({20, 8, 8, 3}));
    for (int i = 0; i < 20; ++i) {
      const bool is_dog = e[0].data<uint8_t>()[i * 8 * 8 * 3] > 150;
      EXPECT_EQ(e[1].data<int64_t>()[i], is_dog ? 1 : 0);
      dogs_found += is_dog ? 1 : 0;
    }
  }
  EXPECT_OK(batches.status());
  EXPECT_EQ(dogs_found, 2);
  ASSERT_OK(WriteStringToFile(dogs + "/b.png", "no image"));
  InputPipeline broken = InputPipeline::FromImages({dogs}, {.channels = 1}).Prefetch(4);
  for (const InputElement& e : broken) EXPECT_EQ(e[0].dim(2), 1);
  EXPECT_THAT(std::string(broken.status().message()),
              HasSubstr("b.png': found another format, wanted a PNG or JPEG image"));
  ASSERT_OK(RemoveTree(folder));
}

TEST(InputPipelineTest, MistakesAreTheStatusOfTheLoop) {
  const auto message = [](InputPipeline input) {
    for (const InputElement& element : input) (void)element;
    return std::string(input.status().message());
  };
  EXPECT_THAT(message(InputPipeline::FromTensors({UpTo(3), UpTo(2)})),
              HasSubstr("tensors of 3 and 2 rows do not belong together"));
  EXPECT_THAT(message(Numbers(3).Batch(0)), HasSubstr("must be at least 1, found 0"));
  EXPECT_THAT(message(Numbers(3).Take(-2)), HasSubstr("a Take of an input pipeline must be at "
                                                      "least 0, found -2"));
  EXPECT_THAT(message(Numbers(3).Skip(-1)), HasSubstr("a Skip"));
  EXPECT_THAT(message(Numbers(3).Repeat(-4).Take(2)), HasSubstr("must be at least -1, found -4"));
  EXPECT_THAT(message(Numbers(3).Shuffle(-1, 1).Take(2)), HasSubstr("the buffer of a Shuffle"));
  EXPECT_THAT(message(Numbers(3).Shard(2, 2)), HasSubstr("there is no shard 2 of 2"));
  EXPECT_THAT(message(InputPipeline::FromRecords({"/no/such/file"})), HasSubstr("/no/such/file"));
  EXPECT_THAT(message(Numbers(3).Map([](InputElement*) { return DataLoss("rotten"); }).Prefetch(2)),
              HasSubstr("rotten"));
  EXPECT_THAT(message(Numbers(3)
                          .Map([](InputElement* e) {
                            (*e)[0] = Tensor(DType::kFloat, Shape({(*e)[0].scalar<int32_t>()}));
                            return OkStatus();
                          })
                          .Batch(3)),
              HasSubstr("tensor 0 is float[0] in its first, float[1] in element 1"));
}

TEST(InputPipelineTest, AThreadEndsWithItsLoop) {
  std::atomic<int> made{0};
  InputPipeline input = Numbers(1000)
                            .Map([&](InputElement*) {
                              ++made;
                              return OkStatus();
                            })
                            .Prefetch(3);
  for (const InputElement& element : input) {
    if (element[0].scalar<int32_t>() == 5) break;
  }
  EXPECT_LE(made, 10);
}

}  // namespace
}  // namespace tenon
