// SPDX-License-Identifier: Apache-2.0
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/io/reader.h"
#include "ops/state/resource_node.h"

namespace tenon {
namespace {

/// ReaderRead, and with a third input ReaderReadUpTo.
class ReadKernel final : public AsyncKernel {
 public:
  using AsyncKernel::AsyncKernel;

  void ComputeAsync(KernelContext& ctx, Done done) const override {
    const StatusOr<std::shared_ptr<Reader>> reader = ResourceInput<Reader>(ctx, 0);
    if (!reader.ok()) return done(reader.status());
    StatusOr<std::shared_ptr<Queue>> queue = ResourceInput<Queue>(ctx, 1);
    if (!queue.ok()) return done(queue.status());
    StatusOr<int64_t> count = 0;
    if (ctx.num_inputs() == 3) {
      count = ReadInteger(ctx.input(2), "num_records");
      if (!count.ok()) return done(count.status());
      if (*count < 1) return done(InvalidArgument("num_records must be positive, found ", *count));
    }
    (*reader)->Read(*std::move(queue), *count, ctx, std::move(done));
  }
};

template <int64_t (Reader::*kCount)() const>
Status CountKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const auto reader, ResourceInput<Reader>(ctx));
  return ctx.Return(Tensor::Scalar(((*reader).*kCount)()));
}

Status ResetKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const auto reader, ResourceInput<Reader>(ctx));
  reader->Reset();
  return OkStatus();
}

Status SerializeKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const auto reader, ResourceInput<Reader>(ctx));
  TENON_ASSIGN_OR_RETURN(std::string state, reader->Serialize());
  return ctx.Return(Tensor::Scalar(std::move(state)));
}

Status RestoreStateKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const auto reader, ResourceInput<Reader>(ctx));
  return reader->Restore(ctx.input(1).scalar<TString>());
}

Status VectorsShape(ShapeContext& c) { return c.ReturnForEach(PartialShape{-1}); }

}  // namespace

void RegisterReaderOps(OpRegistry& ops) {
  // The ops of TensorFlow 1 give and take references, the others resource handles.
  for (const std::string_view version : {"", "V2"}) {
    const auto get = [&](std::string_view name, ShapeFn shape) {
      return ops.Get(StrCat(name, version))
          .Shape(shape)
          .NoExample("needs a reader and a queue; reader_ops_test covers it");
    };
    for (const char* reader : {"TextLineReader", "TFRecordReader", "FixedLengthRecordReader",
                               "WholeFileReader", "IdentityReader"}) {
      get(reader, version.empty() ? ReferenceShape : ScalarShape)
          .Kernel<ResourceNodeKernel<Reader>>(kCpu);
    }
    get("ReaderRead", ScalarShape).Kernel<ReadKernel>(kCpu);
    get("ReaderReadUpTo", VectorsShape).Kernel<ReadKernel>(kCpu);
    get("ReaderReset", NoOutputShape).Kernel(kCpu, ResetKernel);
    get("ReaderSerializeState", ScalarShape).Kernel(kCpu, SerializeKernel);
    get("ReaderRestoreState", NoOutputShape).Kernel(kCpu, RestoreStateKernel);
    get("ReaderNumRecordsProduced", ScalarShape).Kernel(kCpu, CountKernel<&Reader::num_records>);
    get("ReaderNumWorkUnitsCompleted", ScalarShape).Kernel(kCpu, CountKernel<&Reader::num_files>);
  }
}

}  // namespace tenon
