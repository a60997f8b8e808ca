// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/memory_use.h"

namespace tenon {

Status WithMemoryUse(const Status& status, Device& device) {
  if (status.code() != StatusCode::kResourceExhausted || device.queue() == nullptr) return status;
  int64_t bytes = 0, resources = 0;
  for (const ResourceStore::Usage& usage : device.resources().Usages()) {
    bytes += usage.bytes;
    resources += usage.resources;
  }
  return AppendToMessage(status, StrCat("; the ", resources,
                                        " variables and other resources of this task, on all of "
                                        "its devices, hold ",
                                        bytes >> 20, " MiB"));
}

}  // namespace tenon
