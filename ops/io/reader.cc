// SPDX-License-Identifier: Apache-2.0
#include "ops/io/reader.h"

#include <atomic>

#include "core/exceptions.h"
#include "data/file.h"
#include "data/record_file.h"

namespace tenon {
namespace {

using Progress = WaitingOperation::Progress;

/// "TextLineReaderV2" and "TextLineReader" make the same.
std::string WithoutVersion(std::string op) {
  if (op.ends_with("V2")) op.resize(op.size() - 2);
  return op;
}

class LineSource final : public RecordSource {
 public:
  LineSource(std::string file, std::unique_ptr<ByteSource> bytes, int64_t skip)
      : file_(std::move(file)), bytes_(std::move(bytes)), skip_(skip) {}

  StatusOr<bool> Next(std::string* key, std::string* value) override {
    do {
      TENON_ASSIGN_OR_RETURN(const bool found, ReadLine(value));
      if (!found) return false;
    } while (++line_ <= skip_);
    *key = StrCat(file_, ":", line_);
    return true;
  }

 private:
  StatusOr<bool> ReadLine(std::string* line) {
    line->clear();
    while (true) {
      const std::string_view rest = std::string_view(buffer_).substr(at_);
      const size_t end = rest.find('\n');
      line->append(rest.substr(0, end));
      if (end != std::string_view::npos) {
        at_ += end + 1;
        break;
      }
      buffer_.resize(kBuffer);
      TENON_ASSIGN_OR_RETURN(const size_t n, bytes_->Read(kBuffer, buffer_.data()));
      buffer_.resize(n);
      at_ = 0;
      if (n == 0) return !line->empty();
    }
    if (line->ends_with('\r')) line->pop_back();
    return true;
  }

  static constexpr size_t kBuffer = 1 << 16;
  const std::string file_;
  const std::unique_ptr<ByteSource> bytes_;
  const int64_t skip_;
  int64_t line_ = 0;
  std::string buffer_;
  size_t at_ = 0;
};

class TFRecordSource final : public RecordSource {
 public:
  TFRecordSource(std::string file, std::unique_ptr<ByteSource> bytes)
      : file_(file), reader_(std::move(bytes), std::move(file)) {}

  StatusOr<bool> Next(std::string* key, std::string* value) override {
    *key = StrCat(file_, ":", reader_.offset());
    return reader_.Read(value);
  }

 private:
  const std::string file_;
  RecordReader reader_;
};

/// Of what is in memory: that the footer begins is only known at the end of a compressed file.
class FixedLengthSource final : public RecordSource {
 public:
  FixedLengthSource(std::string file, std::string content, const Reader::Options& options)
      : file_(std::move(file)),
        content_(std::move(content)),
        record_(options.record_bytes),
        hop_(options.hop_bytes == 0 ? options.record_bytes : options.hop_bytes),
        end_(static_cast<int64_t>(content_.size()) - options.footer_bytes),
        at_(options.header_bytes) {}

  StatusOr<bool> Next(std::string* key, std::string* value) override {
    if (at_ > end_ || record_ > end_ - at_) return false;
    *key = StrCat(file_, ":", number_++);
    *value = content_.substr(at_, record_);
    at_ += hop_;
    return true;
  }

 private:
  const std::string file_;
  const std::string content_;
  const int64_t record_, hop_, end_;
  int64_t at_;
  int64_t number_ = 0;
};

/// One record, called as the file.
class OneRecordSource final : public RecordSource {
 public:
  OneRecordSource(std::string key, std::string value)
      : key_(std::move(key)), value_(std::move(value)) {}

  StatusOr<bool> Next(std::string* key, std::string* value) override {
    *key = key_;
    *value = std::move(value_);
    return !std::exchange(given_, true);
  }

 private:
  const std::string key_;
  std::string value_;
  bool given_ = false;
};

StatusOr<std::string> ReadAll(ByteSource& bytes) {
  constexpr size_t kPiece = 1 << 20;
  std::string content;
  while (true) {
    const size_t before = content.size();
    content.resize(before + kPiece);
    TENON_ASSIGN_OR_RETURN(const size_t n, bytes.Read(kPiece, content.data() + before));
    content.resize(before + n);
    if (n < kPiece) return content;
    if (Interrupted()) return Cancelled("reading a file was interrupted");
  }
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
  header_bytes = number("header_bytes");
  record_bytes = number("record_bytes");
  footer_bytes = number("footer_bytes");
  hop_bytes = number("hop_bytes");
  for (const int64_t n : {skip_header_lines, header_bytes, record_bytes, footer_bytes, hop_bytes}) {
    if (n < 0) c.Fail(InvalidArgument("lengths must be at least 0, found ", n));
  }
  if (op == "FixedLengthRecordReader" && record_bytes == 0) {
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
  TENON_ASSIGN_OR_RETURN(source_, Open(std::string(call.name[0].scalar<TString>()), call.ctx));
  return OkStatus();
}

StatusOr<std::unique_ptr<RecordSource>> Reader::Open(const std::string& file,
                                                     const KernelContext& ctx) const {
  if (options_.op == "IdentityReader") return std::make_unique<OneRecordSource>(file, file);
  FileContext files;
  TENON_ASSIGN_OR_RETURN(files.files, FilesOf(ctx.device().files()));
  files.cancellation = ctx.step().cancellation;
  TENON_ASSIGN_OR_RETURN(std::unique_ptr<InputFile> input, OpenInput(file, files));
  std::unique_ptr<ByteSource> bytes = MakeSource(std::move(input), options_.compression);
  if (options_.op == "TextLineReader") {
    return std::make_unique<LineSource>(file, std::move(bytes), options_.skip_header_lines);
  }
  if (options_.op == "TFRecordReader") {
    return std::make_unique<TFRecordSource>(file, std::move(bytes));
  }
  TENON_ASSIGN_OR_RETURN(std::string content, ReadAll(*bytes));
  if (options_.op == "WholeFileReader") {
    return std::make_unique<OneRecordSource>(file, std::move(content));
  }
  return std::make_unique<FixedLengthSource>(file, std::move(content), options_);
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

int64_t Reader::num_records() const {
  MutexLock lock(mu_);
  return num_records_;
}

int64_t Reader::num_files() const {
  MutexLock lock(mu_);
  return num_files_;
}

}  // namespace tenon
