// SPDX-License-Identifier: Apache-2.0
#include "core/device/rendezvous.h"

#include <charconv>

namespace tenon {
namespace {

template <typename T>
bool ParseNumber(std::string_view text, int base, T* out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out, base);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::string RendezvousKey::ToString() const {
  return StrCat(src_device, ";", absl::Hex(src_incarnation, absl::kZeroPad16), ";", dst_device, ";",
                tensor_name, ";", frame, ":", iteration);
}

std::optional<RendezvousKeyParts> RendezvousKeyParts::Of(std::string_view key) {
  RendezvousKeyParts parts;
  for (std::string_view* part :
       {&parts.src_device, &parts.src_incarnation, &parts.dst_device, &parts.tensor_name}) {
    const size_t end = key.find(';');
    if (end == std::string_view::npos) return std::nullopt;
    *part = key.substr(0, end);
    key.remove_prefix(end + 1);
  }
  if (key.find(';') != std::string_view::npos) return std::nullopt;
  parts.frame_and_iteration = key;
  return parts;
}

StatusOr<RendezvousKey> RendezvousKey::Parse(std::string_view text) {
  const auto parts = RendezvousKeyParts::Of(text);
  RendezvousKey key;
  const size_t colon = parts ? parts->frame_and_iteration.find(':') : std::string_view::npos;
  if (colon == std::string_view::npos || parts->src_incarnation.size() != 16 ||
      !ParseNumber(parts->src_incarnation, 16, &key.src_incarnation) ||
      !ParseNumber(parts->frame_and_iteration.substr(0, colon), 10, &key.frame) ||
      !ParseNumber(parts->frame_and_iteration.substr(colon + 1), 10, &key.iteration)) {
    return InvalidArgument("Invalid  rendezvous key: ", text,
                           "; wanted 'src_device;16 hex digits;dst_device;tensor_name;"
                           "frame:iteration'");
  }
  key.src_device = parts->src_device;
  key.dst_device = parts->dst_device;
  key.tensor_name = parts->tensor_name;
  return key;
}

}  // namespace tenon
