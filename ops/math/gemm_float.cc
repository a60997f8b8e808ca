// SPDX-License-Identifier: Apache-2.0
#include <dnnl.hpp>

#include <array>
#include <map>
#include <memory>
#include <tuple>

#include "core/base/parallel.h"
#include "ops/math/gemm.h"

namespace tenon {
namespace {

/// Guess of what one multiplication and addition costs.
constexpr double kMultiplyAddNs = 0.02;
/// Prepared products that a thread keeps. Programs use few shapes over and over.
constexpr size_t kMaxPrepared = 256;

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
    const auto place = [](const memory::desc& d) {
      return memory(d, CpuEngine(), DNNL_MEMORY_NONE);
    };
    a_ = place(prepared.src_desc());
    b_ = place(prepared.weights_desc());
    c_ = place(prepared.dst_desc());
    scratch_ = memory(prepared.scratchpad_desc(), CpuEngine());
  }

  void Run(const float* a, const float* b, float* c) {
    a_.set_data_handle(const_cast<float*>(a));
    b_.set_data_handle(const_cast<float*>(b));
    c_.set_data_handle(c);
    // oneDNN's C++ function makes a vector of the arguments in each call.
    const std::array<dnnl_exec_arg_t, 4> args = {{{DNNL_ARG_SRC, a_.get()},
                                                  {DNNL_ARG_WEIGHTS, b_.get()},
                                                  {DNNL_ARG_DST, c_.get()},
                                                  {DNNL_ARG_SCRATCHPAD, scratch_.get()}}};
    dnnl::error::wrap_c_api(
        dnnl_primitive_execute(matmul_.get(), stream_.get(), args.size(), args.data()),
        "could not multiply");
    stream_.wait();
  }

 private:
  dnnl::stream stream_;
  dnnl::matmul matmul_;
  dnnl::memory a_, b_, c_, scratch_;
};

/// Whether oneDNN's older function is faster than its primitive, which is made for larger products:
/// with vectors up to ten times, where few rows meet many columns up to twice (measured with
/// AVX-512; elsewhere the primitive calls that function, too).
bool IsForSgemm(const GemmShape& s) {
  constexpr int64_t kFewRows = 48, kFewRowsByTransposed = 8, kManyColumns = 512;
  if (s.m == 1 || s.n == 1) return true;
  if (s.transpose_a) return false;
  return s.transpose_b ? s.m <= kFewRowsByTransposed : s.m <= kFewRows && s.n >= kManyColumns;
}

/// Whether a product by few columns is faster column by column: as long as a cache holds the first
/// matrix, which each reads.
bool IsByColumns(const GemmShape& s) {
  constexpr int64_t kFewColumns = 4, kLongSum = 64, kCached = 1 << 21;
  return s.n <= kFewColumns && (s.transpose_a || s.k >= kLongSum) && s.m * s.k <= kCached;
}

/// The `columns` columns of a product from the j-th on.
void Sgemm(const GemmShape& s, int64_t j, int64_t columns, const float* a, const float* b,
           float* c) {
  const dnnl_status_t status =
      dnnl_sgemm(s.transpose_a ? 'T' : 'N', s.transpose_b ? 'T' : 'N', s.m, columns, s.k, 1, a,
                 s.transpose_a ? s.m : s.k, b + (s.transpose_b ? j * s.k : j),
                 s.transpose_b ? s.k : s.n, 0, c + j, s.n);
  dnnl::error::wrap_c_api(status, "dnnl_sgemm");
}

}  // namespace

Status GemmFloat(const GemmShape& shape, const float* a, const float* b, float* c) {
  const double work = static_cast<double>(shape.m) * shape.n * shape.k;
  // How the work is cut depends on the number of threads when it was prepared.
  const OpenMpTeam team(work * kMultiplyAddNs);
  using Key = std::tuple<int64_t, int64_t, int64_t, bool, bool, int>;
  thread_local std::map<Key, std::unique_ptr<PreparedGemm>> prepared;
  try {
    if (IsForSgemm(shape)) {
      Sgemm(shape, 0, shape.n, a, b, c);
      return OkStatus();
    }
    if (IsByColumns(shape)) {
      for (int64_t j = 0; j < shape.n; ++j) Sgemm(shape, j, 1, a, b, c);
      return OkStatus();
    }
    if (prepared.size() >= kMaxPrepared) prepared.clear();
    std::unique_ptr<PreparedGemm>& gemm =
        prepared[Key(shape.m, shape.n, shape.k, shape.transpose_a, shape.transpose_b, team.size())];
    if (gemm == nullptr) gemm = std::make_unique<PreparedGemm>(shape);
    gemm->Run(a, b, c);
  } catch (const dnnl::error& e) {
    const std::string product =
        StrCat("matrix product of ", shape.m, "x", shape.k, " and ", shape.k, "x", shape.n);
    if (e.status == dnnl_out_of_memory) return ResourceExhausted("out of memory in a ", product);
    return Internal(product, ": ", e.what());
  }
  return OkStatus();
}

}  // namespace tenon
