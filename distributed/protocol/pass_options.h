// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "proto/config.pb.h"
#include "runtime/passes/pass.h"

namespace tenon {

/// What a session's options say of the passes: all of them are off at optimization level L0 and
/// with disable_meta_optimizer; rewrite_options turns single ones off, by TensorFlow's names for
/// the like.
PassOptions PassesOf(const GraphOptions& graph);

}  // namespace tenon
