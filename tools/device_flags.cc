// SPDX-License-Identifier: Apache-2.0
#include "tools/device_flags.h"

#include <google/protobuf/text_format.h>

#include "tools/commands.h"

namespace tenon::tools {

void DeviceFlags::AddTo(CLI::App& app) {
  app.add_option("--gpus", gpus,
                 "GPUs to use, which must be there; default: all, on a parameter server none")
      ->check(AtLeast(0));
  app.add_option("--visible_gpus,--visible-gpus", visible,
                 "Which GPUs, in this order, such as 1,0; default: all");
  app.add_option("--gpu_memory_fraction,--gpu-memory-fraction", memory_fraction,
                 "The share of each GPU's memory that tensors may take; default: all")
      ->check(CLI::Range(0.0, 1.0));
  app.add_flag("--take_gpu_memory,--take-gpu-memory", take_memory,
               "Take that memory at once, not as it is needed");
  app.add_option("--config", config,
                 "Text of a ConfigProto, whose device_count and gpu_options are obeyed");
}

StatusOr<DeviceOptions> DeviceFlags::Resolve() const {
  ConfigProto proto;
  if (!google::protobuf::TextFormat::ParseFromString(config, &proto)) {
    return InvalidArgument("--config '", config, "': wanted the text of a ConfigProto, such as ",
                           "'gpu_options { visible_device_list: \"0\" }'");
  }
  TENON_ASSIGN_OR_RETURN(DeviceOptions options, DeviceOptionsOf(proto));
  if (gpus >= 0) options.gpu_devices = gpus;
  if (memory_fraction > 0) options.gpu.memory_fraction = memory_fraction;
  if (!visible.empty()) options.gpu.visible_devices = visible;
  options.gpu.allow_growth = !take_memory;
  return options;
}

}  // namespace tenon::tools
