// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/device/device.h"
#include "core/device/device_name.h"

namespace tenon {

/// A device as one session has it: with resources of the session's own, and perhaps under another
/// name and with other files. The device itself must outlive it.
class SessionDevice final : public Device {
 public:
  SessionDevice(Device& device, std::string name, std::shared_ptr<ResourceStore> resources)
      : SessionDevice(device, std::move(name), std::move(resources), device.files()) {}
  SessionDevice(Device& device, std::string name, std::shared_ptr<ResourceStore> resources,
                FileAccess files)
      : device_(device),
        name_(std::move(name)),
        resources_(std::move(resources)),
        files_(std::move(files)) {
    if (&device.host() != &device) {
      host_ = std::make_unique<SessionDevice>(device.host(), name_, resources_, files_);
    }
  }

  const std::string& name() const override { return name_; }
  DeviceKind kind() const override { return device_.kind(); }
  uint64_t incarnation() const override { return device_.incarnation(); }
  int64_t memory_limit() const override { return device_.memory_limit(); }
  Allocator& allocator() override { return device_.allocator(); }
  DeviceQueue* queue() override { return device_.queue(); }
  Device& host() override { return host_ == nullptr ? *this : *host_; }
  ResourceStore& resources() override { return *resources_; }
  const FileAccess& files() const override { return files_; }

 private:
  Device& device_;
  const std::string name_;
  const std::shared_ptr<ResourceStore> resources_;
  const FileAccess files_;
  std::unique_ptr<SessionDevice> host_;  // null: the device itself
};

/// The devices of one task for one session; they live as long as something refers to them.
struct SessionDevices {
  std::shared_ptr<ResourceStore> resources;
  std::vector<std::unique_ptr<Device>> devices;

  /// The session's own view of `devices`, under the names that they have in `task`.
  static std::shared_ptr<SessionDevices> Make(const std::vector<Device*>& devices,
                                              const std::string& task) {
    auto made = std::make_shared<SessionDevices>();
    made->resources = std::make_shared<ResourceStore>(devices[0]->resources().default_container());
    for (Device* d : devices) {
      const std::string& name = d->name();
      made->devices.push_back(
          std::make_unique<SessionDevice>(*d, StrCat(task, DevicePartOf(name)), made->resources));
    }
    return made;
  }
};

}  // namespace tenon
