// SPDX-License-Identifier: Apache-2.0
#include "data/records/record_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "absl/strings/escaping.h"
#include "core/memory/allocator.h"
#include "core/memory/memory_limit.h"
#include "data/files/crc32c.h"
#include "proto/example.pb.h"
#include "tests/data/sample_files.h"

namespace tenon {
namespace {

using ::testing::HasSubstr;

StatusOr<std::vector<std::string>> ReadRecords(RecordReader& reader) {
  std::vector<std::string> records;
  std::string record;
  while (true) {
    TENON_ASSIGN_OR_RETURN(const bool found, reader.Read(&record));
    if (!found) return records;
    records.push_back(record);
  }
}

StatusOr<std::vector<std::string>> ReadRecords(
    const std::string& path, std::optional<Compression> compression = std::nullopt) {
  TENON_ASSIGN_OR_RETURN(const auto reader, RecordReader::Open(path, compression));
  return ReadRecords(*reader);
}

Status WriteAll(const std::string& path, Compression compression,
                const std::vector<std::string>& records) {
  TENON_ASSIGN_OR_RETURN(const auto writer, RecordWriter::Create(path, compression));
  for (const std::string& r : records) TENON_RETURN_IF_ERROR(writer->Write(r));
  return writer->Close();
}

TEST(RecordFileTest, ReadsWhatTensorFlowWroteHoweverItIsCompressed) {
  for (const char* name : {"records.tfrecord", "records_gzip.tfrecord", "records_zlib.tfrecord"}) {
    const auto records = ReadRecords(SamplePath(StrCat("records/", name)));
    ASSERT_TRUE(records.ok()) << records.status();
    ASSERT_EQ(records->size(), 4u);
    EXPECT_EQ((*records)[0], "");
    EXPECT_EQ((*records)[1], "abc");
    ASSERT_EQ((*records)[2].size(), 768u);
    EXPECT_EQ(static_cast<unsigned char>((*records)[2][767]), 255);
    Example example;
    ASSERT_TRUE(example.ParseFromString((*records)[3]));
    const auto& features = example.features().feature();
    EXPECT_EQ(features.at("label").int64_list().value(0), 7);
    EXPECT_EQ(features.at("x").float_list().value(1), -1);
    EXPECT_EQ(features.at("name").bytes_list().value(0), "n");
  }
}

TEST(RecordFileTest, WritesTheBytesThatTensorFlowWrites) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteAll(folder / "r", Compression::kNone, {"abc"}).ok());
  EXPECT_EQ(absl::BytesToHexString(ContentOf(folder / "r")),
            "0300000000000000b099490e6162636e57f121");
  const std::string sample = SamplePath("records/records.tfrecord");
  ASSERT_TRUE(WriteAll(folder / "all", Compression::kNone, *ReadRecords(sample)).ok());
  EXPECT_EQ(ContentOf(folder / "all"), ContentOf(sample));
}

TEST(RecordFileTest, CompressedRecordsSurvive) {
  const TemporaryFolder folder;
  std::mt19937 random(1);
  std::vector<std::string> records(20);
  for (std::string& r : records) {
    r.resize(random() % 30000);
    for (char& c : r) c = static_cast<char>(random() % 7);
  }
  for (const Compression c : {Compression::kNone, Compression::kGzip, Compression::kZlib}) {
    ASSERT_TRUE(WriteAll(folder / "r", c, records).ok());
    for (const std::optional<Compression> given : {std::optional<Compression>(), {c}}) {
      const auto back = ReadRecords(folder / "r", given);
      ASSERT_TRUE(back.ok()) << back.status();
      EXPECT_EQ(*back, records);
    }
  }
}

TEST(RecordFileTest, AppendingGoesOnAfterWhatIsThere) {
  const TemporaryFolder folder;
  for (const Compression c : {Compression::kNone, Compression::kGzip}) {
    const std::string path = folder / StrCat(static_cast<int>(c));
    for (const char* record : {"one", "two"}) {
      auto writer = *RecordWriter::Create(path, c, WriteMode::kAppend);
      ASSERT_TRUE(writer->Write(record).ok());
      ASSERT_TRUE(writer->Close().ok());
    }
    EXPECT_EQ(*ReadRecords(path), (std::vector<std::string>{"one", "two"}));
  }
}

TEST(RecordFileTest, FlushMakesACompressedRecordVisible) {
  const TemporaryFolder folder;
  auto writer = *RecordWriter::Create(folder / "r", Compression::kZlib);
  ASSERT_TRUE(writer->Write("one").ok());
  ASSERT_TRUE(writer->Flush().ok());
  auto reader = *RecordReader::Open(folder / "r", Compression::kZlib);
  std::string record;
  EXPECT_TRUE(*reader->Read(&record));
  EXPECT_EQ(record, "one");
}

TEST(RecordFileTest, ADamagedRecordIsDataLossAtItsOffset) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteAll(folder / "r", Compression::kNone, {"abc", "defg"}).ok());
  const std::string whole = ContentOf(folder / "r");
  const auto error_of = [&](const std::string& content) {
    EXPECT_TRUE(WriteStringToFile(folder / "d", content).ok());
    const Status status = ReadRecords(folder / "d", Compression::kNone).status();
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << status;
    return std::string(Message(status));
  };
  std::string damaged = whole;
  damaged[19] ^= 1;
  EXPECT_THAT(error_of(damaged), HasSubstr("record at byte 19 is damaged: its length has a wrong"));
  damaged = whole;
  damaged[32] ^= 1;
  EXPECT_THAT(error_of(damaged), HasSubstr("record at byte 19 is damaged: its data has a wrong"));
  EXPECT_THAT(error_of(whole.substr(0, 25)), HasSubstr("found 6 bytes of its header, wanted 12"));
  EXPECT_THAT(error_of(whole.substr(0, 33)), HasSubstr("found 2 bytes, wanted 8"));
}

TEST(RecordFileTest, ALengthThatCannotBeTakesNoMemory) {
  const TemporaryFolder folder;
  for (const uint64_t length : {uint64_t{1} << 50, UINT64_MAX, UINT64_MAX - 4}) {
    std::string head(reinterpret_cast<const char*>(&length), 8);
    const uint32_t crc = MaskCrc32c(Crc32c(head));
    head.append(reinterpret_cast<const char*>(&crc), 4);
    for (const Compression c : {Compression::kNone, Compression::kGzip}) {
      auto file = MakeCompressor(*OpenOutput(folder / "r"), c);
      ASSERT_TRUE(file->Append(head + "some data").ok());
      ASSERT_TRUE(file->Close().ok());
      EXPECT_EQ(ReadRecords(folder / "r", c).status().code(), StatusCode::kDataLoss);
    }
  }
}

TEST(RecordFileTest, NoDamageToACompressedFileCrashes) {
  const std::string whole = ContentOf(SamplePath("records/records_gzip.tfrecord"));
  const auto read = [](const std::string& content) {
    RecordReader reader(MakeSource(content, Compression::kGzip), "file");
    return ReadRecords(reader).status();
  };
  EXPECT_TRUE(read(whole).ok());
  std::mt19937 random(9);
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(random());
    read(damaged).IgnoreError();
    EXPECT_EQ(read(whole.substr(0, i)).ok(), i == 0) << i;
  }
}

TEST(RecordFileTest, CompressionNamesAreThoseOfTensorFlow) {
  EXPECT_EQ(*ParseCompression(""), Compression::kNone);
  EXPECT_EQ(*ParseCompression("GZIP"), Compression::kGzip);
  EXPECT_EQ(*ParseCompression("ZLIB"), Compression::kZlib);
  EXPECT_FALSE(ParseCompression("LZ4").ok());
}

TEST(RecordFileTest, ACompressedRecordLargerThanTheMemoryLimitIsRefused) {
  const TemporaryFolder folder;
  const std::string record(64 << 20, '\0');
  auto writer = *RecordWriter::Create(folder / "f", Compression::kGzip);
  ASSERT_TRUE(writer->Write(record).ok());
  ASSERT_TRUE(writer->Close().ok());
  SetCpuMemoryLimit(CpuAllocator().bytes_in_use() + (32 << 20));
  std::string read;
  const auto found = (*RecordReader::Open(folder / "f"))->Read(&read);
  SetCpuMemoryLimit(int64_t{1} << 40);
  EXPECT_EQ(found.status().code(), StatusCode::kResourceExhausted) << found.status();
}

}  // namespace
}  // namespace tenon
