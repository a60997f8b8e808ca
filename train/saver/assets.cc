// SPDX-License-Identifier: Apache-2.0
#include "train/saver/assets.h"

#include <map>
#include <set>

#include "data/files/file.h"
#include "proto/meta_graph.pb.h"

namespace tenon {
namespace {

StatusOr<std::string> PathIn(const Endpoint& member) {
  const Node& node = *member.node;
  const Tensor value = node.attrs().GetOr("value", Tensor());
  const bool is_text = node.is_constant() && value.valid() && value.dtype() == DType::kString &&
                       value.num_elements() == 1;
  if (!is_text) {
    return InvalidArgument("'", node.name(), "' (", node.op(), ") of the collection '",
                           kAssetCollection, "' is ",
                           node.num_outputs() > 0 ? ToString(node.output_type(0)) : "a node",
                           node.num_outputs() > 0 ? node.output_shape(0).ToString() : "",
                           ", wanted a Const of one text, the path of a file");
  }
  std::string path(std::string_view(value.data<TString>()[0]));
  if (!NameOf(path).empty()) return path;
  return InvalidArgument("'", node.name(), "' of the collection '", kAssetCollection, "' is '",
                         path, "', wanted the path of a file");
}

Status CopyFile(const std::string& from, const std::string& to) {
  constexpr int64_t kChunk = 1 << 20;
  TENON_ASSIGN_OR_RETURN(const auto in, OpenInput(from));
  TENON_ASSIGN_OR_RETURN(const auto out, OpenOutput(to));
  std::string chunk(std::min(kChunk, in->size()), '\0');
  for (int64_t at = 0; at < in->size();) {
    TENON_ASSIGN_OR_RETURN(const size_t n, in->ReadAt(at, chunk.size(), chunk.data()));
    if (n == 0) return DataLoss("'", from, "' became shorter while it was copied");
    TENON_RETURN_IF_ERROR(out->Append(std::string_view(chunk).substr(0, n)));
    at += static_cast<int64_t>(n);
  }
  TENON_RETURN_IF_ERROR(out->Sync());
  return out->Close();
}

}  // namespace

StatusOr<std::vector<Asset>> AssetsOf(Graph& graph) {
  std::vector<Asset> assets;
  std::map<std::string, std::string> names;  // by path
  std::set<std::string> taken;
  for (const Endpoint& member : graph.Collection(kAssetCollection)) {
    TENON_ASSIGN_OR_RETURN(const std::string path, PathIn(member));
    const auto [name, is_new] = names.try_emplace(path, NameOf(path));
    for (int i = 1; is_new && !taken.insert(name->second).second; ++i) {
      name->second = StrCat(NameOf(path), "_", i);
    }
    assets.push_back({path, StrCat(member.node->name(), ":0"), name->second});
  }
  return assets;
}

void DescribeAssets(const std::vector<Asset>& assets, MetaGraphDef* out) {
  for (const Asset& asset : assets) {
    AssetFileDef& def = *out->add_asset_file_def();
    def.set_filename(asset.filename);
    def.mutable_tensor_info()->set_name(asset.tensor);
    // Where older loaders look for it.
    google::protobuf::Any& any =
        *(*out->mutable_collection_def())["saved_model_assets"].mutable_any_list()->add_value();
    any.set_type_url("type.googleapis.com/tensorflow.AssetFileDef");
    any.set_value(def.SerializeAsString());
  }
}

Status CopyAssets(const std::vector<Asset>& assets, const std::string& folder) {
  if (assets.empty()) return OkStatus();
  TENON_RETURN_IF_ERROR(MakeFolders(folder));
  std::set<std::string> copied;
  for (const Asset& asset : assets) {
    if (!copied.insert(asset.filename).second) continue;
    const Status s = CopyFile(asset.path, JoinPath(folder, asset.filename));
    if (!s.ok()) return Annotate(s, StrCat("the asset of '", asset.tensor, "'"));
  }
  return SyncFolder(folder);
}

}  // namespace tenon
