// SPDX-License-Identifier: Apache-2.0
#include "core/device/device_name.h"

#include <algorithm>
#include <charconv>

namespace tenon {
namespace {

std::string Upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

bool IsIdentifier(std::string_view text) {
  if (text.empty() || !std::isalpha(static_cast<unsigned char>(text[0]))) return false;
  for (const char c : text) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') return false;
  }
  return true;
}

/// "*" leaves `out` unset.
bool ParseNumber(std::string_view text, std::optional<int>* out) {
  out->reset();
  if (text == "*") return true;
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return false;
  *out = value;
  return true;
}

bool ParseName(std::string_view text, std::optional<std::string>* out) {
  out->reset();
  if (text == "*") return true;
  if (!IsIdentifier(text)) return false;
  *out = std::string(text);
  return true;
}

bool ParsePart(std::string_view part, DeviceName* out) {
  const size_t colon = part.find(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view key = part.substr(0, colon);
  std::string_view value = part.substr(colon + 1);
  if (key == "job") return ParseName(value, &out->job);
  if (key == "replica") return ParseNumber(value, &out->replica);
  if (key == "task") return ParseNumber(value, &out->task);
  if (key == "device") {
    const size_t second = value.find(':');
    if (!ParseName(value.substr(0, second), &out->type)) return false;
    if (out->type) out->type = Upper(*out->type);
    out->id.reset();
    return second == std::string_view::npos || ParseNumber(value.substr(second + 1), &out->id);
  }
  const std::string type = Upper(key);
  if (type == "CPU" || type == "GPU") {
    out->type = type;
    return ParseNumber(value, &out->id);
  }
  return false;
}

template <typename T>
bool Fits(const std::optional<T>& wanted, const std::optional<T>& found) {
  return !wanted || wanted == found;
}

}  // namespace

StatusOr<DeviceName> DeviceName::Parse(std::string_view text) {
  DeviceName name;
  std::string_view rest = text;
  while (!rest.empty()) {
    if (rest.front() != '/') return InvalidArgument("'", text, "' is not a device name");
    rest.remove_prefix(1);
    const std::string_view part = rest.substr(0, rest.find('/'));
    rest.remove_prefix(part.size());
    if (part.empty() && rest.empty()) break;  // a lone or trailing slash
    if (!ParsePart(part, &name)) {
      return InvalidArgument(
          "'", text, "' is not a device name; cannot read '", part,
          "', wanted job:NAME, replica:N, task:N, device:TYPE:N, cpu:N or gpu:N");
    }
  }
  return name;
}

std::string DeviceName::ToString() const {
  std::string out;
  if (job) StrAppend(&out, "/job:", *job);
  if (replica) StrAppend(&out, "/replica:", *replica);
  if (task) StrAppend(&out, "/task:", *task);
  if (type) {
    StrAppend(&out, "/device:", *type);
    if (id) StrAppend(&out, ":", *id);
  } else if (id) {
    StrAppend(&out, "/device:*:", *id);
  }
  return out;
}

bool DeviceName::Matches(const DeviceName& d) const {
  return Fits(job, d.job) && Fits(replica, d.replica) && Fits(task, d.task) && Fits(type, d.type) &&
         Fits(id, d.id);
}

Status DeviceName::MergeConstraint(const DeviceName& other, bool soft) {
  const auto conflict = [&](std::string_view what) {
    return InvalidArgument("devices '", ToString(), "' and '", other.ToString(),
                           "' name different ", what);
  };
  const auto differ = [](const auto& a, const auto& b) { return a && b && a != b; };
  if (differ(job, other.job)) return conflict("jobs");
  if (differ(replica, other.replica)) return conflict("replicas");
  if (differ(task, other.task)) return conflict("tasks");
  if (differ(type, other.type) || differ(id, other.id)) {
    if (!soft) return conflict("device types or numbers");
    type.reset();
    id.reset();
  } else {
    if (other.type) type = other.type;
    if (other.id) id = other.id;
  }
  if (other.job) job = other.job;
  if (other.replica) replica = other.replica;
  if (other.task) task = other.task;
  return OkStatus();
}

void DeviceName::Override(const DeviceName& other) {
  if (other.job) job = other.job;
  if (other.replica) replica = other.replica;
  if (other.task) task = other.task;
  if (other.type) {
    type = other.type;
    id = other.id;
  } else if (other.id) {
    id = other.id;
  }
}

StatusOr<std::string> MergeDeviceNames(std::string_view base, std::string_view over) {
  TENON_ASSIGN_OR_RETURN(DeviceName merged, DeviceName::Parse(base));
  TENON_ASSIGN_OR_RETURN(const DeviceName top, DeviceName::Parse(over));
  merged.Override(top);
  return merged.ToString();
}

std::string_view TaskPartOf(std::string_view device) { return device.substr(0, device.rfind('/')); }

std::string_view DevicePartOf(std::string_view device) {
  return device.substr(std::min(device.rfind('/'), device.size()));
}

}  // namespace tenon
