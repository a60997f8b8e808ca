// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"
#include "tools/run/feeds.h"

namespace tenon {
class MetaGraphDef;
}

namespace tenon::tools {

/// What a step is fed with and what it is asked for.
struct RunNames {
  std::vector<FeedText> feeds;
  /// Tensors, and what to call them.
  std::vector<std::string> fetches, labels;
};

/// What "NAME=VALUE" feeds and fetches mean when they name tensors.
StatusOr<RunNames> NamesOfTensors(const std::vector<std::string>& feeds,
                                  const std::vector<std::string>& fetches);

/// What they mean when they name inputs and outputs of the signature `name`; without fetches, all
/// of its outputs. NotFound, with the names that there are, for one that it does not have, and for
/// a signature that the graph does not have.
StatusOr<RunNames> NamesOfSignature(const MetaGraphDef& meta, const std::string& name,
                                    const std::vector<std::string>& feeds,
                                    const std::vector<std::string>& fetches);

/// The signature that is meant when none is named: serving_default, or the only one; empty when the
/// graph has none. WrongUsage, naming them, when there are several.
StatusOr<std::string> DefaultSignature(const MetaGraphDef& meta);

/// The one signature whose inputs "NAME=VALUE" feeds name, and whose outputs the fetches; empty
/// when none is it, or several are.
std::string SignatureOf(const MetaGraphDef& meta, const std::vector<std::string>& feeds,
                        const std::vector<std::string>& fetches);

/// A line each: "signature NAME: INPUT dtype[shape], ... -> OUTPUT dtype[shape], ...".
StatusOr<std::string> DescribeSignatures(const MetaGraphDef& meta);

/// "a=b" taken apart at the first '='; InvalidArgument naming the flag.
StatusOr<std::pair<std::string, std::string>> SplitPair(const std::string& text,
                                                        std::string_view flag);

}  // namespace tenon::tools
