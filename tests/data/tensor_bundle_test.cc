// SPDX-License-Identifier: Apache-2.0
#include "data/checkpoint/tensor_bundle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <random>

#include "data/checkpoint/tensor_bundle_index.h"
#include "tests/data/sample_files.h"

namespace tenon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string SmallPrefix() { return SamplePath("checkpoints/checkpoint_small/model.ckpt-42"); }
std::string ManyPrefix() { return SamplePath("checkpoints/checkpoint_many/model.ckpt-1"); }

std::unique_ptr<BundleReader> OpenOrDie(const std::string& prefix) {
  auto reader = BundleReader::Open(prefix);
  EXPECT_TRUE(reader.ok()) << reader.status();
  return *std::move(reader);
}

Tensor ReadOrDie(const BundleReader& reader, std::string_view name) {
  auto value = reader.Read(name);
  EXPECT_TRUE(value.ok()) << value.status();
  return value.ok() ? *std::move(value) : Tensor();
}

/// Writes what `from` holds to `to`, in the order in which it lies in the data file.
Status Rewrite(const std::string& from, const std::string& to) {
  TENON_ASSIGN_OR_RETURN(const auto reader, BundleReader::Open(from));
  struct Part {
    std::pair<int64_t, int64_t> place;  // offset and size
    std::string name;
    TensorSlice slice;
    bool whole;
  };
  std::vector<Part> parts;
  for (const std::string& name : reader->names()) {
    TENON_ASSIGN_OR_RETURN(const BundleEntry* entry, reader->Find(name));
    if (entry->slices.empty()) parts.push_back({{entry->offset, entry->size}, name, {}, true});
    for (const TensorSlice& slice : entry->slices) {
      TENON_ASSIGN_OR_RETURN(const BundleEntry* stored, reader->Find(SliceKey(name, slice)));
      parts.push_back({{stored->offset, stored->size}, name, slice, false});
    }
  }
  std::sort(parts.begin(), parts.end(),
            [](const Part& a, const Part& b) { return a.place < b.place; });
  TENON_ASSIGN_OR_RETURN(const auto writer, BundleWriter::Create(to));
  for (const Part& part : parts) {
    if (part.whole) {
      TENON_ASSIGN_OR_RETURN(const Tensor value, reader->Read(part.name));
      TENON_RETURN_IF_ERROR(writer->Add(part.name, value));
    } else {
      TENON_ASSIGN_OR_RETURN(const Tensor value, reader->ReadSlice(part.name, part.slice));
      TENON_RETURN_IF_ERROR(
          writer->AddSlice(part.name, (*reader->Find(part.name))->shape, part.slice, value));
    }
  }
  return writer->Finish();
}

void ExpectSameFiles(const std::string& a, const std::string& b) {
  EXPECT_EQ(ContentOf(BundleIndexName(a)), ContentOf(BundleIndexName(b)));
  EXPECT_EQ(ContentOf(BundleDataName(a, 0, 1)), ContentOf(BundleDataName(b, 0, 1)));
}

void Save(const std::string& prefix, const std::vector<std::pair<std::string, Tensor>>& values) {
  auto writer = BundleWriter::Create(prefix);
  ASSERT_TRUE(writer.ok()) << writer.status();
  for (const auto& [name, value] : values) ASSERT_TRUE((*writer)->Add(name, value).ok());
  ASSERT_TRUE((*writer)->Finish().ok());
}

TEST(TensorBundleTest, ListsAndReadsWhatTensorFlowWrote) {
  const auto reader = OpenOrDie(SmallPrefix());
  EXPECT_THAT(reader->names(),
              ElementsAre("a", "c", "empty", "flag", "global_step", "half", "part", "scope/b"));
  EXPECT_THAT(ReadOrDie(*reader, "global_step").flat<int64_t>(), ElementsAre(42));
  EXPECT_EQ(ReadOrDie(*reader, "a").shape(), (Shape{2, 3}));
  EXPECT_EQ(ReadOrDie(*reader, "empty").shape(), (Shape{0, 4}));
  EXPECT_EQ(ReadOrDie(*reader, "flag").dtype(), DType::kBool);
  EXPECT_EQ(ReadOrDie(*reader, "half").dtype(), DType::kHalf);
  std::string bytes;
  for (int i = 0; i < 100; ++i) bytes += std::string("\0\xff", 2);
  EXPECT_THAT(ReadOrDie(*reader, "c").flat<TString>(), ElementsAre("", "xyz", bytes));
  EXPECT_EQ(ReadOrDie(*reader, "part").shape(), (Shape{10, 2}));
}

TEST(TensorBundleTest, WritesTheBytesThatTensorFlowWrites) {
  const TemporaryFolder folder;
  const Status status = Rewrite(SmallPrefix(), folder / "ckpt");
  ASSERT_TRUE(status.ok()) << status;
  ExpectSameFiles(SmallPrefix(), folder / "ckpt");
}

TEST(TensorBundleTest, AnIndexOfManyBlocksIsReadAndWrittenTheSame) {
  const auto reader = OpenOrDie(ManyPrefix());
  EXPECT_EQ(reader->names().size(), 6000u);
  EXPECT_EQ(ReadOrDie(*reader,
                      "layer_1499/a_rather_long_scope_name_so_that_the_index_grows/"
                      "block_82/part_3/variable")
                .scalar<int32_t>(),
            7 * 5999);
  const TemporaryFolder folder;
  ASSERT_TRUE(Rewrite(ManyPrefix(), folder / "ckpt").ok());
  ExpectSameFiles(ManyPrefix(), folder / "ckpt");
}

TEST(TensorBundleTest, ACheckpointTakesThePlaceOfAnotherInOneStep) {
  const TemporaryFolder folder;
  const std::string prefix = folder / "ckpt";
  for (float value = 1; value < 5; ++value) {
    std::string index;
    const bool first = value == 1;
    if (!first) index = ContentOf(BundleIndexName(prefix));
    auto writer = BundleWriter::Create(prefix);
    ASSERT_TRUE(writer.ok()) << writer.status();
    ASSERT_TRUE((*writer)->Add("v", Tensor::Scalar(value)).ok());
    // All is there but for the index: the old one still finds what it refers to.
    if (!first) {
      EXPECT_EQ(ReadOrDie(*OpenOrDie(prefix), "v").scalar<float>(), value - 1);
    }
    ASSERT_TRUE((*writer)->Finish().ok());
    EXPECT_EQ(ReadOrDie(*OpenOrDie(prefix), "v").scalar<float>(), value);
    EXPECT_NE(ContentOf(BundleIndexName(prefix)), index);
    // Nothing of the old one is left, and no temporary file.
    const int files = static_cast<int>(ListFolder(folder / "")->size());
    EXPECT_EQ(files, OpenOrDie(prefix)->num_shards() + 1);
  }
}

TEST(TensorBundleTest, AMergedCheckpointTakesThePlaceOfAnother) {
  const TemporaryFolder folder;
  for (float value = 1; value < 4; ++value) {
    Save(folder / "p0", {{"a", Tensor::Scalar(value)}});
    Save(folder / "p1", {{"b", Tensor::Scalar(-value)}});
    ASSERT_TRUE(MergeBundles({folder / "p0", folder / "p1"}, folder / "all").ok());
    const auto reader = OpenOrDie(folder / "all");
    EXPECT_EQ(ReadOrDie(*reader, "a").scalar<float>(), value);
    EXPECT_EQ(ReadOrDie(*reader, "b").scalar<float>(), -value);
    EXPECT_EQ(static_cast<int>(ListFolder(folder / "")->size()), reader->num_shards() + 1);
  }
}

TEST(TensorBundleTest, MergingOneShardGivesTheBytesThatTensorFlowWrites) {
  const std::string sample = SamplePath("checkpoints/checkpoint_small/sharded");
  const TemporaryFolder folder;
  ASSERT_TRUE(Rewrite(sample, folder / "part/shard").ok());
  const Status status = MergeBundles({folder / "part/shard"}, folder / "merged");
  ASSERT_TRUE(status.ok()) << status;
  ExpectSameFiles(sample, folder / "merged");
  EXPECT_FALSE(FileExists(folder / "part/shard.index"));
}

TEST(TensorBundleTest, SliceKeysAreThoseOfTensorFlow) {
  EXPECT_EQ(SliceKey("w", *TensorSlice::Parse("0,5:-")),
            std::string("\x00\x77\x00\x01\x01\x02\x80\x85\x80\x7f", 10));
  EXPECT_EQ(SliceKey("w", *TensorSlice::Parse("100,200")),
            std::string("\x00\x77\x00\x01\x01\x01\xc0\x64\xc0\xc8", 10));
}

TEST(TensorBundleTest, EveryDtypeSurvives) {
  const TemporaryFolder folder;
  std::vector<std::pair<std::string, Tensor>> values;
  for (int i = 1; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (IsPlain(dtype)) values.emplace_back(ToString(dtype), Tensor::Zeros(dtype, {2, 3}));
  }
  values.emplace_back("scalar", Tensor::Scalar<double>(1.5));
  values.emplace_back("text", Tensor::Of<std::string>({2}, {"", std::string(300, 'x')}));
  Save(folder / "ckpt", values);
  const auto reader = OpenOrDie(folder / "ckpt");
  for (const auto& [name, value] : values) {
    EXPECT_TRUE(ReadOrDie(*reader, name).Equals(value)) << name;
  }
}

TEST(TensorBundleTest, ASliceIsReadHoweverTheTensorIsStored) {
  const TemporaryFolder folder;
  std::vector<int32_t> numbers(60);
  for (int i = 0; i < 60; ++i) numbers[i] = i;
  const Shape shape{5, 4, 3};
  const Tensor whole = Tensor::Of<int32_t>(shape, numbers);
  auto writer = *BundleWriter::Create(folder / "ckpt");
  ASSERT_TRUE(writer->Add("whole", whole).ok());
  Save(folder / "tmp", {{"x", whole}});
  const auto source = OpenOrDie(folder / "tmp");
  for (const char* text : {"0,2:0,3:-", "0,2:3,1:-", "2,3:0,3:-", "2,3:3,1:-"}) {
    const TensorSlice slice = *TensorSlice::Parse(text);
    ASSERT_TRUE(writer->AddSlice("parts", shape, slice, *source->ReadSlice("x", slice)).ok());
  }
  ASSERT_TRUE(writer->Finish().ok());
  const auto reader = OpenOrDie(folder / "ckpt");
  EXPECT_TRUE(ReadOrDie(*reader, "parts").Equals(whole));
  for (const char* text : {"-:-:-", "1,3:2,2:1,1", "4,1:3,1:-", "0,1:-:2,1", "2,0:-:-"}) {
    const TensorSlice slice = *TensorSlice::Parse(text);
    const auto a = reader->ReadSlice("whole", slice), b = reader->ReadSlice("parts", slice);
    ASSERT_TRUE(a.ok() && b.ok()) << text << a.status() << b.status();
    EXPECT_TRUE(a->Equals(*b)) << text;
  }
  EXPECT_THAT(reader->ReadSlice("parts", *TensorSlice::Parse("1,1:2,1:-"))->flat<int32_t>(),
              ElementsAre(18, 19, 20));
}

TEST(TensorBundleTest, SlicesOfOneTensorMayComeFromSeveralShards) {
  const TemporaryFolder folder;
  for (const int i : {0, 1}) {
    auto writer = *BundleWriter::Create(folder / StrCat("p", i));
    ASSERT_TRUE(writer
                    ->AddSlice("w", {4}, TensorSlice({{2 * i, 2}}),
                               Tensor::Of<int32_t>({2}, {10 * i, 10 * i + 1}))
                    .ok());
    ASSERT_TRUE(writer->Add(StrCat("own", i), Tensor::Scalar<int32_t>(i)).ok());
    ASSERT_TRUE(writer->Finish().ok());
  }
  const Status status = MergeBundles({folder / "p0", folder / "p1"}, folder / "all");
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(*ListFolder(folder.path()),
              ElementsAre("all.data-00000-of-00002", "all.data-00001-of-00002", "all.index"));
  const auto reader = OpenOrDie(folder / "all");
  EXPECT_EQ(reader->num_shards(), 2);
  EXPECT_THAT(ReadOrDie(*reader, "w").flat<int32_t>(), ElementsAre(0, 1, 10, 11));
  EXPECT_EQ(ReadOrDie(*reader, "own1").scalar<int32_t>(), 1);
}

TEST(TensorBundleTest, MergingRefusesATensorThatIsThereTwiceAndChangesNothing) {
  const TemporaryFolder folder;
  Save(folder / "p0", {{"x", Tensor::Scalar<float>(0)}});
  Save(folder / "p1", {{"x", Tensor::Scalar<float>(1)}});
  const Status status = MergeBundles({folder / "p0", folder / "p1"}, folder / "all");
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("'x' is in several"));
  EXPECT_EQ(OpenOrDie(folder / "p1")->names().size(), 1u);
}

TEST(TensorBundleTest, MergingPassesOverMissingPrefixesOnRequest) {
  const TemporaryFolder folder;
  Save(folder / "p0", {{"x", Tensor::Scalar<float>(0)}});
  const std::vector<std::string> prefixes = {folder / "nothing", folder / "p0"};
  EXPECT_EQ(MergeBundles(prefixes, folder / "all").code(), StatusCode::kNotFound);
  EXPECT_TRUE(MergeBundles(prefixes, folder / "all", {.allow_missing = true}).ok());
  EXPECT_EQ(OpenOrDie(folder / "all")->num_shards(), 1);
}

TEST(TensorBundleTest, WrongAdditionsAreRefused) {
  const TemporaryFolder folder;
  auto writer = *BundleWriter::Create(folder / "ckpt");
  const Tensor row = Tensor::Zeros(DType::kFloat, {1, 2});
  const auto slice = [](const char* text) { return *TensorSlice::Parse(text); };
  ASSERT_TRUE(writer->Add("x", row).ok());
  EXPECT_FALSE(writer->Add("x", row).ok());
  EXPECT_FALSE(writer->Add("", row).ok());
  EXPECT_FALSE(writer->Add("r", Tensor(DType::kResource, Shape())).ok());
  EXPECT_FALSE(writer->AddSlice("x", {4, 2}, slice("0,1:-"), row).ok());
  ASSERT_TRUE(writer->AddSlice("w", {4, 2}, slice("0,1:-"), row).ok());
  EXPECT_FALSE(writer->AddSlice("w", {4, 2}, slice("0,1:0,2"), row).ok());  // overlaps
  EXPECT_FALSE(writer->AddSlice("w", {5, 2}, slice("1,1:-"), row).ok());
  EXPECT_FALSE(writer->AddSlice("w", {4, 2}, slice("4,1:-"), row).ok());
  EXPECT_FALSE(writer->AddSlice("w", {4, 2}, slice("1,2:-"), row).ok());
}

TEST(TensorBundleTest, ACheckpointThatIsNotFinishedLeavesNothing) {
  const TemporaryFolder folder;
  { auto writer = *BundleWriter::Create(folder / "ckpt"); }
  EXPECT_THAT(*ListFolder(folder.path()), ElementsAre());
}

TEST(TensorBundleTest, AMissingNameAndAMissingCheckpointAreNotFound) {
  const auto reader = OpenOrDie(SmallPrefix());
  const auto value = reader->Read("nothing");
  EXPECT_EQ(value.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(std::string(Message(value.status())),
              HasSubstr("Key nothing not found in checkpoint"));
  EXPECT_EQ(BundleReader::Open("/nonexistent/ckpt").status().code(), StatusCode::kNotFound);
}

/// A checkpoint with one matrix whose files the test may damage.
class DamagedBundleTest : public ::testing::Test {
 protected:
  DamagedBundleTest() {
    Save(prefix_, {{"x", Tensor::Of<float>({2, 2}, {1, 2, 3, 4})},
                   {"s", Tensor::Of<std::string>({2}, {"abc", "de"})}});
    data_ = ContentOf(BundleDataName(prefix_, 0, 1));
  }
  void SetData(const std::string& data) {
    ASSERT_TRUE(WriteStringToFile(BundleDataName(prefix_, 0, 1), data).ok());
  }
  std::string ErrorOf(std::string_view name) {
    const auto value = OpenOrDie(prefix_)->Read(name);
    EXPECT_EQ(value.status().code(), StatusCode::kDataLoss) << value.status();
    return std::string(Message(value.status()));
  }

  const TemporaryFolder folder_;
  const std::string prefix_ = folder_ / "ckpt";
  std::string data_;
};

TEST_F(DamagedBundleTest, AChangedByteIsDataLoss) {
  for (const size_t i : {3, 20}) {
    std::string data = data_;
    data[i] ^= 1;
    SetData(data);
    EXPECT_THAT(ErrorOf(i < 16 ? "x" : "s"), HasSubstr("found checksum"));
  }
}

TEST_F(DamagedBundleTest, AFileCutShortIsDataLoss) {
  SetData(data_.substr(0, 10));
  EXPECT_THAT(ErrorOf("x"), HasSubstr("of 16 bytes ends after the file of 10 bytes"));
  EXPECT_THAT(ErrorOf("s"), HasSubstr("ends after the file"));
}

TEST_F(DamagedBundleTest, AMissingDataFileIsNotFound) {
  ASSERT_TRUE(RemoveFile(BundleDataName(prefix_, 0, 1)).ok());
  EXPECT_EQ(OpenOrDie(prefix_)->Read("x").status().code(), StatusCode::kNotFound);
}

TEST_F(DamagedBundleTest, NoDamageToTheIndexCrashes) {
  const std::string index = ContentOf(BundleIndexName(prefix_));
  std::mt19937 random(3);
  for (size_t i = 0; i < index.size(); ++i) {
    std::string damaged = index;
    damaged[i] = static_cast<char>(random());
    ASSERT_TRUE(WriteStringToFile(BundleIndexName(prefix_), damaged).ok());
    if (auto reader = BundleReader::Open(prefix_); reader.ok()) {
      (*reader)->Read("x").status().IgnoreError();
    }
    ASSERT_TRUE(WriteStringToFile(BundleIndexName(prefix_), index.substr(0, i)).ok());
    EXPECT_EQ(BundleReader::Open(prefix_).status().code(), StatusCode::kDataLoss);
  }
}

TEST_F(DamagedBundleTest, AnIndexThatClaimsMoreThanThereIsTakesNoMemory) {
  BundleIndex index = *ReadBundleIndex(prefix_);
  BundleEntry huge;
  huge.dtype = DType::kFloat;
  huge.shape = Shape{int64_t{1} << 40};
  huge.size = int64_t{1} << 42;
  index.entries["huge"] = huge;
  huge.size = 4;
  index.entries["lying"] = huge;
  huge.slices = {TensorSlice({{0, 1}})};
  index.entries["sliced"] = huge;
  huge.slices = {TensorSlice::Full(1)};
  index.entries["absent"] = huge;
  ASSERT_TRUE(WriteBundleIndex(prefix_, index).ok());
  EXPECT_THAT(ErrorOf("huge"), HasSubstr("ends after the file"));
  EXPECT_THAT(ErrorOf("lying"), HasSubstr("in 4 bytes"));
  EXPECT_EQ(OpenOrDie(prefix_)->Read("sliced").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(OpenOrDie(prefix_)->Read("absent").status().code(), StatusCode::kNotFound);
}

TEST_F(DamagedBundleTest, TextInASparseFileTakesNoMemory) {
  ASSERT_EQ(truncate(BundleDataName(prefix_, 0, 1).c_str(), int64_t{1} << 42), 0);
  BundleIndex index = *ReadBundleIndex(prefix_);
  BundleEntry huge;
  huge.dtype = DType::kString;
  huge.shape = Shape{4};
  huge.size = int64_t{1} << 42;
  index.entries["few"] = huge;
  huge.shape = Shape{int64_t{1} << 41};
  index.entries["many"] = huge;
  ASSERT_TRUE(WriteBundleIndex(prefix_, index).ok());
  for (const char* name : {"few", "many"}) {
    EXPECT_EQ(OpenOrDie(prefix_)->Read(name).status().code(), StatusCode::kResourceExhausted);
  }
}

TEST_F(DamagedBundleTest, AnImpossibleNumberOfDataFilesIsDataLoss) {
  BundleIndex index = *ReadBundleIndex(prefix_);
  index.entries.clear();
  for (const int shards : {-1, 1 << 30}) {
    index.num_shards = shards;
    ASSERT_TRUE(WriteBundleIndex(prefix_, index).ok());
    EXPECT_EQ(BundleReader::Open(prefix_).status().code(), StatusCode::kDataLoss);
    EXPECT_EQ(MergeBundles({prefix_, prefix_}, folder_ / "m").code(), StatusCode::kDataLoss);
  }
}

TEST(ShapeAndSliceTest, ReadsWhatSaversWrite) {
  const auto spec = ParseShapeAndSlice("20 10 0,5:-");
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(spec->full_shape, (Shape{20, 10}));
  EXPECT_EQ(spec->slice.ToString(), "0,5:-");
  for (const char* text : {"", "x", "20 10 0,5", "20 10 0,5:-:-", "20 10 -1,5:-", "20 10 18,5:-",
                           "20 10 0,5:9223372036854775807,1", "-1 0,1"}) {
    EXPECT_EQ(ParseShapeAndSlice(text).ok(), std::string(text).empty()) << text;
  }
}

}  // namespace
}  // namespace tenon
