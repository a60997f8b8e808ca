// SPDX-License-Identifier: Apache-2.0
// Exports and loads SavedModels, for saved_models_test.py:
//   saved_model_program export DIR ref|resource
//   saved_model_program export_with_assets DIR WORDS.txt
//   saved_model_program load DIR SIGNATURE INPUTS.npz OUTPUTS.npz
#include <cstdio>

#include "data/arrays/npy.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/lookup/lookup_ops.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "runtime/session/local_session.h"
#include "train/saver/saved_model.h"
#include "train/variables.h"

namespace tenon {
namespace {

/// scores = x w + b, and a table from words to numbers that a main op fills.
Status Export(const std::string& folder, bool resource) {
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  const Output x = Placeholder(DType::kFloat, {-1, 2}, {.name = "x"});
  const Output word = Placeholder(DType::kString, {-1}, {.name = "word"});
  Variable w, b;
  {
    const DeviceScope elsewhere("/job:localhost/replica:0/task:0/device:CPU:0");
    w = Variable("w", Tensor::Of<float>({2, 3}, {1, 2, 3, 4, 5, 6}), {.resource = resource});
    b = Variable("b", Tensor::Vector<float>({10, 20, 30}), {.resource = resource});
  }
  const Output scores = MatMul(x, w) + b;
  const Output table = HashTableV2(DType::kString, DType::kInt64, {.shared_name = "words"});
  Node* const fill = LookupTableImportV2(table, std::vector<std::string>{"one", "two"},
                                         std::vector<int64_t>{1, 2});
  const Output number =
      LookupTableFindV2(table, word, Const(int64_t{-1}, {.dtype = DType::kInt64}));
  Saver saver;
  Node* const init = GlobalVariablesInitializer();
  TENON_ASSIGN_OR_RETURN(const auto session, MakeLocalSession(graph));
  TENON_RETURN_IF_ERROR(session->Run({}, {}, {init}).status());
  return ExportSavedModel(
      *session, saver, folder,
      {{kDefaultServingSignature, {.inputs = {{"inputs", x}}, .outputs = {{"scores", scores}}}},
       {"lookup", {.inputs = {{"word", word}}, .outputs = {{"number", number}}}}},
      {.main_op = fill});
}

/// id = the line number of a word in a file, which goes with the model, shifted by a variable.
Status ExportWithAssets(const std::string& folder, const std::string& path) {
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  const Output word = Placeholder(DType::kString, {-1}, {.name = "word"});
  const Variable shift("shift", Tensor::Scalar(int64_t{10}));
  const Output words = Const(path, {.name = "words"});
  graph.Collection("asset_filepaths").push_back(words);
  const Output table = HashTableV2(DType::kString, DType::kInt64, {.shared_name = "words"});
  Node* const fill = InitializeTableFromTextFileV2(table, words, -2, -1);
  const Output id =
      LookupTableFindV2(table, word, Const(int64_t{-1}, {.dtype = DType::kInt64})) + shift;
  Saver saver;
  Node* const init = GlobalVariablesInitializer();
  TENON_ASSIGN_OR_RETURN(const auto session, MakeLocalSession(graph));
  TENON_RETURN_IF_ERROR(session->Run({}, {}, {init}).status());
  return ExportSavedModel(
      *session, saver, folder,
      {{kDefaultServingSignature, {.inputs = {{"word", word}}, .outputs = {{"id", id}}}}},
      {.main_op = fill});
}

Status Load(const std::string& folder, const std::string& signature, const std::string& from,
            const std::string& to) {
  TENON_ASSIGN_OR_RETURN(const SavedModelBundle model, LoadSavedModel(folder));
  TENON_ASSIGN_OR_RETURN(const NpzReader reader, NpzReader::Open(from));
  std::map<std::string, Tensor> inputs;
  for (const std::string& name : reader.names()) {
    TENON_ASSIGN_OR_RETURN(inputs[name], reader.Read(name));
  }
  TENON_ASSIGN_OR_RETURN(const auto outputs, model.Run(inputs, signature));
  return WriteNpz(to, {outputs.begin(), outputs.end()});
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  tenon::Status status = tenon::InvalidArgument("usage: export DIR KIND, load DIR NAME IN OUT");
  if (words.size() == 3 && words[0] == "export") {
    status = tenon::Export(words[1], words[2] == "resource");
  } else if (words.size() == 3 && words[0] == "export_with_assets") {
    status = tenon::ExportWithAssets(words[1], words[2]);
  } else if (words.size() == 5 && words[0] == "load") {
    status = tenon::Load(words[1], words[2], words[3], words[4]);
  }
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(tenon::Message(status)).c_str());
  return status.ok() ? 0 : 1;
}
