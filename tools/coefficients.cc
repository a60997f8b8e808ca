// SPDX-License-Identifier: Apache-2.0
#include "tools/coefficients.h"

#include <cstdio>
#include <limits>
#include <optional>

#include "core/proto/proto_io_graph.h"
#include "data/checkpoint/meta_graph_file.h"
#include "data/checkpoint/tensor_bundle.h"
#include "data/files/file.h"
#include "data/files/path.h"
#include "proto/meta_graph.pb.h"
#include "tools/commands.h"
#include "train/feature_columns/linear_coefficients.h"

namespace tenon::tools {
namespace {

constexpr size_t kFirst = 20;

bool IsSavedModel(const std::string& folder) {
  return FileExists(JoinPath(folder, "saved_model.pb")) ||
         FileExists(JoinPath(folder, "saved_model.pbtxt"));
}

/// Where the graph of a checkpoint is; NotFound says where it would be.
StatusOr<std::string> GraphOf(const CoefficientFlags& flags, const std::string& prefix) {
  if (IsSavedModel(flags.path)) return flags.path;
  const std::string meta = prefix + ".meta";
  if (FileExists(meta)) return meta;
  const std::string text = JoinPath(FolderOf(prefix), "graph.pbtxt");
  if (FileExists(text)) return text;
  return NotFound("there is no graph '", meta, "', nor '", text, "'");
}

StatusOr<Graph> LoadGraph(const CoefficientFlags& flags, const std::string& prefix,
                          const OpRegistry& ops) {
  TENON_ASSIGN_OR_RETURN(const std::string path, GraphOf(flags, prefix));
  TENON_ASSIGN_OR_RETURN(const MetaGraphDef meta, LoadMetaGraphDef(path, flags.tags));
  auto graph = GraphFromProto(meta.graph_def(), ops, {.infer_shapes = false});
  if (!graph.ok()) return Annotate(graph.status(), path);
  return graph;
}

/// The vocabulary of a SavedModel is among its assets; that of a checkpoint where the graph says,
/// or beside it when a folder was moved.
StatusOr<VocabularyFile> FindVocabularyFile(const CoefficientFlags& flags,
                                            const std::string& prefix, const std::string& name) {
  std::vector<std::string> places;
  if (IsSavedModel(flags.path)) {
    places.push_back(JoinPath(JoinPath(flags.path, "assets"), NameOf(name)));
  } else {
    places = {name, JoinPath(FolderOf(prefix), NameOf(name))};
  }
  for (const std::string& place : places) {
    if (!IsRegularFile(place)) continue;
    TENON_ASSIGN_OR_RETURN(std::string text, ReadFileToString(place));
    return VocabularyFile{place, std::move(text)};
  }
  return NotFound("there is no vocabulary '", places[0], "'",
                  places.size() > 1 ? StrCat(", nor '", places[1], "'") : "");
}

StatusOr<LinearCoefficients> Read(const CoefficientFlags& flags, const std::string& prefix,
                                  const BundleReader& checkpoint, const OpRegistry& ops) {
  const auto graph = HasLinearWeights(checkpoint)
                         ? LoadGraph(flags, prefix, ops)
                         : StatusOr<Graph>(NotFound("it was not looked for"));
  return ReadLinearCoefficients(
      checkpoint, graph.ok() ? &*graph : nullptr,
      graph.ok() ? "" : std::string(Message(graph.status())),
      [&](const std::string& name) { return FindVocabularyFile(flags, prefix, name); });
}

}  // namespace

Status WriteCoefficients(const CoefficientFlags& flags, const std::string& prefix,
                         const OpRegistry& ops) {
  TENON_ASSIGN_OR_RETURN(const auto checkpoint, BundleReader::Open(prefix));
  TENON_ASSIGN_OR_RETURN(const LinearCoefficients model, Read(flags, prefix, *checkpoint, ops));
  if (flags.output.empty()) {
    const size_t all = std::numeric_limits<size_t>::max();
    std::printf("%s", CoefficientTable(model, all).c_str());
    return OkStatus();
  }
  for (const std::string& note : model.notes) std::fprintf(stderr, "tenon: %s\n", note.c_str());
  if (flags.output != "-") return WriteTextFile(flags.output, CoefficientCsv(model));
  std::printf("%s", CoefficientCsv(model).c_str());
  return OkStatus();
}

Status PrintFirstCoefficients(const CoefficientFlags& flags, const std::string& prefix,
                              const OpRegistry& ops) {
  TENON_ASSIGN_OR_RETURN(const auto checkpoint, BundleReader::Open(prefix));
  if (!HasLinearWeights(*checkpoint)) return OkStatus();
  TENON_ASSIGN_OR_RETURN(const LinearCoefficients model, Read(flags, prefix, *checkpoint, ops));
  std::printf("\n%s", CoefficientTable(model, kFirst).c_str());
  if (model.coefficients.size() > kFirst) {
    std::printf("--coefficients prints all, and writes them with --output FILE.csv\n");
  }
  return OkStatus();
}

}  // namespace tenon::tools
