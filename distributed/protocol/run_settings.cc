// SPDX-License-Identifier: Apache-2.0
#include "distributed/protocol/run_settings.h"

namespace tenon {

RunSettings RunSettingsFrom(const RunOptions& options) {
  return {.trace = options.trace_level() > RunOptions::NO_TRACE};
}

RunSettings RunSettingsFrom(const ExecutorOpts& options) {
  return {.trace = options.record_timeline()};
}

void WriteRunSettings(const RunSettings& settings, RunOptions* options) {
  options->set_trace_level(settings.trace ? RunOptions::FULL_TRACE : RunOptions::NO_TRACE);
}

void WriteRunSettings(const RunSettings& settings, ExecutorOpts* options) {
  options->set_record_timeline(settings.trace);
}

}  // namespace tenon
