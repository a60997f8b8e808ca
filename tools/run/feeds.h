// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/graph/graph.h"
#include "core/tensor/tensor.h"
#include "tools/run/row_source.h"

namespace tenon::tools {

/// What a step is to be fed with, and with what: "NAME=VALUE".
struct FeedText {
  std::string label;   // as the user names it
  std::string tensor;  // of the graph
  std::string value;
};

/// The values of the feeds, the same in each step or rows of files, batch after batch. A value is
///   FILE.npy, FILE.npz:KEY (or FILE.npz, of one array, or one of the tensor's name);
///   FILE.csv, .tsv or .txt: rows of values (see TextRows);
///   FILE.csv:COLUMN: a column, found by its name in the first line (see ReadCsv);
///   FILE.tfrecord or .tfrecords: records, each a string;
///   FILE.png, .jpg or .jpeg: pixels, a row of [height, width, channels];
///   -: the standard input, an .npy file, a literal, or rows of values;
///   @FILE: the bytes of a file, as one string;
///   several of these files (see ListFiles): the rows of one after those of the other; of @FILE, a
///   row each;
///   anything else: a literal (see ReadLiteral).
/// Numbers become those of the tensor's dtype. Used by one thread at a time.
class FeedInputs {
 public:
  /// With `batch`, files and the standard input are cut into as many rows a step, except those of
  /// which the tensor wants all rows by its shape; they must have equally many rows. Where the
  /// tensor is a scalar, a batch of one row is its value. NotFound and InvalidArgument say which
  /// feed is wrong and how; WrongUsage for a batch of nothing, and for a tensor that is fed twice.
  static StatusOr<FeedInputs> Open(const std::vector<FeedText>& feeds, const Graph& graph,
                                   int64_t batch);

  /// The tensors that are fed, in the order of the values.
  std::vector<std::string> tensors() const;
  /// How many rows are cut into batches; -1 when only their end tells, and without a batch.
  int64_t num_rows() const { return num_rows_; }
  /// The values of the next step. With a batch, `*rows` is how many rows they have, 0 at the end.
  Status Next(std::vector<Tensor>* values, int64_t* rows);
  /// "x from a.npy, b.npy": the files, of several, that the last values came from; or empty.
  std::string LastFiles() const;
  /// Whether some feed has the rows of several files.
  bool has_files() const { return FilesFeed() != nullptr; }
  /// The file that each of the last rows came from, of the first such feed.
  Tensor FilesOfRows() const;

 private:
  struct Feed {
    std::string label, tensor;
    DType dtype;
    bool is_scalar;
    Tensor value;                     // of each step, or
    std::unique_ptr<RowSource> rows;  // in batches
  };

  Status CheckRows();
  /// The first feed of several files; null when there is none.
  const Feed* FilesFeed() const;

  std::vector<Feed> feeds_;
  int64_t batch_ = 0, num_rows_ = -1, done_ = 0;
};

}  // namespace tenon::tools
