// SPDX-License-Identifier: Apache-2.0
#include <dnnl.hpp>

#include <memory>
#include <unordered_map>
#include <vector>

#include "core/parallel.h"
#include "ops/math/gemm.h"

namespace tenon {
namespace {

/// Guess of what one multiplication and addition costs.
constexpr double kMultiplyAddNs = 0.02;
/// Prepared products that a thread keeps. Programs use few shapes over and over.
constexpr size_t kMaxPrepared = 256;

struct Key {
  GemmShape shape;
  int threads;
  friend bool operator==(const Key&, const Key&) = default;
};
struct KeyHash {
  size_t operator()(const Key& k) const {
    uint64_t h = k.shape.transpose_a * 2 + k.shape.transpose_b;
    for (const int64_t v : {k.shape.m, k.shape.n, k.shape.k, static_cast<int64_t>(k.threads)}) {
      h = (h ^ static_cast<uint64_t>(v)) * 0x9e3779b97f4a7c15;
      h ^= h >> 32;
    }
    return h;
  }
};

const dnnl::engine& CpuEngine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

/// A product ready to run on any addresses. Making one takes much longer than a small product does,
/// so each thread keeps the ones it used.
class PreparedGemm {
 public:
  explicit PreparedGemm(const GemmShape& s) : stream_(CpuEngine()) {
    using dnnl::memory;
    const auto desc = [](int64_t rows, int64_t columns, bool transposed) {
      return memory::desc({rows, columns}, memory::data_type::f32,
                          transposed ? memory::dims{1, rows} : memory::dims{columns, 1});
    };
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::matmul::primitive_desc prepared(
        dnnl::matmul::desc(desc(s.m, s.k, s.transpose_a), desc(s.k, s.n, s.transpose_b),
                           desc(s.m, s.n, false)),
        attr, CpuEngine());
    matmul_ = dnnl::matmul(prepared);
    const auto add = [&](int argument, const memory::desc& d) {
      args_.emplace(argument, memory(d, CpuEngine(), DNNL_MEMORY_NONE));
    };
    add(DNNL_ARG_SRC, prepared.src_desc());
    add(DNNL_ARG_WEIGHTS, prepared.weights_desc());
    add(DNNL_ARG_DST, prepared.dst_desc());
    args_.emplace(DNNL_ARG_SCRATCHPAD, memory(prepared.scratchpad_desc(), CpuEngine()));
  }

  void Run(const float* a, const float* b, float* c) {
    args_.at(DNNL_ARG_SRC).set_data_handle(const_cast<float*>(a));
    args_.at(DNNL_ARG_WEIGHTS).set_data_handle(const_cast<float*>(b));
    args_.at(DNNL_ARG_DST).set_data_handle(c);
    matmul_.execute(stream_, args_);
    stream_.wait();
  }

 private:
  dnnl::stream stream_;
  dnnl::matmul matmul_;
  std::unordered_map<int, dnnl::memory> args_;
};

}  // namespace

Status GemmFloat(const GemmShape& shape, const float* a, const float* b, float* c) {
  const double work = static_cast<double>(shape.m) * static_cast<double>(shape.n) *
                      static_cast<double>(shape.k);
  // How the work is cut depends on the number of threads when it was prepared.
  const OpenMpTeam team(work * kMultiplyAddNs);
  thread_local std::unordered_map<Key, std::unique_ptr<PreparedGemm>, KeyHash> prepared;
  try {
    if (prepared.size() >= kMaxPrepared) prepared.clear();
    std::unique_ptr<PreparedGemm>& gemm = prepared[Key{shape, team.size()}];
    if (gemm == nullptr) gemm = std::make_unique<PreparedGemm>(shape);
    gemm->Run(a, b, c);
  } catch (const dnnl::error& e) {
    if (e.status == dnnl_out_of_memory) {
      return ResourceExhausted("out of memory in a matrix product of ", shape.m, "x", shape.k,
                               " and ", shape.k, "x", shape.n);
    }
    return Internal("matrix product of ", shape.m, "x", shape.k, " and ", shape.k, "x", shape.n,
                    ": ", e.what());
  }
  return OkStatus();
}

}  // namespace tenon
