// SPDX-License-Identifier: Apache-2.0
#include "distributed/protocol/pass_options.h"

namespace tenon {

PassOptions PassesOf(const GraphOptions& graph) {
  PassOptions options;
  options.enabled = graph.optimizer_options().opt_level() != OptimizerOptions::L0 &&
                    !graph.rewrite_options().disable_meta_optimizer();
  if (graph.rewrite_options().constant_folding() == RewriterConfig::OFF) {
    options.disabled.push_back("constant-folding");
  }
  if (graph.rewrite_options().common_subgraph_elimination() == RewriterConfig::OFF) {
    options.disabled.push_back("common-subexpressions");
  }
  if (graph.rewrite_options().arithmetic_optimization() == RewriterConfig::OFF) {
    options.disabled.push_back("neutral-operands");
  }
  if (graph.rewrite_options().remapping() == RewriterConfig::OFF) {
    options.disabled.push_back("places-of-maxima");
  }
  return options;
}

}  // namespace tenon
