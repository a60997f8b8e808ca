// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ops/register.h"
#include "runtime/session/session.h"
#include "train/saver/saver.h"

// Models in the form in which TensorFlow exports and serves them: a folder with saved_model.pb, the
// graph and how to call it, and variables/, a checkpoint. Either library loads what the other one
// exported. Files that the graph reads when it is initialised, such as the words of a lookup table,
// go with it in assets/: those whose paths are constants of the collection "asset_filepaths".
//
//   TENON_RETURN_IF_ERROR(ExportSavedModel(*session, saver, "/models/digits/1", {
//       {kDefaultServingSignature, {.inputs = {{"images", x}}, .outputs = {{"scores", y}}}}}));
//   ...
//   TENON_ASSIGN_OR_RETURN(auto model, LoadSavedModel("/models/digits/1"));
//   TENON_ASSIGN_OR_RETURN(auto outputs, model.Run({{"images", pixels}}));
//   const Tensor& scores = outputs["scores"];

namespace tenon {

class MetaGraphDef;

/// The signature that is meant when none is named.
inline constexpr char kDefaultServingSignature[] = "serving_default";
/// The tag of a graph to serve.
inline constexpr char kServingTag[] = "serve";

/// A way to call a graph: names for tensors that are fed, and for those that are fetched.
struct ModelSignature {
  std::map<std::string, Output> inputs, outputs;
  std::string method_name = "tensorflow/serving/predict";
};

/// Options of ExportSavedModel, by name.
struct ExportOptions {
  std::vector<std::string> tags = {kServingTag};
  /// Runs after the variables are restored: what initialises tables.
  Node* main_op = nullptr;
  /// Leave out where nodes were placed, which are places of this cluster.
  bool clear_devices = true;
};

/// Writes the model to the folder `export_dir`, which appears whole or not at all, and must not be
/// there (tf.compat.v1.saved_model.Builder): the graph of `saver` with the variables that it saves,
/// as they are in `session`. Without variables, `saver` was made with allow_empty. The files of the
/// collection "asset_filepaths", which this process reads, are copied to assets/; who loads the
/// model feeds their new paths for the constants of the collection when the main op runs.
///
///   Output words = Const("words.txt");
///   graph.Collection("asset_filepaths").push_back(words);
///   Node* fill = InitializeTableFromTextFileV2(table, words, -2, -1);     // the main op
///
/// On a cluster, the folder is one that the tasks share, as for Saver::Save. AlreadyExists when the
/// folder is there; InvalidArgument for a signature with a tensor that is not of the graph, and for
/// an asset that is no constant with a path; the errors of Saver::Save and of files.
Status ExportSavedModel(Session& session, Saver& saver, const std::string& export_dir,
                        const std::map<std::string, ModelSignature>& signatures,
                        const ExportOptions& options = {});

/// A tensor of a signature.
struct SignatureTensor {
  std::string name;  // "node:output"; empty when it is of several tensors, as a sparse one
  DType dtype = DType::kInvalid;
  PartialShape shape;
};
/// A signature of a model that was loaded.
struct LoadedSignature {
  std::map<std::string, SignatureTensor> inputs, outputs;
  std::string method_name;
};

/// A model, ready to be called. Move it freely; thread-safe as its session.
struct SavedModelBundle {
  std::unique_ptr<Graph> graph;
  std::unique_ptr<Session> session;
  std::map<std::string, LoadedSignature> signatures;

  /// Feeds a signature's inputs and gives its outputs, by their names in it. NotFound for an
  /// unknown signature; InvalidArgument for an input that is missing or unknown or has another
  /// dtype; Unimplemented when one is of several tensors; the errors of the session.
  StatusOr<std::map<std::string, Tensor>> Run(
      const std::map<std::string, Tensor>& inputs,
      const std::string& signature = kDefaultServingSignature) const;
};

/// Options of LoadSavedModel, by name.
struct LoadOptions {
  /// The tags, all of which the graph has that is taken of those in the file.
  std::vector<std::string> tags = {kServingTag};
  /// The ops it may have; they must outlive it.
  const OpRegistry* registry = &AllOps();
  /// Opens the session; by default MakeLocalSession.
  std::function<StatusOr<std::unique_ptr<Session>>(const Graph&)> open = {};
};

/// Loads a model that Tenon or TensorFlow (1 or 2) exported (tf.compat.v1.saved_model.load): its
/// variables have their values, its assets are found, and its main op has run. NotFound when there
/// is none, or none with the tags; the errors of GraphFromProto for a graph that Tenon cannot run,
/// of files and of the session.
StatusOr<SavedModelBundle> LoadSavedModel(const std::string& export_dir,
                                          const LoadOptions& options = {});

/// The parts of it, for those who open the session themselves. What a graph's signatures are.
StatusOr<std::map<std::string, LoadedSignature>> SignaturesOf(const MetaGraphDef& meta);
/// Restores the variables from `export_dir` and runs the main op.
Status RestoreSavedModel(Session& session, const MetaGraphDef& meta, const std::string& export_dir);

}  // namespace tenon
