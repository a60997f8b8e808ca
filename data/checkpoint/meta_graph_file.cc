// SPDX-License-Identifier: Apache-2.0
#include "data/checkpoint/meta_graph_file.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/unknown_field_set.h>

#include <algorithm>
#include <optional>

#include "core/graph/graph.h"
#include "proto/graph.pb.h"
#include "proto/meta_graph.pb.h"
#include "proto/saved_model.pb.h"

namespace tenon {
namespace {

namespace pb = google::protobuf;
using WireFormat = pb::internal::WireFormatLite;

/// The file of a graph that `path` is, or that the folder `path` has as a SavedModel.
StatusOr<std::string> GraphFileAt(const std::string& path, const FileContext& context) {
  if (!IsFolder(path, context)) return path;
  for (const char* const name : {"saved_model.pb", "saved_model.pbtxt"}) {
    std::string file = JoinPath(path, name);
    if (FileExists(file, context)) return file;
  }
  return NotFound("the folder '", path, "' has no saved_model.pb and no saved_model.pbtxt");
}

StatusOr<std::string> ReadGraphFile(const std::string& path, const FileContext& context) {
  TENON_ASSIGN_OR_RETURN(const std::string file, GraphFileAt(path, context));
  TENON_ASSIGN_OR_RETURN(const FileInfo info, StatFile(file, context));
  if (info.size > INT32_MAX) {
    return InvalidArgument("'", file, "' has ", info.size, " bytes; a message has at most 2 GiB");
  }
  return ReadFileToString(file, context);
}

/// The first word of a text, after blanks and comments.
std::string_view FirstWord(std::string_view text) {
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
    if (!text.starts_with('#')) break;
    text.remove_prefix(std::min(text.find('\n'), text.size()));
  }
  size_t n = 0;
  while (n < text.size() && (std::isalnum(static_cast<unsigned char>(text[n])) || text[n] == '_')) {
    ++n;
  }
  return text.substr(0, n);
}

/// A message in text form begins with the name of one of its fields.
template <typename Message>
bool HasField(std::string_view name) {
  return Message::descriptor()->FindFieldByName(std::string(name)) != nullptr;
}

/// Keeps the first error of the text parser.
class FirstError : public pb::io::ErrorCollector {
 public:
  void AddError(int line, pb::io::ColumnNumber column, const std::string& message) override {
    if (text_.empty()) text_ = StrCat("line ", line + 1, ", column ", column + 1, ": ", message);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

template <typename Message>
Status ParseText(const std::string& content, const std::string& name, Message* out) {
  FirstError error;
  pb::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  // Fields that newer writers add beside the graph do not concern us; inside a GraphDef every field
  // is ours to know.
  parser.AllowUnknownField(!std::is_same_v<Message, GraphDef>);
  if (parser.ParseFromString(content, out)) return OkStatus();
  return InvalidArgument("'", name, "' is not a ", Message::descriptor()->name(),
                         " in text form: ", error.text());
}

/// Where a binary message ends too early, if its top-level fields are otherwise well formed.
std::optional<std::string> FindCut(const std::string& content) {
  pb::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(content.data()),
                              static_cast<int>(content.size()));
  while (true) {
    const int at = in.CurrentPosition();
    const uint32_t tag = in.ReadTag();
    if (tag == 0) return std::nullopt;
    const int field = WireFormat::GetTagFieldNumber(tag);
    uint32_t length = 0;
    uint64_t number = 0;
    switch (WireFormat::GetTagWireType(tag)) {
      case WireFormat::WIRETYPE_VARINT:
        if (!in.ReadVarint64(&number)) return StrCat("field ", field, " at byte ", at);
        break;
      case WireFormat::WIRETYPE_LENGTH_DELIMITED: {
        if (!in.ReadVarint32(&length)) {  // size: compared with what is left, below
          return StrCat("field ", field, " at byte ", at);
        }
        const size_t left = content.size() - in.CurrentPosition();
        if (length > left) {
          return StrCat("field ", field, " at byte ", at, " wants ", length, " bytes, found ",
                        left);
        }
        in.Skip(static_cast<int>(length));
        break;
      }
      default:
        return std::nullopt;  // no message of ours has such a field at its top
    }
  }
}

template <typename Message>
bool ParseBinary(const std::string& content, int first_unknown, Message* out) {
  if (!out->ParseFromString(content)) return false;
  const pb::UnknownFieldSet& unknown = out->GetReflection()->GetUnknownFields(*out);
  for (int i = 0; i < unknown.field_count(); ++i) {
    if (unknown.field(i).number() < first_unknown) return false;
  }
  return true;
}

/// Any bytes parse as some message; a real graph has nodes with proper names.
bool IsPlausible(const GraphDef& graph) {
  if (graph.node_size() == 0) return graph.has_versions();
  return std::all_of(graph.node().begin(), graph.node().end(), [](const NodeDef& node) {
    return !node.op().empty() && (IsLegalNodeName(node.name()) || node.name().starts_with('_'));
  });
}

StatusOr<MetaGraphDef> ChooseGraph(SavedModel* model, const std::string& name,
                                   const std::vector<std::string>& tags) {
  const auto has_all = [](const MetaGraphDef& graph, const std::vector<std::string>& wanted) {
    const auto& found = graph.meta_info_def().tags();
    return std::all_of(wanted.begin(), wanted.end(), [&](const std::string& tag) {
      return std::find(found.begin(), found.end(), tag) != found.end();
    });
  };
  if (tags.empty() && model->meta_graphs_size() == 1) {
    return std::move(*model->mutable_meta_graphs(0));
  }
  const std::vector<std::string> wanted = tags.empty() ? std::vector<std::string>{"serve"} : tags;
  std::string present;
  for (MetaGraphDef& graph : *model->mutable_meta_graphs()) {
    if (has_all(graph, wanted)) return std::move(graph);
    StrAppend(&present, " [", Join(graph.meta_info_def().tags(), ", "), "]");
  }
  return NotFound("'", name, "' has no graph with tags [", Join(wanted, ", "), "]; it has",
                  present);
}

MetaGraphDef Wrap(GraphDef graph) {
  MetaGraphDef meta;
  *meta.mutable_graph_def() = std::move(graph);
  return meta;
}

}  // namespace

StatusOr<MetaGraphDef> ParseMetaGraphDef(const std::string& content, const std::string& name,
                                         const std::vector<std::string>& tags) {
  if (content.empty()) return InvalidArgument("'", name, "' is empty");
  GraphDef graph;
  MetaGraphDef meta;
  SavedModel model;
  const std::string_view word = FirstWord(content);
  if (HasField<SavedModel>(word)) {
    TENON_RETURN_IF_ERROR(ParseText(content, name, &model));
    return ChooseGraph(&model, name, tags);
  }
  if (HasField<MetaGraphDef>(word)) {
    TENON_RETURN_IF_ERROR(ParseText(content, name, &meta));
    return meta;
  }
  if (HasField<GraphDef>(word)) {
    TENON_RETURN_IF_ERROR(ParseText(content, name, &graph));
    return Wrap(std::move(graph));
  }
  if (const auto cut = FindCut(content)) {
    return DataLoss("'", name, "' is cut short or no graph: ", *cut);
  }
  // The parser logs an error for each of the three types that the bytes are not.
  const pb::LogSilencer silent;
  // Later versions may add fields, with numbers above those that exist; all three share low ones.
  if (ParseBinary(content, 6, &graph) && IsPlausible(graph)) return Wrap(std::move(graph));
  if (ParseBinary(content, 7, &meta) && IsPlausible(meta.graph_def())) return meta;
  if (ParseBinary(content, 3, &model) && model.meta_graphs_size() > 0 &&
      IsPlausible(model.meta_graphs(0).graph_def())) {
    return ChooseGraph(&model, name, tags);
  }
  return InvalidArgument("'", name,
                         "' is no GraphDef, MetaGraphDef or SavedModel, neither binary nor text");
}

StatusOr<MetaGraphDef> LoadMetaGraphDef(const std::string& path,
                                        const std::vector<std::string>& tags,
                                        const FileContext& context) {
  TENON_ASSIGN_OR_RETURN(const std::string content, ReadGraphFile(path, context));
  return ParseMetaGraphDef(content, path, tags);
}

StatusOr<GraphDef> LoadGraphDef(const std::string& path, const FileContext& context) {
  TENON_ASSIGN_OR_RETURN(MetaGraphDef meta, LoadMetaGraphDef(path, {}, context));
  return std::move(*meta.mutable_graph_def());
}

}  // namespace tenon
