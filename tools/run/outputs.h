// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/tensor.h"
#include "tools/run/row_maker.h"

namespace tenon::tools {

/// Where the values of steps go: a file, whose name's ending says in which form.
///   .npz: arrays by name; of repeated steps NAME/0, NAME/1, ...
///   .npy: the array of a single fetch; of repeated steps and of batches written as they come.
///   .csv: a row a line, a column for each element of a row, under its name; written as they come.
///         "-" is this on the standard output.
///   .tsv: the same with tabs in the place of commas.
///   .json: one object of nested lists by name (see AppendJson).
/// Used by one thread at a time.
class OutputWriter {
 public:
  virtual ~OutputWriter() = default;

  /// One step's values, in the order of the labels. `batch` is how many rows it had.
  /// InvalidArgument for values that the form cannot hold or that do not belong together (see
  /// RowMaker).
  virtual Status Add(const std::vector<Tensor>& values, int64_t batch) = 0;
  /// In the place of all steps: there was nothing to run them with. `types` are what the graph says
  /// of the fetches; of a row's dimension that it leaves open there are none.
  virtual Status AddNothing(const std::vector<std::pair<DType, PartialShape>>& types) = 0;
  /// Writes what is not yet written. Nothing is added after.
  virtual Status Finish() = 0;
  /// What was added, for people: "y float[100,10], loss float[10]".
  virtual std::string Summary() const = 0;
};

/// Options of OpenOutput, by name.
struct OutputOptions {
  /// "-", or a file.
  std::string path;
  /// What the fetches are called.
  std::vector<std::string> labels;
  RowsAre steps = RowsAre::kOne;
  /// See RowMaker.
  std::vector<bool> is_whole;
};

/// WrongUsage for another ending, and for an .npy file of several fetches; the errors of
/// CheckWritable. Nothing is written yet.
StatusOr<std::unique_ptr<OutputWriter>> OpenOutput(const OutputOptions& options);

}  // namespace tenon::tools
