// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "core/base/status.h"
#include "data/files/file.h"
#include "train/glm/result/glm_equation.h"
#include "train/glm/result/glm_result.h"

// The file model.json: all that predictions need, and what a reader wants to know of a model. It is
// the JSON of the message ModelFile of proto/table.proto; doubles have the shortest text that is
// read as the same again.

namespace tenon {

inline constexpr char kModelFile[] = "model.json";

/// The content of model.json. InvalidArgument where a level or the name of a column is no UTF-8,
/// which JSON must be. REQUIRES: the result has an equation.
StatusOr<std::string> ModelJson(const GlmResult& result);
/// The equation in such a content. InvalidArgument says what is wrong with another one.
StatusOr<GlmEquation> ParseModel(std::string_view json);

/// Reads the model that WriteGlm has written into a folder. Errors name the file.
StatusOr<GlmEquation> LoadGlm(const std::string& folder, const FileContext& context = {});

}  // namespace tenon
