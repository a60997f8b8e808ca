// SPDX-License-Identifier: Apache-2.0
//
// A recurrent network that learns to write, character by character, and then writes a line.
//
//   example_char_lstm --text FILE
#include <CLI/CLI.hpp>

#include <array>
#include <iostream>
#include <optional>

#include "data/files/file.h"
#include "examples/parse_flags.h"
#include "examples/program_end.h"
#include "tenon/tenon.h"

namespace {

using namespace tenon;  // NOLINT: a program about Tenon

struct Flags {
  std::string text, checkpoint_dir;
  int64_t units = 128, batch = 32, length = 50, steps = 1000;
  double learning_rate = 0.003;
};

/// The characters of a text as numbers from 0 on.
struct Alphabet {
  explicit Alphabet(const std::string& text) {
    number.fill(-1);
    for (const unsigned char c : text) {
      if (number[c] >= 0) continue;
      number[c] = static_cast<int>(characters.size());
      characters.push_back(static_cast<char>(c));
    }
  }
  std::string characters;
  std::array<int, 256> number;
};

/// Windows of the text, each with the one that begins a character later.
class Windows final : public InputSource {
 public:
  Windows(const std::string& text, const Alphabet& alphabet, int64_t length)
      : text_(text), alphabet_(alphabet), length_(length) {}
  StatusOr<bool> Next(InputElement* element) override {
    if (at_ + length_ + 1 > static_cast<int64_t>(text_.size())) return false;
    Tensor ids(DType::kInt32, Shape({length_ + 1}));
    for (int64_t i = 0; i <= length_; ++i) {
      ids.data<int32_t>()[i] = alphabet_.number[static_cast<unsigned char>(text_[at_ + i])];
    }
    *element = {ids.Slice(0, length_), ids.Slice(1, length_ + 1)};
    at_ += length_ / 2;
    return true;
  }

 private:
  const std::string& text_;
  const Alphabet& alphabet_;
  const int64_t length_;
  int64_t at_ = 0;
};

Status Train(const Flags& flags) {
  TENON_ASSIGN_OR_RETURN(const std::string text, ReadFileToString(flags.text));
  const Alphabet alphabet(text);
  const auto size = static_cast<int64_t>(alphabet.characters.size());
  if (static_cast<int64_t>(text.size()) <= flags.length) {
    return InvalidArgument(flags.text, " has ", text.size(), " characters, wanted more than ",
                           flags.length);
  }
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  SetRandomSeed(1);
  const Output ids = Placeholder(DType::kInt32, {-1, -1}, {.name = "ids"});
  const Output next = Placeholder(DType::kInt32, {-1, -1}, {.name = "next"});
  const auto [outputs, state] = DynamicRnn(LstmCell(flags.units), Embedding(size, 32)(ids));
  const Output logits = Dense(size)(outputs);
  const Output loss = losses::SparseSoftmaxCrossEntropy(next, logits);
  Adam adam(flags.learning_rate);
  Node* const train = adam.ApplyGradients(ClipByGlobalNorm(adam.ComputeGradients(loss), 5.0),
                                          {.global_step = GlobalStep()});
  const Output likely = ArgMax(logits[{0, -1}], 0);

  TENON_ASSIGN_OR_RETURN(
      auto session,
      MonitoredTrainingSession::Start(
          {.checkpoint_dir = flags.checkpoint_dir,
           .save_checkpoint_steps = 100,
           .hooks = {StopAtStep(flags.steps), NanTensorHook(loss),
                     LoggingTensorHook({{"loss", loss}}, 100, [](const std::string& line) {
                       std::cout << line + "\n" << std::flush;
                     })}}));
  InputPipeline batches = InputPipeline::From([&]() -> StatusOr<std::unique_ptr<InputSource>> {
                            return std::make_unique<Windows>(text, alphabet, flags.length);
                          })
                              .Shuffle(10000, 1)
                              .Repeat()
                              .Batch(flags.batch)
                              .Prefetch(2);
  std::optional<float> last;  // none where a checkpoint has all steps already
  for (const InputElement& batch : batches) {
    if (session->ShouldStop()) break;
    TENON_ASSIGN_OR_RETURN(last,
                           session->Run<float>({{ids, batch[0]}, {next, batch[1]}}, loss, {train}));
  }
  TENON_RETURN_IF_ERROR(batches.status());
  if (StopSignal::received() != 0) {
    TENON_RETURN_IF_ERROR(session->Close());
    std::cout << StoppedAfter(session->global_step(), flags.checkpoint_dir) << '\n';
    return OkStatus();
  }
  if (last) std::cout << "final loss: " << *last << '\n';
  // What it holds to come next, again and again.
  std::string line = text.substr(0, 20);
  for (int i = 0; i < 60; ++i) {
    std::vector<int32_t> before;
    for (const unsigned char c : line) before.push_back(alphabet.number[c]);
    TENON_ASSIGN_OR_RETURN(const Tensor seen, Tensor::Vector(before).Reshaped(
                                                  Shape({1, static_cast<int64_t>(before.size())})));
    TENON_ASSIGN_OR_RETURN(const int64_t id,
                           session->RunWithoutHooks<int64_t>({{ids, seen}}, likely));
    line += alphabet.characters[static_cast<size_t>(id)];
  }
  std::cout << "it writes: " << line << '\n';
  return session->Close();
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app("A recurrent network over the characters of a text");
  app.add_option("--text", flags.text, "File to learn from")->required();
  app.add_option("--checkpoint_dir", flags.checkpoint_dir, "Where training goes on");
  app.add_option("--units", flags.units)->check(AtLeast(1));
  app.add_option("--batch", flags.batch)->check(AtLeast(1));
  app.add_option("--length", flags.length, "Characters of a window")->check(Between(2, 1 << 20));
  app.add_option("--steps", flags.steps)->check(AtLeast(1));
  app.add_option("--learning_rate", flags.learning_rate)->check(Above(0));
  if (const auto code = ParseFlags(app, argc, argv)) return *code;
  return ExitCode(Train(flags));
}
