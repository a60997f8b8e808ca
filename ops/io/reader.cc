// SPDX-License-Identifier: Apache-2.0
#include "ops/io/reader.h"

#include <atomic>

#include "core/base/exceptions.h"
#include "ops/io/files_for.h"
#include "proto/reader_state.pb.h"

namespace tenon {
namespace {

using Progress = WaitingOperation::Progress;

/// "TextLineReaderV2" and "TextLineReader" make the same.
std::string WithoutVersion(std::string op) {
  if (op.ends_with("V2")) op.resize(op.size() - 2);
  return op;
}

/// The name of a node whose own reader is called "_3_name".
std::string_view NodeOf(std::string_view name) {
  const size_t digits = name.find_first_not_of("0123456789", 1);
  const bool numbered = name.starts_with('_') && digits != std::string_view::npos && digits > 1 &&
                        name[digits] == '_';
  return numbered ? name.substr(digits + 1) : name;
}

}  // namespace

Reader::Options::Options(KernelConstruction& c) : op(WithoutVersion(c.op())) {
  const AttributeMap& attrs = c.attrs();
  const std::string packed =
      attrs.GetOr<std::string>("compression_type", attrs.GetOr<std::string>("encoding", ""));
  if (const StatusOr<Compression> parsed = ParseCompression(packed); parsed.ok()) {
    compression = *parsed;
  } else {
    c.Fail(parsed.status());
  }
  const auto number = [&](std::string_view name) { return attrs.GetOr<int64_t>(name, 0); };
  skip_header_lines = number("skip_header_lines");
  lengths = {number("header_bytes"), number("record_bytes"), number("footer_bytes"),
             number("hop_bytes")};
  for (const int64_t n :
       {skip_header_lines, lengths.header, lengths.record, lengths.footer, lengths.hop}) {
    if (n < 0) c.Fail(InvalidArgument("lengths must be at least 0, found ", n));
  }
  if (op == "FixedLengthRecordReader" && lengths.record == 0) {
    c.Fail(InvalidArgument("record_bytes must be positive, found 0"));
  }
}

Status Reader::CheckShared(const Options& wanted) const {
  if (options_ == wanted) return OkStatus();
  return InvalidArgument("Shared reader '", name_, "' is a ", options_.op,
                         " of other files than the ", wanted.op, " that was requested");
}

/// A read on its way.
struct Reader::Call {
  Call(std::shared_ptr<Queue> q, int64_t count, KernelContext& c, Kernel::Done d)
      : queue(std::move(q)),
        wanted(std::max<int64_t>(count, 1)),
        single(count < 1),
        ctx(c),
        done(std::move(d)) {}

  std::shared_ptr<Queue> queue;
  int64_t wanted;
  bool single;
  KernelContext& ctx;
  Kernel::Done done;
  int resets = 0;  // when its turn began
  std::vector<std::string> keys, values;
  Queue::Element name;
  Status name_status;
};

class Reader::TurnOperation final : public WaitingOperation {
 public:
  explicit TurnOperation(Reader& reader) : reader_(reader) {}
  std::string_view name() const override { return "Read"; }

  // Under the reader's lock, which the analysis cannot see.
  StatusOr<Progress> Attempt() override ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (reader_.busy_) return Progress::kNone;
    reader_.busy_ = true;
    return Progress::kDone;
  }

 private:
  Reader& reader_;
};

void Reader::Read(std::shared_ptr<Queue> queue, int64_t count, KernelContext& ctx,
                  Kernel::Done done) {
  if (queue->types() != DTypeVector{DType::kString}) {
    return done(InvalidArgument("the queue has components of ", Join(queue->types(), ", "),
                                ", wanted names of files, string"));
  }
  auto call = std::make_shared<Call>(std::move(queue), count, ctx, std::move(done));
  const auto self = std::static_pointer_cast<Reader>(shared_from_this());
  Start(0, std::make_unique<TurnOperation>(*this), ctx, [self, call](const Status& status) {
    if (!status.ok()) return call->done(status);
    {
      MutexLock lock(self->mu_);
      call->resets = self->resets_;
    }
    self->Serve(call);
  });
}

void Reader::Serve(std::shared_ptr<Call> call) {
  while (true) {
    const Status status = CatchExceptions([&] { return ReadRecords(*call); });
    if (!status.ok() || !call->keys.empty()) return EndTurn(*call, status);
    // Whoever comes second goes on: this thread, when the name was there at once, so that many
    // files without records need no deep stack.
    const auto met = std::make_shared<std::atomic<bool>>(false);
    const auto self = std::static_pointer_cast<Reader>(shared_from_this());
    call->queue->Dequeue(&call->name, call->ctx, [self, call, met](const Status& s) {
      call->name_status = s;
      if (!met->exchange(true)) return;
      const Status opened = CatchExceptions([&] { return self->OpenNext(*call); });
      if (!opened.ok()) return self->EndTurn(*call, opened);
      self->Serve(call);
    });
    if (!met->exchange(true)) return;
    const Status opened = CatchExceptions([&] { return OpenNext(*call); });
    if (!opened.ok()) return EndTurn(*call, opened);
  }
}

Status Reader::OpenNext(Call& call) {
  TENON_RETURN_IF_ERROR(call.name_status);
  if (call.name[0].num_elements() != 1) {
    return InvalidArgument("an element of the queue has shape ", call.name[0].shape(),
                           ", wanted the name of a file, a scalar");
  }
  const std::string file(call.name[0].scalar<TString>());
  TENON_ASSIGN_OR_RETURN(source_, Open(file, call.ctx));
  MutexLock lock(mu_);
  file_ = file;
  return OkStatus();
}

StatusOr<std::unique_ptr<RecordSource>> Reader::Open(const std::string& file,
                                                     const KernelContext& ctx) const {
  if (options_.op == "IdentityReader") return MakeOneRecordSource(file, file);
  TENON_ASSIGN_OR_RETURN(const FileContext files, FilesFor(ctx));
  TENON_ASSIGN_OR_RETURN(std::unique_ptr<InputFile> input, OpenInput(file, files));
  std::unique_ptr<ByteSource> bytes = MakeSource(std::move(input), options_.compression);
  if (options_.op == "TextLineReader") {
    return MakeLineSource(file, std::move(bytes), options_.skip_header_lines);
  }
  if (options_.op == "TFRecordReader") {
    return MakeTFRecordSource(file, std::move(bytes));
  }
  TENON_ASSIGN_OR_RETURN(std::string content, ReadToEnd(*bytes));
  if (options_.op == "WholeFileReader") {
    return MakeOneRecordSource(file, std::move(content));
  }
  return MakeFixedLengthSource(file, std::move(content), options_.lengths);
}

Status Reader::ReadRecords(Call& call) {
  std::string key, value;
  while (source_ != nullptr && static_cast<int64_t>(call.keys.size()) < call.wanted) {
    const StatusOr<bool> found = source_->Next(&key, &value);
    if (found.ok() && *found) {
      call.keys.push_back(std::move(key));
      call.values.push_back(std::move(value));
      continue;
    }
    // What is damaged is not read on; the next call takes another file.
    source_ = nullptr;
    MutexLock lock(mu_);
    ++num_files_;
    TENON_RETURN_IF_ERROR(found.status());
  }
  return OkStatus();
}

void Reader::EndTurn(Call& call, Status status) {
  if (status.ok()) {
    call.ctx.set_output(0, call.single ? Tensor::Scalar(call.keys[0]) : Tensor::Vector(call.keys));
    call.ctx.set_output(1,
                        call.single ? Tensor::Scalar(call.values[0]) : Tensor::Vector(call.values));
  }
  (void)Apply([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (resets_ != call.resets) source_ = nullptr;
    num_records_ += status.ok() ? static_cast<int64_t>(call.keys.size()) : 0;
    busy_ = false;
    return OkStatus();
  });
  call.done(std::move(status));
}

void Reader::Reset() {
  MutexLock lock(mu_);
  num_records_ = num_files_ = 0;
  ++resets_;
  if (!busy_) source_ = nullptr;  // who reads closes it at the end
}

Status Reader::CheckHasState() const {
  if (options_.op == "WholeFileReader" || options_.op == "IdentityReader") return OkStatus();
  return Unimplemented("a ", options_.op, " has no state that can be stored");
}

StatusOr<std::string> Reader::Serialize() const {
  TENON_RETURN_IF_ERROR(CheckHasState());
  MutexLock lock(mu_);
  ReaderBaseState state;
  // A file ends with its only record.
  state.set_work_started(num_records_);
  state.set_work_finished(num_records_);
  state.set_num_records_produced(num_records_);
  state.set_current_work(file_);
  return state.SerializeAsString();
}

Status Reader::Restore(std::string_view text) {
  TENON_RETURN_IF_ERROR(CheckHasState());
  ReaderBaseState state;
  Reset();
  if (!state.ParseFromArray(text.data(), static_cast<int>(text.size())) ||
      state.work_finished() < 0 || state.work_started() < state.work_finished() ||
      state.num_records_produced() < 0) {
    return InvalidArgument("Could not parse state for ", options_.op, " '", NodeOf(name_),
                           "': ", state.ShortDebugString());
  }
  MutexLock lock(mu_);
  num_records_ = state.num_records_produced();
  num_files_ = state.work_finished();
  file_ = state.current_work();
  return OkStatus();
}

int64_t Reader::num_records() const {
  MutexLock lock(mu_);
  return num_records_;
}

int64_t Reader::num_files() const {
  MutexLock lock(mu_);
  return num_files_;
}

}  // namespace tenon
