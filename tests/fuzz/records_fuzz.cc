// SPDX-License-Identifier: Apache-2.0
//
// Record files and event files. The first byte says how the file is compressed, or that it is read
// as an event file.
#include <google/protobuf/stubs/logging.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/memory/memory_limit.h"
#include "data/records/event_file.h"
#include "data/records/record_file.h"
#include "proto/event.pb.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/message_mutation.h"
#include "tests/testing/memory_files.h"

namespace tenon::testing {
namespace {

constexpr int64_t kRecordMemory = int64_t{256} << 20;
/// What a compressed file of the fuzzer's size cannot exceed by much.
constexpr size_t kRewrittenBytes = 4 << 20;

enum RecordKind { kPlainRecords, kGzipRecords, kZlibRecords, kEventRecords, kRecordKinds };

Compression CompressionOf(int kind) {
  return kind == kGzipRecords   ? Compression::kGzip
         : kind == kZlibRecords ? Compression::kZlib
                                : Compression::kNone;
}

std::string WriteRecords(const std::vector<std::string>& records, Compression compression) {
  MemoryFiles files;
  RecordWriter writer(MakeCompressor(*files.OpenOutput("file", WriteMode::kTruncate), compression));
  for (const std::string& record : records) TENON_CHECK(writer.Write(record).ok());
  TENON_CHECK(writer.Close().ok());
  return files["file"];
}

/// Reads a file of the process's memory as an event file.
void ReadEvents(std::string_view bytes) {
  static const int fd = memfd_create("events", MFD_CLOEXEC);
  TENON_CHECK(fd >= 0 && ftruncate(fd, 0) == 0);
  TENON_CHECK(pwrite(fd, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  const auto reader = EventReader::Open(StrCat("/proc/self/fd/", fd));
  if (!reader.ok()) return;
  Event event;
  for (StatusOr<bool> more = true; more.ok() && *more;) more = (*reader)->Read(&event);
}

void FuzzRecords(absl::Span<const uint8_t> data) {
  google::protobuf::SetLogHandler(nullptr);
  SetCpuMemoryLimit(kRecordMemory);
  if (data.empty()) return;
  const int kind = data[0] % kRecordKinds;
  const std::string_view bytes(reinterpret_cast<const char*>(data.data()) + 1, data.size() - 1);
  if (kind == kEventRecords) return ReadEvents(bytes);
  const Compression compression = CompressionOf(kind);
  RecordReader reader(MakeSource(bytes, compression), "input");
  std::vector<std::string> records;
  std::string record;
  StatusOr<bool> more = true;
  while ((more = reader.Read(&record)).ok() && *more) records.push_back(record);
  if (reader.offset() > static_cast<int64_t>(kRewrittenBytes)) return;
  // There is one way to write records down.
  const std::string plain = WriteRecords(records, Compression::kNone);
  TENON_CHECK(static_cast<int64_t>(plain.size()) == reader.offset());
  if (compression == Compression::kNone) {
    TENON_CHECK(bytes.starts_with(plain));
    TENON_CHECK(!more.ok() || plain.size() == bytes.size());
    return;
  }
  const std::string again = WriteRecords(records, compression);
  RecordReader second(MakeSource(again, compression), "again");
  for (const std::string& wanted : records) {
    more = second.Read(&record);
    TENON_CHECK(more.ok() && *more && record == wanted);
  }
  more = second.Read(&record);
  TENON_CHECK(more.ok() && !*more);
}

/// Changes a record and gives all of them the right checksums.
void MutateRecords(std::string* data, size_t max_size, uint64_t seed) {
  Random random(seed);
  if (data->empty() || random.Chance(30)) return MutateAsLibFuzzer(data, max_size);
  const int kind = static_cast<uint8_t>((*data)[0]) % kRecordKinds;
  const Compression compression = CompressionOf(kind);
  RecordReader reader(MakeSource(std::string_view(*data).substr(1), compression), "input");
  std::vector<std::string> records(1);
  for (StatusOr<bool> more = true; records.size() < 1000;) {
    more = reader.Read(&records.back());
    if (!more.ok() || !*more) break;
    records.emplace_back();
  }
  const int i = random.Below(static_cast<int>(records.size()));
  if (random.Chance(10)) {
    records.erase(records.begin() + i);
  } else if (kind == kEventRecords) {
    MutateAsMessage(Event(), &records[i], max_size, random);
  } else {
    MutateAsLibFuzzer(&records[i], max_size);
  }
  std::string changed = (*data)[0] + WriteRecords(records, compression);
  if (random.Chance(10)) changed[0] = static_cast<char>(random.Below(kRecordKinds));
  if (random.Chance(10)) changed.resize(changed.size() - random.Below(16) % changed.size());
  if (changed.size() <= max_size) *data = std::move(changed);
}

std::vector<std::string> RecordSeeds() {
  using namespace std::string_literals;
  const auto sample = [](char kind, const std::string& name) { return kind + SampleFile(name); };
  return {sample('\0', "records/records.tfrecord"),
          sample('\1', "records/records_gzip.tfrecord"),
          sample('\2', "records/records_zlib.tfrecord"),
          sample('\3', "events/events.out.tfevents.1700000000.host.sample"),
          "\0"s + WriteRecords({"", "a", std::string(300, 'b')}, Compression::kNone),
          "\1"s + WriteRecords({"a", ""}, Compression::kGzip),
          "\2"s + WriteRecords({std::string(5000, 'b')}, Compression::kZlib)};
}

const bool records_registered = RegisterFuzzTarget(
    {.name = "records", .run = FuzzRecords, .mutate = MutateRecords, .seeds = RecordSeeds});

}  // namespace
}  // namespace tenon::testing
