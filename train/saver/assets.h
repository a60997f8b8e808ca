// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/graph/graph.h"

// Files that a graph reads when it is initialised, such as the words of a lookup table, and that go
// with an exported model: those of the collection "asset_filepaths", as TensorFlow's exporter
// takes them.

namespace tenon {

class MetaGraphDef;

/// The collection of the constants that hold their paths.
inline constexpr char kAssetCollection[] = "asset_filepaths";

/// A constant that holds a path, and what the file is called in the model.
struct Asset {
  std::string path;
  std::string tensor;    // "node:0"
  std::string filename;  // of the same path the same, of other paths another
};

/// The assets of the graph. InvalidArgument for a member of the collection that is no constant of
/// one text, or whose text is no path of a file.
StatusOr<std::vector<Asset>> AssetsOf(Graph& graph);

/// Says in the message which file is to be read in place of which constant.
void DescribeAssets(const std::vector<Asset>& assets, MetaGraphDef* out);

/// Copies the files into `folder`, which is made unless there are none; synced when it returns. The
/// errors of files, naming the constant.
Status CopyAssets(const std::vector<Asset>& assets, const std::string& folder);

}  // namespace tenon
