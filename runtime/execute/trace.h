// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/op/kernel.h"

namespace tenon {

/// When and where one node ran; times in nanoseconds since the Unix epoch.
struct NodeTrace {
  std::string name;
  std::string op;
  std::string device;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  uint64_t thread = 0;  // a small number for each thread, in order of appearance
  struct OutputInfo {
    DType dtype;
    Shape shape;
    int64_t bytes;
  };
  std::vector<OutputInfo> outputs;
};

/// Collects what the nodes of a step did, as far as kMaxBytes reach: a loop may run for days.
/// Thread-safe.
class RunTrace {
 public:
  static constexpr size_t kMaxBytes = 256 << 20;

  void Add(NodeTrace node) {
    const size_t bytes = sizeof(NodeTrace) + node.name.size() + node.op.size() +
                         node.device.size() + node.outputs.size() * sizeof(NodeTrace::OutputInfo);
    MutexLock lock(mu_);
    if (bytes > kMaxBytes - bytes_) return;
    bytes_ += bytes;
    nodes_.push_back(std::move(node));
  }
  std::vector<NodeTrace> Take() {
    MutexLock lock(mu_);
    return std::move(nodes_);
  }

 private:
  Mutex mu_;
  std::vector<NodeTrace> nodes_ ABSL_GUARDED_BY(mu_);
  size_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
};

/// Nanoseconds since the Unix epoch.
int64_t NowNanos();
/// A small number that names the calling thread in traces.
uint64_t TraceThreadId();

/// The trace in Chrome's trace event format (chrome://tracing, Perfetto): one process a device, one
/// row a thread, times relative to the first node.
std::string ToChromeTrace(const std::vector<NodeTrace>& nodes);

}  // namespace tenon
