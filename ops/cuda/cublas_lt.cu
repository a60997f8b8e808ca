// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda/cublas_lt.h"

#include <map>
#include <memory>
#include <tuple>

#include "core/base/mutex.h"
#include "ops/cuda/cublas_lt.cuh"
#include "ops/cuda/launch.cuh"

namespace tenon::cuda {
namespace {

/// What of the library is used. Each is null when it is not there; then `status` says why.
struct CublasLtFunctions {
  Status status;
#define TENON_CUBLAS_LT(NAME) \
  decltype(&::cublasLt##NAME) NAME = Get<decltype(&::cublasLt##NAME)>("cublasLt" #NAME)
  TENON_CUBLAS_LT(Create);
  TENON_CUBLAS_LT(MatmulDescCreate);
  TENON_CUBLAS_LT(MatmulDescDestroy);
  TENON_CUBLAS_LT(MatmulDescSetAttribute);
  TENON_CUBLAS_LT(MatrixLayoutCreate);
  TENON_CUBLAS_LT(MatrixLayoutDestroy);
  TENON_CUBLAS_LT(MatrixLayoutSetAttribute);
  TENON_CUBLAS_LT(MatmulPreferenceCreate);
  TENON_CUBLAS_LT(MatmulPreferenceDestroy);
  TENON_CUBLAS_LT(MatmulPreferenceSetAttribute);
  TENON_CUBLAS_LT(MatmulAlgoGetHeuristic);
  TENON_CUBLAS_LT(Matmul);
#undef TENON_CUBLAS_LT

 private:
  template <typename F>
  F Get(const char* name) {
    StatusOr<F> function = CublasLt().Get<F>(name);
    if (function.ok()) return *function;
    if (status.ok()) static_cast<void>(status = function.status());
    return nullptr;
  }
};

const CublasLtFunctions& Lt() {
  static const CublasLtFunctions functions;
  return functions;
}

Status Checked(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return OkStatus();
  const std::string text = StrCat("cuBLASLt cannot ", what, ": status ", static_cast<int>(status));
  return status == CUBLAS_STATUS_NOT_SUPPORTED ? Unimplemented(text) : Internal(text);
}

// Descriptors of the library, destroyed with what holds them.

struct DescDeleter {
  void operator()(cublasLtMatmulDesc_t d) const { Lt().MatmulDescDestroy(d); }
};
struct LayoutDeleter {
  void operator()(cublasLtMatrixLayout_t l) const { Lt().MatrixLayoutDestroy(l); }
};
struct PreferenceDeleter {
  void operator()(cublasLtMatmulPreference_t p) const { Lt().MatmulPreferenceDestroy(p); }
};
using Desc = std::unique_ptr<std::remove_pointer_t<cublasLtMatmulDesc_t>, DescDeleter>;
using Layout = std::unique_ptr<std::remove_pointer_t<cublasLtMatrixLayout_t>, LayoutDeleter>;
using Preference =
    std::unique_ptr<std::remove_pointer_t<cublasLtMatmulPreference_t>, PreferenceDeleter>;

cudaDataType DataType(DType type) {
  switch (type) {
    case DType::kDouble:
      return CUDA_R_64F;
    case DType::kHalf:
      return CUDA_R_16F;
    case DType::kBFloat16:
      return CUDA_R_16BF;
    default:
      return CUDA_R_32F;
  }
}

/// The largest power of two up to 256 at multiples of which matrices lie that begin at `p`, `step`
/// bytes apart.
uint32_t AlignmentOf(const void* p, int64_t step = 0) {
  const uint64_t bits = reinterpret_cast<uintptr_t>(p) | static_cast<uint64_t>(step) | 256;
  return static_cast<uint32_t>(bits & -bits);
}

/// Everything on which the choice of an algorithm depends.
struct Product {
  DType type;
  BatchedGemm gemm;
  uint32_t a_alignment, b_alignment, c_alignment;
  const void* bias;  // null when none
  int device;

  auto Key() const {
    const GemmShape& s = gemm.shape;
    return std::make_tuple(type, s.m, s.n, s.k, s.transpose_a, s.transpose_b, gemm.batches,
                           gemm.a_stride, gemm.b_stride, a_alignment, b_alignment, c_alignment,
                           bias != nullptr, device);
  }
};

/// What is kept of a product: how its matrices lie, and how it is computed.
struct Prepared {
  Layout first, second, result;
  cublasLtMatmulAlgo_t algorithm;
  size_t workspace = 0;
};

StatusOr<Layout> MakeLayout(DType type, int64_t rows, int64_t columns, int64_t batches,
                            int64_t stride) {
  cublasLtMatrixLayout_t made = nullptr;
  TENON_RETURN_IF_ERROR(Checked(Lt().MatrixLayoutCreate(&made, DataType(type), rows, columns, rows),
                                "describe a matrix"));
  Layout layout(made);
  if (batches > 1) {
    const auto count = static_cast<int32_t>(batches);
    for (const cublasStatus_t status :
         {Lt().MatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                        sizeof(count)),
          Lt().MatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                        sizeof(stride))}) {
      TENON_RETURN_IF_ERROR(Checked(status, "describe a batch of matrices"));
    }
  }
  return layout;
}

/// The library's matrices are column-major, in which a row-major one is its transpose: so it
/// computes c^T = b^T a^T.
StatusOr<Desc> MakeDesc(const Product& p) {
  const bool is_double = p.type == DType::kDouble;
  cublasLtMatmulDesc_t made = nullptr;
  TENON_RETURN_IF_ERROR(
      Checked(Lt().MatmulDescCreate(&made, is_double ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F,
                                    is_double ? CUDA_R_64F : CUDA_R_32F),
              "describe a product"));
  Desc desc(made);
  const auto set = [made](cublasLtMatmulDescAttributes_t attr, const auto& value) {
    return Checked(Lt().MatmulDescSetAttribute(made, attr, &value, sizeof(value)),
                   "describe a product");
  };
  const auto operation = [](bool transposed) {
    return static_cast<int32_t>(transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  };
  TENON_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_DESC_TRANSA, operation(p.gemm.shape.transpose_b)));
  TENON_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_DESC_TRANSB, operation(p.gemm.shape.transpose_a)));
  if (p.bias != nullptr) {
    TENON_RETURN_IF_ERROR(
        set(CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<uint32_t>(CUBLASLT_EPILOGUE_BIAS)));
    TENON_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias));
  }
  return desc;
}

/// What the library may use beside the matrices.
constexpr size_t kMaxWorkspace = size_t{32} << 20;

StatusOr<std::shared_ptr<const Prepared>> Prepare(cublasLtHandle_t handle, const Product& p,
                                                  cublasLtMatmulDesc_t desc) {
  const GemmShape& s = p.gemm.shape;
  auto prepared = std::make_shared<Prepared>();
  TENON_ASSIGN_OR_RETURN(prepared->first,
                         MakeLayout(p.type, s.transpose_b ? s.k : s.n, s.transpose_b ? s.n : s.k,
                                    p.gemm.batches, p.gemm.b_stride));
  TENON_ASSIGN_OR_RETURN(prepared->second,
                         MakeLayout(p.type, s.transpose_a ? s.m : s.k, s.transpose_a ? s.k : s.m,
                                    p.gemm.batches, p.gemm.a_stride));
  TENON_ASSIGN_OR_RETURN(prepared->result, MakeLayout(p.type, s.n, s.m, p.gemm.batches, s.m * s.n));
  cublasLtMatmulPreference_t made = nullptr;
  TENON_RETURN_IF_ERROR(
      Checked(Lt().MatmulPreferenceCreate(&made), "say what algorithms are wanted"));
  const Preference preference(made);
  const auto set = [made](cublasLtMatmulPreferenceAttributes_t attr, const auto& value) {
    return Checked(Lt().MatmulPreferenceSetAttribute(made, attr, &value, sizeof(value)),
                   "say what algorithms are wanted");
  };
  const uint64_t workspace = kMaxWorkspace;
  TENON_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace));
  // The other schemes would round the parts of a long sum to 16 bits before they are added up.
  if (SizeOf(p.type) == 2) {
    TENON_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                              static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)));
  }
  TENON_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, p.b_alignment));
  TENON_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, p.a_alignment));
  TENON_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, p.c_alignment));
  TENON_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, p.c_alignment));
  cublasLtMatmulHeuristicResult_t found;
  int count = 0;
  const cublasStatus_t status = Lt().MatmulAlgoGetHeuristic(
      handle, desc, prepared->first.get(), prepared->second.get(), prepared->result.get(),
      prepared->result.get(), made, 1, &found, &count);
  if (status != CUBLAS_STATUS_SUCCESS || count == 0) {
    return Unimplemented("cuBLASLt has no algorithm for a product of [", s.m, ",", s.k, "] and [",
                         s.k, ",", s.n, "]: status ", static_cast<int>(status));
  }
  prepared->algorithm = found.algo;
  prepared->workspace = found.workspaceSize;
  return std::shared_ptr<const Prepared>(std::move(prepared));
}

/// The library's state, a handle a device, and the products prepared so far. Programs use few
/// shapes over and over; of those that do not, all are forgotten now and then.
class Products {
 public:
  StatusOr<cublasLtHandle_t> Handle(int device) ABSL_LOCKS_EXCLUDED(mu_) {
    TENON_RETURN_IF_ERROR(Lt().status);
    MutexLock lock(mu_);
    cublasLtHandle_t& handle = handles_[device];
    if (handle == nullptr) {
      TENON_RETURN_IF_ERROR(Checked(Lt().Create(&handle), "start"));
    }
    return handle;
  }

  StatusOr<std::shared_ptr<const Prepared>> Find(cublasLtHandle_t handle, const Product& p,
                                                 cublasLtMatmulDesc_t desc)
      ABSL_LOCKS_EXCLUDED(mu_) {
    {
      MutexLock lock(mu_);
      const auto found = prepared_.find(p.Key());
      if (found != prepared_.end()) return found->second;
    }
    TENON_ASSIGN_OR_RETURN(std::shared_ptr<const Prepared> made, Prepare(handle, p, desc));
    MutexLock lock(mu_);
    if (prepared_.size() >= kMaxPrepared) prepared_.clear();
    prepared_[p.Key()] = made;
    return made;
  }

 private:
  static constexpr size_t kMaxPrepared = 4096;

  Mutex mu_;
  std::map<int, cublasLtHandle_t> handles_ ABSL_GUARDED_BY(mu_);
  std::map<decltype(std::declval<Product>().Key()), std::shared_ptr<const Prepared>> prepared_
      ABSL_GUARDED_BY(mu_);
};

Products& AllProducts() {
  static Products& products = *new Products;  // used until the process ends
  return products;
}

/// Queues the products, none of which is empty.
Status Multiply(KernelContext& ctx, DType type, const BatchedGemm& gemm, const void* a,
                const void* b, const void* bias, void* c) {
  int device = 0;
  TENON_RETURN_IF_ERROR(QueueStatus(cudaGetDevice(&device)));
  const bool one_product = gemm.batches == 1;
  const auto alignment = [&](const void* p, int64_t stride) {
    return AlignmentOf(p, one_product ? 0 : stride * static_cast<int64_t>(SizeOf(type)));
  };
  const Product product{.type = type,
                        .gemm = gemm,
                        .a_alignment = alignment(a, gemm.a_stride),
                        .b_alignment = alignment(b, gemm.b_stride),
                        .c_alignment = alignment(c, gemm.shape.m * gemm.shape.n),
                        .bias = bias,
                        .device = device};
  TENON_ASSIGN_OR_RETURN(const cublasLtHandle_t handle, AllProducts().Handle(device));
  TENON_ASSIGN_OR_RETURN(const Desc desc, MakeDesc(product));
  TENON_ASSIGN_OR_RETURN(const std::shared_ptr<const Prepared> prepared,
                         AllProducts().Find(handle, product, desc.get()));
  Tensor workspace;
  if (prepared->workspace > 0) {
    TENON_ASSIGN_OR_RETURN(
        workspace, ctx.AllocateTemp(DType::kUInt8, {static_cast<int64_t>(prepared->workspace)}));
  }
  const float one = 1, zero = 0;
  const double one_double = 1, zero_double = 0;
  const bool is_double = type == DType::kDouble;
  const void* alpha = is_double ? static_cast<const void*>(&one_double) : &one;
  const void* beta = is_double ? static_cast<const void*>(&zero_double) : &zero;
  return Checked(
      Lt().Matmul(handle, desc.get(), alpha, b, prepared->first.get(), a, prepared->second.get(),
                  beta, c, prepared->result.get(), c, prepared->result.get(), &prepared->algorithm,
                  workspace.raw_data(), prepared->workspace, StreamOf(ctx)),
      "multiply");
}

}  // namespace

Status Gemm(KernelContext& ctx, DType type, const BatchedGemm& gemm, const void* a, const void* b,
            void* c) {
  const GemmShape& s = gemm.shape;
  if (s.m == 0 || s.n == 0 || gemm.batches == 0) return OkStatus();
  const auto size = static_cast<int64_t>(SizeOf(type));
  if (s.k == 0) {
    return QueueStatus(cudaMemsetAsync(c, 0, gemm.batches * s.m * s.n * size, StreamOf(ctx)));
  }
  // The library counts products in 32 bits.
  constexpr int64_t kMostBatches = int64_t{1} << 30;
  for (int64_t first = 0; first < gemm.batches; first += kMostBatches) {
    BatchedGemm part = gemm;
    part.batches = std::min(kMostBatches, gemm.batches - first);
    TENON_RETURN_IF_ERROR(Multiply(ctx, type, part,
                                   static_cast<const char*>(a) + first * gemm.a_stride * size,
                                   static_cast<const char*>(b) + first * gemm.b_stride * size,
                                   nullptr, static_cast<char*>(c) + first * s.m * s.n * size));
  }
  return OkStatus();
}

bool IsBiasAligned(const void* bias) { return AlignmentOf(bias) >= 16; }

Status GemmWithBias(KernelContext& ctx, DType type, const GemmShape& shape, const void* a,
                    const void* b, const void* bias, void* c) {
  return Multiply(ctx, type, {.shape = shape}, a, b, bias, c);
}

}  // namespace tenon::cuda
