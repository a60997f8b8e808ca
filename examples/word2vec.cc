// SPDX-License-Identifier: Apache-2.0
//
// Vectors for the words of a text, learned from which words stand near each other (skip-grams with
// negative sampling; Mikolov et al. 2013, "Distributed Representations of Words and Phrases and
// their Compositionality"). Then it names the nearest of some frequent words.
//
//   example_word2vec --text FILE
#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>
#include <map>
#include <sstream>

#include "data/batch/random_sequence.h"
#include "data/files/file.h"
#include "examples/parse_flags.h"
#include "tenon/tenon.h"

namespace {

using namespace tenon;  // NOLINT: a program about Tenon

/// How many words are shown in the end, and how many near each.
constexpr int64_t kShown = 5, kNear = 3;

struct Flags {
  std::string text;
  int64_t vocabulary = 5000, width = 64, batch = 128, window = 2, negatives = 64, steps = 5000;
  double learning_rate = 0.5;
};

/// The words of a text as numbers: 0 is a word that is none of the frequent ones, which come in the
/// order of their frequency.
struct Words {
  Words(const std::string& text, int64_t most) {
    std::map<std::string, int64_t> counts;
    std::vector<std::string> all;
    std::istringstream stream(text);
    for (std::string word; stream >> word;) {
      ++counts[word];
      all.push_back(word);
    }
    std::vector<std::pair<int64_t, std::string>> order;
    for (const auto& [word, count] : counts) order.emplace_back(-count, word);
    std::sort(order.begin(), order.end());
    std::map<std::string, int32_t> numbers;
    names.emplace_back("(rare)");
    for (const auto& [count, word] : order) {
      if (static_cast<int64_t>(names.size()) == most) break;
      numbers[word] = static_cast<int32_t>(names.size());
      names.push_back(word);
    }
    for (const std::string& word : all) ids.push_back(numbers.contains(word) ? numbers[word] : 0);
  }
  std::vector<std::string> names;
  std::vector<int32_t> ids;
};

/// Words, and for each one that stands near it.
class SkipGrams final : public InputSource {
 public:
  SkipGrams(const Words& words, int64_t window) : words_(words), window_(window) {}
  StatusOr<bool> Next(InputElement* element) override {
    const auto count = static_cast<int64_t>(words_.ids.size());
    const int64_t at = static_cast<int64_t>(random_.Below(static_cast<uint64_t>(count)));
    int64_t near = at;
    while (near == at) {
      near = at - window_ +
             static_cast<int64_t>(random_.Below(static_cast<uint64_t>(2 * window_ + 1)));
      near = std::clamp<int64_t>(near, 0, count - 1);
      if (near == at && (at == 0 || at == count - 1)) near = at == 0 ? 1 : at - 1;
    }
    *element = {Tensor::Scalar(words_.ids[at]),
                Tensor::Scalar(static_cast<int64_t>(words_.ids[near]))};
    return true;
  }

 private:
  const Words& words_;
  const int64_t window_;
  RandomSequence random_{1};
};

Status Train(const Flags& flags) {
  TENON_ASSIGN_OR_RETURN(const std::string text, ReadFileToString(flags.text));
  const Words words(text, flags.vocabulary);
  const auto size = static_cast<int64_t>(words.names.size());
  if (size < std::max<int64_t>(flags.negatives, kShown + kNear)) {
    return InvalidArgument(flags.text, " gives ", size - 1, " words to learn, wanted at least ",
                           std::max<int64_t>(flags.negatives, kShown + kNear) - 1,
                           ": as many as --negatives");
  }
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  SetRandomSeed(1);
  const Output center = Placeholder(DType::kInt32, {flags.batch}, {.name = "center"});
  const Output context = Placeholder(DType::kInt64, {flags.batch}, {.name = "context"});
  const Variable vectors("vectors", RandomUniform({size, flags.width}, DType::kFloat) * 2 - 1);
  const Variable weights("weights", RandomNormal({size, flags.width}) * 0.1f);
  const Variable biases("biases", Zeros({size}));
  // Only the rows that are looked up have gradients, and are changed.
  const Output v = GatherV2(vectors, center, 0);
  const Output right = Sum(v * GatherV2(weights, context, 0), {1}) + GatherV2(biases, context, 0);
  const auto sampled =
      LogUniformCandidateSampler(ExpandDims(context, 1), 1, flags.negatives, true, size);
  const Output wrong =
      MatMul(v, GatherV2(weights, sampled.sampled_candidates, 0), {.transpose_b = true}) +
      GatherV2(biases, sampled.sampled_candidates, 0);
  const Output loss = Mean(Softplus(-right) + Sum(Softplus(wrong), {1}));
  Node* const train = Adagrad(flags.learning_rate).Minimize(loss);
  const Output unit =
      vectors / Sqrt(Sum(Square(vectors.value()), {1}, {.keep_dims = true}) + 1e-9f);
  const auto nearest = TopKV2(MatMul(unit[{{1, 1 + kShown}}], unit, {.transpose_b = true}),
                              static_cast<int32_t>(kNear + 1));
  Node* const init = GlobalVariablesInitializer();

  TENON_ASSIGN_OR_RETURN(const auto session, MakeLocalSession(graph));
  TENON_RETURN_IF_ERROR(session->Run({}, {}, {init}).status());
  InputPipeline batches = InputPipeline::From([&]() -> StatusOr<std::unique_ptr<InputSource>> {
                            return std::make_unique<SkipGrams>(words, flags.window);
                          })
                              .Batch(flags.batch)
                              .Take(flags.steps)
                              .Prefetch(4);
  TENON_ASSIGN_OR_RETURN(const auto step, session->Prepare({center, context}, {loss}, {train}));
  std::vector<Tensor> fetched;
  double sum = 0;
  int64_t steps = 0;
  const int64_t report = std::max<int64_t>(flags.steps / 10, 1);
  for (const InputElement& batch : batches) {
    TENON_RETURN_IF_ERROR(step->Run(batch, &fetched));
    sum += fetched[0].scalar<float>();
    if (++steps % report != 0) continue;
    std::cout << "step " << steps << ", mean loss " << sum / static_cast<double>(report)
              << std::endl;
    sum = 0;
  }
  TENON_RETURN_IF_ERROR(batches.status());
  TENON_ASSIGN_OR_RETURN(const Tensor near, session->Run<Tensor>({}, nearest.indices));
  for (int64_t i = 0; i < near.dim(0); ++i) {
    std::cout << words.names[static_cast<size_t>(i) + 1] << " is near";
    for (int64_t k = 1; k <= kNear; ++k) {  // the nearest is the word itself
      std::cout << ' ' << words.names[near.data<int32_t>()[i * (kNear + 1) + k]];
    }
    std::cout << '\n';
  }
  return OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app("Vectors for the words of a text");
  app.add_option("--text", flags.text, "File to learn from: words between spaces")->required();
  app.add_option("--vocabulary", flags.vocabulary, "So many of the most frequent words")
      ->check(Between(8, 1 << 24));
  app.add_option("--width", flags.width, "Of a vector")->check(AtLeast(1));
  app.add_option("--batch", flags.batch)->check(AtLeast(1));
  app.add_option("--window", flags.window, "How far words are near")->check(AtLeast(1));
  app.add_option("--negatives", flags.negatives)->check(AtLeast(1));
  app.add_option("--steps", flags.steps)->check(AtLeast(1));
  app.add_option("--learning_rate", flags.learning_rate)->check(Above(0));
  if (const auto code = ParseFlags(app, argc, argv)) return *code;
  const Status status = Train(flags);
  if (!status.ok()) std::cerr << status << '\n';
  return status.ok() ? 0 : 1;
}
