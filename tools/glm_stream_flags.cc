// SPDX-License-Identifier: Apache-2.0
#include "tools/glm_stream_flags.h"

namespace tenon::tools {

void AddStreamFlags(CLI::App* command, GlmStreamFlags* flags) {
  command->add_flag("--stream", flags->stream,
                    "FTRL in place of an exact fit: each row is used for one step an epoch, with "
                    "coefficients on the parameter servers of a cluster, for tables of which one "
                    "pass is what one can afford. Not converged, no inference");
  command->add_option("--epochs", flags->epochs, "Of --stream; default: 1")->check(AtLeast(1));
  command->add_option("--batch", flags->batch, "Rows of a step of --stream; default: 512")
      ->check(Between(1, 1 << 20));
  command
      ->add_option("--learning_rate", flags->learning_rate,
                   "Of --stream, over which each coefficient has a rate of its own; default: 0.1")
      ->check(CLI::PositiveNumber);
  command->add_option("--seed", flags->seed, "Of the order of rows in --stream; default: 1")
      ->check(AtLeast(0));
}

StatusOr<std::optional<StreamFitOptions>> StreamOf(const GlmStreamFlags& flags) {
  if (!flags.stream) {
    const char* const given = flags.epochs          ? "--epochs"
                              : flags.batch         ? "--batch"
                              : flags.learning_rate ? "--learning_rate"
                              : flags.seed          ? "--seed"
                                                    : nullptr;
    if (given != nullptr) return WrongUsage(StrCat(given, " is one of --stream"));
    return std::nullopt;
  }
  StreamFitOptions options;
  options.epochs = flags.epochs.value_or(options.epochs);
  options.batch_rows = flags.batch.value_or(options.batch_rows);
  options.learning_rate = flags.learning_rate.value_or(options.learning_rate);
  options.seed = flags.seed.value_or(options.seed);
  return options;
}

}  // namespace tenon::tools
