// SPDX-License-Identifier: Apache-2.0
#include "tools/run/signatures.h"

#include <map>

#include "core/base/closest_name.h"
#include "tools/commands.h"
#include "train/saver/saved_model.h"

namespace tenon::tools {
namespace {

template <typename T>
std::vector<std::string> KeysOf(const std::map<std::string, T>& map) {
  std::vector<std::string> names;
  for (const auto& [name, value] : map) names.push_back(name);
  return names;
}

template <typename T>
std::string NamesIn(const std::map<std::string, T>& map) {
  std::vector<std::string> names;
  for (const std::string& name : KeysOf(map)) names.push_back(StrCat("'", name, "'"));
  return Join(names, ", ");
}

/// What there is instead of `name`: the rest of "the graph has no signature 'foo'".
template <typename T>
std::string OthersThan(const std::string& name, const std::map<std::string, T>& map) {
  if (map.empty()) return ", nor any other";
  return StrCat(", but ", NamesIn(map), DidYouMean(name, KeysOf(map)));
}

StatusOr<std::string> TensorOf(const std::map<std::string, SignatureTensor>& tensors,
                               const std::string& name, std::string_view kind) {
  const auto found = tensors.find(name);
  if (found == tensors.end()) {
    return NotFound("the signature has no ", kind, " '", name, "'", OthersThan(name, tensors));
  }
  if (found->second.name.empty()) {
    return Unimplemented("the ", kind, " '", name, "' is not one tensor but several");
  }
  return found->second.name;
}

std::string DescribeTensors(const std::map<std::string, SignatureTensor>& tensors) {
  std::vector<std::string> texts;
  for (const auto& [name, tensor] : tensors) {
    texts.push_back(StrCat(name, " ", ToString(tensor.dtype), tensor.shape.ToString()));
  }
  return Join(texts, ", ");
}

/// Asking twice for one thing gives it once.
void AddFetch(const std::string& label, const std::string& tensor, RunNames* names) {
  for (const std::string& known : names->labels) {
    if (known == label) return;
  }
  names->labels.push_back(label);
  names->fetches.push_back(tensor);
}

}  // namespace

StatusOr<std::pair<std::string, std::string>> SplitPair(const std::string& text,
                                                        std::string_view flag) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return InvalidArgument(flag, " ", text, ": wanted NAME=VALUE");
  }
  return std::pair(text.substr(0, equals), text.substr(equals + 1));
}

StatusOr<RunNames> NamesOfTensors(const std::vector<std::string>& feeds,
                                  const std::vector<std::string>& fetches) {
  RunNames names;
  for (const std::string& feed : feeds) {
    TENON_ASSIGN_OR_RETURN(const auto pair, SplitPair(feed, "--feed"));
    names.feeds.push_back({pair.first, pair.first, pair.second});
  }
  for (const std::string& fetch : fetches) AddFetch(fetch, fetch, &names);
  return names;
}

StatusOr<RunNames> NamesOfSignature(const MetaGraphDef& meta, const std::string& name,
                                    const std::vector<std::string>& feeds,
                                    const std::vector<std::string>& fetches) {
  TENON_ASSIGN_OR_RETURN(const auto signatures, SignaturesOf(meta));
  const auto found = signatures.find(name);
  if (found == signatures.end()) {
    return NotFound("the graph has no signature '", name, "'", OthersThan(name, signatures),
                    signatures.empty() ? "; without --signature names are those of nodes" : "");
  }
  RunNames names;
  for (const std::string& feed : feeds) {
    TENON_ASSIGN_OR_RETURN(const auto pair, SplitPair(feed, "--feed"));
    TENON_ASSIGN_OR_RETURN(const std::string tensor,
                           TensorOf(found->second.inputs, pair.first, "input"));
    names.feeds.push_back({pair.first, tensor, pair.second});
  }
  for (const std::string& label : fetches.empty() ? KeysOf(found->second.outputs) : fetches) {
    TENON_ASSIGN_OR_RETURN(const std::string tensor,
                           TensorOf(found->second.outputs, label, "output"));
    AddFetch(label, tensor, &names);
  }
  return names;
}

StatusOr<std::string> DefaultSignature(const MetaGraphDef& meta) {
  TENON_ASSIGN_OR_RETURN(const auto signatures, SignaturesOf(meta));
  if (signatures.empty()) return std::string();
  if (signatures.contains(kDefaultServingSignature)) return std::string(kDefaultServingSignature);
  if (signatures.size() == 1) return signatures.begin()->first;
  return WrongUsage(StrCat("the graph has ", signatures.size(), " signatures, ",
                           NamesIn(signatures), ": choose one by --signature"));
}

std::string SignatureOf(const MetaGraphDef& meta, const std::vector<std::string>& feeds,
                        const std::vector<std::string>& fetches) {
  const auto signatures = SignaturesOf(meta);
  if (!signatures.ok()) return "";
  std::vector<std::string> found;
  for (const auto& [name, signature] : *signatures) {
    const bool is_fed = std::all_of(feeds.begin(), feeds.end(), [&](const std::string& feed) {
      return signature.inputs.contains(feed.substr(0, feed.find('=')));
    });
    const bool is_fetched =
        std::all_of(fetches.begin(), fetches.end(),
                    [&](const std::string& fetch) { return signature.outputs.contains(fetch); });
    if (is_fed && is_fetched) found.push_back(name);
  }
  return found.size() == 1 ? found[0] : "";
}

StatusOr<std::string> DescribeSignatures(const MetaGraphDef& meta) {
  TENON_ASSIGN_OR_RETURN(const auto signatures, SignaturesOf(meta));
  std::string text;
  for (const auto& [name, signature] : signatures) {
    StrAppend(&text, "signature ", name, ": ", DescribeTensors(signature.inputs), " -> ",
              DescribeTensors(signature.outputs), "\n");
  }
  return text;
}

}  // namespace tenon::tools
