// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/graph_mutation.h"

#include <algorithm>
#include <limits>

#include "core/proto/proto_io_graph.h"
#include "ops/register.h"
#include "runtime/session/local_session.h"

namespace tenon::testing {
namespace {

int64_t OddNumber(Random& r) {
  static const std::vector<int64_t> numbers = {-1,
                                               0,
                                               1,
                                               2,
                                               3,
                                               7,
                                               -2,
                                               100,
                                               1000,
                                               65536,
                                               1 << 20,
                                               1 << 28,
                                               1LL << 31,
                                               (1LL << 31) - 1,
                                               1LL << 32,
                                               1LL << 40,
                                               1LL << 62,
                                               std::numeric_limits<int64_t>::max(),
                                               std::numeric_limits<int64_t>::min()};
  return r.OneOf(numbers);
}

NodeDef* AnyNode(GraphDef* graph, Random& r) {
  return graph->mutable_node(r.Below(graph->node_size()));
}

/// Ops that only compute: a mutant must not write files.
const std::vector<std::string>& Ops() {
  static const std::vector<std::string> ops = [] {
    std::vector<std::string> names;
    for (const OpRegistration* op : AllOps().All()) {
      if (!op->schema.is_stateful && op->schema.name.find("File") == std::string::npos) {
        names.push_back(op->schema.name);
      }
    }
    return names;
  }();
  return ops;
}

void MutateShape(TensorShapeProto* shape, Random& r) {
  switch (r.Below(4)) {
    case 0:
      shape->add_dim()->set_size(OddNumber(r));
      break;
    case 1:
      if (shape->dim_size() > 0) shape->mutable_dim()->RemoveLast();
      break;
    case 2:
      shape->set_unknown_rank(!shape->unknown_rank());
      break;
    default:
      if (shape->dim_size() > 0) {
        shape->mutable_dim(r.Below(shape->dim_size()))->set_size(OddNumber(r));
      }
  }
}

/// A number of a dtype: mostly one that exists.
int AnyType(Random& r) { return r.Chance(90) ? r.Below(26) : r.Below(140); }

void MutateTensor(TensorProto* tensor, Random& r) {
  switch (r.Below(6)) {
    case 0:
      tensor->set_dtype(static_cast<DataType>(AnyType(r)));
      break;
    case 1:
      tensor->add_float_val(static_cast<float>(OddNumber(r)));
      break;
    case 2:
      tensor->add_int_val(static_cast<int32_t>(OddNumber(r)));
      break;
    case 3: {
      std::string* content = tensor->mutable_tensor_content();
      if (content->size() < 64) {
        content->append(8, static_cast<char>(r.Below(256)));
      } else {
        MutateBytes(content, r);
      }
      break;
    }
    case 4:
      for (int32_t& v : *tensor->mutable_int_val()) v = static_cast<int32_t>(OddNumber(r));
      if (tensor->tensor_content().size() == 4) {
        const auto number = static_cast<int32_t>(OddNumber(r));
        tensor->set_tensor_content(std::string(reinterpret_cast<const char*>(&number), 4));
      }
      break;
    default:
      MutateShape(tensor->mutable_tensor_shape(), r);
  }
}

void MutateValue(AttrValue* value, Random& r) {
  switch (value->value_case()) {
    case AttrValue::kI:
      value->set_i(OddNumber(r));
      break;
    case AttrValue::kB:
      value->set_b(!value->b());
      break;
    case AttrValue::kF:
      value->set_f(static_cast<float>(OddNumber(r)));
      break;
    case AttrValue::kType:
      value->set_type(static_cast<DataType>(AnyType(r)));
      break;
    case AttrValue::kShape:
      MutateShape(value->mutable_shape(), r);
      break;
    case AttrValue::kTensor:
      MutateTensor(value->mutable_tensor(), r);
      break;
    case AttrValue::kS:
      if (r.Chance(50)) {
        value->set_s("");
      } else {
        value->mutable_s()->append("x");
      }
      break;
    case AttrValue::kList: {
      AttrValue::ListValue* list = value->mutable_list();
      if (list->type_size() > 0) {
        list->add_type(static_cast<DataType>(AnyType(r)));
      } else if (list->s_size() > 0 && r.Chance(50)) {
        list->mutable_s()->RemoveLast();
      } else {
        list->add_i(OddNumber(r));
      }
      break;
    }
    default:
      value->set_i(OddNumber(r));
  }
}

/// One of the node's attributes; null when it has none. A map's own order differs from run to run.
AttrValue* AnyAttr(NodeDef* node, Random& r, std::string* key) {
  std::vector<std::string> keys;
  for (const auto& entry : node->attr()) keys.push_back(entry.first);
  if (keys.empty()) return nullptr;
  std::sort(keys.begin(), keys.end());
  *key = r.OneOf(keys);
  return &(*node->mutable_attr())[*key];
}

void MutateAttr(GraphDef* graph, Random& r) {
  NodeDef* node = AnyNode(graph, r);
  std::string key, other_key;
  AttrValue* value = AnyAttr(node, r, &key);
  if (value == nullptr) return;
  const int kind = r.Below(10);
  if (kind < 8) {
    MutateValue(value, r);
  } else if (kind == 8) {
    node->mutable_attr()->erase(key);
  } else if (const AttrValue* other = AnyAttr(AnyNode(graph, r), r, &other_key)) {
    const AttrValue copy = *other;
    *value = copy;
  }
}

void MutateInput(GraphDef* graph, Random& r) {
  NodeDef* node = AnyNode(graph, r);
  const NodeDef* other = AnyNode(graph, r);
  const int n = node->input_size();
  std::string name = other->name();
  if (r.Chance(20)) name += ":" + std::to_string(r.Below(3));
  switch (n == 0 ? 5 : r.Below(6)) {
    case 0:
    case 1:
      node->set_input(r.Below(n), name);
      break;
    case 2:
      node->mutable_input()->SwapElements(r.Below(n), r.Below(n));
      break;
    case 3:
      node->mutable_input()->RemoveLast();
      break;
    case 4:
      node->add_input(name);
      break;
    default:
      node->add_input("^" + name);
  }
}

void MutateNode(GraphDef* graph, Random& r) {
  static const std::vector<std::string> devices = {
      "/device:CPU:0", "/device:CPU:1", "/device:GPU:0", "/job:ps",
      "/cpu:0",        "bad",           "/device:CPU:x"};
  const int i = r.Below(graph->node_size());
  NodeDef* node = graph->mutable_node(i);
  switch (r.Below(5)) {
    case 0:
      node->set_device(r.OneOf(devices));
      break;
    case 1:
      node->set_op(r.Chance(60) ? r.OneOf(Ops()) : AnyNode(graph, r)->op());
      break;
    case 2:
      node->set_name(r.Chance(50) ? AnyNode(graph, r)->name() : "new");
      break;
    case 3:
      graph->mutable_node()->DeleteSubrange(i, 1);
      break;
    default: {
      const NodeDef copy = *node;
      graph->add_node()->CopyFrom(copy);
      if (r.Chance(80)) graph->mutable_node(graph->node_size() - 1)->set_name("copy");
    }
  }
}

}  // namespace

void MutateMessage(GraphDef* graph, Random& r) {
  for (int changes = r.Chance(60) ? 1 : 1 + r.Below(4); changes > 0 && graph->node_size() > 0;
       --changes) {
    const int kind = r.Below(10);
    if (kind < 5) {
      MutateAttr(graph, r);
    } else if (kind < 8) {
      MutateInput(graph, r);
    } else {
      MutateNode(graph, r);
    }
  }
}

void MutateBytes(std::string* bytes, Random& r) {
  for (int changes = 1 + r.Below(8); changes > 0 && !bytes->empty(); --changes) {
    const size_t at = r.Seed() % bytes->size();
    switch (r.Below(8)) {
      case 0:
        bytes->insert(at, 1 + r.Below(8), static_cast<char>(r.Below(256)));
        break;
      case 1:
        bytes->erase(at, 1 + r.Below(8));
        break;
      case 2:
        if (r.Chance(10)) bytes->resize(at);
        break;
      case 3:
        (*bytes)[at] = static_cast<char>(r.Below(256));
        break;
      default:
        (*bytes)[at] = static_cast<char>((*bytes)[at] ^ (1 << r.Below(8)));
    }
  }
}

Status ImportAndRun(const GraphDef& proto, const MutantSteps& steps) {
  TENON_ASSIGN_OR_RETURN(const Graph graph, GraphFromProto(proto, AllOps()));
  LocalSessionOptions options;
  options.threads = 1;
  options.devices.cpus = 2;
  TENON_ASSIGN_OR_RETURN(auto session, MakeLocalSession(graph, options));
  StepOptions step;
  step.timeout = steps.timeout;
  Status first;
  if (graph.Find("init") != nullptr) first = session->Run({}, {}, {"init"}, step).status();
  const Status second = session->Run(steps.feeds, steps.fetches, steps.targets, step).status();
  return first.ok() ? second : first;
}

}  // namespace tenon::testing
