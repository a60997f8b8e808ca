// SPDX-License-Identifier: Apache-2.0
#include "core/proto/proto_io_graph.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "core/proto/proto_io_attribute.h"
#include "core/proto/proto_io_tensor.h"
#include "tests/core/tiny_registry.h"

namespace tenon {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

GraphDef GraphDefFromText(const std::string& text) {
  GraphDef proto;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &proto)) << text;
  return proto;
}

StatusOr<Graph> Import(const std::string& text, const GraphImportOptions& options = {}) {
  return GraphFromProto(GraphDefFromText(text), TinyRegistry(), options);
}

std::string GraphError(const std::string& text, StatusCode code = StatusCode::kInvalidArgument) {
  const auto graph = Import(text);
  EXPECT_FALSE(graph.ok()) << text;
  if (graph.ok()) return "";
  EXPECT_EQ(graph.status().code(), code) << graph.status();
  return std::string(Message(graph.status()));
}

constexpr char kFloat[] = "attr { key: 'dtype' value { type: DT_FLOAT } }";
constexpr char kT[] = "attr { key: 'T' value { type: DT_FLOAT } }";

std::string Placeholder(const std::string& name) {
  return StrCat("node { name: '", name, "' op: 'Placeholder' ", kFloat, "}");
}
/// A node with T = float; `inputs` are quoted and separated by commas.
std::string Op(const std::string& name, const std::string& op, const std::string& inputs,
               const std::string& more = "") {
  return StrCat("node { name: '", name, "' op: '", op, "' input: [", inputs, "] ", kT, more, "}");
}
std::string Number(const std::string& name, int value) {
  return StrCat(" attr { key: '", name, "' value { i: ", value, " } }");
}

TEST(GraphFromProtoTest, AnAttributeIsNoReferenceType) {
  EXPECT_EQ(GraphError("node { name: 'a' op: 'Placeholder' attr { key: 'dtype' value { type: "
                       "DT_FLOAT_REF } } }"),
            "node 'a' (Placeholder): attr 'dtype' must not be the reference type float_ref");
}

TEST(GraphFromProtoTest, NodesMayComeBeforeTheirInputs) {
  const auto graph = Import(Op("sum", "Add", "'a', 'b'") + Placeholder("a") + Placeholder("b"));
  ASSERT_TRUE(graph.ok()) << graph.status();
  const Node* sum = graph->Find("sum");
  EXPECT_EQ(sum->id(), 0);
  EXPECT_EQ(sum->input(0).node, graph->Find("a"));
  EXPECT_EQ(sum->input(1).node, graph->Find("b"));
}

TEST(GraphFromProtoTest, AddsDefaultsAndKeepsUnknownAttributes) {
  const auto graph = Import(
      Placeholder("a") + "node { name: 'm' op: 'MatMul' input: ['a', 'a'] " + kT +
      " attr { key: 'grad_a' value { b: true } } attr { key: '_output_shapes' value { list { "
      "shape { unknown_rank: true } } } } attr { key: 'novel' value { } } }");
  ASSERT_TRUE(graph.ok()) << graph.status();
  const AttributeMap& attrs = graph->Find("m")->attrs();
  EXPECT_FALSE(attrs.GetOr("transpose_a", true));
  EXPECT_TRUE(attrs.GetOr("grad_a", false));
  EXPECT_NE(attrs.Find("_output_shapes"), nullptr);
  EXPECT_EQ(attrs.Find("novel"), nullptr);
}

TEST(GraphFromProtoTest, ReadsOutputNumbersAndControlInputs) {
  const auto graph = Import(Placeholder("a") + Op("s", "Split", "'a'", Number("num_split", 3)) +
                            Op("i", "Identity", "'s:2', '^a', '^s'"));
  ASSERT_TRUE(graph.ok()) << graph.status();
  const Node* i = graph->Find("i");
  EXPECT_EQ(i->input(0), (Endpoint{graph->Find("s"), 2}));
  EXPECT_THAT(i->control_inputs(), ::testing::ElementsAre(graph->Find("a"), graph->Find("s")));
}

TEST(GraphFromProtoTest, InfersShapesUnlessToldNotTo) {
  const std::string text =
      "node { name: 'a' op: 'Placeholder' " + std::string(kFloat) +
      " attr { key: 'shape' value { shape { dim { size: 2 } dim { size: -1 } } } } }" +
      Op("i", "Identity", "'a'");
  const auto graph = Import(text);
  ASSERT_TRUE(graph.ok());
  EXPECT_EQ(graph->Find("i")->output_shape(0), (PartialShape{2, -1}));
  const auto plain = Import(text, {.infer_shapes = false});
  ASSERT_TRUE(plain.ok());
  EXPECT_FALSE(plain->Find("i")->output_shape(0).rank_known());
}

TEST(GraphFromProtoTest, ShapesThatContradictEachOtherGiveAnUnknownOne) {
  const auto placeholder = [](const std::string& name, int size) {
    return StrCat("node { name: '", name, "' op: 'Placeholder' ", kFloat,
                  " attr { key: 'shape' value { shape { dim { size: ", size, " } } } } }");
  };
  const auto graph =
      Import(placeholder("a", 2) + placeholder("b", 3) + Op("sum", "Add", "'a', 'b'"));
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_FALSE(graph->Find("sum")->output_shape(0).rank_known());
  EXPECT_EQ(graph->Find("a")->output_shape(0), PartialShape({2}));
}

TEST(GraphFromProtoTest, AcceptsALoopThroughNextIteration) {
  const auto graph = Import(Placeholder("a") + Op("m", "Merge", "'a', 'n'", Number("N", 2)) +
                            Op("n", "NextIteration", "'m'"));
  EXPECT_TRUE(graph.ok()) << graph.status();
}

TEST(GraphFromProtoTest, RefusesAnyOtherCycle) {
  EXPECT_THAT(GraphError(Op("m", "Merge", "'i', 'i'", Number("N", 2)) + Op("i", "Identity", "'m'")),
              HasSubstr("cycle that does not go through NextIteration"));
  const GraphImportOptions without{.infer_shapes = false};
  EXPECT_FALSE(Import(Op("i", "Identity", "'i'"), without).ok());
}

TEST(GraphFromProtoTest, ReadsAReferenceAsAValueButNotTheReverse) {
  const std::string variable = "node { name: 'v' op: 'VariableV2' " + std::string(kFloat) +
                               " attr { key: 'shape' value { shape { } } } }";
  EXPECT_TRUE(Import(variable + Op("i", "Identity", "'v'")).ok());
  EXPECT_THAT(GraphError(Placeholder("a") + Op("as", "Assign", "'a', 'a'")),
              HasSubstr("Input 0 of node as was passed float from a:0 incompatible with "
                        "expected float_ref"));
}

TEST(GraphFromProtoTest, UnknownInputHasTensorFlowsText) {
  EXPECT_EQ(GraphError(Op("k2", "Identity", "'k'")), "Node 'k2': Unknown input node 'k'");
}

TEST(GraphFromProtoTest, UnknownOpHasTensorFlowsTextAndTheNode) {
  EXPECT_THAT(GraphError("node { name: 'q' op: 'Quux' }", StatusCode::kNotFound),
              StartsWith("node 'q' (Quux): Op type not registered 'Quux' in binary running on "));
}

TEST(GraphFromProtoTest, IllegalNamesHaveTensorFlowsText) {
  for (const std::string name : {"_k", "", "a b", "a:0", "^a", "-a"}) {
    EXPECT_EQ(GraphError(Placeholder(name)), "Illegal op name '" + name + "'");
  }
}

TEST(GraphFromProtoTest, InternalNamesAreAllowedOnRequest) {
  const GraphImportOptions options{.allow_internal_names = true};
  EXPECT_TRUE(Import(Placeholder("_recv_x_0") + Placeholder("__a"), options).ok());
  EXPECT_FALSE(Import(Placeholder("_a b"), options).ok());
  EXPECT_FALSE(Import(Placeholder("_"), options).ok());
}

TEST(GraphFromProtoTest, OpsOfTheRuntimeAreForPartitionsOnly) {
  const std::string receive =
      "node { name: 'r' op: '_Recv' attr { key: 'tensor_type' value { type: DT_FLOAT } } }";
  EXPECT_EQ(GraphError(receive), "node 'r' (_Recv): the op is for the runtime's own use");
  EXPECT_TRUE(Import(receive, {.allow_internal_names = true}).ok());
}

TEST(GraphFromProtoTest, RefusesARepeatedName) {
  EXPECT_EQ(GraphError(Placeholder("a") + Placeholder("a")), "Node 'a' is not unique");
}

TEST(GraphFromProtoTest, RefusesWrongInputs) {
  const std::string a = Placeholder("a");
  EXPECT_EQ(GraphError(a + Op("s", "Add", "'a'")), "node 's' (Add): found 1 inputs, wanted 2");
  EXPECT_EQ(GraphError(a + Op("i", "Identity", "'a', 'a'")),
            "node 'i' (Identity): found 2 inputs, wanted 1");
  EXPECT_EQ(GraphError(a + Op("i", "Identity", "'a:1'")),
            "node 'i' (Identity): Connecting to invalid output 1 of source node a which has 1 "
            "outputs. Try using tf.compat.v1.experimental.output_all_intermediates(True).");
  EXPECT_EQ(GraphError(a + Op("i", "Identity", "'^a', 'a'")),
            "node 'i' (Identity): data input 'a' comes after a control input");
  EXPECT_THAT(GraphError(a + Op("i", "Identity", "'a:x'")), HasSubstr("'a:x' is not of the form"));
  EXPECT_THAT(GraphError(a + Op("i", "Identity", "'a:-1'")), HasSubstr("is not of the form"));
  EXPECT_THAT(GraphError(a + "node { name: 'i' op: 'Identity' input: 'a' "
                             "attr { key: 'T' value { type: DT_INT32 } } }"),
              HasSubstr("Input 0 of node i was passed float from a:0 incompatible with "
                        "expected int32"));
}

TEST(GraphFromProtoTest, RefusesWrongAttributes) {
  EXPECT_EQ(GraphError("node { name: 'p' op: 'Placeholder' }"),
            "node 'p' (Placeholder): attr 'dtype' of op Placeholder is missing");
  EXPECT_THAT(
      GraphError("node { name: 'p' op: 'Placeholder' attr { key: 'dtype' value { i: 1 } } }"),
      HasSubstr("wrong type: found int, wanted type"));
  EXPECT_THAT(GraphError("node { name: 'p' op: 'Placeholder' attr { key: 'dtype' value { "
                         "placeholder: 'T' } } }"),
              HasSubstr("attr 'dtype': the placeholder 'T' has a value only inside a function"));
  EXPECT_THAT(GraphError("node { name: 'p' op: 'Placeholder' attr { key: 'dtype' value { } } }"),
              HasSubstr("attr 'dtype': it has no value"));
  EXPECT_THAT(GraphError(Placeholder("a") + "node { name: 's' op: 'Add' input: ['a', 'a'] "
                                            "attr { key: 'T' value { type: DT_STRING } } }"),
              HasSubstr("attr 'T' of string is not in the list of allowed values: float, int32"));
  EXPECT_THAT(
      GraphError("node { name: 'c' op: 'Const' " + std::string(kFloat) +
                 "attr { key: 'value' value { tensor { dtype: DT_FLOAT tensor_content: 'ab' "
                 "} } } }"),
      HasSubstr("node 'c' (Const): attr 'value': tensor_content has 2 bytes, wanted 4"));
}

/// The message for a library of one function with that signature and body.
std::string FunctionError(const std::string& signature, const std::string& body) {
  const std::string text =
      StrCat("library { function { signature { name: 'f' ", signature, " } ", body, " } }");
  return std::string(Message(Import(text).status()));
}

TEST(GraphFromProtoTest, AttributesOfFunctionsHaveKnownTypes) {
  for (const char* type : {"", "foo", "list(foo)", "list(", "list()", "list(list(int))"}) {
    EXPECT_THAT(FunctionError(StrCat("attr { name: 'a' type: '", type, "' }"), ""),
                HasSubstr(StrCat("function 'f': attr 'a' has the unknown type '", type, "'")));
  }
  EXPECT_EQ(FunctionError("attr { name: 'a' type: 'list(func)' }", ""), "");
}

TEST(GraphFromProtoTest, NodesOfFunctionsHaveNoReferenceTypes) {
  const std::string node =
      "node_def { name: 'n' op: 'Identity' attr { key: 'T' value { type: DT_FLOAT_REF } } }";
  EXPECT_THAT(FunctionError("", node), HasSubstr("attr 'T' must not be the reference type"));
}

TEST(GraphFromProtoTest, BodiesOfFunctionsHaveNoCycles) {
  const auto node = [](const std::string& name, const std::string& input) {
    return StrCat("node_def { name: '", name, "' op: 'Identity' input: '", input, "' } ");
  };
  const std::string cycle = "the body has a cycle that does not go through NextIteration";
  EXPECT_THAT(FunctionError("", node("a", "a:output:0")), HasSubstr(cycle));
  EXPECT_THAT(FunctionError("", node("a", "^a")), HasSubstr(cycle));
  EXPECT_THAT(FunctionError("", node("a", "b:output:0") + node("b", "a:output:0")),
              HasSubstr("node 'a' is on it or behind it"));
  // An argument may have the name of a node, and bodies need no order.
  const std::string argument = "input_arg { name: 'a' type: DT_FLOAT }";
  EXPECT_EQ(FunctionError(argument, node("a", "a")), "");
  EXPECT_EQ(FunctionError(argument, node("c", "b:output:0") + node("b", "a")), "");
}

TEST(GraphFromProtoTest, RefusesADeviceThatIsNone) {
  EXPECT_THAT(GraphError("node { name: 'p' op: 'NoOp' device: 'gpu0' }"),
              HasSubstr("node 'p' (NoOp): 'gpu0' is not a device name"));
}

TEST(GraphFromProtoTest, ChecksVersions) {
  EXPECT_THAT(GraphError("versions { min_consumer: 99999 }"),
              StartsWith("GraphDef min consumer version 99999 above current version "));
  EXPECT_THAT(GraphError("versions { producer: -1 }"), HasSubstr("negative"));
  EXPECT_THAT(GraphError(StrCat("versions { bad_consumers: ", kGraphDefVersion, " }")),
              HasSubstr("disallows consumer"));
  const auto graph = Import("versions { producer: 99999 }");
  ASSERT_TRUE(graph.ok());
  EXPECT_EQ(graph->versions().producer, 99999);
}

TEST(GraphFromProtoTest, AFewBytesCannotDeclareEndlessOutputs) {
  std::string text = Placeholder("a");
  for (int i = 0; i < 65; ++i) {
    text += Op(StrCat("s", i), "Split", "'a'", Number("num_split", 1 << 16));
  }
  EXPECT_THAT(GraphError(text), HasSubstr("the graph has more than"));
  EXPECT_THAT(GraphError(Op("n", "AddN", "", Number("N", 1 << 16))),
              HasSubstr("found 0 inputs, wanted 65536"));
  EXPECT_THAT(GraphError(Op("n", "AddN", "", Number("N", (1 << 20) + 1))),
              HasSubstr("attr 'N' is out of range: 1048577"));
  EXPECT_THAT(
      GraphError(Placeholder("a") + Op("n", "Split", "'a'", Number("num_split", (1 << 16) + 1))),
      HasSubstr("at most 65536 outputs, found 65537"));
}

TEST(GraphFromProtoTest, TheConstantsOfAGraphShareOneFillBudget) {
  std::string text;
  for (const int64_t size : {int64_t{1} << 20, kMaxFillBytes - 1}) {
    StrAppend(&text, "node { name: 'c", size, "' op: 'Const' ",
              "attr { key: 'dtype' value { type: DT_UINT8 } } attr { key: 'value' value { tensor { "
              "dtype: DT_UINT8 tensor_shape { dim { size: ",
              size, " } } } } } }");
  }
  EXPECT_THAT(GraphError(text),
              HasSubstr("node 'c2147483647' (Const): attr 'value': a message with"));
}

TEST(ExtendGraphTest, NewNodesMayReadOldOnes) {
  auto graph = Import(Placeholder("a"));
  ASSERT_TRUE(graph.ok());
  ASSERT_TRUE(
      ExtendGraphFromProto(GraphDefFromText(Op("i", "Identity", "'a', '^a'")), &*graph).ok());
  EXPECT_EQ(graph->Find("i")->input(0).node, graph->Find("a"));
}

TEST(ExtendGraphTest, ARedefinitionHasTensorFlowsText) {
  auto graph = Import(Placeholder("a"));
  ASSERT_TRUE(graph.ok());
  const Status status = ExtendGraphFromProto(GraphDefFromText(Placeholder("a")), &*graph);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(status),
            "GraphDef argument to Extend includes node 'a', which was created by a previous call "
            "to Create or Extend in this session.");
}

TEST(ExtendGraphTest, AnErrorLeavesTheGraphUnchanged) {
  auto graph = Import(Placeholder("a") + Op("i", "Identity", "'a'"));
  ASSERT_TRUE(graph.ok());
  GraphDef before, after;
  ASSERT_TRUE(GraphToProto(*graph, &before).ok());
  EXPECT_FALSE(ExtendGraphFromProto(GraphDefFromText(Op("x", "Add", "'a', 'i', '^a'") +
                                                     Op("y", "Identity", "'nowhere'")),
                                    &*graph)
                   .ok());
  ASSERT_TRUE(GraphToProto(*graph, &after).ok());
  EXPECT_EQ(before.DebugString(), after.DebugString());
  EXPECT_EQ(graph->num_ids(), 2);
  EXPECT_EQ(graph->Find("a")->out_edges().size(), 1u);
  EXPECT_EQ(graph->Find("x"), nullptr);
  EXPECT_TRUE(ExtendGraphFromProto(GraphDefFromText(Op("x", "Add", "'a', 'i'")), &*graph).ok());
  EXPECT_TRUE(graph->Validate().ok());
}

TEST(GraphToProtoTest, AGraphSurvives) {
  const GraphDef proto = GraphDefFromText(
      Placeholder("a") + Op("s", "Split", "'a', '^a'", Number("num_split", 2)) +
      Op("sum", "Add", "'s', 's:1', '^s'") +
      "node { name: 'c' op: 'Const' device: '/job:ps/task:0' attr { key: 'dtype' value { type: "
      "DT_STRING } } attr { key: 'value' value { tensor { dtype: DT_STRING tensor_shape { } "
      "string_val: 'x' } } } attr { key: '_class' value { list { s: 'loc:@a' } } } }"
      "versions { producer: 27 min_consumer: 12 }");
  const auto graph = GraphFromProto(proto, TinyRegistry());
  ASSERT_TRUE(graph.ok()) << graph.status();
  GraphDef back;
  ASSERT_TRUE(GraphToProto(*graph, &back, {.strip_default_attrs = true}).ok());
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(proto, back))
      << back.DebugString();
}

TEST(GraphToProtoTest, DefaultsAreWrittenUnlessStripped) {
  const auto graph = Import(Placeholder("a"));
  ASSERT_TRUE(graph.ok());
  GraphDef full, stripped;
  ASSERT_TRUE(GraphToProto(*graph, &full).ok());
  ASSERT_TRUE(GraphToProto(*graph, &stripped, {.strip_default_attrs = true}).ok());
  EXPECT_TRUE(full.node(0).attr().contains("shape"));
  EXPECT_FALSE(stripped.node(0).attr().contains("shape"));
}

TEST(GraphToProtoTest, TheAssignedDeviceWins) {
  auto graph = Import("node { name: 'n' op: 'NoOp' device: '/cpu:0' }");
  ASSERT_TRUE(graph.ok());
  graph->Find("n")->set_assigned_device("/job:a/replica:0/task:0/device:CPU:0");
  GraphDef proto;
  ASSERT_TRUE(GraphToProto(*graph, &proto).ok());
  EXPECT_EQ(proto.node(0).device(), "/job:a/replica:0/task:0/device:CPU:0");
}

TEST(AttributeProtoTest, EveryKindSurvives) {
  const FunctionName function{"f", {{"T", DType::kFloat}, {"n", int64_t{3}}}};
  const std::vector<Attribute> attributes = {"text",
                                             int64_t{-5},
                                             1.5f,
                                             true,
                                             DType::kHalf,
                                             PartialShape{2, -1},
                                             Tensor::Of<int32_t>({2}, {1, 2}),
                                             function,
                                             std::vector<std::string>{"a", ""},
                                             std::vector<int64_t>{1, 2},
                                             std::vector<float>{0.5f},
                                             std::vector<bool>{true, false},
                                             DTypeVector{DType::kInt8, DType::kFloat},
                                             std::vector<PartialShape>{PartialShape(), {3}},
                                             std::vector<Tensor>{Tensor::Scalar<float>(1)},
                                             std::vector<FunctionName>{function},
                                             std::vector<int64_t>{}};
  for (const Attribute& attribute : attributes) {
    AttrValue proto;
    ASSERT_TRUE(AttributeToProto(attribute, &proto).ok());
    const auto back = AttributeFromProto(proto);
    ASSERT_TRUE(back.ok()) << attribute.ToString() << ": " << back.status();
    EXPECT_TRUE(back->Equals(attribute)) << attribute.ToString() << " " << back->ToString();
  }
}

TEST(AttributeProtoTest, AListOfTwoKindsIsRefused) {
  AttrValue proto;
  proto.mutable_list()->add_i(1);
  proto.mutable_list()->add_f(1);
  EXPECT_THAT(std::string(Message(AttributeFromProto(proto).status())), HasSubstr("2 kinds"));
}

TEST(AttributeProtoTest, FunctionsNestedTooDeepAreRefused) {
  AttrValue proto;
  AttrValue* at = &proto;
  for (int i = 0; i < 40; ++i) {
    at = &(*at->mutable_func()->mutable_attr())["f"];
  }
  at->set_i(1);
  EXPECT_FALSE(AttributeFromProto(proto).ok());
}

}  // namespace
}  // namespace tenon
