// SPDX-License-Identifier: Apache-2.0
#include "runtime/execute/trace.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>

#include "absl/strings/str_format.h"
#include "runtime/device/machine_clock.h"

namespace tenon {
namespace {

std::string JsonText(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += absl::StrFormat("\\u%04x", static_cast<int>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

}  // namespace

int64_t NowNanos() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             MachineClock().WallNow().time_since_epoch())
      .count();
}

uint64_t TraceThreadId() {
  static std::atomic<uint64_t> next{0};
  static thread_local const uint64_t id = next.fetch_add(1);
  return id;
}

std::string ToChromeTrace(const std::vector<NodeTrace>& nodes) {
  int64_t begin = nodes.empty() ? 0 : nodes[0].start_ns;
  std::map<std::string, int> devices;
  for (const NodeTrace& n : nodes) {
    begin = std::min(begin, n.start_ns);
    devices.try_emplace(n.device, static_cast<int>(devices.size()));
  }
  std::string out = "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n";
  const char* separator = "";
  for (const auto& [device, id] : devices) {
    StrAppend(&out, separator, "{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": ", id,
              ", \"args\": {\"name\": ", JsonText(device), "}}");
    separator = ",\n";
  }
  for (const NodeTrace& n : nodes) {
    std::string outputs;
    for (const NodeTrace::OutputInfo& o : n.outputs) {
      StrAppend(&outputs, outputs.empty() ? "" : " ", ToString(o.dtype), o.shape.ToString());
    }
    out += absl::StrFormat(
        "%s{\"ph\": \"X\", \"cat\": \"op\", \"name\": %s, \"pid\": %d, \"tid\": %d, \"ts\": %.3f, "
        "\"dur\": %.3f, \"args\": {\"node\": %s, \"outputs\": %s}}",
        separator, JsonText(n.op), devices[n.device], n.thread, (n.start_ns - begin) / 1e3,
        (n.end_ns - n.start_ns) / 1e3, JsonText(n.name), JsonText(outputs));
    separator = ",\n";
  }
  return out + "\n]}\n";
}

}  // namespace tenon
