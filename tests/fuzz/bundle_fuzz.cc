// SPDX-License-Identifier: Apache-2.0
//
// Checkpoints: the index and the data file of one, or of two, each behind its length as a varint.
// Everything in them is read, whole and in parts, written to a checkpoint of our own and read from
// there; then the two are merged.
#include <google/protobuf/stubs/logging.h>

#include <cstring>
#include <map>

#include "core/memory/memory_limit.h"
#include "data/checkpoint/sstable.h"
#include "data/checkpoint/tensor_bundle.h"
#include "data/files/crc32c.h"
#include "proto/tensor_bundle.pb.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/message_mutation.h"
#include "tests/testing/memory_files.h"

namespace tenon::testing {
namespace {

constexpr int64_t kBundleMemory = int64_t{256} << 20;
constexpr size_t kTensorsRead = 200;
constexpr size_t kRewrittenTensor = 1 << 16;

void CheckNotInternal(const Status& status) {
  TENON_CHECK(status.code() != StatusCode::kInternal, status.ToString());
}

/// The tensors that can be read.
std::map<std::string, Tensor> ReadAll(const BundleReader& reader) {
  std::map<std::string, Tensor> values;
  for (const std::string& name : reader.names()) {
    if (values.size() == kTensorsRead) break;
    const BundleEntry& entry = **reader.Find(name);
    const auto value = reader.Read(name);
    CheckNotInternal(value.status());
    if (value.ok()) {
      TENON_CHECK(value->dtype() == entry.dtype && value->shape() == entry.shape);
      if (value->num_bytes() <= kRewrittenTensor) values.emplace(name, *value);
    }
    // The first half of the rows, whatever the tensor is.
    if (entry.shape.rank() == 0) continue;
    std::vector<TensorSlice::Extent> extents(entry.shape.rank());
    extents[0].length = entry.shape.dim(0) / 2;
    const auto part = reader.ReadSlice(name, TensorSlice(extents));
    CheckNotInternal(part.status());
    if (!value.ok() || !part.ok() || !IsPlain(entry.dtype)) continue;
    TENON_CHECK(part->num_bytes() <= value->num_bytes());
    TENON_CHECK(part->num_bytes() == 0 ||
                std::memcmp(part->raw_data(), value->raw_data(), part->num_bytes()) == 0);
  }
  return values;
}

void ExpectValues(const BundleReader& reader, const std::map<std::string, Tensor>& values) {
  for (const auto& [name, value] : values) {
    const auto again = reader.Read(name);
    TENON_CHECK(again.ok(), again.status().ToString());
    TENON_CHECK(SameTensor(value, *again));
  }
}

void FuzzBundle(absl::Span<const uint8_t> data) {
  google::protobuf::SetLogHandler(nullptr);
  SetCpuMemoryLimit(kBundleMemory);
  MemoryFiles files;
  const FileContext context{&files, nullptr};
  std::string_view rest(reinterpret_cast<const char*>(data.data()), data.size()), index, bytes;
  std::vector<std::string> prefixes;
  while (prefixes.size() < 2 && TakePiece(&rest, &index)) {
    if (!TakePiece(&rest, &bytes)) bytes = {};
    const std::string& prefix = prefixes.emplace_back(StrCat("in-", prefixes.size()));
    files[BundleIndexName(prefix)] = index;
    for (const int shards : {1, 2}) {
      for (int i = 0; i < shards; ++i) files[BundleDataName(prefix, i, shards)] = bytes;
    }
    const auto reader = BundleReader::Open(prefix, context);
    CheckNotInternal(reader.status());
    if (!reader.ok()) continue;
    std::map<std::string, Tensor> values = ReadAll(**reader);
    const auto writer = BundleWriter::Create("out", context);
    TENON_CHECK(writer.ok());
    for (auto it = values.begin(); it != values.end();) {
      // A name may be one that is kept for slices.
      const bool added = (*writer)->Add(it->first, it->second).ok();
      it = added ? std::next(it) : values.erase(it);
    }
    TENON_CHECK((*writer)->Finish().ok());
    const auto written = BundleReader::Open("out", context);
    TENON_CHECK(written.ok(), written.status().ToString());
    ExpectValues(**written, values);
  }
  const Status merged = MergeBundles(prefixes, "merged", {false, context});
  CheckNotInternal(merged);
  if (!merged.ok()) return;
  const auto reader = BundleReader::Open("merged", context);
  TENON_CHECK(reader.ok(), reader.status().ToString());
  ReadAll(**reader);
}

/// Changes an entry of an index and gives those that lie in `data` its checksum.
void MutateIndex(std::string* index, const std::string& data, size_t max_size, Random& random) {
  auto entries = ReadSstable(*index);
  if (!entries.ok() || entries->empty()) return MutateAsLibFuzzer(index, max_size);
  const int i = random.Below(static_cast<int>(entries->size()));
  auto& [key, value] = (*entries)[i];
  const int kind = random.Below(12);
  if (kind == 0) {
    MutateAsLibFuzzer(&key, 100);
  } else if (kind == 1) {
    entries->emplace_back(key + "2", std::string(value));
  } else if (kind == 2) {
    entries->erase(entries->begin() + i);
  } else if (i == 0) {
    MutateAsMessage(BundleHeaderProto(), &value, max_size, random);
  } else if (kind > 3) {
    MutateAsMessage(BundleEntryProto(), &value, max_size, random);
  }
  for (auto& [name, text] : *entries) {
    BundleEntryProto entry;
    if (name.empty() || !entry.ParseFromString(text) || random.Chance(5)) continue;
    const auto end = static_cast<uint64_t>(entry.offset()) + static_cast<uint64_t>(entry.size());
    if (entry.offset() < 0 || entry.size() < 0 || end > data.size()) continue;
    if (entry.dtype() == DT_STRING) continue;  // whose checksum is of the lengths as numbers
    entry.set_crc32c(
        MaskCrc32c(Crc32c(std::string_view(data).substr(entry.offset(), entry.size()))));
    text = entry.SerializeAsString();
  }
  std::map<std::string, std::string> sorted(entries->begin(), entries->end());
  const auto table = WriteSstable(SstableEntries(sorted.begin(), sorted.end()));
  if (table.ok()) *index = *table;
}

void MutateBundle(std::string* data, size_t max_size, uint64_t seed) {
  Random random(seed);
  std::vector<std::string> pieces;
  std::string_view rest = *data, next;
  while (pieces.size() < 4 && TakePiece(&rest, &next)) pieces.emplace_back(next);
  if (pieces.size() < 2 || random.Chance(10)) return MutateAsLibFuzzer(data, max_size);
  const size_t i = pieces.size() == 4 && random.Chance(50) ? 2 : 0;
  if (random.Chance(10)) MutateAsLibFuzzer(&pieces[i + 1], max_size);
  if (random.Chance(10)) {
    MutateAsLibFuzzer(&pieces[i], max_size);
  } else {
    MutateIndex(&pieces[i], pieces[i + 1], max_size, random);
  }
  if (pieces.size() == 2 && random.Chance(5)) pieces.insert(pieces.end(), {pieces[0], pieces[1]});
  std::string changed;
  for (const std::string& piece : pieces) AppendPiece(&changed, piece);
  if (changed.size() <= max_size) *data = std::move(changed);
}

std::vector<std::string> BundleSeeds() {
  MemoryFiles files;
  const FileContext context{&files, nullptr};
  const auto seed_of = [&files](const std::string& prefix) {
    std::string seed;
    AppendPiece(&seed, files[BundleIndexName(prefix)]);
    AppendPiece(&seed, files[BundleDataName(prefix, 0, 1)]);
    return seed;
  };
  std::vector<std::string> seeds;
  for (const std::string name : {"model.ckpt-42", "sharded"}) {
    const std::string prefix = "checkpoints/checkpoint_small/" + name;
    files[BundleIndexName("p")] = SampleFile(BundleIndexName(prefix));
    files[BundleDataName("p", 0, 1)] = SampleFile(BundleDataName(prefix, 0, 1));
    seeds.push_back(seed_of("p"));
  }
  // Tensors of several types, and halves of one in two checkpoints.
  const Tensor half = Tensor::Of<float>({1, 3}, {1, 2, 3});
  std::string both;
  for (int i = 0; i < 2; ++i) {
    auto writer = BundleWriter::Create(StrCat("q", i), context);
    TENON_CHECK(writer.ok());
    TENON_CHECK((*writer)->AddSlice("sliced", Shape({2, 3}), TensorSlice({{i, 1}, {}}), half).ok());
    TENON_CHECK((*writer)->Add(StrCat("bool", i), Tensor::Of<bool>({2}, {true, false})).ok());
    TENON_CHECK((*writer)->Add(StrCat("text", i), Tensor::Scalar("some text")).ok());
    TENON_CHECK((*writer)->Add(StrCat("none", i), Tensor::Zeros(DType::kInt64, {0, 5})).ok());
    TENON_CHECK((*writer)->Finish().ok());
    both += seed_of(StrCat("q", i));
  }
  seeds.push_back(both);
  return seeds;
}

const bool bundle_registered = RegisterFuzzTarget(
    {.name = "bundle", .run = FuzzBundle, .mutate = MutateBundle, .seeds = BundleSeeds});

}  // namespace
}  // namespace tenon::testing
