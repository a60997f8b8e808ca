// SPDX-License-Identifier: Apache-2.0
#include <dnnl.hpp>

#include <array>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

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

double Work(const GemmShape& s) {
  return static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
}

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

/// `rows` rows of a product from the i-th on, of them `columns` columns from the j-th on.
void Sgemm(const GemmShape& s, int64_t i, int64_t rows, int64_t j, int64_t columns, const float* a,
           const float* b, float* c) {
  const dnnl_status_t status = dnnl_sgemm(
      s.transpose_a ? 'T' : 'N', s.transpose_b ? 'T' : 'N', rows, columns, s.k, 1,
      a + (s.transpose_a ? i : i * s.k), s.transpose_a ? s.m : s.k,
      b + (s.transpose_b ? j * s.k : j), s.transpose_b ? s.k : s.n, 0, c + i * s.n + j, s.n);
  dnnl::error::wrap_c_api(status, "dnnl_sgemm");
}

/// A product that one call of oneDNN makes, or a call for each column. How the work is cut depends
/// on the size of the calling thread's OpenMP team when it was prepared.
void Multiply(const GemmShape& s, int team_size, const float* a, const float* b, float* c) {
  if (IsForSgemm(s)) return Sgemm(s, 0, s.m, 0, s.n, a, b, c);
  if (IsByColumns(s)) {
    for (int64_t j = 0; j < s.n; ++j) Sgemm(s, 0, s.m, j, 1, a, b, c);
    return;
  }
  using Key = std::tuple<int64_t, int64_t, int64_t, bool, bool, int>;
  thread_local std::map<Key, std::unique_ptr<PreparedGemm>> prepared;
  const Key key(s.m, s.n, s.k, s.transpose_a, s.transpose_b, team_size);
  auto found = prepared.find(key);
  if (found == prepared.end()) {
    auto gemm = std::make_unique<PreparedGemm>(s);
    if (prepared.size() >= kMaxPrepared) prepared.clear();
    found = prepared.emplace(key, std::move(gemm)).first;
  }
  found->second->Run(a, b, c);
}

/// How many parts a product is made in, each of some rows, which several threads may share: a power
/// of two. It depends on the shape alone, so that such products are the same on any number of
/// threads. A part reads all of the second matrix: with one that a core's cache does not hold, and
/// with few rows, oneDNN's own team is faster.
int64_t NumParts(const GemmShape& s) {
  constexpr double kLeastNs = 40e3;
  constexpr int64_t kLeastRows = 48, kCached = 1 << 18, kMost = 16;
  if (s.n * s.k > kCached || IsByColumns(s) || s.n == 1) return 1;
  int64_t parts = 1;
  while (parts < kMost && s.m >= 2 * parts * kLeastRows &&
         Work(s) * kMultiplyAddNs >= static_cast<double>(2 * parts) * kLeastNs) {
    parts *= 2;
  }
  return parts;
}

/// The first row of a part: a multiple of the rows that oneDNN takes together.
int64_t FirstRow(const GemmShape& s, int64_t part, int64_t parts) {
  constexpr int64_t kRows = 16;
  return part == parts ? s.m : (part * s.m / parts + kRows / 2) / kRows * kRows;
}

void MultiplyPart(const GemmShape& s, int64_t part, int64_t parts, const float* a, const float* b,
                  float* c) {
  const OpenMpTeam alone(0);
  const int64_t first = FirstRow(s, part, parts), rows = FirstRow(s, part + 1, parts) - first;
  // The rows of a transposed matrix do not lie together, as oneDNN's primitive wants them.
  if (s.transpose_a) return Sgemm(s, first, rows, 0, s.n, a, b, c);
  GemmShape rest = s;
  rest.m = rows;
  Multiply(rest, alone.size(), a + first * s.k, b, c + first * s.n);
}

}  // namespace

Status GemmFloat(const GemmShape& shape, const float* a, const float* b, float* c) {
  try {
    const int64_t parts = NumParts(shape);
    if (parts == 1) {
      const OpenMpTeam team(Work(shape) * kMultiplyAddNs);
      Multiply(shape, team.size(), a, b, c);
    } else {
      const double part_ns = Work(shape) * kMultiplyAddNs / static_cast<double>(parts);
      ParallelFor(parts, part_ns, [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p) MultiplyPart(shape, p, parts, a, b, c);
      });
    }
  } catch (const dnnl::error& e) {
    const std::string product =
        StrCat("matrix product of ", shape.m, "x", shape.k, " and ", shape.k, "x", shape.n);
    if (e.status == dnnl_out_of_memory) return ResourceExhausted("out of memory in a ", product);
    return Internal(product, ": ", e.what());
  }
  return OkStatus();
}

}  // namespace tenon
