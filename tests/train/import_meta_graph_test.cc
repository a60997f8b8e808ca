// SPDX-License-Identifier: Apache-2.0
#include "train/saver/import_meta_graph.h"

#include <gmock/gmock.h>

#include <limits>

#include "core/gradient/gradients.h"
#include "core/proto/proto_io_graph.h"
#include "data/checkpoint/meta_graph_file.h"
#include "data/files/file.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/control_flow/control_flow_ops.h"
#include "ops/control_flow/flow.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/register.h"
#include "proto/meta_graph.pb.h"
#include "proto/variable.pb.h"
#include "runtime/session/local_session.h"
#include "tests/data/sample_files.h"
#include "tests/testing/status_matchers.h"
#include "train/layers/dense.h"
#include "train/layers/embedding.h"
#include "train/layers/normalization.h"
#include "train/losses.h"
#include "train/metrics.h"
#include "train/optimizers/adam.h"
#include "train/optimizers/gradient_descent.h"
#include "train/replica_device_setter.h"
#include "train/saver/saver.h"
#include "train/variables.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;

constexpr int kSteps = 5;

Tensor Batch(int step) {
  return Tensor::Of<float>({4, 1}, {0.1f * static_cast<float>(step), 1, -1, 0.5});
}

/// A network with variables of all sorts, its training step "train" and its loss "loss".
void BuildTraining() {
  SetRandomSeed(3);
  const Output x = Placeholder(DType::kFloat, {-1, 1}, {.name = "x"});
  Output h = Dense(4, {.activation = Tanh, .kernel_regularizer = L2Regularizer(0.01)})(x);
  h = BatchNormalization()(h, true);
  const Variable scale("scale", 1.5f, {.resource = true});
  const Output grown = WhileLoop(
      {0, h}, [](const auto& v) { return v[0] < 2; },
      [&](const auto& v) {
        return std::vector<Output>{v[0] + 1, v[1] * scale.value()};
      })[1];
  const Output y = Dense(1)(grown);
  const Metric mean = metrics::Mean(Square(y));
  losses::MeanSquaredError(3 * x, y);
  const Output loss = Identity(losses::GetTotalLoss(), {.name = "loss"});
  const ControlDependencies after(UpdateOps());
  const Output trained = Adam(0.05).Minimize(loss, {.global_step = GlobalStep()});
  const ControlDependencies all({trained, mean.update});
  Graph& graph = *CurrentBuilding().graph;
  const Output train = NoOp({.name = "train"});
  graph.Collection("train_op").push_back(train);
}

std::vector<float> Train(Session& session, int first, int count) {
  std::vector<float> losses;
  for (int step = first; step < first + count; ++step) {
    const auto values = session.Run({{"x", Batch(step)}}, {"loss"}, {"train"});
    EXPECT_OK(values);
    losses.push_back(values.ok() ? (*values)[0].scalar<float>() : -1);
  }
  return losses;
}

/// A folder with a checkpoint of the training after kSteps steps, and the losses of the next ones.
class ImportMetaGraphTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Graph graph(AllOps());
    const GraphBuilding building(graph);
    BuildTraining();
    Saver saver({.max_to_keep = 3});
    const std::vector<Output> inits = {GlobalVariablesInitializer(), LocalVariablesInitializer()};
    auto session = MakeLocalSession(graph);
    ASSERT_OK(session);
    ASSERT_OK((*session)->Run({}, {}, inits));
    Train(**session, 0, kSteps);
    const auto prefix = saver.Save(**session, folder_ / "model", {.global_step = kSteps});
    ASSERT_OK(prefix);
    prefix_ = *prefix;
    wanted_ = Train(**session, kSteps, kSteps);
    for (const VariableEntry& v : graph.variables()) made_.push_back(Describe(v));
  }
  static std::string Describe(const VariableEntry& v) {
    return StrCat(v.ref->name(), " ", v.value->name(), " ", v.initializer->name(),
                  v.trainable ? " trainable" : "", v.local ? " local" : "");
  }
  MetaGraphDef Meta() const {
    auto meta = LoadMetaGraphDef(prefix_ + ".meta");
    EXPECT_OK(meta);
    return meta.ok() ? *meta : MetaGraphDef();
  }
  /// The error of importing `meta` into an empty graph, which stays so.
  static Status ErrorOf(const MetaGraphDef& meta) {
    Graph graph(AllOps());
    const GraphBuilding building(graph);
    const Status error = ImportMetaGraph(meta).status();
    EXPECT_EQ(graph.num_nodes(), 0);
    EXPECT_TRUE(graph.variables().empty());
    EXPECT_OK(graph.error());
    return error;
  }

  const TemporaryFolder folder_;
  std::string prefix_;
  std::vector<float> wanted_;
  std::vector<std::string> made_;
};

TEST_F(ImportMetaGraphTest, ATrainingGoesOnFromTheFileAlone) {
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  const auto saver = ImportMetaGraph(prefix_ + ".meta");
  ASSERT_OK(saver);
  std::vector<std::string> known;
  for (const VariableEntry& v : graph.variables()) known.push_back(Describe(v));
  EXPECT_THAT(known, ::testing::UnorderedElementsAreArray(made_));
  EXPECT_EQ(GlobalStep().ref().name(), "global_step");
  EXPECT_EQ(UpdateOps().size(), 2);
  EXPECT_EQ(graph.Collection("losses").size(), 1);
  EXPECT_EQ(graph.Collection("regularization_losses").size(), 1);
  EXPECT_THAT(graph.Collection("train_op"), ElementsAre(Endpoint{graph.Find("train"), 0}));
  Node* const init_local = LocalVariablesInitializer();
  auto session = MakeLocalSession(graph);
  ASSERT_OK(session);
  ASSERT_OK((*saver)->Restore(**session, prefix_));
  ASSERT_OK((*session)->Run({}, {}, {init_local}));
  EXPECT_EQ(Train(**session, kSteps, kSteps), wanted_);

  // It saves as the first one did, and what it saves can be imported again.
  for (const int step : {10, 11, 12, 13}) {
    ASSERT_OK((*saver)->Save(**session, folder_ / "model", {.global_step = step}));
  }
  EXPECT_THAT((*saver)->last_checkpoints(),
              ElementsAre(folder_ / "model-11", folder_ / "model-12", folder_ / "model-13"));
  MetaGraphDef again = Meta(), saved = *LoadMetaGraphDef(folder_ / "model-13.meta");
  EXPECT_EQ(saved.saver_def().SerializeAsString(), again.saver_def().SerializeAsString());
  for (const auto& [name, collection] : again.collection_def()) {
    EXPECT_EQ(saved.collection_def().at(name).ByteSizeLong(), collection.ByteSizeLong()) << name;
  }
}

TEST_F(ImportMetaGraphTest, TheGraphMayGrowAfterwards) {
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  ASSERT_OK(ImportMetaGraph(prefix_ + ".meta"));
  // Another optimizer finds the variables, and its own are in no other's way.
  Node* const train =
      GradientDescent(0.001).Minimize(Output(graph.Find("loss")), {.global_step = GlobalStep()});
  ASSERT_OK(graph.error());
  Node* const init = GlobalVariablesInitializer();
  auto session = MakeLocalSession(graph);
  ASSERT_OK(session);
  ASSERT_OK((*session)->Run({}, {}, {init}));
  const auto loss = [&] { return (*(*session)->Run({{"x", Batch(1)}}, {"loss"}))[0]; };
  const float before = loss().scalar<float>();
  for (int i = 0; i < 3; ++i) ASSERT_OK((*session)->Run({{"x", Batch(1)}}, {}, {train}));
  EXPECT_LT(loss().scalar<float>(), before);
  EXPECT_EQ((*(*session)->Run({}, {"global_step"}))[0].scalar<int64_t>(), 3);
}

TEST_F(ImportMetaGraphTest, TextIsReadToo) {
  const std::string path = folder_ / "text.meta";
  ASSERT_OK(WriteStringToFile(path, Meta().DebugString()));
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  const auto saver = ImportMetaGraph(path);
  ASSERT_OK(saver);
  EXPECT_EQ(graph.variables().size(), made_.size());
}

TEST_F(ImportMetaGraphTest, TwoOfOneFileStandBesideEachOtherInScopes) {
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  std::vector<std::unique_ptr<Saver>> savers;
  for (const char* scope : {"a", "b/c/"}) {
    auto saver = ImportMetaGraph(prefix_ + ".meta", {.import_scope = scope});
    ASSERT_OK(saver);
    savers.push_back(*std::move(saver));
  }
  Node* const init = LocalVariablesInitializer();
  EXPECT_EQ(graph.variables().size(), 2 * made_.size());
  EXPECT_NE(graph.Find("b/c/dense/kernel"), nullptr);
  auto session = MakeLocalSession(graph);
  ASSERT_OK(session);
  ASSERT_OK((*session)->Run({}, {}, {init}));
  ASSERT_OK(savers[0]->Restore(**session, prefix_));
  // The other model has nothing yet, resources included.
  EXPECT_THAT((*session)->Run({}, {"b/c/scale/Read/ReadVariableOp"}),
              IsError(StatusCode::kFailedPrecondition, "b/c/scale"));
  ASSERT_OK(savers[1]->Restore(**session, prefix_));
  // A step of one leaves the other alone; a step of both has two loops at once.
  for (int step = 0; step < kSteps; ++step) {
    const Tensor batch = Batch(kSteps + step);
    const auto a = (*session)->Run({{"a/x", batch}}, {"a/loss"}, {"a/train"});
    ASSERT_OK(a);
    EXPECT_EQ((*a)[0].scalar<float>(), wanted_[step]);
  }
  ASSERT_OK(savers[0]->Restore(**session, prefix_));
  for (int step = 0; step < kSteps; ++step) {
    const Tensor batch = Batch(kSteps + step);
    const auto both = (*session)->Run({{"a/x", batch}, {"b/c/x", batch}}, {"a/loss", "b/c/loss"},
                                      {"a/train", "b/c/train"});
    ASSERT_OK(both);
    EXPECT_EQ((*both)[0].scalar<float>(), wanted_[step]);
    EXPECT_EQ((*both)[1].scalar<float>(), wanted_[step]);
  }
}

TEST_F(ImportMetaGraphTest, DevicesAreClearedAndThoseThatAreEnteredApply) {
  MetaGraphDef meta = Meta();
  for (NodeDef& node : *meta.mutable_graph_def()->mutable_node()) {
    node.set_device(node.name() == "x" ? "/device:CPU:0" : "/job:gone/task:3");
  }
  const auto device = [&](std::string_view name, bool clear) {
    Graph graph(AllOps());
    const GraphBuilding building(graph);
    const DeviceScope job("/job:worker/task:1");
    const DeviceScope setter(ReplicaDeviceSetter({.ps_tasks = 1, .worker_device = "/job:worker"}));
    const auto saver = ImportMetaGraph(meta, {.clear_devices = clear});
    EXPECT_OK(saver);
    const Node* const node = graph.Find(name);
    return node == nullptr ? "none" : node->requested_device();
  };
  EXPECT_EQ(device("x", false), "/job:worker/task:1/device:CPU:0");
  EXPECT_EQ(device("loss", false), "/job:gone/task:3");
  EXPECT_EQ(device("x", true), "/job:worker/task:1");
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  const DeviceScope setter(ReplicaDeviceSetter({.ps_tasks = 1}));
  const auto saver = ImportMetaGraph(meta, {.clear_devices = true});
  ASSERT_OK(saver);
  EXPECT_THAT((*saver)->devices(), ElementsAre("/job:ps/task:0"));
  for (const char* name : {"dense/kernel", "dense/kernel/read", "dense/kernel/Adam", "scale"}) {
    EXPECT_EQ(graph.Find(name)->requested_device(), "/job:ps/task:0") << name;
  }
  EXPECT_EQ(graph.Find("loss")->requested_device(), "/job:worker");
}

TEST_F(ImportMetaGraphTest, PartsOfVariablesAreKnownAsSuch) {
  MetaGraphDef meta;
  {
    Graph graph(AllOps());
    const GraphBuilding building(graph);
    const Variable part("w/part_1", Tensor::Vector<float>({3, 4}),
                        {.part = VariablePart{"w", {4}, {2}, {2}}});
    const Saver saver;
    ASSERT_OK(ExportMetaGraph(saver, &meta));
  }
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  ASSERT_OK(ImportMetaGraph(meta, {.import_scope = "s"}));
  ASSERT_EQ(graph.variables().size(), 1);
  const std::optional<VariablePart>& part = graph.variables()[0].part;
  ASSERT_TRUE(part);
  EXPECT_EQ(part->name, "s/w");
  EXPECT_THAT(part->begin, ElementsAre(2));
  auto& variables = *(*meta.mutable_collection_def())["variables"].mutable_bytes_list();
  VariableDef def;
  ASSERT_TRUE(def.ParseFromString(variables.value(0)));
  def.mutable_save_slice_info_def()->set_var_offset(0, 3);
  variables.set_value(0, def.SerializeAsString());
  EXPECT_THAT(ErrorOf(meta), IsError(kInvalid,
                                     "cannot be the part [2] at [3] of a variable of "
                                     "shape [4]"));
}

TEST_F(ImportMetaGraphTest, WithoutASaverAllVariablesGetOne) {
  MetaGraphDef meta = Meta();
  meta.clear_saver_def();
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  const auto saver = ImportMetaGraph(meta);
  ASSERT_OK(saver);
  auto session = MakeLocalSession(graph);
  ASSERT_OK(session);
  ASSERT_OK((*saver)->Restore(**session, prefix_));
  EXPECT_EQ((*(*session)->Run({}, {"global_step"}))[0].scalar<int64_t>(), kSteps);
  meta.Clear();
  meta.mutable_graph_def()->mutable_versions()->set_producer(1);
  Graph other(AllOps());
  const GraphBuilding building_other(other);
  const auto none = ImportMetaGraph(meta);
  ASSERT_OK(none);
  EXPECT_TRUE((*none)->empty());
}

TEST_F(ImportMetaGraphTest, FilesThatAreNoneAreRefused) {
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  EXPECT_THAT(ImportMetaGraph(folder_ / "none.meta"), IsError(StatusCode::kNotFound, "none.meta"));
  EXPECT_THAT(ImportMetaGraph(folder_.path()), IsError(kInvalid, "it is a folder, wanted a file"));
  EXPECT_THAT(ImportMetaGraph(prefix_ + ".index"), IsError(kInvalid, ".index"));
  ASSERT_OK(WriteStringToFile(folder_ / "graph.pb", Meta().graph_def().SerializeAsString()));
  EXPECT_THAT(ImportMetaGraph(folder_ / "graph.pb"),
              IsError(kInvalid, "is a graph alone, a GraphDef of "));
  const std::string whole = Meta().SerializeAsString();
  ASSERT_OK(WriteStringToFile(folder_ / "cut.meta", whole.substr(0, whole.size() / 2)));
  EXPECT_THAT(ImportMetaGraph(folder_ / "cut.meta"),
              IsError(StatusCode::kDataLoss, "cut.meta' is cut short"));
  EXPECT_EQ(graph.num_nodes(), 0);
}

TEST_F(ImportMetaGraphTest, NamesThatTheGraphHasAreRefused) {
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  const Output x = Const(1.0f, {.name = "x"}), loss = Const(2.0f, {.name = "loss"});
  EXPECT_THAT(ImportMetaGraph(prefix_ + ".meta"),
              IsError(StatusCode::kAlreadyExists,
                      "has a node 'x' (Const) already, and 1 others of the same names; wanted"));
  EXPECT_EQ(graph.num_nodes(), 2);
  EXPECT_THAT(ImportMetaGraph(prefix_ + ".meta", {.import_scope = "no scope"}),
              IsError(kInvalid, "no scope"));
  Cond(
      Const(true),
      [&] {
        EXPECT_THAT(ImportMetaGraph(prefix_ + ".meta"),
                    IsError(kInvalid, "cannot be imported within a branch or loop"));
        return x;
      },
      [&] { return loss; });
}

TEST_F(ImportMetaGraphTest, OpsThatAreUnknownAreNamed) {
  MetaGraphDef meta = Meta();
  meta.mutable_graph_def()->mutable_node(3)->set_op("Florps");
  EXPECT_THAT(ErrorOf(meta), IsError(StatusCode::kNotFound, "Florps"));
}

TEST_F(ImportMetaGraphTest, CollectionsThatDoNotFitAreRefused) {
  const MetaGraphDef good = Meta();
  const auto error = [&](const std::string& name, const auto& change) {
    MetaGraphDef meta = good;
    change((*meta.mutable_collection_def())[name]);
    return ErrorOf(meta);
  };
  const auto variable = [&](const auto& change) {
    return error("variables", [&](CollectionDef& collection) {
      VariableDef def;
      EXPECT_TRUE(def.ParseFromString(collection.bytes_list().value(0)));
      change(def);
      collection.mutable_bytes_list()->set_value(0, def.SerializeAsString());
    });
  };
  const std::string in_kernel = "collection 'variables': variable 'dense/kernel:0': ";
  EXPECT_THAT(error("losses", [](auto& c) { c.mutable_node_list()->add_value("gone:0"); }),
              IsError(kInvalid, "collection 'losses': the graph has no node 'gone'"));
  EXPECT_THAT(error("losses", [](auto& c) { c.mutable_node_list()->add_value("loss:1"); }),
              IsError(kInvalid, "'loss:1' is output 1 of 'loss' (Identity), which has 1"));
  EXPECT_THAT(error("variables", [](auto& c) { c.mutable_node_list()->add_value("scale"); }),
              IsError(kInvalid, "collection 'variables': wanted a list of VariableDef"));
  EXPECT_THAT(error("global_step", [](auto& c) { c.mutable_bytes_list()->add_value("\xff"); }),
              IsError(kInvalid, "collection 'global_step': member 1 of 1 bytes is no VariableDef"));
  EXPECT_THAT(variable([](VariableDef& def) { def.set_variable_name("loss:0"); }),
              IsError(kInvalid, "'loss' is a Identity, wanted a VariableV2"));
  EXPECT_THAT(variable([](VariableDef& def) { def.set_initializer_name("train"); }),
              IsError(kInvalid, in_kernel + "its initializer 'train' is a NoOp, wanted an Assign "
                                            "to 'dense/kernel'"));
  EXPECT_THAT(variable([](VariableDef& def) { def.set_initializer_name("scale/Assign"); }),
              IsError(kInvalid, "wanted an Assign to 'dense/kernel'"));
  EXPECT_THAT(variable([](VariableDef& def) { def.set_snapshot_name("global_step/read:0"); }),
              IsError(kInvalid, "its value 'global_step/read:0' of Identity is no float"));
  EXPECT_THAT(variable([](VariableDef& def) { def.clear_snapshot_name(); }),
              IsError(kInvalid, in_kernel));
}

TEST_F(ImportMetaGraphTest, SaversThatDoNotFitAreRefused) {
  const MetaGraphDef good = Meta();
  const auto error = [&](const auto& change) {
    MetaGraphDef meta = good;
    change(*meta.mutable_saver_def());
    return ErrorOf(meta);
  };
  EXPECT_THAT(error([](SaverDef& def) { def.set_restore_op_name("gone"); }),
              IsError(kInvalid, "the saver's restore op 'gone' is not in the graph"));
  EXPECT_THAT(error([](SaverDef& def) { def.set_save_tensor_name("gone:0"); }),
              IsError(kInvalid, "the saver's save tensor 'gone:0' is not in the graph"));
  EXPECT_THAT(error([](SaverDef& def) { def.set_filename_tensor_name("loss:0"); }),
              IsError(kInvalid, "the saver's filename tensor 'loss:0' is float, wanted string"));
  EXPECT_THAT(error([](SaverDef& def) { def.set_max_to_keep(-1); }), IsError(kInvalid, "found -1"));
  EXPECT_THAT(error([](SaverDef& def) {
                def.set_keep_checkpoint_every_n_hours(std::numeric_limits<float>::quiet_NaN());
              }),
              IsError(kInvalid, "must not be negative"));
  MetaGraphDef old = good;
  old.mutable_saver_def()->set_version(SaverDef::V1);
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  const auto saver = ImportMetaGraph(old);
  ASSERT_OK(saver);
  auto session = MakeLocalSession(graph);
  ASSERT_OK(session);
  ASSERT_OK((*saver)->Restore(**session, prefix_));
  EXPECT_THAT((*saver)->Save(**session, folder_ / "old"),
              IsError(StatusCode::kFailedPrecondition, "first format of checkpoints"));
}

TEST_F(ImportMetaGraphTest, AGradientOfTheProgramThatWroteTheFileIsNoneOfThisOnes) {
  MetaGraphDef meta;
  {
    Graph graph(AllOps());
    const GraphBuilding building(graph);
    const Output x = Placeholder(DType::kFloat, Shape(), {.name = "x"});
    const auto zero = [](const std::vector<Output>& dys) {
      return std::vector<Output>{dys[0] * 0.0f};
    };
    Identity(WithGradient({x}, {Square(x)}, zero)[0], {.name = "y"});
    ASSERT_OK(graph.error());
    ASSERT_OK(GraphToProto(graph, meta.mutable_graph_def()));
  }
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  const Output own = Placeholder(DType::kFloat, Shape());
  const auto seven = [](const std::vector<Output>& dys) {
    return std::vector<Output>{dys[0] * 7.0f};
  };
  WithGradient({own}, {Square(own)}, seven);
  ASSERT_OK(ImportMetaGraph(meta, {.import_scope = "in"}));
  Gradients(Output(graph.Find("in/y")), {Output(graph.Find("in/x"))});
  EXPECT_THAT(graph.error(),
              IsError(StatusCode::kInvalidArgument, "is a function of the program that built it"));
}

TEST_F(ImportMetaGraphTest, VariablesThatNoSaverTakesLeaveTheGraphAsItWas) {
  Graph parts(AllOps());
  MetaGraphDef meta;
  {
    const GraphBuilding building(parts);
    Embedding(4, 2, {.partitions = 2, .name = "t"})(Const({0}, {.name = "ids"}));
    const Saver saver;
    ASSERT_OK(ExportMetaGraph(saver, &meta));
    meta.clear_saver_def();
  }
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  const Variable whole("t/embeddings", 1.0f);
  const int nodes = graph.num_nodes();
  EXPECT_THAT(ImportMetaGraph(meta).status(),
              IsError(StatusCode::kInvalidArgument, "'t/embeddings'"));
  EXPECT_OK(graph.error());
  EXPECT_EQ(graph.num_nodes(), nodes);
}

}  // namespace
}  // namespace tenon::testing
