// SPDX-License-Identifier: Apache-2.0
#include <dnnl.hpp>

#include <cstring>
#include <map>
#include <memory>
#include <string_view>
#include <unordered_map>

#include "core/base/interruption.h"
#include "core/base/parallel.h"
#include "core/memory/counted_memory.h"
#include "ops/math/gemm.h"
#include "ops/nn/conv.h"

namespace tenon {
namespace {

using dnnl::memory;

/// Guess of what one multiplication and addition costs.
constexpr double kMultiplyAddNs = 0.02;
/// Prepared convolutions that a thread keeps: a network has tens, in three passes.
constexpr size_t kMaxPrepared = 256;
constexpr int64_t kVector = 16;  // channels
/// Larger numbers may overflow in oneDNN.
constexpr int64_t kMaxSize = int64_t{1} << 30;

const dnnl::engine& CpuEngine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

/// Whether oneDNN computes it well: it pads the channels of the input to its vectors, and cannot be
/// interrupted within an image.
bool SuitsOneDnn(ConvPass pass, const ConvShape& s) {
  if (s.image_work() > 10 * kGemmBlockWork) return false;
  if (pass == ConvPass::kInput && s.groups == 1 && s.in_channels < kVector / 2) return false;
  for (const WindowAxis& a : s.axes) {
    for (const int64_t v : {a.in, a.window, a.stride, a.dilation, a.before, a.after, a.out}) {
      if (v > kMaxSize) return false;
    }
  }
  return std::max({s.batch, s.in_channels, s.out_channels}) <= kMaxSize;
}

/// What a description of a convolution takes, in oneDNN's order: [batch, channels, spatial...] and
/// [groups, outputs, inputs, spatial...].
struct Geometry {
  explicit Geometry(const ConvShape& s) {
    memory::dims in = {s.batch, s.in_channels}, out = {s.batch, s.out_channels}, window;
    for (size_t i = s.axes[0] == WindowAxis() ? 1 : 0; i < s.axes.size(); ++i) {
      const WindowAxis& a = s.axes[i];
      in.push_back(a.in);
      out.push_back(a.out);
      window.push_back(a.window);
      strides.push_back(a.stride);
      dilations.push_back(a.dilation - 1);
      before.push_back(a.before);
      after.push_back(a.after);
    }
    const bool deep = window.size() == 3;
    const auto format = s.channels_first
                            ? (deep ? memory::format_tag::ncdhw : memory::format_tag::nchw)
                            : (deep ? memory::format_tag::ndhwc : memory::format_tag::nhwc);
    input = memory::desc(in, memory::data_type::f32, format);
    output = memory::desc(out, memory::data_type::f32, format);
    bias = memory::desc({s.out_channels}, memory::data_type::f32, memory::format_tag::x);

    memory::dims dims = {s.group_outputs(), s.group_inputs()}, steps = {1, s.out_channels};
    dims.insert(dims.end(), window.begin(), window.end());
    int64_t step = s.out_channels * s.group_inputs();
    for (size_t i = window.size(); i-- > 0; step *= window[i])
      steps.insert(steps.begin() + 2, step);
    if (s.groups > 1) {
      dims.insert(dims.begin(), s.groups);
      steps.insert(steps.begin(), s.group_outputs());
    }
    filter = memory::desc(dims, memory::data_type::f32, steps);
    any_filter = memory::desc(dims, memory::data_type::f32, memory::format_tag::any);
  }

  memory::desc input, filter, any_filter, output, bias;
  memory::dims strides, dilations, before, after;
};

/// Memory in a tensor that counts, for oneDNN.
memory Scratch(const memory::desc& desc, std::vector<Tensor>* owners) {
  StatusOr<Tensor> bytes =
      Tensor::Allocate(CpuAllocator(), DType::kUInt8, {static_cast<int64_t>(desc.get_size())});
  if (!bytes.ok()) throw dnnl::error(dnnl_out_of_memory, "no memory for a temporary");
  owners->push_back(*std::move(bytes));
  return memory(desc, CpuEngine(), owners->back().raw_data());
}

/// A convolution ready to run on any addresses. Making one takes longer than a small one runs, so
/// each thread keeps those it used.
class PreparedConv {
 public:
  PreparedConv(ConvPass pass, const ConvShape& s, bool with_bias) : geometry_(s), pass_(pass) {
    const Geometry& g = geometry_;
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const auto direct = dnnl::algorithm::convolution_direct;
    const auto training = dnnl::prop_kind::forward_training;
    using Forward = dnnl::convolution_forward;
    const Forward::primitive_desc forward(
        with_bias ? Forward::desc(training, direct, g.input, g.any_filter, g.bias, g.output,
                                  g.strides, g.dilations, g.before, g.after)
                  : Forward::desc(training, direct, g.input, g.any_filter, g.output, g.strides,
                                  g.dilations, g.before, g.after),
        attr, CpuEngine());
    if (pass == ConvPass::kOutput) {
      Use<Forward>(forward, forward.weights_desc());
    } else if (pass == ConvPass::kInput) {
      const dnnl::convolution_backward_data::primitive_desc prepared(
          dnnl::convolution_backward_data::desc(direct, g.input, g.any_filter, g.output, g.strides,
                                                g.dilations, g.before, g.after),
          attr, CpuEngine(), forward);
      Use<dnnl::convolution_backward_data>(prepared, prepared.weights_desc());
    } else {
      const dnnl::convolution_backward_weights::primitive_desc prepared(
          dnnl::convolution_backward_weights::desc(direct, g.input, g.any_filter, g.output,
                                                   g.strides, g.dilations, g.before, g.after),
          attr, CpuEngine(), forward);
      Use<dnnl::convolution_backward_weights>(prepared, prepared.diff_weights_desc());
    }
  }

  bool is_fast() const { return is_fast_; }

  void Run(const ConvArrays<float>& arrays) const {
    dnnl::stream stream(CpuEngine());
    std::vector<Tensor> owners;
    const bool to_filter = pass_ == ConvPass::kFilter;
    memory input(geometry_.input, CpuEngine(), arrays.input);
    memory output(geometry_.output, CpuEngine(), arrays.output);
    memory filter(geometry_.filter, CpuEngine(), arrays.filter), used = filter;
    if (filter_desc_ != geometry_.filter) used = Scratch(filter_desc_, &owners);
    if (reorder_ && !to_filter) Reorder(stream, filter, used);
    const bool forward = pass_ == ConvPass::kOutput;
    std::unordered_map<int, memory> args = {
        {pass_ == ConvPass::kInput ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, input},
        {to_filter ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, used},
        {forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, output},
        {DNNL_ARG_SCRATCHPAD, Scratch(scratchpad_, &owners)}};
    if (arrays.bias != nullptr) {
      args[DNNL_ARG_BIAS] = memory(geometry_.bias, CpuEngine(), const_cast<float*>(arrays.bias));
    }
    conv_.execute(stream, args);
    if (reorder_ && to_filter) Reorder(stream, used, filter);
    stream.wait();
  }

 private:
  template <typename Convolution>
  void Use(const typename Convolution::primitive_desc& prepared, const memory::desc& filter_desc) {
    const std::string_view implementation = prepared.impl_info_str();
    // The implementation by matrix products is slow too for depthwise convolutions.
    const bool by_products = implementation.starts_with("gemm");
    is_fast_ = !implementation.starts_with("ref") &&
               !(by_products && geometry_.filter.dims().size() > geometry_.input.dims().size());
    if (!is_fast_) return;
    conv_ = Convolution(prepared);
    scratchpad_ = prepared.scratchpad_desc();
    filter_desc_ = filter_desc;
    if (filter_desc_ == geometry_.filter) return;
    const bool to_filter = pass_ == ConvPass::kFilter;
    const memory::desc &from = to_filter ? filter_desc_ : geometry_.filter,
                       &to = to_filter ? geometry_.filter : filter_desc_;
    reorder_ = dnnl::reorder(dnnl::reorder::primitive_desc(CpuEngine(), from, CpuEngine(), to));
  }

  /// On this thread: to wake others for it costs more.
  void Reorder(dnnl::stream& stream, memory& from, memory& to) const {
    const OpenMpTeam alone(0);
    reorder_.execute(stream, from, to);
  }

  const Geometry geometry_;
  const ConvPass pass_;
  bool is_fast_ = false;
  dnnl::primitive conv_;
  dnnl::reorder reorder_;
  memory::desc filter_desc_, scratchpad_;
};

using Key = std::array<int64_t, 29>;

Key KeyOf(ConvPass pass, const ConvShape& s, bool with_bias, int threads) {
  Key key = {static_cast<int64_t>(pass),
             with_bias,
             threads,
             s.batch,
             s.in_channels,
             s.out_channels,
             s.groups,
             s.channels_first};
  auto next = key.begin() + 8;
  for (const WindowAxis& a : s.axes) {
    for (const int64_t v : {a.in, a.window, a.stride, a.dilation, a.before, a.after, a.out}) {
      *next++ = v;
    }
  }
  return key;
}

bool ConvImages(ConvPass pass, const ConvShape& s, const ConvArrays<float>& arrays) {
  // How the work is cut depends on the number of threads when it was prepared.
  const OpenMpTeam team(s.image_work() * static_cast<double>(s.batch) * kMultiplyAddNs);
  thread_local std::map<Key, std::unique_ptr<PreparedConv>> prepared;
  if (prepared.size() >= kMaxPrepared) prepared.clear();
  const bool with_bias = arrays.bias != nullptr;
  std::unique_ptr<PreparedConv>& conv = prepared[KeyOf(pass, s, with_bias, team.size())];
  if (conv == nullptr) conv = std::make_unique<PreparedConv>(pass, s, with_bias);
  if (conv->is_fast()) conv->Run(arrays);
  return conv->is_fast();
}

}  // namespace

StatusOr<bool> FastConv(ConvPass pass, const ConvShape& shape, const ConvArrays<float>& arrays) {
  if (!SuitsOneDnn(pass, shape)) return false;
  ConvShape part = shape;
  const double images = kGemmBlockWork / shape.image_work();
  if (images < static_cast<double>(shape.batch)) {
    part.batch = std::max<int64_t>(1, static_cast<int64_t>(images));
  }
  const int64_t in = shape.in_pixels() * shape.in_channels;
  const int64_t out = shape.out_pixels() * shape.out_channels;
  // The filter's gradient is the sum of those of the parts.
  const int64_t sums = pass == ConvPass::kFilter && part.batch < shape.batch
                           ? shape.taps() * shape.group_inputs() * shape.out_channels
                           : 0;
  try {
    CountedVector<float> sum(sums);
    for (int64_t i = 0; i < shape.batch && !Interrupted(); i += part.batch) {
      part.batch = std::min(part.batch, shape.batch - i);
      const ConvArrays<float> at = {arrays.input + i * in, arrays.filter, arrays.output + i * out,
                                    arrays.bias};
      if (!ConvImages(pass, part, at)) return false;
      for (int64_t k = 0; k < sums; ++k) sum[k] += arrays.filter[k];
    }
    std::copy(sum.begin(), sum.end(), arrays.filter);
  } catch (const dnnl::error& e) {
    if (e.status == dnnl_out_of_memory) return ResourceExhausted("out of memory in a convolution");
    if (e.status == dnnl_unimplemented) return false;
    return Internal("convolution: ", e.what());
  }
  return true;
}

}  // namespace tenon
