// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>

#include "data/records/record_file.h"
#include "ops/array/array_ops.h"
#include "ops/io/io_ops.h"
#include "ops/queues/queues_ops.h"
#include "ops/register.h"
#include "runtime/session/local_session.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

/// A queue of names of files, and a reader of them.
class ReaderOpsTest : public ::testing::Test {
 protected:
  /// Tests may run at once: each has a folder of its own.
  ReaderOpsTest()
      : building_(graph_),
        folder_(StrCat(::testing::TempDir(), "reader_ops_test_", getpid(), "/")) {
    std::filesystem::create_directories(folder_);
  }
  ~ReaderOpsTest() override { std::filesystem::remove_all(folder_); }

  /// Builds the operations on `reader`, after which nothing may be built.
  void Use(const Output& reader) {
    const Output queue = FIFOQueueV2({DType::kString}, {.shapes = {Shape{}}});
    enqueue_ = QueueEnqueueV2(queue, {name_});
    close_ = QueueCloseV2(queue);
    read_ = ReaderReadV2(reader, queue);
    read_up_to_ = ReaderReadUpToV2(reader, queue, count_);
    records_ = ReaderNumRecordsProducedV2(reader);
    files_ = ReaderNumWorkUnitsCompletedV2(reader);
    reset_ = ReaderResetV2(reader);
    auto session = MakeLocalSession(graph_);
    ASSERT_OK(session);
    session_ = *std::move(session);
  }
  std::string File(const std::string& name, const std::string& content) {
    std::ofstream(folder_ + name, std::ios::binary) << content;
    return folder_ + name;
  }
  void Enqueue(const std::string& file) {
    ASSERT_OK(session_->Run({{name_, Tensor::Scalar(file)}}, {}, {enqueue_}));
  }
  /// "key=value", without the folder.
  StatusOr<std::string> Read(std::chrono::milliseconds timeout = 0ms) {
    TENON_ASSIGN_OR_RETURN(const auto found,
                           session_->Run({}, {read_.key, read_.value}, {}, {.timeout = timeout}));
    const std::string key(found[0].scalar<TString>());
    return StrCat(key.substr(folder_.size()), "=", found[1].scalar<TString>());
  }
  StatusOr<std::vector<std::string>> ReadUpTo(int64_t n) {
    TENON_ASSIGN_OR_RETURN(const auto found, session_->Run({{count_, n}}, {read_up_to_.values}));
    const auto values = found[0].flat<TString>();
    return std::vector<std::string>(values.begin(), values.end());
  }
  int64_t Count(const Output& what) { return (*session_->Run({}, {what}))[0].scalar<int64_t>(); }

  Graph graph_{AllOps()};
  GraphBuilding building_;
  const std::string folder_;
  Output name_ = Placeholder(DType::kString), count_ = Placeholder(DType::kInt64);
  Node *enqueue_ = nullptr, *close_ = nullptr, *reset_ = nullptr;
  ReaderReadV2Outputs read_;
  ReaderReadUpToV2Outputs read_up_to_;
  Output records_, files_;
  std::unique_ptr<Session> session_;
};

TEST_F(ReaderOpsTest, LinesOfOneFileAfterTheOther) {
  Use(TextLineReaderV2({.skip_header_lines = 1}));
  Enqueue(File("a", "head\none\r\ntwo"));
  Enqueue(File("empty", ""));
  Enqueue(File("b", "head\n\n" + std::string(100000, 'x') + "\n"));
  EXPECT_EQ(*Read(), "a:2=one");
  EXPECT_EQ(*Read(), "a:3=two");
  EXPECT_EQ(*Read(), "b:2=");
  EXPECT_EQ(Read()->size(), 100000 + 4);
  EXPECT_EQ(Count(records_), 4);
  EXPECT_EQ(Count(files_), 2);
  auto waiting = std::async(std::launch::async, [&] { return Read(); });
  EXPECT_EQ(waiting.wait_for(30ms), std::future_status::timeout);
  Enqueue(folder_ + "a");
  EXPECT_EQ(*waiting.get(), "a:2=one");
  ASSERT_OK(session_->Run({}, {}, {reset_}));
  EXPECT_EQ(Count(records_), 0);
  ASSERT_OK(session_->Run({}, {}, {close_}));
  EXPECT_THAT(Read(), IsError(StatusCode::kOutOfRange, "is closed and has insufficient elements"));
}

TEST_F(ReaderOpsTest, SeveralRecordsAtOnceEndWithTheFile) {
  Use(TextLineReaderV2());
  Enqueue(File("a", "1\n2\n3\n"));
  Enqueue(File("b", "4\n"));
  EXPECT_THAT(*ReadUpTo(2), ElementsAre("1", "2"));
  EXPECT_THAT(*ReadUpTo(2), ElementsAre("3"));
  EXPECT_THAT(*ReadUpTo(5), ElementsAre("4"));
  EXPECT_THAT(ReadUpTo(0), IsError(StatusCode::kInvalidArgument, "must be positive"));
}

TEST_F(ReaderOpsTest, AReadThatGivesUpLeavesTheTurnToOthers) {
  Use(IdentityReaderV2());
  EXPECT_THAT(Read(30ms), IsError(StatusCode::kDeadlineExceeded, ""));
  auto first = std::async(std::launch::async, [&] { return Read(); });
  EXPECT_EQ(first.wait_for(30ms), std::future_status::timeout);
  // Behind the first one, in the reader's line.
  EXPECT_THAT(Read(30ms), IsError(StatusCode::kDeadlineExceeded, ""));
  Enqueue(folder_ + "x");
  EXPECT_EQ(*first.get(), "x=" + folder_ + "x");
}

TEST_F(ReaderOpsTest, RecordsAndWholeFiles) {
  const std::string path = folder_ + "records";
  const auto writer = RecordWriter::Create(path, Compression::kGzip);
  ASSERT_OK(writer);
  ASSERT_OK((*writer)->Write("first"));
  ASSERT_OK((*writer)->Write(""));
  ASSERT_OK((*writer)->Close());
  Use(TFRecordReaderV2({.compression_type = "GZIP"}));
  Enqueue(path);
  EXPECT_EQ(*Read(), "records:0=first");
  EXPECT_EQ(*Read(), "records:21=");
  Enqueue(File("damaged", "no record"));
  EXPECT_THAT(Read(), IsError(StatusCode::kDataLoss, ""));
}

TEST_F(ReaderOpsTest, WholeFiles) {
  Use(WholeFileReaderV2());
  Enqueue(File("a", "all\nof it"));
  EXPECT_EQ(*Read(), "a=all\nof it");
  Enqueue(folder_ + "missing");
  EXPECT_THAT(Read(), IsError(StatusCode::kNotFound, "missing"));
}

TEST_F(ReaderOpsTest, AReaderOfWholeFilesGoesOnFromAState) {
  const Output reader = WholeFileReaderV2(), state = Placeholder(DType::kString);
  const Output serialized = ReaderSerializeStateV2(reader);
  Node* const restore = ReaderRestoreStateV2(reader, state);
  Use(reader);
  Enqueue(File("a", "of a"));
  Enqueue(File("b", "of b"));
  EXPECT_EQ(*Read(), "a=of a");
  const Tensor after_one = (*session_->Run({}, {serialized}))[0];
  EXPECT_EQ(*Read(), "b=of b");
  EXPECT_EQ(Count(records_), 2);
  ASSERT_OK(session_->Run({{state, after_one}}, {}, {restore}));
  EXPECT_EQ(Count(records_), 1);
  EXPECT_TRUE((*session_->Run({}, {serialized}))[0].Equals(after_one));
  EXPECT_THAT(session_->Run({{state, Tensor::Scalar("\x08\x01\x10\x02")}}, {}, {restore}),
              IsError(StatusCode::kInvalidArgument, "WholeFileReader"));
  EXPECT_EQ(Count(records_), 0);
}

TEST_F(ReaderOpsTest, OtherReadersHaveNoState) {
  const Output reader = TFRecordReaderV2(), serialized = ReaderSerializeStateV2(reader);
  Use(reader);
  EXPECT_THAT(session_->Run({}, {serialized}), IsError(StatusCode::kUnimplemented, "TFRecord"));
}

TEST_F(ReaderOpsTest, FixedLengthRecords) {
  Use(FixedLengthRecordReaderV2(4, {.header_bytes = 2, .footer_bytes = 1, .hop_bytes = 3}));
  Enqueue(File("a", "hhABCDEFGHIf"));
  EXPECT_EQ(*Read(), "a:0=ABCD");
  EXPECT_EQ(*Read(), "a:1=DEFG");
  Enqueue(File("b", "hh"));
  Enqueue(File("c", "hhWXYZf"));
  EXPECT_EQ(*Read(), "c:0=WXYZ");
}

TEST_F(ReaderOpsTest, ManyEmptyFilesNeedNoDeepStack) {
  Use(TextLineReaderV2());
  const std::string empty = File("empty", ""), last = File("last", "x");
  for (int i = 0; i < 3000; ++i) Enqueue(empty);
  Enqueue(last);
  EXPECT_EQ(*Read(), "last:1=x");
}

}  // namespace
}  // namespace tenon::testing
