// SPDX-License-Identifier: Apache-2.0
#include "core/device/rendezvous.h"

#include <array>
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

StatusOr<RendezvousKey> RendezvousKey::Parse(std::string_view text) {
  const Status error =
      InvalidArgument("Invalid  rendezvous key: ", text,
                      "; wanted 'src_device;16 hex digits;dst_device;tensor_name;frame:iteration'");
  std::array<std::string_view, 5> parts;
  std::string_view rest = text;
  for (size_t i = 0; i < parts.size(); ++i) {
    const size_t end = rest.find(';');
    if ((end == std::string_view::npos) != (i + 1 == parts.size())) return error;
    parts[i] = rest.substr(0, end);
    if (end != std::string_view::npos) rest.remove_prefix(end + 1);
  }
  RendezvousKey key;
  const size_t colon = parts[4].find(':');
  if (parts[1].size() != 16 || colon == std::string_view::npos ||
      !ParseNumber(parts[1], 16, &key.src_incarnation) ||
      !ParseNumber(parts[4].substr(0, colon), 10, &key.frame) ||
      !ParseNumber(parts[4].substr(colon + 1), 10, &key.iteration)) {
    return error;
  }
  key.src_device = parts[0];
  key.dst_device = parts[2];
  key.tensor_name = parts[3];
  return key;
}

}  // namespace tenon
