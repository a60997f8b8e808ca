// SPDX-License-Identifier: Apache-2.0
#include "tools/signatures.h"

#include <map>

#include "train/saver/saved_model.h"

namespace tenon::tools {
namespace {

template <typename T>
std::string NamesIn(const std::map<std::string, T>& map) {
  std::vector<std::string> names;
  for (const auto& [name, value] : map) names.push_back(StrCat("'", name, "'"));
  return names.empty() ? "none" : Join(names, ", ");
}

StatusOr<std::string> TensorOf(const std::map<std::string, SignatureTensor>& tensors,
                               const std::string& name, std::string_view kind) {
  const auto found = tensors.find(name);
  if (found == tensors.end()) {
    return NotFound("the signature has no ", kind, " '", name, "', but ", NamesIn(tensors));
  }
  if (found->second.name.empty()) {
    return Unimplemented("the ", kind, " '", name, "' is not one tensor but several");
  }
  return found->second.name;
}

}  // namespace

StatusOr<SignatureNames> ResolveSignature(const MetaGraphDef& meta, const std::string& name,
                                          const std::vector<std::string>& feeds,
                                          const std::vector<std::string>& fetches) {
  TENON_ASSIGN_OR_RETURN(const auto signatures, SignaturesOf(meta));
  const auto found = signatures.find(name);
  if (found == signatures.end()) {
    return NotFound("the graph has no signature '", name, "', but ", NamesIn(signatures));
  }
  SignatureNames resolved;
  for (const std::string& feed : feeds) {
    const size_t equals = feed.find('=');
    TENON_ASSIGN_OR_RETURN(const std::string tensor,
                           TensorOf(found->second.inputs, feed.substr(0, equals), "input"));
    resolved.feeds.push_back(tensor + feed.substr(equals));
  }
  resolved.labels = fetches;
  if (fetches.empty()) {
    for (const auto& [output, tensor] : found->second.outputs) resolved.labels.push_back(output);
  }
  for (const std::string& label : resolved.labels) {
    TENON_ASSIGN_OR_RETURN(const std::string tensor,
                           TensorOf(found->second.outputs, label, "output"));
    resolved.fetches.push_back(tensor);
  }
  return resolved;
}

}  // namespace tenon::tools
