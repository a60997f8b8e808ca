// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda/op_case.h"

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>

#include "core/graph/graph.h"
#include "ops/register.h"
#include "tests/cuda/gpu_test.h"
#include "tests/testing/op_runner.h"
#include "tests/testing/random_ops.h"

namespace tenon::testing {
namespace {

/// The sizes that take the place of an example's, the same for the same, so that shapes which fit
/// each other still do.
class NewSizes {
 public:
  NewSizes(Random& random, const OpExample& example) : random_(random) {
    size_t rank = 0;
    for (const ExampleInput& in : example.inputs) {
      if (const Shape* s = std::get_if<Shape>(&in)) rank = std::max<size_t>(rank, s->rank());
    }
    most_ = rank <= 1 ? 1500 : rank == 2 ? 130 : rank == 3 ? 30 : rank == 4 ? 12 : 6;
  }
  /// Makes one of the sizes that the shapes have nothing.
  void Empty(int64_t size) { sizes_[size] = 0; }

  Shape Of(const Shape& shape) {
    DimVector dims;
    for (int i = 0; i < shape.rank(); ++i) dims.push_back(Of(shape.dim(i)));
    return Shape(dims);
  }

 private:
  int64_t Of(int64_t size) {
    if (const auto found = sizes_.find(size); found != sizes_.end()) return found->second;
    const bool stays = size == 0 || (size == 1 && random_.Chance(50));
    return sizes_[size] = stays ? size : size + (random_.Below(most_) | 1);
  }

  Random& random_;
  int most_;
  std::map<int64_t, int64_t> sizes_;
};

/// The shape with some of its sizes 1, or without the first.
Shape Narrowed(const Shape& shape, Random& random) {
  DimVector dims;
  const bool shorter = shape.rank() > 0 && random.Chance(30);
  for (int i = shorter; i < shape.rank(); ++i) {
    dims.push_back(random.Chance(50) ? 1 : shape.dim(i));
  }
  return Shape(dims);
}

OpExample Resized(const OpExample& example, Sizes sizes, uint64_t seed) {
  Random random(seed);
  OpExample changed = example;
  std::vector<Shape*> shapes;
  for (ExampleInput& in : changed.inputs) {
    if (Shape* s = std::get_if<Shape>(&in)) shapes.push_back(s);
  }
  if (sizes == Sizes::kExample || shapes.empty()) return changed;
  NewSizes sizes_of(random, example);
  if (sizes == Sizes::kEmpty) {
    const Shape& one = *random.OneOf(shapes);
    if (one.rank() > 0) sizes_of.Empty(one.dim(random.Below(one.rank())));
  }
  for (Shape* s : shapes) *s = sizes_of.Of(*s);
  if (sizes == Sizes::kBroadcast) {
    Shape& one = *random.OneOf(shapes);
    one = Narrowed(one, random);
  }
  return changed;
}

/// Puts NaNs, infinities and zeros among the elements of floats.
void AddSpecialValues(Tensor* t, uint64_t seed) {
  Random random(seed);
  Dispatch(t->dtype(), FloatTypes(), [&](auto zero) {
    using T = decltype(zero);
    const float infinity = std::numeric_limits<float>::infinity();
    for (int64_t i = 0; i < t->num_elements(); ++i) {
      if (random.Chance(70)) continue;
      t->data<T>()[i] = T(random.OneOf<float>({std::nanf(""), infinity, -infinity, 0.0f, -0.0f}));
    }
  });
}

unsigned SecondsOfACase() { return EnvironmentNumber("TENON_GPU_CASE_SECONDS", 60); }

/// Appends a line to the table's file; false when there is none.
bool WriteLine(const std::string& line) {
  const char* const path = std::getenv("TENON_GPU_TABLE");
  if (path == nullptr) return false;
  if (std::FILE* file = std::fopen(path, "a")) {
    std::fprintf(file, "%s\n", line.c_str());
    std::fclose(file);
  }
  return true;
}

}  // namespace

namespace {

/// A node of the op, `op`, fed by placeholders, `in0` and so on.
StatusOr<Node*> AddOp(const OpCase& c, bool known_shapes, Graph* graph) {
  AttributeMap attrs = c.attrs;
  InferAttributes(c.op->schema, c.inputs, &attrs);
  std::vector<Endpoint> sources;
  for (const Tensor& t : c.inputs) {
    const PartialShape shape = known_shapes ? PartialShape(t.shape()) : PartialShape();
    TENON_ASSIGN_OR_RETURN(Node * source,
                           graph->AddNode(StrCat("in", sources.size()), "Placeholder",
                                          {{"dtype", t.dtype()}, {"shape", shape}}, {}));
    source->set_requested_device(kCpuName);
    sources.push_back({source, 0});
  }
  return graph->AddNode("op", c.op->schema.name, attrs, sources);
}

}  // namespace

bool IsSmall(const OpCase& c) {
  constexpr int64_t kMost = 1 << 22;
  Graph graph(AllOps());
  const auto node = AddOp(c, true, &graph);
  if (!node.ok()) return false;
  for (int i = 0; i < (*node)->num_outputs(); ++i) {
    const PartialShape& shape = (*node)->output_shape(i);
    if (shape.IsFullyKnown() && shape.ToShape().num_elements() > kMost) return false;
  }
  return true;
}

StatusOr<std::vector<Tensor>> RunCase(const OpCase& c, bool on_gpu) {
  Graph graph(AllOps());
  TENON_ASSIGN_OR_RETURN(Node* const node, AddOp(c, false, &graph));
  node->set_requested_device(on_gpu ? kGpuName : kCpuName);
  Session::Feeds feeds;
  for (const Tensor& t : c.inputs) feeds.emplace_back(StrCat("in", feeds.size()), t);
  std::vector<std::string> fetches;
  for (int i = 0; i < node->num_outputs(); ++i) fetches.push_back(StrCat("op:", i));
  TENON_ASSIGN_OR_RETURN(const auto session, on_gpu ? GpuSession(graph) : CpuSession(graph));
  StepOptions options;
  options.timeout = std::chrono::seconds(20);
  return session->Run(feeds, fetches, {"op"}, options);
}

OpCase MakeCase(const OpRegistration& op, const OpExample& example, const AttributeMap& attrs,
                Sizes sizes, uint64_t seed) {
  OpCase c{&op, SampleInputs(op, Resized(example, sizes, seed), attrs, seed), attrs};
  if (sizes == Sizes::kSpecial) {
    for (Tensor& t : c.inputs) AddSpecialValues(&t, seed++);
  }
  const bool seeded = attrs.GetOr<int64_t>("seed", 0) != 0 || attrs.GetOr<int64_t>("seed2", 0) != 0;
  const AttrSchema* const attr = op.schema.FindAttr("seed");
  if (!seeded && attr != nullptr && attr->kind == "int") c.attrs.Set("seed", int64_t{7});
  return c;
}

OpRow::OpRow(std::string name) : name_(std::move(name)) {
  if (WriteLine("> " + name_)) alarm(SecondsOfACase());
}

OpRow::~OpRow() {
  alarm(0);
  if (cases_ == 0 && failure_.empty() && skipped_.empty()) skipped_ = "no case that the CPU takes";
  const std::string result = !failure_.empty()   ? "FAILED " + failure_
                             : !skipped_.empty() ? "not run: " + skipped_
                                                 : "ok";
  char error[32];
  std::snprintf(error, sizeof(error), "%.2g", error_);
  std::string dtypes = Join(std::vector<DType>(dtypes_.begin(), dtypes_.end()), ",");
  WriteLine(
      StrCat(name_, "\t", dtypes.empty() ? "-" : dtypes, "\t", cases_, "\t", error, "\t", result));
}

void OpRow::AddCase(DType dtype, double error) {
  if (alarm(0) != 0) alarm(SecondsOfACase());
  dtypes_.insert(dtype);
  ++cases_;
  error_ = std::max(error_, error);
}

void OpRow::Fail(const std::string& what) {
  ADD_FAILURE() << name_ << ": " << what;
  if (!failure_.empty()) return;
  failure_ = what;
  for (char& c : failure_) {
    if (c == '\n' || c == '\t') c = ' ';
  }
}

bool GpuIsThere() {
  const Status status = TryGpu();
  if (status.ok()) return true;
  ADD_FAILURE() << "the GPU does not compute any more: " << status;
  if (WriteLine("! " + status.ToString())) {
    std::fflush(nullptr);
    std::_Exit(3);
  }
  return false;
}

}  // namespace tenon::testing
