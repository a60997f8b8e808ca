// SPDX-License-Identifier: Apache-2.0
#include "data/records/event_file.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <climits>

#include "core/proto/proto_io_graph.h"
#include "proto/event.pb.h"

namespace tenon {
namespace {

/// What TensorFlow's own writers call themselves; readers that look at it know only this.
constexpr char kSourceWriter[] = "tensorflow.core.util.events_writer";

double SystemSeconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string HostName() {
  char name[256] = "localhost";
  gethostname(name, sizeof(name) - 1);
  return name;
}

Event AtStep(int64_t step) {
  Event event;
  event.set_step(step);
  return event;
}

}  // namespace

StatusOr<std::unique_ptr<EventWriter>> EventWriter::Create(const std::string& folder,
                                                           EventWriterOptions options) {
  if (!options.clock) options.clock = SystemSeconds;
  if (options.host.empty()) options.host = HostName();
  const FileContext files{.files = options.files};
  TENON_RETURN_IF_ERROR(MakeFolders(folder, files));
  const double now = options.clock();
  static std::atomic<int> writers{0};
  std::string path;
  StatusOr<std::unique_ptr<OutputFile>> made = AlreadyExists("");
  // Another process of this number may have written from another machine of this name.
  while (made.status().code() == StatusCode::kAlreadyExists) {
    const auto seconds = absl::Dec(static_cast<int64_t>(now), absl::kZeroPad10);
    path = JoinPath(folder, StrCat("events.out.tfevents.", seconds, ".", options.host, ".",
                                   getpid(), ".", writers++, options.suffix));
    made = OpenOutput(path, WriteMode::kNew, files);
  }
  TENON_ASSIGN_OR_RETURN(auto file, std::move(made));
  auto records = std::make_unique<RecordWriter>(std::move(file));
  std::unique_ptr<EventWriter> writer(
      new EventWriter(path, std::move(options.clock), std::move(records)));
  Event first;
  first.set_wall_time(now);
  first.set_file_version(std::string(kEventFileVersion));
  first.mutable_source_metadata()->set_writer(kSourceWriter);
  if (Status s = writer->Add(std::move(first)); !s.ok()) {
    writer = nullptr;
    RemoveFile(path, files).IgnoreError();
    return s;
  }
  return writer;
}

StatusOr<std::unique_ptr<EventWriter>> EventWriter::Create(const std::string& folder,
                                                           const Graph& graph,
                                                           EventWriterOptions options) {
  TENON_ASSIGN_OR_RETURN(auto writer, Create(folder, std::move(options)));
  TENON_RETURN_IF_ERROR(writer->AddGraph(graph));
  return writer;
}

Status EventWriter::Add(Event event) {
  if (event.wall_time() == 0) event.set_wall_time(clock_());
  const std::string record = event.SerializeAsString();
  MutexLock lock(mu_);
  TENON_RETURN_IF_ERROR(writer_->Write(record));
  return writer_->Flush();
}

Status EventWriter::AddGraph(const Graph& graph, int64_t step) {
  GraphDef proto;
  TENON_RETURN_IF_ERROR(GraphToProto(graph, &proto));
  return AddGraph(proto.SerializeAsString(), step);
}

Status EventWriter::AddGraph(std::string_view graph_def, int64_t step) {
  Event event = AtStep(step);
  event.set_graph_def(std::string(graph_def));
  return Add(std::move(event));
}

Status EventWriter::AddSummary(std::string_view summary, int64_t step) {
  Event event = AtStep(step);
  if (summary.size() > INT_MAX ||
      !event.mutable_summary()->ParseFromArray(summary.data(), static_cast<int>(summary.size()))) {
    return InvalidArgument("found ", summary.size(), " bytes that are no Summary");
  }
  return Add(std::move(event));
}

Status EventWriter::AddScalar(std::string_view tag, float value, int64_t step) {
  Event event = AtStep(step);
  Summary::Value* entry = event.mutable_summary()->add_value();
  entry->set_tag(std::string(tag));
  entry->set_simple_value(value);
  return Add(std::move(event));
}

Status EventWriter::AddSessionLog(SessionChange change, int64_t step,
                                  std::string_view checkpoint_path) {
  Event event = AtStep(step);
  event.mutable_session_log()->set_status(static_cast<SessionLog::SessionStatus>(change));
  event.mutable_session_log()->set_checkpoint_path(std::string(checkpoint_path));
  return Add(std::move(event));
}

Status EventWriter::AddRunMetadata(std::string_view tag, std::string_view run_metadata,
                                   int64_t step) {
  Event event = AtStep(step);
  event.mutable_tagged_run_metadata()->set_tag(std::string(tag));
  event.mutable_tagged_run_metadata()->set_run_metadata(std::string(run_metadata));
  return Add(std::move(event));
}

Status EventWriter::Close() {
  MutexLock lock(mu_);
  return writer_->Close();
}

StatusOr<std::unique_ptr<EventReader>> EventReader::Open(const std::string& path,
                                                         const FileContext& context) {
  Event first;
  TENON_ASSIGN_OR_RETURN(auto probe, RecordReader::Open(path, Compression::kNone, context));
  EventReader reader(path, std::move(probe));
  StatusOr<bool> found = reader.Read(&first);
  if (!found.ok() || !*found || first.file_version() != kEventFileVersion) {
    return InvalidArgument("'", path, "' is not an event file of version ", kEventFileVersion,
                           found.ok() ? "" : ": ", found.ok() ? "" : Message(found.status()));
  }
  TENON_ASSIGN_OR_RETURN(auto records, RecordReader::Open(path, Compression::kNone, context));
  return std::unique_ptr<EventReader>(new EventReader(path, std::move(records)));
}

StatusOr<bool> EventReader::Read(Event* event) {
  const int64_t at = records_->offset();
  TENON_ASSIGN_OR_RETURN(const bool found, records_->Read(&record_));
  if (!found) return false;
  if (!event->ParseFromString(record_)) {
    return DataLoss("'", path_, "': the record at byte ", at, " is no Event");
  }
  return true;
}

}  // namespace tenon
