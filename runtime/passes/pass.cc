// SPDX-License-Identifier: Apache-2.0
#include "runtime/passes/pass.h"

#include <algorithm>

#include "runtime/passes/passes.h"

namespace tenon {

const std::vector<Pass>& AllPasses() {
  static const auto* const passes = new std::vector<Pass>{
      {"constant-folding", "constant_folding", "computes once what depends on constants alone",
       PassStage::kStep, FoldConstants},
      {"neutral-operands", "arithmetic_optimization",
       "leaves out products with one and quotients by it", PassStage::kStep, RemoveNeutralOperands},
      {"common-subexpressions", "common_subgraph_elimination", "merges nodes that compute the same",
       PassStage::kStep, MergeCommonSubexpressions},
      {"places-of-maxima", "remapping",
       "lets max pooling tell its gradient where the largest elements are", PassStage::kDevice,
       KeepPlacesOfMaxima},
      {"relu-in-pooling", "remapping", "lets pooling that tells places compute the Relu before it",
       PassStage::kDevice, ComputeReluInPooling},
      {"bias-in-convolutions", "remapping",
       "lets convolutions add the bias that is added to them, which may round otherwise",
       PassStage::kDevice, AddBiasInConvolutions},
  };
  return *passes;
}

Status RunPasses(PassStage stage, Graph* graph, const PassContext& context,
                 const PassOptions& options) {
  for (const std::string& name : options.disabled) {
    const bool known = std::any_of(AllPasses().begin(), AllPasses().end(),
                                   [&](const Pass& p) { return p.name == name; });
    if (!known) {
      std::vector<std::string_view> names;
      for (const Pass& p : AllPasses()) names.push_back(p.name);
      return InvalidArgument("no pass is named '", name, "'; there are: ", Join(names, ", "));
    }
  }
  if (!options.enabled) return OkStatus();
  for (const Pass& pass : AllPasses()) {
    const auto& off = options.disabled;
    if (pass.stage != stage || std::find(off.begin(), off.end(), pass.name) != off.end()) {
      continue;
    }
    const StatusOr<bool> changed = pass.run(graph, context);
    TENON_RETURN_IF_ERROR(Annotate(changed.status(), StrCat("pass ", pass.name)));
    if (!*changed) continue;
    TENON_RETURN_IF_ERROR(Annotate(graph->Validate(), StrCat("after pass ", pass.name)));
  }
  return OkStatus();
}

}  // namespace tenon
