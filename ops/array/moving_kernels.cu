// SPDX-License-Identifier: Apache-2.0
#include "ops/array/moving_kernels.h"

#include "ops/arguments.h"
#include "ops/broadcast.h"
#include "ops/cuda/kernel_types.h"
#include "ops/cuda/mover.h"
#include "ops/cuda/register.h"

namespace tenon {
namespace {

template <auto kKernel>
void Add(OpRegistry& ops, std::string_view name, std::vector<std::string> attrs = {},
         const DTypeVector& types = DTypesOf(PlainTypes())) {
  cuda::AddKernel(ops, name, With<cuda::kDeviceMover, kKernel>::Run,
                  {.types = {{"T", types}}, .attrs = std::move(attrs)});
}

Status BroadcastToKernel(KernelContext& ctx, const Tensor& x, const Shape& wanted,
                         const Mover& mover) {
  if (x.shape() == wanted) return ctx.Return(x);
  TENON_ASSIGN_OR_RETURN(const BroadcastPlan plan, PlanBroadcastTo(x.shape(), wanted));
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, wanted));
  DimVector dims;
  StridedView source, target;
  for (const BroadcastPlan::Dim& d : plan.dims) {
    dims.push_back(d.size);
    source.strides.push_back(d.strides[0]);
    target.strides.push_back(d.strides[1]);
  }
  return mover.copy(ctx, x, source, y, target, dims);
}

}  // namespace

void RegisterCudaMovingKernels(OpRegistry& ops) {
  Add<ConcatKernel>(ops, "Concat");
  Add<ConcatV2Kernel>(ops, "ConcatV2");
  Add<PackKernel>(ops, "Pack", {"axis"});
  Add<SplitKernel>(ops, "Split");
  Add<SplitVKernel>(ops, "SplitV");
  Add<UnpackKernel>(ops, "Unpack", {"axis"});
  Add<SliceKernel>(ops, "Slice");
  Add<StridedSliceKernel>(ops, "StridedSlice");
  Add<StridedSliceGradKernel>(ops, "StridedSliceGrad");
  Add<PadKernel>(ops, "Pad");
  Add<PadKernel>(ops, "PadV2");
  Add<MirrorPadKernel>(ops, "MirrorPad", {"mode"});
  Add<TileKernel>(ops, "Tile");
  Add<TransposeKernel>(ops, "Transpose");
  // The conjugate of complex numbers is more than a move.
  Add<TransposeKernel>(ops, "ConjugateTranspose", {},
                       DTypesOf(decltype(ConcatTypes(RealTypes(), TypeList<bool>()))()));
  Add<ReverseKernel>(ops, "ReverseV2");
  Add<RollKernel>(ops, "Roll");
  Add<FillKernel>(ops, "Fill");
  Add<BroadcastToKernel>(ops, "BroadcastTo");
  Add<DiagKernel>(ops, "Diag");
  Add<DiagPartKernel>(ops, "DiagPart");
  for (const std::string prefix : {"Matrix", "BatchMatrix"}) {
    for (const std::string version : {"", "V2", "V3"}) {
      if (ops.Find(prefix + "Diag" + version) == nullptr) continue;  // the old name has no others
      Add<MatrixDiagKernel>(ops, prefix + "Diag" + version);
      Add<DiagonalPartKernel>(ops, prefix + "DiagPart" + version);
      Add<SetDiagKernel>(ops, prefix + "SetDiag" + version);
    }
  }
}

}  // namespace tenon
