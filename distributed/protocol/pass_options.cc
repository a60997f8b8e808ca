// SPDX-License-Identifier: Apache-2.0
#include "distributed/protocol/pass_options.h"

#include <string>

namespace tenon {

PassOptions PassesOf(const GraphOptions& graph) {
  const RewriterConfig& config = graph.rewrite_options();
  PassOptions options;
  options.enabled = graph.optimizer_options().opt_level() != OptimizerOptions::L0 &&
                    !config.disable_meta_optimizer();
  for (const Pass& pass : AllPasses()) {
    const auto* const option =
        config.GetDescriptor()->FindFieldByName(std::string(pass.rewriter_option));
    if (config.GetReflection()->GetEnumValue(config, option) == RewriterConfig::OFF) {
      options.disabled.emplace_back(pass.name);
    }
  }
  return options;
}

}  // namespace tenon
