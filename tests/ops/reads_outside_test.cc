// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>

#include "core/base/exceptions.h"
#include "core/graph/graph.h"
#include "core/op/op_registry.h"
#include "ops/register.h"
#include "tests/testing/op_runner.h"

namespace tenon::testing {
namespace {

/// A CPU device that lets nobody reach files and remembers that somebody wanted to.
class WatchedDevice final : public Device {
 public:
  const std::string& name() const override { return TestDevice().name(); }
  DeviceKind kind() const override { return kCpu; }
  uint64_t incarnation() const override { return 1; }
  int64_t memory_limit() const override { return TestDevice().memory_limit(); }
  Allocator& allocator() override { return TestDevice().allocator(); }
  ResourceStore& resources() override { return TestDevice().resources(); }
  const FileAccess& files() const override {
    asked_ = true;
    return none_;
  }
  bool asked() const { return asked_; }

 private:
  const FileAccess none_{.kind = FileAccess::Kind::kNone, .root = ""};
  mutable std::atomic<bool> asked_ = false;
};

/// A value for an attribute that has no default; false for kinds that cannot be made up.
bool MakeUp(const AttrSchema& attr, AttributeMap* attrs) {
  if (attr.kind == "int") {
    attrs->Set(attr.name, std::max<int64_t>(1, attr.minimum.value_or(1)));
  } else if (attr.kind == "type") {
    attrs->Set(attr.name, attr.allowed_types.empty() ? DType::kString : attr.allowed_types[0]);
  } else if (attr.kind == "string") {
    attrs->Set(attr.name, attr.allowed_strings.empty() ? "x" : attr.allowed_strings[0]);
  } else if (attr.kind == "bool") {
    attrs->Set(attr.name, false);
  } else {
    return false;
  }
  return true;
}

/// Runs the op on scalars: texts, zeros. False when it cannot be run so.
bool Runs(const OpRegistration& op, Device& device) {
  AttributeMap attrs;
  for (const AttrSchema& attr : op.schema.attrs) {
    if (!attr.default_value && !MakeUp(attr, &attrs)) return false;
  }
  if (!ApplySchema(op.schema, &attrs).ok()) return false;
  const StatusOr<DTypeVector> types = ArgTypes(op.schema.inputs, attrs);
  if (!types.ok() || std::count(types->begin(), types->end(), DType::kString) == 0) return false;
  Graph graph(AllOps());
  std::vector<Endpoint> sources;
  std::vector<Value> in;
  for (const DType type : *types) {
    if (IsRef(type) || (!IsPlain(type) && type != DType::kString)) return false;
    const auto source = graph.AddNode(StrCat("in", sources.size()), "Placeholder",
                                      {{"dtype", type}, {"shape", PartialShape()}}, {});
    if (!source.ok()) return false;
    sources.push_back({*source, 0});
    in.push_back({type == DType::kString ? Tensor::Scalar("text") : Tensor::Zeros(type, {})});
  }
  const auto node = graph.AddNode("op", op.schema.name, attrs, sources);
  if (!node.ok()) return false;
  KernelConstruction construction("op", op.schema.name, (*node)->attrs(), (*node)->input_types(),
                                  (*node)->output_types(), device);
  const auto kernel = op.MakeKernel(construction);
  if (!kernel.ok() || (*kernel)->is_async()) return false;
  const ProgramRun run;
  const DeviceRun on_device{run, device};
  std::vector<Value> out((*node)->num_outputs());
  KernelContext ctx(on_device, (*node)->output_types(), in.data(), static_cast<int>(in.size()),
                    out.data());
  // Most refuse such inputs, some after they have looked for a file.
  (void)CatchExceptions([&] { return (*kernel)->Compute(ctx); });
  return true;
}

TEST(ReadsOutsideTest, OpsWithoutStateThatReachFilesAreDeclaredSo) {
  int tried = 0, outside = 0;
  for (const OpRegistration* op : AllOps().All()) {
    if (op->schema.is_stateful || op->schema.outputs.empty()) continue;
    WatchedDevice device;
    if (!Runs(*op, device)) continue;
    ++tried;
    outside += device.asked();
    EXPECT_EQ(device.asked(), op->schema.reads_outside) << op->schema.name;
  }
  EXPECT_GT(tried, 50);
  EXPECT_EQ(outside, 3);
}

}  // namespace
}  // namespace tenon::testing
