// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"
#include "data/files/file.h"

// Graphs from files, as people have them: a GraphDef, a MetaGraphDef (what a Saver writes as
// `.meta`) or a SavedModel, each in binary or in text form. The content decides which it is, not
// the name.

namespace tenon {

class GraphDef;
class MetaGraphDef;

/// Reads the file, or the folder of a SavedModel (its saved_model.pb or saved_model.pbtxt). A plain
/// GraphDef comes back as a MetaGraphDef with nothing else in it. Of the several graphs of a
/// SavedModel, the one that has all of `tags`; without tags the only one, or else the one tagged
/// "serve". NotFound for a missing file, or when no graph has the tags; InvalidArgument for a file
/// that is none of these; DataLoss for one that is cut short.
StatusOr<MetaGraphDef> LoadMetaGraphDef(const std::string& path,
                                        const std::vector<std::string>& tags = {},
                                        const FileContext& context = {});

/// The graph of LoadMetaGraphDef.
StatusOr<GraphDef> LoadGraphDef(const std::string& path, const FileContext& context = {});

/// The same from the content of a file; `name` is what messages call it.
StatusOr<MetaGraphDef> ParseMetaGraphDef(const std::string& content, const std::string& name,
                                         const std::vector<std::string>& tags = {});

}  // namespace tenon
