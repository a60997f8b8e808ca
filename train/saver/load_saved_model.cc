// SPDX-License-Identifier: Apache-2.0
#include "core/proto/proto_io_graph.h"
#include "core/proto/proto_io_tensor.h"
#include "data/checkpoint/meta_graph_file.h"
#include "data/files/file.h"
#include "proto/meta_graph.pb.h"
#include "runtime/session/local_session.h"
#include "train/saver/saved_model.h"

namespace tenon {
namespace {

StatusOr<std::map<std::string, SignatureTensor>> ReadTensors(
    const google::protobuf::Map<std::string, TensorInfo>& infos) {
  std::map<std::string, SignatureTensor> tensors;
  for (const auto& [name, info] : infos) {
    SignatureTensor& tensor = tensors[name];
    tensor.name = info.name();
    if (info.dtype() != DT_INVALID) {
      TENON_ASSIGN_OR_RETURN(tensor.dtype, DTypeFromProto(info.dtype()));
    }
    TENON_ASSIGN_OR_RETURN(tensor.shape, PartialShapeFromProto(info.tensor_shape()));
  }
  return tensors;
}

/// The op to run after the variables are there; empty without one. Newer exporters say it in a
/// signature, older ones in one of two collections.
std::string MainOp(const MetaGraphDef& meta) {
  constexpr char kSignature[] = "__saved_model_init_op";
  const auto signature = meta.signature_def().find(kSignature);
  if (signature != meta.signature_def().end()) {
    const auto output = signature->second.outputs().find(kSignature);
    if (output != signature->second.outputs().end()) return output->second.name();
  }
  for (const char* name : {"saved_model_main_op", "legacy_init_op"}) {
    const auto found = meta.collection_def().find(name);
    if (found == meta.collection_def().end()) continue;
    if (found->second.node_list().value_size() > 0) return found->second.node_list().value(0);
  }
  return "";
}

/// The files beside the model: a field of newer exporters, a collection of older ones.
StatusOr<std::vector<AssetFileDef>> Assets(const MetaGraphDef& meta) {
  std::vector<AssetFileDef> assets(meta.asset_file_def().begin(), meta.asset_file_def().end());
  const auto found = meta.collection_def().find("saved_model_assets");
  if (!assets.empty() || found == meta.collection_def().end()) return assets;
  for (const google::protobuf::Any& any : found->second.any_list().value()) {
    // Not UnpackTo, which knows our own name of the message only.
    if (!assets.emplace_back().ParseFromString(any.value())) {
      return DataLoss("an asset of the model is unreadable");
    }
  }
  return assets;
}

std::string NamesOfTensors(const std::map<std::string, SignatureTensor>& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) names.push_back(StrCat("'", name, "'"));
  return names.empty() ? "none" : Join(names, ", ");
}

Status CheckSingle(const std::string& name, const SignatureTensor& tensor) {
  return tensor.name.empty()
             ? Unimplemented("'", name, "' of the signature is not one tensor but several")
             : OkStatus();
}

}  // namespace

StatusOr<std::map<std::string, LoadedSignature>> SignaturesOf(const MetaGraphDef& meta) {
  std::map<std::string, LoadedSignature> signatures;
  for (const auto& [name, def] : meta.signature_def()) {
    if (name.starts_with("__saved_model_")) continue;  // what the loader runs
    LoadedSignature& signature = signatures[name];
    TENON_ASSIGN_OR_RETURN(signature.inputs, ReadTensors(def.inputs()));
    TENON_ASSIGN_OR_RETURN(signature.outputs, ReadTensors(def.outputs()));
    signature.method_name = def.method_name();
  }
  return signatures;
}

Status RestoreSavedModel(Session& session, const MetaGraphDef& meta,
                         const std::string& export_dir) {
  Session::Feeds assets;
  TENON_ASSIGN_OR_RETURN(const std::vector<AssetFileDef> files, Assets(meta));
  for (const AssetFileDef& asset : files) {
    assets.emplace_back(asset.tensor_info().name(),
                        Tensor::Scalar(JoinPath(export_dir, "assets/" + asset.filename())));
  }
  const std::string prefix = JoinPath(export_dir, "variables/variables");
  const SaverDef& saver = meta.saver_def();
  if (!saver.restore_op_name().empty() && CheckpointExists(prefix)) {
    Session::Feeds feeds = assets;
    feeds.emplace_back(saver.filename_tensor_name(), Tensor::Scalar(prefix));
    const Status s = session
                         .Run(feeds, std::vector<std::string>(),
                              std::vector<std::string>{saver.restore_op_name()})
                         .status();
    TENON_RETURN_IF_ERROR(Annotate(s, StrCat("cannot restore '", prefix, "'")));
  }
  const std::string main_op = MainOp(meta);
  if (main_op.empty()) return OkStatus();
  TENON_ASSIGN_OR_RETURN(const TensorName name, ParseTensorName(main_op));
  return Annotate(
      session.Run(assets, std::vector<std::string>(), std::vector<std::string>{name.node}).status(),
      StrCat("cannot initialise '", export_dir, "'"));
}

StatusOr<SavedModelBundle> LoadSavedModel(const std::string& export_dir,
                                          const LoadOptions& options) {
  TENON_ASSIGN_OR_RETURN(const MetaGraphDef meta, LoadMetaGraphDef(export_dir, options.tags));
  auto graph = GraphFromProto(meta.graph_def(), *options.registry);
  if (!graph.ok()) return Annotate(graph.status(), export_dir);
  SavedModelBundle model;
  model.graph = std::make_unique<Graph>(*std::move(graph));
  TENON_ASSIGN_OR_RETURN(model.signatures, SignaturesOf(meta));
  TENON_ASSIGN_OR_RETURN(
      model.session, options.open ? options.open(*model.graph) : MakeLocalSession(*model.graph));
  TENON_RETURN_IF_ERROR(RestoreSavedModel(*model.session, meta, export_dir));
  return model;
}

StatusOr<std::map<std::string, Tensor>> SavedModelBundle::Run(
    const std::map<std::string, Tensor>& inputs, const std::string& signature) const {
  const auto found = signatures.find(signature);
  if (found == signatures.end()) {
    std::vector<std::string> names;
    for (const auto& [name, unused] : signatures) names.push_back(StrCat("'", name, "'"));
    return NotFound("the model has no signature '", signature, "', ",
                    names.empty() ? "nor any other" : StrCat("but ", Join(names, ", ")));
  }
  const LoadedSignature& call = found->second;
  Session::Feeds feeds;
  for (const auto& [name, value] : inputs) {
    const auto input = call.inputs.find(name);
    if (input == call.inputs.end()) {
      return InvalidArgument("signature '", signature, "' has no input '", name, "', but ",
                             NamesOfTensors(call.inputs));
    }
    TENON_RETURN_IF_ERROR(CheckSingle(name, input->second));
    if (value.dtype() != input->second.dtype) {
      return InvalidArgument("input '", name, "' of signature '", signature, "' is ",
                             ToString(input->second.dtype), ", found ", ToString(value.dtype()));
    }
    feeds.emplace_back(input->second.name, value);
  }
  for (const auto& [name, input] : call.inputs) {
    if (inputs.contains(name)) continue;
    return InvalidArgument("input '", name, "' of signature '", signature, "' is missing");
  }
  std::vector<std::string> fetches;
  for (const auto& [name, output] : call.outputs) {
    TENON_RETURN_IF_ERROR(CheckSingle(name, output));
    fetches.push_back(output.name);
  }
  TENON_ASSIGN_OR_RETURN(std::vector<Tensor> values, session->Run(feeds, fetches));
  std::map<std::string, Tensor> outputs;
  size_t i = 0;
  for (const auto& [name, output] : call.outputs) outputs[name] = std::move(values[i++]);
  return outputs;
}

}  // namespace tenon
