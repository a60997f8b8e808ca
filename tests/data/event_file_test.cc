// SPDX-License-Identifier: Apache-2.0
#include "data/records/event_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "proto/event.pb.h"
#include "proto/graph.pb.h"
#include "tests/data/sample_files.h"

namespace tenon {
namespace {

using ::testing::HasSubstr;

constexpr char kSample[] = "events/events.out.tfevents.1700000000.host.sample";

std::vector<Event> ReadEvents(const std::string& path) {
  auto reader = EventReader::Open(path);
  EXPECT_TRUE(reader.ok()) << reader.status();
  std::vector<Event> events;
  if (!reader.ok()) return events;
  Event event;
  while (true) {
    const auto found = (*reader)->Read(&event);
    EXPECT_TRUE(found.ok()) << found.status();
    if (!found.ok() || !*found) return events;
    events.push_back(event);
  }
}

TEST(EventFileTest, ReadsWhatTensorFlowWrote) {
  const std::vector<Event> events = ReadEvents(SamplePath(kSample));
  ASSERT_EQ(events.size(), 7u);
  EXPECT_EQ(events[0].file_version(), "brain.Event:2");
  GraphDef graph;
  ASSERT_TRUE(graph.ParseFromString(events[1].graph_def()));
  EXPECT_EQ(graph.node(0).name(), "one");
  EXPECT_EQ(events[2].session_log().status(), SessionLog::START);
  for (int step = 0; step < 3; ++step) {
    const Event& event = events[3 + step];
    EXPECT_EQ(event.step(), step);
    EXPECT_EQ(event.summary().value(0).tag(), "loss");
    EXPECT_FLOAT_EQ(event.summary().value(0).simple_value(), 1.0f / static_cast<float>(step + 1));
  }
  EXPECT_EQ(events[6].tagged_run_metadata().tag(), "step_2");
}

TEST(EventFileTest, WritesTheBytesThatTensorFlowWrites) {
  const std::vector<Event> events = ReadEvents(SamplePath(kSample));
  ASSERT_EQ(events.size(), 7u);
  const TemporaryFolder folder;
  size_t next = 0;
  EventWriterOptions options;
  options.host = "host";
  options.suffix = ".sample";
  options.clock = [&] { return events[next++].wall_time(); };
  auto writer = EventWriter::Create(folder / "logs", options);
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE((*writer)->AddGraph(events[1].graph_def()).ok());
  ASSERT_TRUE((*writer)->AddSessionLog(EventWriter::SessionChange::kStart, 0).ok());
  ASSERT_TRUE((*writer)->AddScalar("loss", 1, 0).ok());
  ASSERT_TRUE((*writer)->AddSummary(events[4].summary().SerializeAsString(), 1).ok());
  ASSERT_TRUE((*writer)->AddScalar("loss", 1.0f / 3, 2).ok());
  ASSERT_TRUE((*writer)->AddRunMetadata("step_2", "", 2).ok());
  ASSERT_TRUE((*writer)->Close().ok());
  EXPECT_EQ(ContentOf((*writer)->path()), ContentOf(SamplePath(kSample)));
  EXPECT_THAT((*writer)->path(), HasSubstr("/logs/events.out.tfevents."));
  EXPECT_TRUE((*writer)->path().ends_with(".sample"));
  EXPECT_THAT((*writer)->path(), HasSubstr(StrCat(".host.", getpid(), ".")));
}

TEST(EventFileTest, WritersOfOneSecondHaveFilesOfTheirOwn) {
  const TemporaryFolder folder;
  EventWriterOptions options;
  options.clock = [] { return 1.7e9; };
  const auto first = *EventWriter::Create(folder.path(), options);
  ASSERT_TRUE(first->AddScalar("x", 1, 0).ok());
  const auto second = *EventWriter::Create(folder.path(), options);
  EXPECT_NE(first->path(), second->path());
  EXPECT_EQ(ReadEvents(first->path()).size(), 2u);
}

TEST(EventFileTest, AFileOfTheNameIsNotReplaced) {
  // What another machine of the same name and a process of the same number may have left there.
  const TemporaryFolder folder;
  EventWriterOptions options;
  options.host = "host";
  options.clock = [] { return 1.7e9; };
  const std::string before = (*EventWriter::Create(folder.path(), options))->path();
  const size_t dot = before.rfind('.');
  const int number = std::stoi(before.substr(dot + 1));
  const std::string taken = StrCat(before.substr(0, dot + 1), number + 1);
  ASSERT_TRUE(WriteStringToFile(taken, "another's").ok());
  const auto writer = *EventWriter::Create(folder.path(), options);
  EXPECT_NE(writer->path(), taken);
  EXPECT_EQ(ContentOf(taken), "another's");
}

TEST(EventFileTest, AnEventIsVisibleOnceWritten) {
  const TemporaryFolder folder;
  auto writer = *EventWriter::Create(folder.path());
  EXPECT_EQ(ReadEvents(writer->path()).size(), 1u);
  ASSERT_TRUE(writer->AddScalar("x", 2, 10).ok());
  const std::vector<Event> events = ReadEvents(writer->path());
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1].step(), 10);
  EXPECT_GT(events[1].wall_time(), 1e9);
}

TEST(EventFileTest, ThreadsMayWriteAtOnce) {
  const TemporaryFolder folder;
  auto writer = *EventWriter::Create(folder.path());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) EXPECT_TRUE(writer->AddScalar("x", 1, t * 100 + i).ok());
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(ReadEvents(writer->path()).size(), 401u);
}

TEST(EventFileTest, BytesThatAreNoSummaryAreRefused) {
  const TemporaryFolder folder;
  auto writer = *EventWriter::Create(folder.path());
  EXPECT_EQ(writer->AddSummary("\xff\xff", 0).code(), StatusCode::kInvalidArgument);
}

TEST(EventFileTest, AnotherFileIsRefused) {
  const Status status = EventReader::Open(SamplePath("records/records.tfrecord")).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("is not an event file"));
  EXPECT_EQ(EventReader::Open("/nonexistent").status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace tenon
