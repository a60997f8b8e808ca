// SPDX-License-Identifier: Apache-2.0
#include "data/checkpoint/meta_graph_file.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>

#include "core/base/strings.h"
#include "proto/saved_model.pb.h"

namespace tenon {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

GraphDef SmallGraph() {
  GraphDef graph;
  NodeDef* node = graph.add_node();
  node->set_name("n");
  node->set_op("NoOp");
  graph.add_node()->set_name("other/node");
  graph.mutable_node(1)->set_op("Identity");
  graph.mutable_node(1)->add_input("n");
  graph.mutable_versions()->set_producer(27);
  return graph;
}

MetaGraphDef SmallMetaGraph(const std::vector<std::string>& tags = {}) {
  MetaGraphDef meta;
  for (const std::string& tag : tags) meta.mutable_meta_info_def()->add_tags(tag);
  meta.mutable_meta_info_def()->set_tensorflow_version("2.15.1");
  *meta.mutable_graph_def() = SmallGraph();
  return meta;
}

template <typename M>
std::string Text(const M& message) {
  std::string text;
  EXPECT_TRUE(google::protobuf::TextFormat::PrintToString(message, &text));
  return text;
}

std::string FileError(const std::string& content, StatusCode code) {
  const auto meta = ParseMetaGraphDef(content, "file");
  EXPECT_FALSE(meta.ok());
  if (meta.ok()) return "";
  EXPECT_EQ(meta.status().code(), code) << meta.status();
  return std::string(Message(meta.status()));
}

TEST(GraphFileTest, TheContentDecidesWhatAFileIs) {
  SavedModel model;
  model.set_saved_model_schema_version(1);
  *model.add_meta_graphs() = SmallMetaGraph({"serve"});
  const std::string wanted = SmallGraph().SerializeAsString();
  for (const std::string& content :
       {SmallGraph().SerializeAsString(), Text(SmallGraph()), "# a comment\n" + Text(SmallGraph()),
        SmallMetaGraph().SerializeAsString(), Text(SmallMetaGraph()), model.SerializeAsString(),
        Text(model)}) {
    const auto meta = ParseMetaGraphDef(content, "file");
    ASSERT_TRUE(meta.ok()) << meta.status();
    EXPECT_EQ(meta->graph_def().SerializeAsString(), wanted);
  }
}

TEST(GraphFileTest, TagsChooseTheGraphOfASavedModel) {
  SavedModel model;
  *model.add_meta_graphs() = SmallMetaGraph({"train", "gpu"});
  *model.add_meta_graphs() = SmallMetaGraph({"serve"});
  const std::string content = model.SerializeAsString();
  const auto serve = ParseMetaGraphDef(content, "m");
  ASSERT_TRUE(serve.ok());
  EXPECT_EQ(serve->meta_info_def().tags(0), "serve");
  const auto train = ParseMetaGraphDef(content, "m", {"gpu"});
  ASSERT_TRUE(train.ok());
  EXPECT_EQ(train->meta_info_def().tags(0), "train");
  const auto none = ParseMetaGraphDef(content, "m", {"tpu"});
  EXPECT_EQ(Message(none.status()),
            "'m' has no graph with tags [tpu]; it has [train, gpu] [serve]");
}

TEST(GraphFileTest, AnEmptyFileIsAnError) {
  EXPECT_EQ(FileError("", StatusCode::kInvalidArgument), "'file' is empty");
}

TEST(GraphFileTest, AnUnrelatedFileIsAnError) {
  EXPECT_THAT(FileError("hello, world\n", StatusCode::kInvalidArgument),
              HasSubstr("is no GraphDef, MetaGraphDef or SavedModel"));
  EXPECT_FALSE(ParseMetaGraphDef("\x7f"
                                 "ELF\x02\x01",
                                 "file")
                   .ok());
}

TEST(GraphFileTest, ATruncatedFileIsDataLoss) {
  const std::string whole = SmallGraph().SerializeAsString();
  EXPECT_EQ(FileError(whole.substr(0, 15), StatusCode::kDataLoss),
            "'file' is cut short or no graph: field 1 at byte 11 wants 25 bytes, found 2");
}

TEST(GraphFileTest, AnErrorInATextSaysWhere) {
  EXPECT_THAT(FileError("node {\n  name: 'n'\n  opp: 'NoOp'\n}", StatusCode::kInvalidArgument),
              HasSubstr("line 3"));
}

TEST(GraphFileTest, AMissingFileIsNotFound) {
  EXPECT_EQ(LoadGraphDef("/nonexistent/graph.pb").status().code(), StatusCode::kNotFound);
}

TEST(GraphFileTest, AFolderStandsForTheSavedModelInIt) {
  const std::string folder = StrCat(::testing::TempDir(), "/saved_model_", getpid());
  std::filesystem::create_directory(folder);
  EXPECT_EQ(LoadGraphDef(folder).status().code(), StatusCode::kNotFound);
  SavedModel model;
  *model.add_meta_graphs() = SmallMetaGraph();
  std::ofstream(folder + "/saved_model.pbtxt") << Text(model);
  const auto graph = LoadGraphDef(folder);
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->node_size(), 2);
}

TEST(GraphFileTest, ReadsTheMetaFileOfASaver) {
  const char* source = std::getenv("TENON_SOURCE_DIR");
  const auto meta =
      LoadMetaGraphDef(StrCat(source == nullptr ? "." : source,
                              "/tests/data/checkpoints/checkpoint_small/model.ckpt-42.meta"));
  ASSERT_TRUE(meta.ok()) << meta.status();
  EXPECT_EQ(meta->meta_info_def().tensorflow_version(), "2.15.1");
  EXPECT_GT(meta->graph_def().node_size(), 20);
}

/// Whether `content` is a graph. If not, the error says of which file.
bool IsGraph(const std::string& content) {
  const auto meta = ParseMetaGraphDef(content, "file");
  if (!meta.ok()) {
    EXPECT_THAT(meta.status().code(),
                AnyOf(StatusCode::kInvalidArgument, StatusCode::kDataLoss, StatusCode::kNotFound));
    EXPECT_THAT(std::string(Message(meta.status())), StartsWith("'file' "));
    return false;
  }
  for (const NodeDef& node : meta->graph_def().node()) EXPECT_NE(node.op(), "") << content;
  return true;
}

TEST(GraphFileTest, AFileThatIsCutIsAGraphOnlyWhereANodeEnds) {
  const GraphDef graph = SmallGraph();
  const std::string whole = graph.SerializeAsString();
  std::set<size_t> ends;
  GraphDef part;
  for (const NodeDef& node : graph.node()) {
    *part.add_node() = node;
    ends.insert(part.ByteSizeLong());
  }
  for (size_t n = 0; n < whole.size(); ++n) {
    EXPECT_EQ(IsGraph(whole.substr(0, n)), ends.contains(n)) << n;
  }
}

TEST(GraphFileTest, DamagedContentIsAGraphOfNodesWithOpsOrAnError) {
  std::mt19937 random(7);
  for (const std::string& whole : {SmallGraph().SerializeAsString(),
                                   SmallMetaGraph({"a"}).SerializeAsString(), Text(SmallGraph())}) {
    int graphs = 0, errors = 0;
    for (size_t n = 0; n < whole.size(); ++n) {
      IsGraph(whole.substr(0, n));
      std::string damaged = whole;
      damaged[n] = static_cast<char>(random());
      ++(IsGraph(damaged) ? graphs : errors);
    }
    // The bytes of names may be others; those of tags and lengths may not.
    EXPECT_GT(graphs, 0) << whole;
    EXPECT_GT(errors, 10) << whole;
  }
}

}  // namespace
}  // namespace tenon
