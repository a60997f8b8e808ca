// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tenon {

/// A second base of the allocator under which kernels are captured (QueueCapture). A kernel finds
/// it by a dynamic_cast, and refuses to do on the host what would not be repeated.
class CaptureMemory {
 protected:
  virtual ~CaptureMemory() = default;
};

}  // namespace tenon
