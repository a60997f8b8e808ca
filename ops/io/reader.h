// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/files/byte_stream.h"
#include "ops/io/record_source.h"
#include "ops/queues/queue.h"

namespace tenon {

/// Reads records of the files whose names come out of a queue: TensorFlow's TextLineReader,
/// TFRecordReader, FixedLengthRecordReader, WholeFileReader and IdentityReader. One read at a time
/// works on it, the others wait, without a thread.
class Reader final : public WaitingResource {
 public:
  static constexpr std::string_view kKind = "reader";
  static constexpr std::string_view kTypeName = "N10tensorflow15ReaderInterfaceE";
  static constexpr bool kNamedByNode = false;

  /// What a node says of its reader.
  struct Options {
    explicit Options(KernelConstruction& c);

    std::string op;  // as messages name it: "TextLineReader"
    Compression compression = Compression::kNone;
    int64_t skip_header_lines = 0;
    FixedLengths lengths;

    friend bool operator==(const Options&, const Options&) = default;
  };

  Reader(const Options& options, std::string name) : options_(options), name_(std::move(name)) {}
  std::string_view kind() const override { return kKind; }
  /// InvalidArgument when a node with `wanted` cannot have this reader.
  Status CheckShared(const Options& wanted) const;

  /// Outputs 0 and 1 become key and value of the next record or, with `count` of at least 1, of
  /// between one and so many. At the end of a file it takes another name out of `queue`, and waits
  /// for it if nothing was read yet.
  void Read(std::shared_ptr<Queue> queue, int64_t count, KernelContext& ctx, Kernel::Done done);
  /// Begins anew: the file is closed and nothing counted.
  void Reset();
  /// What has been counted, and the file, as a ReaderBaseState message; of readers of whole files
  /// only, else Unimplemented.
  StatusOr<std::string> Serialize() const;
  /// Goes on from there. InvalidArgument for a state that none can have, which begins anew.
  Status Restore(std::string_view state);
  /// How many records have been read, and how many files to their end.
  int64_t num_records() const;
  int64_t num_files() const;

 private:
  class TurnOperation;

  /// Unimplemented unless each file is one record.
  Status CheckHasState() const;
  struct Call;

  StatusOr<std::unique_ptr<RecordSource>> Open(const std::string& file,
                                               const KernelContext& ctx) const;
  /// Goes on with the call whose turn it is, until it is over or waits for a name.
  void Serve(std::shared_ptr<Call> call);
  /// Reads as much as there is of the present file.
  Status ReadRecords(Call& call) ABSL_LOCKS_EXCLUDED(mu_);
  Status OpenNext(Call& call);
  void EndTurn(Call& call, Status status);

  const Options options_;
  const std::string name_;
  bool busy_ ABSL_GUARDED_BY(mu_) = false;  // somebody has the turn, and with it source_
  int64_t num_records_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t num_files_ ABSL_GUARDED_BY(mu_) = 0;
  int resets_ ABSL_GUARDED_BY(mu_) = 0;
  std::string file_ ABSL_GUARDED_BY(mu_);  // the last one
  std::unique_ptr<RecordSource> source_;
};

}  // namespace tenon
