// SPDX-License-Identifier: Apache-2.0
#include "tools/device_flags.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include "tools/commands.h"

namespace tenon::tools {
namespace {

/// Keeps the first mistake in a text, which the parser would else write to the error stream.
class FirstMistake : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int, google::protobuf::io::ColumnNumber column,
                const std::string& message) override {
    if (!text_.empty()) return;
    text_ = StrCat("at character ", column + 1, ": ", message);
    if (text_.back() == '.') text_.pop_back();
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace

void DeviceFlags::AddTo(CLI::App& app) {
  app.add_option("--gpus", gpus,
                 "GPUs to use, which must be there; default: all, on a parameter server none")
      ->check(AtLeast(0));
  app.add_option("--visible_gpus", visible, "Which GPUs, in this order, such as 1,0; default: all");
  app.add_option("--gpu_memory_fraction", memory_fraction,
                 "The share of each GPU's memory that tensors may take; default: all")
      ->check(Above(0))
      ->check(AtMost(1));
  app.add_flag("--take_gpu_memory", take_memory, "Take that memory at once, not as it is needed");
  app.add_option("--config", config,
                 "Text of a ConfigProto, whose device_count and gpu_options are obeyed");
}

StatusOr<DeviceOptions> DeviceFlags::Resolve() const {
  ConfigProto proto;
  google::protobuf::TextFormat::Parser parser;
  FirstMistake mistake;
  parser.RecordErrorsTo(&mistake);
  if (!parser.ParseFromString(config, &proto)) {
    return WrongUsage(StrCat("--config '", config, "', ", mistake.text(),
                             "; wanted the text of a ConfigProto, such as ",
                             "'gpu_options { visible_device_list: \"0\" }'"));
  }
  auto given = DeviceOptionsOf(proto);
  if (!given.ok()) return WrongUsage(StrCat("--config: ", Message(given.status())));
  DeviceOptions options = *std::move(given);
  if (gpus >= 0) options.gpus = gpus;
  if (memory_fraction > 0) options.gpu.memory_fraction = memory_fraction;
  if (!visible.empty()) options.gpu.visible_devices = visible;
  options.gpu.allow_growth = !take_memory;
  return options;
}

}  // namespace tenon::tools
