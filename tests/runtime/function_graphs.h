// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/proto/proto_io_graph.h"
#include "ops/register.h"
#include "runtime/session/local_session.h"
#include "tests/testing/status_matchers.h"

// Graphs that call functions, as text.

namespace tenon::testing {

/// A node as text: its name, op and inputs, and attributes as text of NodeDef.
struct NodeText {
  std::string name, op;
  std::vector<std::string> inputs;
  std::string attrs = "";
};

inline std::string Float() { return "attr { key: 'T' value { type: DT_FLOAT } }"; }
inline std::string Types(const std::string& in, const std::string& out) {
  const auto list = [](const std::string& key, const std::string& types) {
    return StrCat("attr { key: '", key, "' value { list { ", types, " } } }");
  };
  return list("Tin", in) + list("Tout", out);
}
inline const std::string kFloat1 = "type: DT_FLOAT", kFloat2 = "type: DT_FLOAT type: DT_FLOAT";
inline std::string Calls(const std::string& attr, const std::string& function) {
  return StrCat("attr { key: '", attr, "' value { func { name: '", function, "' } } }");
}
inline std::string FloatConst(float value) {
  return StrCat(
      "attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'value' value { tensor {"
      " dtype: DT_FLOAT tensor_shape {} float_val: ",
      value, " } } }");
}
template <typename Proto>
void AddTo(const std::string& text, Proto* proto) {
  Proto parsed;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &parsed)) << text;
  proto->MergeFrom(parsed);
}

/// A graph with functions of floats, and a session on it.
class FunctionsTest : public ::testing::Test {
 protected:
  static std::string Text(const NodeText& node) {
    std::string text = StrCat("name: '", node.name, "' op: '", node.op, "' ", node.attrs);
    for (const std::string& in : node.inputs) StrAppend(&text, " input: '", in, "'");
    return text;
  }
  void Node(const NodeText& node) { AddTo(Text(node), def_.add_node()); }
  /// `arguments` and the keys of `results` are names; all are of `type`.
  void Function(const std::string& name, const std::vector<std::string>& arguments,
                const std::vector<std::pair<std::string, std::string>>& results,
                const std::vector<NodeText>& nodes, const std::string& more = "",
                const std::string& type = "type: DT_FLOAT") {
    std::string text = StrCat("signature { name: '", name, "' ");
    for (const auto& a : arguments) StrAppend(&text, "input_arg { name: '", a, "' ", type, " } ");
    for (const auto& [r, value] : results) {
      StrAppend(&text, "output_arg { name: '", r, "' ", type, " } ");
    }
    StrAppend(&text, more.starts_with("attr") ? more : "", " } ");
    for (const auto& [r, value] : results) {
      StrAppend(&text, "ret { key: '", r, "' value: '", value, "' } ");
    }
    for (const NodeText& node : nodes) StrAppend(&text, "node_def { ", Text(node), " } ");
    StrAppend(&text, more.starts_with("attr") ? "" : more);
    AddTo(text, def_.mutable_library()->add_function());
  }
  void Doubling() {
    Function("Double", {"x"}, {{"y", "sum:z:0"}}, {{"sum", "AddV2", {"x", "x"}, Float()}});
  }
  void Input(const std::string& name = "x", const std::string& type = "DT_FLOAT") {
    Node({name,
          "Placeholder",
          {},
          StrCat("attr { key: 'dtype' value { type: ", type, " } }",
                 "attr { key: 'shape' value { shape {} } }")});
  }

  Status Open(int cpu_devices = 1) {
    TENON_ASSIGN_OR_RETURN(const Graph graph, GraphFromProto(def_, AllOps()));
    TENON_ASSIGN_OR_RETURN(session_, MakeLocalSession(graph, {.devices = {.cpus = cpu_devices}}));
    return OkStatus();
  }
  StatusOr<float> Run(const StepFeeds& feeds, const std::string& fetch,
                      const StepTensors& targets = {}) {
    if (session_ == nullptr) TENON_RETURN_IF_ERROR(Open());
    TENON_ASSIGN_OR_RETURN(const auto values, session_->Run(feeds, StepTensors{fetch}, targets));
    return values[0].scalar<float>();
  }

  GraphDef def_;
  std::unique_ptr<Session> session_;
};

inline StepFeeds X(float x) { return {{"x", Tensor::Scalar(x)}}; }

}  // namespace tenon::testing
