// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/array/array_ops.h"
#include "ops/array/strided_copy.h"
#include "ops/composition.h"
#include "ops/elements.h"
#include "ops/linalg/einsum_equation.h"
#include "ops/linalg/linalg_ops.h"
#include "ops/math/gemms.h"
#include "ops/math/reduction.h"
#include "ops/maths.h"

namespace tenon {
namespace {

/// What an input or the result has for each label: how many elements, and how many elements apart
/// neighbours are. A label that stands twice goes along the diagonal.
struct LabelDim {
  int64_t size = 1, stride = 0;
};
using LabelDims = std::map<int, LabelDim>;

/// The dimensions of a tensor by label; a dimension of 1 of an ellipsis is left out, as it
/// broadcasts.
StatusOr<LabelDims> DimsOf(const EinsumLabels& labels, absl::Span<const int64_t> dims) {
  LabelDims found;
  const DimVector strides = StridesOf(dims);
  for (size_t d = 0; d < labels.size(); ++d) {
    if (IsEllipsisLabel(labels[d]) && dims[d] == 1) continue;
    const auto [at, is_new] = found.emplace(labels[d], LabelDim{dims[d], strides[d]});
    if (is_new) continue;
    if (at->second.size != dims[d]) {
      return InvalidArgument("Expected dimension ", at->second.size, " at axis ", d,
                             " of the input shaped ", PartialShape(dims), " but got dimension ",
                             dims[d]);
    }
    at->second.stride += strides[d];
  }
  return found;
}

/// `t` with its elements in the order of `order`, in contiguous memory; the labels after the first
/// `kept` are summed over. Labels that `t` does not have repeat it.
StatusOr<Tensor> Arrange(KernelContext& ctx, const Tensor& t, const LabelDims& from,
                         const EinsumLabels& order, size_t kept, const LabelDims& sizes) {
  StridedView source;
  DimVector dims;
  AxisFlags summed;
  for (const int label : order) {
    const auto found = from.find(label);
    source.strides.push_back(found == from.end() ? 0 : found->second.stride);
    dims.push_back(sizes.at(label).size);
    summed.push_back(dims.size() > kept);
  }
  TENON_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  Tensor arranged = t;
  if (source.strides != StridesOf(dims) || shape.num_elements() != t.num_elements()) {
    TENON_ASSIGN_OR_RETURN(arranged, ctx.AllocateTemp(t.dtype(), shape));
    StridedCopy(t, source, &arranged, {0, StridesOf(dims)}, dims);
  }
  if (order.size() == kept) return arranged;
  const ReductionPlan plan = PlanReduction(shape, summed, false);
  TENON_ASSIGN_OR_RETURN(Tensor sums, ctx.AllocateTemp(t.dtype(), plan.shape));
  SumAlong(t.dtype(), plan, arranged.raw_data(), sums.raw_data());
  return sums;
}

bool Has(const EinsumLabels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

/// The product of the elements in `sizes` that `labels` name.
StatusOr<int64_t> SizeOf(const EinsumLabels& labels, const LabelDims& sizes) {
  int64_t size = 1;
  for (const int label : labels) {
    TENON_ASSIGN_OR_RETURN(size, MultiplySizes(size, sizes.at(label).size));
  }
  return size;
}

/// The labels of the inputs and of the result by what happens to them.
struct Kinds {
  EinsumLabels batch;       // in both inputs and the result
  EinsumLabels free[2];     // in one input and the result
  EinsumLabels contracted;  // in both inputs only
  EinsumLabels summed[2];   // in one input only
};

Kinds KindsOf(const std::vector<LabelDims>& inputs, const EinsumLabels& output) {
  Kinds kinds;
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (const auto& [label, dim] : inputs[i]) {
      const bool shared = inputs.size() == 2 && inputs[1 - i].contains(label);
      EinsumLabels& kind = Has(output, label) ? (shared ? kinds.batch : kinds.free[i])
                                              : (shared ? kinds.contracted : kinds.summed[i]);
      if (!shared || i == 0) kind.push_back(label);
    }
  }
  return kinds;
}

EinsumLabels Joined(std::initializer_list<EinsumLabels> parts) {
  EinsumLabels all;
  for (const EinsumLabels& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

/// The sums of products, in the order batch, free of the first input, free of the second.
StatusOr<Tensor> Contract(KernelContext& ctx, const std::vector<LabelDims>& inputs,
                          const Kinds& kinds, const LabelDims& sizes) {
  Tensor parts[2];
  for (size_t i = 0; i < inputs.size(); ++i) {
    const EinsumLabels kept = Joined({kinds.batch, kinds.free[i], kinds.contracted});
    TENON_ASSIGN_OR_RETURN(parts[i], Arrange(ctx, ctx.input(static_cast<int>(i)), inputs[i],
                                             Joined({kept, kinds.summed[i]}), kept.size(), sizes));
  }
  if (inputs.size() == 1) return parts[0];
  GemmShape gemm;
  gemm.transpose_b = true;
  TENON_ASSIGN_OR_RETURN(const int64_t batch, SizeOf(kinds.batch, sizes));
  TENON_ASSIGN_OR_RETURN(gemm.m, SizeOf(kinds.free[0], sizes));
  TENON_ASSIGN_OR_RETURN(gemm.n, SizeOf(kinds.free[1], sizes));
  TENON_ASSIGN_OR_RETURN(gemm.k, SizeOf(kinds.contracted, sizes));
  TENON_ASSIGN_OR_RETURN(const Shape shape, Shape::Create({batch, gemm.m, gemm.n}));
  TENON_ASSIGN_OR_RETURN(Tensor result, ctx.AllocateTemp(parts[0].dtype(), shape));
  if (shape.num_elements() == 0 || gemm.k == 0) {
    ZeroElements(&result);
    return result;
  }
  TENON_RETURN_IF_ERROR(ParallelGemms(result.dtype(), gemm,
                                      {.a = parts[0].raw_data(),
                                       .a_step = gemm.m * gemm.k,
                                       .b = parts[1].raw_data(),
                                       .b_step = gemm.n * gemm.k,
                                       .c = result.raw_data(),
                                       .count = batch}));
  return result;
}

Status EinsumKernel(KernelContext& ctx, const std::string& equation) {
  TENON_ASSIGN_OR_RETURN(EinsumEquation parsed, EinsumEquation::Parse(equation, ctx.num_inputs()));
  std::vector<LabelDims> inputs;
  LabelDims sizes;
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    const auto dims = ctx.input(i).shape().dims();
    TENON_ASSIGN_OR_RETURN(const EinsumLabels labels, parsed.LabelsOfInput(i, dims.size()));
    TENON_ASSIGN_OR_RETURN(inputs.emplace_back(), DimsOf(labels, dims));
    for (const auto& [label, dim] : inputs.back()) {
      const auto [at, is_new] = sizes.emplace(label, dim);
      if (is_new || at->second.size == dim.size) continue;
      return InvalidArgument("the inputs of '", equation, "' have sizes ", at->second.size, " and ",
                             dim.size, " of one dimension: ", ctx.input(0).shape(), " vs. ",
                             ctx.input(i).shape());
    }
  }
  TENON_ASSIGN_OR_RETURN(const EinsumLabels output, parsed.LabelsOfOutput());
  DimVector dims;
  for (const int label : output)
    dims.push_back(sizes.emplace(label, LabelDim{}).first->second.size);
  const Kinds kinds = KindsOf(inputs, output);
  TENON_ASSIGN_OR_RETURN(const Tensor result, Contract(ctx, inputs, kinds, sizes));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, dims));
  const EinsumLabels order = Joined({kinds.batch, kinds.free[0], kinds.free[1]});
  TENON_ASSIGN_OR_RETURN(const LabelDims placed, DimsOf(output, dims));
  StridedView target;
  DimVector box;
  for (const int label : order) {
    target.strides.push_back(placed.at(label).stride);
    box.push_back(placed.at(label).size);
  }
  // On a diagonal lie fewer elements than the result has.
  if (result.num_elements() != out->num_elements()) ZeroElements(out);
  if (result.num_elements() > 0) StridedCopy(result, {0, StridesOf(box)}, out, target, box);
  return OkStatus();
}

Status EinsumShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const std::string equation, c.Attr<std::string>("equation"));
  TENON_ASSIGN_OR_RETURN(EinsumEquation parsed, EinsumEquation::Parse(equation, c.num_inputs()));
  std::map<int, int64_t> sizes;
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (!c.input(i).rank_known()) return OkStatus();
    TENON_ASSIGN_OR_RETURN(const EinsumLabels labels, parsed.LabelsOfInput(i, c.input(i).rank()));
    for (size_t d = 0; d < labels.size(); ++d) {
      const int64_t size = c.input(i).dim(static_cast<int>(d));
      int64_t& known = sizes.emplace(labels[d], size).first->second;
      const bool broadcasts = IsEllipsisLabel(labels[d]);
      if (known == size || (broadcasts && size == 1)) continue;
      // An unknown size of an ellipsis may turn out to be 1.
      if (known == -1 || (broadcasts && known == 1)) known = size;
    }
  }
  TENON_ASSIGN_OR_RETURN(const EinsumLabels output, parsed.LabelsOfOutput());
  DimVector dims;
  for (const int label : output) dims.push_back(sizes.at(label));
  return c.Return(PartialShape(dims));
}

/// How many labels stand before, and after, the ellipsis of a text that has one.
std::pair<int, int> LabelsAround(const std::string& text) {
  const auto before = static_cast<int>(text.find('.'));
  return {before, static_cast<int>(text.size()) - before - 3};
}

/// Ones of the sizes that `labels` have in x, whose labels `own` says.
Output OnesOf(const Output& x, const std::string& own, const std::string& labels) {
  const Output shape = ShapeVector(x);
  const size_t dots = own.find('.');
  Output sizes = Const(Tensor(DType::kInt32, {0}));
  for (const char label : labels) {
    const size_t at = own.find(label);
    const int from_end = static_cast<int>(own.size() - at);
    const Output axis =
        at < dots ? Output(Const({static_cast<int>(at)})) : Reshape(Size(shape) - from_end, {1});
    sizes = ConcatV2({sizes, Slice(shape, axis, {1})}, 0);
  }
  return Fill(sizes, Cast(Const(1), x.dtype()));
}

/// The gradient of input `i`, in the shape that its ellipsis is broadcast to.
Output InputGradient(const GradContext& g, const EinsumEquation& equation, int i) {
  const std::string& own = equation.inputs[i];
  const bool several = g.num_inputs() == 2;
  const std::string& other = several ? equation.inputs[1 - i] : own;
  std::string reduced, rest;  // the labels that only this input has, and the others
  for (const char label : own) {
    const bool is_reduced = label != '.' && equation.output.find(label) == std::string::npos &&
                            (!several || other.find(label) == std::string::npos);
    if (!is_reduced) rest += label;
    if (is_reduced && reduced.find(label) == std::string::npos) reduced += label;
  }
  Output dx = g.dy(0);
  if (several) {
    dx = Einsum({dx, ConjugateOf(g.in(1 - i))}, StrCat(equation.output, ",", other, "->", rest));
  } else {
    rest = equation.output;
  }
  if (!reduced.empty()) {
    return Einsum({dx, OnesOf(g.in(i), own, reduced)}, StrCat(rest, ",", reduced, "->", own));
  }
  return rest == own ? dx : Einsum({dx}, StrCat(rest, "->", own));
}

/// dx, in the shape that an ellipsis was broadcast to, summed to the shape of x.
Output Unbroadcast(const Output& dx, const Output& x, const std::string& labels) {
  if (x.shape().IsFullyKnown() && x.shape() == dx.shape()) return dx;
  const auto [before, after] = LabelsAround(labels);
  const auto broadcast = [before = before, after = after](const Output& shape) {
    return Slice(shape, {before}, Reshape(Size(shape) - (before + after), {1}));
  };
  const Output shape = ShapeVector(x);
  const Output repeated =
      BroadcastGradientArgs(broadcast(shape), broadcast(ShapeOf(dx))).r0 + before;
  return Reshape(Sum(dx, repeated), shape);
}

Status EinsumGrad(GradContext& g) {
  TENON_ASSIGN_OR_RETURN(const EinsumEquation given,
                         EinsumEquation::Parse(g.Attr<std::string>("equation"), g.num_inputs()));
  // What the result's ellipsis stands for may come from the other input alone.
  EinsumEquation equation = given;
  const bool broadcasts = given.output.find('.') != std::string::npos && g.num_inputs() == 2;
  for (std::string& input : equation.inputs) {
    if (broadcasts && input.find('.') == std::string::npos) input = "..." + input;
  }
  for (int i = 0; i < g.num_inputs(); ++i) {
    const Output dx = InputGradient(g, equation, i);
    g.dx(i) = broadcasts ? Unbroadcast(dx, g.in(i), equation.inputs[i]) : dx;
  }
  return OkStatus();
}

}  // namespace

void RegisterEinsum(OpRegistry& ops) {
  const auto equation = [](std::string text) {
    return AttributeMap{{"equation", std::move(text)}};
  };
  ops.Add("Einsum", EinsumShape, EinsumKernel,
          {.types = {{"T", DTypesOf(NumericTypes())}}, .attrs = {"equation"}})
      .Grad(EinsumGrad)
      .Example({Shape{2, 3}, Shape{3, 2}}, equation("ij,jk->ik"))
      .Example({Shape{2, 2, 3}, Shape{3, 2}}, equation("...ij,jk->...ki"))
      .Example({Shape{2, 3, 2}}, equation("aba->b"))
      .Example({Shape{2, 3}}, equation("ab->b"))
      .Example({Shape{2, 3}, Shape{2}}, equation("ab,c->ca"));
}

}  // namespace tenon
