// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op/run.h"
#include "proto/run_options.pb.h"
#include "proto/worker.pb.h"

// RunSettings in the messages that carry them: RunOptions between a client and a master,
// ExecutorOpts between a master and a worker.

namespace tenon {

RunSettings RunSettingsFrom(const RunOptions& options);
RunSettings RunSettingsFrom(const ExecutorOpts& options);
void WriteRunSettings(const RunSettings& settings, RunOptions* options);
void WriteRunSettings(const RunSettings& settings, ExecutorOpts* options);

}  // namespace tenon
