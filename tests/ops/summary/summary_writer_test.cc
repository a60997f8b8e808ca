// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>

#include "data/records/event_file.h"
#include "ops/array/constants.h"
#include "ops/summary/summary_ops.h"
#include "proto/event.pb.h"
#include "proto/graph.pb.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::EndsWith;
using ::testing::SizeIs;

/// A graph with a writer, whose file is in a folder of its own.
class SummaryWriterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = (std::filesystem::temp_directory_path() / "tenon_summaries_XXXXXX").string();
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    writer_ = SummaryWriter({.shared_name = "the writer"});
    open_ = CreateSummaryFileWriter(writer_, Const(folder_ + "/logs"), 10, 1000, Const(".end"));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Status Run(const Output& target) { return s_.Run({}, {target}).status(); }
  std::vector<std::string> Files() const {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ + "/logs")) {
      files.push_back(entry.path().string());
    }
    return files;
  }
  /// The events of the only file behind the one that names its version.
  std::vector<Event> Events() const {
    std::vector<Event> events;
    const std::vector<std::string> files = Files();
    EXPECT_THAT(files, SizeIs(1));
    const auto reader = EventReader::Open(files.at(0));
    EXPECT_OK(reader);
    Event event;
    while (*(*reader)->Read(&event)) events.push_back(event);
    events.erase(events.begin());
    return events;
  }

  std::string folder_;
  GraphSession s_;
  const Output step_ = Const(Tensor::Scalar<int64_t>(7));
  Output writer_, open_;
};

TEST_F(SummaryWriterTest, EveryKindOfSummaryIsInTheFileAtOnce) {
  const std::vector<Output> writes = {
      WriteScalarSummary(writer_, step_, Const("loss"), Const(0.5f)),
      WriteHistogramSummary(writer_, step_, Const("weights"), Const({1.0f, 2.0f, 2.0f})),
      WriteImageSummary(writer_, step_, Const("image"), Const(Tensor(DType::kUInt8, {2, 3, 4, 1})),
                        Const(Tensor::Vector<uint8_t>({0})), {.max_images = 1}),
      WriteAudioSummary(writer_, step_, Const("sound"), Const(Tensor::Zeros(DType::kFloat, {2, 5})),
                        8000.0f),
      WriteSummary(writer_, step_, Const({3, 4}), Const("numbers"),
                   Const(std::string("\x0a\x03\x0a\x01p"))),
      WriteSummary(writer_, step_, Const({3, 4}), Const("plain"), Const(""))};
  ASSERT_OK(Run(open_));
  for (const Output& write : writes) ASSERT_OK(Run(write));
  const std::vector<Event> events = Events();
  ASSERT_THAT(events, SizeIs(writes.size()));
  for (const Event& event : events) {
    EXPECT_EQ(event.step(), 7);
    EXPECT_GT(event.wall_time(), 1.6e9);
  }
  const auto value = [&](int i) { return events[i].summary().value(0); };
  EXPECT_EQ(value(0).tag(), "loss");
  EXPECT_EQ(value(0).simple_value(), 0.5f);
  EXPECT_EQ(value(1).histo().num(), 3);
  EXPECT_EQ(value(1).histo().sum(), 5);
  EXPECT_EQ(value(2).tag(), "image/image");
  EXPECT_EQ(value(2).image().width(), 4);
  EXPECT_THAT(events[3].summary().value(), SizeIs(2));
  EXPECT_EQ(value(3).tag(), "sound/audio/0");
  EXPECT_EQ(value(3).audio().length_frames(), 5);
  EXPECT_EQ(value(4).tag(), "numbers");
  EXPECT_EQ(value(4).tensor().tensor_content().size(), 8u);
  EXPECT_EQ(value(4).metadata().plugin_data().plugin_name(), "p");
  EXPECT_FALSE(value(5).has_metadata());
}

TEST_F(SummaryWriterTest, MessagesAreWrittenAsTheyCome) {
  Summary one, two;
  one.add_value()->set_tag("one");
  two.add_value()->set_tag("two");
  GraphDef graph;
  graph.add_node()->set_name("n");
  Event event;
  event.set_step(99);
  event.set_wall_time(12);
  const Output raw = WriteRawProtoSummary(
      writer_, step_,
      Const(Tensor::Vector<std::string>({one.SerializeAsString(), two.SerializeAsString()})));
  const Output drawn = WriteGraphSummary(writer_, step_, Const(graph.SerializeAsString()));
  const Output imported = ImportEvent(writer_, Const(event.SerializeAsString()));
  const Output wrong_raw =
      WriteRawProtoSummary(writer_, step_, Const(Tensor::Vector<std::string>({"", "\xff"})));
  const Output wrong_graph = WriteGraphSummary(writer_, step_, Const("\xff"));
  const Output wrong_event = ImportEvent(writer_, Const("\xff"));
  ASSERT_OK(Run(open_));
  ASSERT_OK(Run(raw));
  ASSERT_OK(Run(drawn));
  ASSERT_OK(Run(imported));
  EXPECT_THAT(Run(wrong_raw), IsError(StatusCode::kDataLoss, "at index 1"));
  EXPECT_THAT(Run(wrong_graph), IsError(StatusCode::kDataLoss, "no GraphDef"));
  EXPECT_THAT(Run(wrong_event), IsError(StatusCode::kDataLoss, "Bad tf.Event"));
  const std::vector<Event> events = Events();
  ASSERT_THAT(events, SizeIs(3));
  EXPECT_THAT(events[0].summary().value(), SizeIs(2));
  EXPECT_EQ(events[1].graph_def(), graph.SerializeAsString());
  EXPECT_EQ(events[2].SerializeAsString(), event.SerializeAsString());
}

TEST_F(SummaryWriterTest, AWriterIsMadeOnceAndEndsWhenItIsClosed) {
  const Output write = WriteScalarSummary(writer_, step_, Const("loss"), Const(0.5f));
  const Output same = WriteScalarSummary(SummaryWriter({.shared_name = "the writer"}), step_,
                                         Const("loss"), Const(1));
  const Output flush = FlushSummaryWriter(writer_), close = CloseSummaryWriter(writer_);
  for (const Output& early : {write, flush, close}) {
    EXPECT_EQ(Run(early).code(), StatusCode::kNotFound);
  }
  ASSERT_OK(Run(open_));
  ASSERT_OK(Run(open_));
  ASSERT_OK(Run(write));
  ASSERT_OK(Run(same));
  ASSERT_OK(Run(flush));
  EXPECT_THAT(Events(), SizeIs(2));
  EXPECT_THAT(Files()[0], EndsWith(".end"));
  ASSERT_OK(Run(close));
  EXPECT_EQ(Run(write).code(), StatusCode::kNotFound);
}

TEST_F(SummaryWriterTest, WhatCannotBeShownIsRefused) {
  const Output nan = WriteHistogramSummary(writer_, step_, Const("weights"), Const({NAN}));
  const Output vector = WriteScalarSummary(writer_, step_, Const("loss"), Const({0.5f}));
  const Output metadata = WriteSummary(writer_, step_, Const(1), Const("t"), Const("\xff"));
  ASSERT_OK(Run(open_));
  EXPECT_THAT(Run(nan), IsError(StatusCode::kInvalidArgument, "Nan in summary histogram"));
  EXPECT_EQ(Run(vector).code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(Run(metadata), IsError(StatusCode::kInvalidArgument, "no SummaryMetadata"));
  EXPECT_THAT(Events(), SizeIs(0));
}

}  // namespace
}  // namespace tenon::testing
