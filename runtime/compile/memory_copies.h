// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/types/span.h"
#include "runtime/device/device_part.h"

namespace tenon {

/// Puts copies into the parts of a graph that are on devices with memory of their own: wherever a
/// value is in the device's memory and a consumer wants it in the host's (_CopyToHost), or the
/// other way (_CopyToDevice), one for each value however many consumers. A constant that consumers
/// want in the host's memory is there from the start (HostConst). Feeds, fetches and what goes to
/// other devices are in the host's; but a value that is in the memory of one device and wanted in
/// that of another one of the same kind goes straight there (_SendToPeer and _RecvFromPeer in the
/// place of _Send and _Recv). `parts` are all those of the task.
///
/// What an argument wants is what its op declares (HostArgs) and where its kernel runs
/// (KernelMemory). Values that ops only move stay in the memory that they come from.
Status AddMemoryCopies(absl::Span<const DevicePart> parts);

}  // namespace tenon
