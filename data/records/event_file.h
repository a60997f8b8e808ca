// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/mutex.h"
#include "core/base/status.h"
#include "data/records/record_file.h"

// Event files, which TensorBoard reads: a record file of Event messages (proto/event.proto), the
// first of which names the version of the format.

namespace tenon {

class Event;
class Graph;

struct EventWriterOptions {
  /// Added to the file's name.
  std::string suffix = {};
  /// The machine's name in the file's name; asked of the system when empty.
  std::string host = {};
  /// Seconds since 1970; the system's clock when empty.
  std::function<double()> clock = {};
  /// Where the file is made; not owned.
  FileSystem* files = &AllFiles();
};

/// Writes one event file, <folder>/events.out.tfevents.<seconds>.<host>.<process>.<number><suffix>,
/// which no other writer has or had. Each event is visible to readers when the call that wrote it
/// returns. Thread-safe.
class EventWriter {
 public:
  /// Makes the folder and the file, with its first record; no file when that cannot be written.
  static StatusOr<std::unique_ptr<EventWriter>> Create(const std::string& folder,
                                                       EventWriterOptions options = {});
  /// The same with the graph in it (tf.summary.FileWriter).
  static StatusOr<std::unique_ptr<EventWriter>> Create(const std::string& folder,
                                                       const Graph& graph,
                                                       EventWriterOptions options = {});

  const std::string& path() const { return path_; }

  /// Writes an event; the present time when it has none.
  Status Add(Event event);
  /// A graph, for TensorBoard to draw.
  Status AddGraph(const Graph& graph, int64_t step = 0);
  /// A serialised GraphDef.
  Status AddGraph(std::string_view graph_def, int64_t step = 0);
  /// A serialised Summary, as summary ops make it. InvalidArgument when it is none.
  Status AddSummary(std::string_view summary, int64_t step);
  /// A Summary of one number.
  Status AddScalar(std::string_view tag, float value, int64_t step);
  enum class SessionChange { kStart = 1, kStop = 2, kCheckpoint = 3 };
  Status AddSessionLog(SessionChange change, int64_t step, std::string_view checkpoint_path = "");
  /// A serialised RunMetadata under a tag, such as "step_100".
  Status AddRunMetadata(std::string_view tag, std::string_view run_metadata, int64_t step);

  Status Close();

 private:
  EventWriter(std::string path, std::function<double()> clock, std::unique_ptr<RecordWriter> writer)
      : path_(std::move(path)), clock_(std::move(clock)), writer_(std::move(writer)) {}

  const std::string path_;
  const std::function<double()> clock_;
  Mutex mu_;
  const std::unique_ptr<RecordWriter> writer_ ABSL_PT_GUARDED_BY(mu_);
};

/// Reads an event file from front to back. Used by one thread at a time.
class EventReader {
 public:
  /// InvalidArgument for a file whose first record is not that of an event file of version 2.
  static StatusOr<std::unique_ptr<EventReader>> Open(const std::string& path,
                                                     const FileContext& context = {});
  /// The next event, the first one included; false at the end. DataLoss when the file is damaged.
  StatusOr<bool> Read(Event* event);

 private:
  EventReader(std::string path, std::unique_ptr<RecordReader> records)
      : path_(std::move(path)), records_(std::move(records)) {}

  const std::string path_;
  const std::unique_ptr<RecordReader> records_;
  std::string record_;
};

/// The version that the first record of an event file names.
inline constexpr std::string_view kEventFileVersion = "brain.Event:2";

}  // namespace tenon
