// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/random_graph.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <future>
#include <map>
#include <set>

#include "core/gradient/gradients.h"
#include "core/proto/proto_io_graph.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/register.h"
#include "tests/testing/random_flow.h"
#include "tests/testing/random_ops.h"

namespace tenon::testing {
namespace {

class GraphMaker {
 public:
  GraphMaker(uint64_t seed, const RandomGraphOptions& options)
      : r_(seed * 7919 + 17),
        ops_(CurrentBuilding(), r_, {}),
        flow_(r_, &ops_, StrCat("seed", seed), options.unroll_loops) {}

  StatusOr<RandomGraph> Make() {
    AddPlaceholders();
    for (int i = r_.Below(3); i > 0; --i) ops_.Keep(Const(SmallTensor(AnyType())));
    flow_.AddVariables(r_.Below(4));
    const int length = 8 + r_.Below(45);
    for (int i = 0; i < length; ++i) {
      const int kind = r_.Below(100);
      if (kind < 72) {
        ops_.Grow();
      } else if (kind < 82) {
        flow_.UseVariable();
      } else if (kind < 92) {
        flow_.AddCond();
      } else {
        flow_.AddLoop();
      }
      TENON_RETURN_IF_ERROR(Annotate(graph_.error(), StrCat("op ", i, ": ")));
    }
    if (r_.Chance(75)) TENON_RETURN_IF_ERROR(AddGradient());
    flow_.Finish();
    TENON_RETURN_IF_ERROR(graph_.error());
    MakeSteps();
    GraphDef proto;
    TENON_RETURN_IF_ERROR(GraphToProto(graph_, &proto));
    BlurPlaceholders(&proto);
    TENON_ASSIGN_OR_RETURN(Graph graph, GraphFromProto(proto, AllOps()));
    return RandomGraph{std::move(graph), std::move(steps_)};
  }

 private:
  DType AnyType() {
    static const std::vector<DType> types = {DType::kFloat, DType::kFloat, DType::kDouble,
                                             DType::kInt32, DType::kInt64, DType::kBool};
    return r_.OneOf(types);
  }

  Tensor SmallTensor(DType dtype) {
    DimVector dims;
    for (int rank = r_.Below(4); rank > 0; --rank) dims.push_back(1 + r_.Below(4));
    // Some are large enough for kernels to work on in parallel.
    if (r_.Chance(4)) dims = {64, 96};
    return RandomTensor(r_, dtype, Shape(dims));
  }

  void AddPlaceholders() {
    const int count = 2 + r_.Below(4);
    for (int i = 0; i < count; ++i) {
      const DType dtype = i == 0 ? DType::kFloat : AnyType();
      const Tensor sample = SmallTensor(dtype);
      const Output p = Placeholder(dtype, sample.shape(), {.name = StrCat("p", i)});
      placeholders_.push_back(p);
      ops_.Keep(p);
    }
  }

  /// Forgets shapes of placeholders, so that sizes are known only when the step runs.
  void BlurPlaceholders(GraphDef* proto) {
    for (NodeDef& node : *proto->mutable_node()) {
      if (node.op() != "Placeholder" || r_.Chance(50)) continue;
      TensorShapeProto* shape = (*node.mutable_attr())["shape"].mutable_shape();
      if (r_.Chance(30)) {
        shape->clear_dim();
        shape->set_unknown_rank(true);
        continue;
      }
      for (auto& dim : *shape->mutable_dim()) {
        if (r_.Chance(60)) dim.set_size(-1);
      }
    }
  }

  /// What a gradient of `y` can reach. Loops are behind StopGradient, so it is the same unrolled.
  static std::set<const Node*> Ancestors(const Output& y) {
    std::set<const Node*> found;
    std::vector<const Node*> stack = {y.node};
    while (!stack.empty()) {
      const Node* node = stack.back();
      stack.pop_back();
      if (!found.insert(node).second || node->op() == "StopGradient") continue;
      for (const Endpoint& in : node->inputs()) stack.push_back(in.node);
    }
    return found;
  }

  Status AddGradient() {
    Output last = ops_.AnyFloat();
    std::set<const Node*> ancestors = Ancestors(last);
    for (int tries = 0; tries < 4; ++tries) {
      const Output other = ops_.AnyFloat();
      std::set<const Node*> more = Ancestors(other);
      if (more.size() > ancestors.size()) last = other, ancestors = std::move(more);
    }
    std::vector<Output> xs;
    for (const Output& v : ops_.values()) {
      const bool connected = ancestors.contains(v.node);
      if (IsFloating(v.dtype()) && xs.size() < 6 && r_.Chance(connected ? 60 : 3)) xs.push_back(v);
    }
    if (xs.empty()) return OkStatus();
    std::vector<Output> ys = {last};
    if (r_.Chance(30)) ys.push_back(Sum(ops_.AnyFloat()));
    for (const Output& g : Gradients(ys, xs, {.allow_unconnected = true})) {
      if (!g.exists()) continue;
      gradients_.push_back(g.name());
      ops_.Keep(g);
    }
    return graph_.error();
  }

  /// A value that can be fed in the place of what the graph computes.
  bool MayBeFed(const Output& value) const {
    return !IsRef(value.node->output_type(value.index)) && !flow_.IsState(value.node) &&
           value.node->op() != "Const" && value.node->op() != "Placeholder";
  }

  void MakeSteps() {
    steps_.push_back({{}, {}, {flow_.initializer()->name()}});
    const int count = 2 + r_.Below(3);
    for (int i = 0; i < count; ++i) {
      RandomStep step;
      for (const Output& p : placeholders_) {
        step.feeds.emplace_back(p.name(), RandomTensor(r_, p.dtype(), p.shape().ToShape()));
      }
      for (int k = 1 + r_.Below(6); k > 0; --k) AddFetch(&step, ops_.Any().name());
      if (!gradients_.empty() && r_.Chance(70)) AddFetch(&step, r_.OneOf(gradients_));
      if (r_.Chance(30)) AddFetch(&step, ops_.values().back().name());
      const Node* target = ops_.Any().node;
      if (r_.Chance(30) && target->op() != "Placeholder") step.targets.push_back(target->name());
      if (!flow_.updates().empty() && r_.Chance(60)) {
        step.targets.push_back(r_.OneOf(flow_.updates())->name());
      }
      if (r_.Chance(40)) AddFeed(&step, ops_.Any());
      steps_.push_back(std::move(step));
    }
    const std::string dead = flow_.dead_value();
    if (!dead.empty() && r_.Chance(30)) {
      steps_.push_back(RandomStep{steps_.back().feeds, {dead}, {}, true});
    }
  }

  static void AddFetch(RandomStep* step, const std::string& name) {
    for (const auto& feed : step->feeds) {
      if (feed.first == name) return AddFetch(step, "always");
    }
    if (std::count(step->fetches.begin(), step->fetches.end(), name) == 0) {
      step->fetches.push_back(name);
    }
  }

  void AddFeed(RandomStep* step, const Output& value) {
    const auto& fetches = step->fetches;
    if (!MayBeFed(value)) return;
    if (std::count(fetches.begin(), fetches.end(), value.name()) != 0) return;
    step->feeds.emplace_back(value.name(),
                             RandomTensor(r_, value.dtype(), value.shape().ToShape()));
  }

  Graph graph_{AllOps()};
  const GraphBuilding building_{graph_};
  Random r_;
  RandomOps ops_;
  RandomFlow flow_;
  std::vector<Output> placeholders_;
  std::vector<std::string> gradients_;
  std::vector<RandomStep> steps_;
  const Output always_ = Const(1.0f, {.name = "always"});
};

/// Whether the node is kept beside another: by a reference, a resource or a colocation.
bool IsBound(const Node& node) {
  for (const DType t : node.input_types()) {
    if (IsRef(t) || BaseType(t) == DType::kResource) return true;
  }
  return node.attrs().Find("_class") != nullptr;
}

std::string DifferenceOf(const Tensor& found, const Tensor& wanted) {
  if (found.dtype() != wanted.dtype() || !(found.shape() == wanted.shape())) {
    return StrCat("found ", found.ToString(), ", wanted ", wanted.ToString());
  }
  std::string difference;
  Dispatch(found.dtype(), decltype(ConcatTypes(RealTypes(), TypeList<bool>()))(), [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < found.num_elements() && difference.empty(); ++i) {
      const T a = found.data<T>()[i], b = wanted.data<T>()[i];
      if (std::memcmp(&a, &b, sizeof(T)) == 0) continue;
      if constexpr (!std::is_same_v<T, bool>) {
        if (a != a && b != b) continue;
        difference = StrCat("element ", i, " differs by ",
                            static_cast<double>(a) - static_cast<double>(b), ": ");
      }
      difference += StrCat("found ", found.ToString(), ", wanted ", wanted.ToString());
    }
  });
  return difference;
}

/// The nodes of `def` in parts of at least `size`, none of which names a node of a later one.
std::vector<GraphDef> Parts(const GraphDef& def, size_t size) {
  std::map<std::string, int, std::less<>> places;
  for (const NodeDef& node : def.node()) places.emplace(node.name(), places.size());
  std::vector<GraphDef> parts(1);
  int furthest = 0;
  for (int i = 0; i < def.node_size(); ++i) {
    GraphDef& part = parts.back();
    *part.add_node() = def.node(i);
    for (std::string_view input : def.node(i).input()) {
      if (input.starts_with('^')) input.remove_prefix(1);
      furthest = std::max(furthest, places.find(input.substr(0, input.find(':')))->second);
    }
    const bool more = i + 1 < def.node_size();
    if (furthest <= i && part.node_size() >= static_cast<int>(size) && more) parts.emplace_back();
  }
  for (GraphDef& part : parts) {
    *part.mutable_versions() = def.versions();
    *part.mutable_library() = def.library();
  }
  return parts;
}

StatusOr<std::vector<Tensor>> RunStep(const RandomStep& step, Session& session, StepWay way) {
  std::vector<NodeTrace> trace;
  StepOptions options;
  options.timeout = std::chrono::seconds(20);
  if (way == StepWay::kTraced) options.trace = &trace;
  if (way != StepWay::kAsync) {
    return session.Run(step.feeds, step.fetches, step.targets, options);
  }
  std::vector<std::string> fed;
  std::vector<Tensor> values;
  for (const auto& [name, value] : step.feeds) {
    fed.push_back(name);
    values.push_back(value);
  }
  TENON_ASSIGN_OR_RETURN(const auto prepared, session.Prepare(fed, step.fetches, step.targets));
  const auto ended = std::make_shared<std::promise<StatusOr<std::vector<Tensor>>>>();
  prepared->RunAsync(
      values,
      [ended](const Status& status, std::vector<Tensor> fetched) {
        if (status.ok()) {
          ended->set_value(std::move(fetched));
        } else {
          ended->set_value(status);
        }
      },
      options);
  return ended->get_future().get();
}

}  // namespace

StatusOr<RandomGraph> MakeRandomGraph(uint64_t seed, const RandomGraphOptions& options) {
  return GraphMaker(seed, options).Make();
}

void AssignRandomDevices(Graph* graph, uint64_t seed, const std::vector<std::string>& devices) {
  Random random(seed + 101);
  // Either all mixed, or runs of nodes together.
  const int change = random.Chance(50) ? 60 : 10;
  std::string device = devices[0];
  for (Node* node : graph->nodes()) {
    if (random.Chance(change)) device = random.OneOf(devices);
    if (!IsBound(*node)) node->set_requested_device(device);
  }
}

StatusOr<std::unique_ptr<Session>> MakeSessionInParts(
    const Graph& graph, int parts, const OpRegistry& ops,
    const std::function<StatusOr<std::unique_ptr<Session>>(const Graph&)>& make) {
  GraphDef def;
  TENON_RETURN_IF_ERROR(GraphToProto(graph, &def));
  Graph grown(ops);
  std::unique_ptr<Session> session;
  for (const GraphDef& part : Parts(def, def.node_size() / parts + 1)) {
    TENON_RETURN_IF_ERROR(ExtendGraphFromProto(part, &grown));
    if (session == nullptr) {
      TENON_ASSIGN_OR_RETURN(session, make(grown));
    } else {
      TENON_RETURN_IF_ERROR(session->Extend(grown));
    }
    if (grown.Find("always") == nullptr) continue;
    TENON_RETURN_IF_ERROR(session->Run({}, {"always"}).status());
  }
  return session;
}

StepResults RunSteps(const std::vector<RandomStep>& steps, Session& session, StepWay way) {
  StepResults results;
  for (const RandomStep& step : steps) results.push_back(RunStep(step, session, way));
  return results;
}

std::string Difference(const std::vector<RandomStep>& steps, const StepResults& found,
                       const StepResults& wanted) {
  for (size_t i = 0; i < steps.size(); ++i) {
    if (found[i].ok() == steps[i].fails) {
      return StrCat("step ", i, ": ", found[i].status().ToString());
    }
    if (!found[i].ok()) continue;
    for (size_t k = 0; k < steps[i].fetches.size(); ++k) {
      const std::string difference = DifferenceOf((*found[i])[k], (*wanted[i])[k]);
      if (!difference.empty()) {
        return StrCat("step ", i, ", fetch ", steps[i].fetches[k], ": ", difference);
      }
    }
  }
  return "";
}

std::vector<uint64_t> SeedsToTest(int count) {
  uint64_t first = 1, last = count;
  if (const char* text = std::getenv("TENON_SEED"); text != nullptr) {
    char* end = nullptr;
    first = last = std::strtoull(text, &end, 10);
    if (*end == '-') last = std::strtoull(end + 1, nullptr, 10);
  }
  std::vector<uint64_t> seeds;
  for (uint64_t seed = first; seed <= last; ++seed) seeds.push_back(seed);
  return seeds;
}

}  // namespace tenon::testing
