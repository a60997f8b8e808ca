// SPDX-License-Identifier: Apache-2.0

#include "absl/cleanup/cleanup.h"
#include "core/proto/proto_io_tensor.h"
#include "data/files/file.h"
#include "proto/saved_model.pb.h"
#include "train/saver/assets.h"
#include "train/saver/saved_model.h"
#include "train/saver/saver.h"

namespace tenon {
namespace {

constexpr char kMainOpCollection[] = "saved_model_main_op";
constexpr char kMainOpSignature[] = "__saved_model_init_op";

using TensorInfos = google::protobuf::Map<std::string, TensorInfo>;

Status DescribeTensors(const Graph& graph, const std::string& signature,
                       const std::map<std::string, Output>& tensors, TensorInfos* out) {
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.exists() || graph.Find(tensor.node->name()) != tensor.node) {
      return InvalidArgument("signature '", signature, "': '", name,
                             "' is no tensor of the graph that is exported");
    }
    TensorInfo& info = (*out)[name];
    info.set_name(StrCat(tensor.node->name(), ":", tensor.index));
    info.set_dtype(DTypeToProto(tensor.dtype()));
    ShapeToProto(tensor.shape(), info.mutable_tensor_shape());
  }
  return OkStatus();
}

Status DescribeModel(const Saver& saver, const std::map<std::string, ModelSignature>& signatures,
                     const ExportOptions& options, MetaGraphDef* meta) {
  TENON_RETURN_IF_ERROR(ExportMetaGraph(saver, meta));
  for (const std::string& tag : options.tags) meta->mutable_meta_info_def()->add_tags(tag);
  if (options.clear_devices) {
    for (NodeDef& node : *meta->mutable_graph_def()->mutable_node()) node.clear_device();
  }
  for (const auto& [name, signature] : signatures) {
    SignatureDef& def = (*meta->mutable_signature_def())[name];
    def.set_method_name(signature.method_name);
    TENON_RETURN_IF_ERROR(
        DescribeTensors(saver.graph(), name, signature.inputs, def.mutable_inputs()));
    TENON_RETURN_IF_ERROR(
        DescribeTensors(saver.graph(), name, signature.outputs, def.mutable_outputs()));
  }
  if (options.main_op == nullptr) return OkStatus();
  const std::string main_op = options.main_op->name();
  if (main_op.empty()) return InvalidArgument("the main op of the model could not be built");
  (*meta->mutable_collection_def())[kMainOpCollection].mutable_node_list()->add_value(main_op);
  TensorInfo& info =
      (*(*meta->mutable_signature_def())[kMainOpSignature].mutable_outputs())[kMainOpSignature];
  info.set_name(main_op);
  return OkStatus();
}

}  // namespace

Status ExportSavedModel(Session& session, Saver& saver, const std::string& export_dir,
                        const std::map<std::string, ModelSignature>& signatures,
                        const ExportOptions& options) {
  std::string folder = export_dir;
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  if (folder.empty()) return InvalidArgument("the folder to export a model to has no name");
  if (FileExists(folder)) {
    return AlreadyExists("cannot export a model to '", folder, "': it is there already");
  }
  TENON_ASSIGN_OR_RETURN(const std::vector<Asset> assets, AssetsOf(saver.graph()));
  SavedModel model;
  model.set_saved_model_schema_version(1);
  TENON_RETURN_IF_ERROR(DescribeModel(saver, signatures, options, model.add_meta_graphs()));
  DescribeAssets(assets, model.mutable_meta_graphs(0));
  const std::string temporary = TemporaryName(folder);
  TENON_RETURN_IF_ERROR(MakeFolders(temporary));
  absl::Cleanup remove = [&] { RemoveTree(temporary).IgnoreError(); };
  if (!saver.empty()) {
    TENON_RETURN_IF_ERROR(saver
                              .Save(session, temporary + "/variables/variables",
                                    {.write_meta_graph = false, .write_state = false})
                              .status());
  }
  TENON_RETURN_IF_ERROR(CopyAssets(assets, temporary + "/assets"));
  TENON_RETURN_IF_ERROR(
      WriteStringToFile(temporary + "/saved_model.pb", model.SerializeAsString()));
  return PublishFile(temporary, folder);
}

}  // namespace tenon
