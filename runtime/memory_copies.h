// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/device.h"
#include "core/graph.h"

namespace tenon {

/// Puts copies into the part of a graph that is on `device`, if that has memory of its own:
/// wherever a value is in its memory and a consumer wants it in the host's (_CopyToHost), or the
/// other way (_CopyToDevice), one for each value however many consumers. A constant that consumers
/// want in the host's memory is there from the start (HostConst). Feeds, fetches and what goes to
/// other devices are in the host's.
///
/// What an argument wants is what its op declares (HostArgs) and where its kernel runs
/// (KernelMemory). Values that ops only move stay in the memory that they come from.
Status AddMemoryCopies(Graph* part, Device& device);

}  // namespace tenon
