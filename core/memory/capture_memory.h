// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tenon {

/// What the allocator of a device is besides under which kernels are recorded (QueueCapture):
/// what they do on the host alone would not be repeated.
class CaptureMemory {
 protected:
  virtual ~CaptureMemory() = default;
};

}  // namespace tenon
