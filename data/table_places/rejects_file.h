// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/types/span.h"
#include "core/base/status.h"
#include "data/files/file.h"
#include "data/table/unit_report.h"
#include "data/table_places/table_places.h"

namespace tenon {

/// A table, in text, of the records that were left out of another one: the file, the line and the
/// byte where each begins, its kind, how many fields it has and should have, or which one is wrong,
/// and the text, of which very long ones have the beginning. Used by one thread at a time.
class RejectsFile {
 public:
  /// Makes the file anew. `places` must outlive this.
  static StatusOr<std::unique_ptr<RejectsFile>> Create(const std::string& path,
                                                       const TablePlaces& places,
                                                       const FileContext& context = {});

  /// Adds records of a unit.
  Status Add(int64_t unit, absl::Span<const RejectedRecord> rejected);
  Status Close() { return file_->Close(); }

 private:
  RejectsFile(std::unique_ptr<OutputFile> file, const TablePlaces& places)
      : file_(std::move(file)), places_(places) {}

  const std::unique_ptr<OutputFile> file_;
  const TablePlaces& places_;
};

}  // namespace tenon
