// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "runtime/passes/pass.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/replace_nodes.h"

namespace tenon {
namespace {

/// Larger windows have more pixels than a place can number.
constexpr int64_t kMaxPixels = 256;

/// Whether windows lie in height and width alone, and have few pixels.
bool HasSmallWindows(const Node& pool) {
  const auto ksize = pool.attrs().GetOr<std::vector<int64_t>>("ksize", {});
  const size_t channels = pool.attrs().GetOr<std::string>("data_format", "NHWC").find('C');
  if (channels >= ksize.size() || ksize[channels] != 1) return false;
  int64_t pixels = 1;
  for (const int64_t size : ksize) {
    if (size < 1 || size > kMaxPixels) return false;
    pixels *= size;
    if (pixels > kMaxPixels) return false;
  }
  return true;
}

/// Whether `grad` is the gradient of `pool`: of its input, its output, and the same windows.
bool IsGradientOf(const Node& grad, Node& pool) {
  if (grad.op() != "MaxPoolGrad" || !(grad.input(0) == pool.input(0)) ||
      !(grad.input(1) == Endpoint{&pool, 0})) {
    return false;
  }
  constexpr std::string_view kWindows[] = {"ksize", "strides", "padding", "explicit_paddings",
                                           "data_format"};
  return std::all_of(std::begin(kWindows), std::end(kWindows), [&](std::string_view name) {
    const Attribute *const a = grad.attrs().Find(name), *const b = pool.attrs().Find(name);
    return a != nullptr && b != nullptr && a->Equals(*b);
  });
}

}  // namespace

StatusOr<bool> KeepPlacesOfMaxima(Graph* graph, const PassContext& context) {
  const std::vector<Node*> pools = NodesOf(*graph, "MaxPool");
  if (pools.empty()) return false;
  const OpRegistration* const with_places = graph->registry().Find("_MaxPoolWithPlaces");
  const OpRegistration* const of_places = graph->registry().Find("_MaxPoolGradOfPlaces");
  if (with_places == nullptr || of_places == nullptr) return false;
  const DeviceKind kind = context.device->kind();
  std::vector<Replaced> replaced;
  for (Node* const pool : pools) {
    // What a reference stands for may be another value when the gradient is computed.
    const Endpoint& in = pool->input(0);
    if (IsRef(in.node->output_type(in.index)) || !HasSmallWindows(*pool) ||
        with_places->FindKernel(kind, pool->attrs()) == nullptr ||
        of_places->FindKernel(kind, pool->attrs()) == nullptr) {
      continue;
    }
    const size_t gradients_begin = replaced.size();
    for (const OutEdge& e : pool->out_edges()) {
      if (e.input != 1 || !IsGradientOf(*e.dst, *pool)) continue;
      replaced.emplace_back(e.dst, "_MaxPoolGradOfPlaces", e.dst->attrs(),
                            std::vector<Endpoint>{in, {pool, 1}, e.dst->input(2)});
    }
    if (replaced.size() == gradients_begin) continue;
    replaced.emplace_back(pool, "_MaxPoolWithPlaces", pool->attrs(), std::vector<Endpoint>{in});
  }
  if (replaced.empty()) return false;
  TENON_RETURN_IF_ERROR(ReplaceNodes(graph, replaced));
  return true;
}

}  // namespace tenon
