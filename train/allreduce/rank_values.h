// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/device/communicator.h"
#include "core/tensor/tensor.h"

// Values that the ranks of a program tell each other outside of a graph. Every rank calls the same
// functions in the same order, each with the same `name`, which messages call it by. The errors are
// those of Communicator::Run.

namespace tenon {

/// The elementwise reduction of the numbers of all ranks, on each of them. Of the dtype and shape
/// of `own`, which is the same on all.
StatusOr<Tensor> ReduceOverRanks(Communicator& ranks, const std::string& name, const Tensor& own,
                                 Reduction reduction = Reduction::kSum);

/// The rows (dimension 0) of all ranks in their order, on each of them. Ranks may have different
/// numbers of rows, of one dtype and shape.
StatusOr<Tensor> GatherRows(Communicator& ranks, const std::string& name, const Tensor& own);

/// The texts of each rank, on each of them: element r has those of rank r, which may be any number
/// and have any bytes.
StatusOr<std::vector<std::vector<std::string>>> GatherTexts(Communicator& ranks,
                                                            const std::string& name,
                                                            const std::vector<std::string>& own);

/// OK where `own` is OK on all ranks. Otherwise every rank gets one and the same error, which says
/// what is wrong on which ranks, with the code of the first of them: "rank 1: 'a.tsv', line 3:
/// ...". So a rank that cannot go on does not leave, of which the others would learn no more than
/// that it has gone.
///
///   const auto rows = ReadMine(ranks.rank());
///   TENON_RETURN_IF_ERROR(OkOnAllRanks(ranks, "reading", rows.status()));
Status OkOnAllRanks(Communicator& ranks, const std::string& name, const Status& own);

/// Whether an error is one that OkOnAllRanks has given to several ranks, all of them.
bool IsOfAllRanks(const Status& status);

}  // namespace tenon
