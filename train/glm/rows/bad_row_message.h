// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "data/table_places/table_places.h"
#include "train/glm/model/glm_model.h"
#include "train/glm/rows/table_tasks.h"

namespace tenon {

/// The words for a row that the margins of a model cannot have: its place, what its column has, and
/// what is wrong with it.
std::string BadRowMessage(const GlmModel& model, const TablePlaces& places,
                          const PlacedBadRow& bad);

}  // namespace tenon
