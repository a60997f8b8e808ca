// SPDX-License-Identifier: Apache-2.0
#include "tools/run/explain.h"

#include <optional>

#include "tools/commands.h"
#include "tools/run/signatures.h"
#include "train/saver/checkpoint_state.h"

namespace tenon::tools {
namespace {

/// The initialiser that programs mean by that name, or the first one; null without any.
const Node* InitializerOf(const GraphEnds& ends) {
  for (const Node* node : ends.initializers) {
    if (node->name().find("init") != std::string::npos) return node;
  }
  return ends.initializers.empty() ? nullptr : ends.initializers[0];
}

/// The x of "... placeholder tensor 'x' with ...".
std::string PlaceholderIn(std::string_view message) {
  constexpr std::string_view kBefore = "placeholder tensor '";
  const size_t begin = message.find(kBefore);
  if (begin == std::string_view::npos) return "";
  message.remove_prefix(begin + kBefore.size());
  return std::string(message.substr(0, message.find('\'')));
}

/// The checkpoint that a MetaGraph was saved beside, if it is there.
std::optional<std::string> CheckpointOf(const std::string& path) {
  constexpr std::string_view kMeta = ".meta";
  if (!path.ends_with(kMeta)) return std::nullopt;
  std::string prefix = path.substr(0, path.size() - kMeta.size());
  if (!CheckpointExists(prefix)) return std::nullopt;
  return prefix;
}

/// What a placeholder may be fed with: a scalar is written on the line.
std::string ExampleValue(const Node& placeholder) {
  if (placeholder.output_type(0) == DType::kBool) return "false";
  const PartialShape& shape = placeholder.output_shape(0);
  return shape.IsFullyKnown() && shape.ToShape().rank() == 0 ? "NUMBER" : "FILE.npy";
}

/// A command that would run the graph.
std::string ExampleOf(const std::string& path, const GraphEnds& ends) {
  std::string example = StrCat("tenon run ", path);
  if (const auto checkpoint = CheckpointOf(path)) {
    StrAppend(&example, " --checkpoint ", *checkpoint);
  } else if (const Node* const init = InitializerOf(ends)) {
    StrAppend(&example, " --init ", init->name());
  }
  for (const Node* node : ends.placeholders) {
    if (MustBeFed(*node)) StrAppend(&example, " --feed ", node->name(), "=", ExampleValue(*node));
  }
  if (!ends.results.empty()) {
    StrAppend(&example, " --fetch ", ends.results[0]->name());
  } else if (!ends.targets.empty()) {
    StrAppend(&example, " --target ", ends.targets[0]->name());
  } else {
    StrAppend(&example, " --fetch NODE");
  }
  return example;
}

}  // namespace

Status ExplainStepError(const Status& status, const GraphEnds& ends) {
  if (status.ok()) return status;
  std::string message(Message(status));
  message.erase(std::min(message.find("\n\t [[{{node"), message.size()));
  const bool has_no_value = message.find("uninitialized") != std::string::npos &&
                            status.code() == StatusCode::kFailedPrecondition;
  if (has_no_value) {
    const Node* const init = InitializerOf(ends);
    // The rest of the message names TensorFlow's own types and containers.
    message.erase(std::min(message.find(". This could mean"), message.size()));
    StrAppend(&message, "; variables get values by --init ",
              init == nullptr ? "NODE" : init->name(),
              ", by --checkpoint PREFIX, or from the folder variables/ of a SavedModel");
  } else if (const std::string placeholder = PlaceholderIn(message); !placeholder.empty()) {
    StrAppend(&message, "; give --feed ", placeholder, "=VALUE");
  }
  return WithMessage(status, message);
}

Status NothingToRun(const std::string& path, const GraphEnds& ends, const MetaGraphDef& meta) {
  const auto signatures = DescribeSignatures(meta);
  TENON_RETURN_IF_ERROR(signatures.status());
  std::string text =
      StrCat("nothing to run: give --fetch TENSOR or --target NODE",
             signatures->empty() ? "" : ", or --feed for a signature", "\n",
             DescribeGraphEnds(ends), *signatures, "for example\n  ", ExampleOf(path, ends));
  return WrongUsage(text);
}

}  // namespace tenon::tools
