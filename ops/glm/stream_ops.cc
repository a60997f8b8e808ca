// SPDX-License-Identifier: Apache-2.0
#include "ops/glm/stream_ops.h"

#include <algorithm>
#include <utility>

#include "core/base/parallel.h"
#include "core/op/op_registry.h"
#include "core/op/shape_inference.h"
#include "ops/glm/design_input.h"
#include "ops/glm/glm_stream.h"
#include "ops/io/files_for.h"
#include "ops/state/resource_node.h"
#include "ops/table/table_resource.h"

namespace tenon {
namespace {

constexpr int64_t kMostRows = int64_t{1} << 20, kMostLanes = 1024;

/// A stream that a task has open. Thread-safe.
class GlmStreamResource : public Resource {
 public:
  static constexpr std::string_view kKind = "stream of rows";
  static constexpr std::string_view kTypeName = "N5tenon17GlmStreamResourceE";
  static constexpr bool kNamedByNode = false;
  /// Nothing about a node matters but its name.
  struct Options {
    explicit Options(KernelConstruction&) {}
  };

  GlmStreamResource(const Options&, std::string name) : name_(std::move(name)) {}
  std::string_view kind() const override { return kKind; }
  Status CheckShared(const Options&) const { return OkStatus(); }

  void Open(std::shared_ptr<GlmStream> stream) {
    MutexLock lock(mu_);
    stream_ = std::move(stream);
  }
  StatusOr<std::shared_ptr<GlmStream>> Get() {
    MutexLock lock(mu_);
    if (stream_ != nullptr) return stream_;
    return FailedPrecondition("stream '", name_, "' was not opened on this task");
  }

 private:
  const std::string name_;
  Mutex mu_;
  std::shared_ptr<GlmStream> stream_ ABSL_GUARDED_BY(mu_);
};

/// The parts of the coefficients, of which a node has as many lists.
struct PartsState : KernelState {
  explicit PartsState(KernelConstruction& c) : parts(c.Attr<int64_t>("parts")) {}
  int64_t parts;
};

int64_t IntegerInput(const KernelContext& ctx, int i) { return ctx.input(i).data<int64_t>()[0]; }

/// InvalidArgument unless there is one coefficient, or none, for each column of a design.
Status CheckCoefficients(const GlmDesign& design, absl::Span<const int32_t> coefficients) {
  const auto size = static_cast<int32_t>(coefficients.size());
  if (size != design.num_columns()) {
    return InvalidArgument("a design of ", design.num_columns(), " columns wants as many ",
                           "coefficients, found ", size);
  }
  for (int32_t c = 0; c < size; ++c) {
    if (coefficients[c] < -1 || coefficients[c] >= size) {
      return InvalidArgument("a design of ", size, " columns has no coefficient ", coefficients[c]);
    }
    if (c > 0 && coefficients[c] == 0 && coefficients[0] == 0) {
      return InvalidArgument("coefficient 0 is the intercept's, and no other column's");
    }
  }
  return OkStatus();
}

Status StreamOpenKernel(KernelContext& ctx, const PartsState& state) {
  TENON_ASSIGN_OR_RETURN(const auto resource, ResourceInput<GlmStreamResource>(ctx));
  TENON_ASSIGN_OR_RETURN(const auto table, ResourceInput<TableResource>(ctx, 1));
  TENON_ASSIGN_OR_RETURN(auto shard, table->Share());
  TENON_ASSIGN_OR_RETURN(GlmDesign design, DesignInput(ctx, 2, *shard));
  const Tensor& given = ctx.input(3);
  CountedVector<int32_t> coefficients(given.data<int32_t>(),
                                      given.data<int32_t>() + given.num_elements());
  TENON_RETURN_IF_ERROR(CheckCoefficients(design, coefficients));
  GlmStreamOptions options = {.seed = IntegerInput(ctx, 4),
                              .rows = IntegerInput(ctx, 5),
                              .lanes = IntegerInput(ctx, 6),
                              .start = ctx.input(7).data<double>()[0],
                              .scale = ctx.input(8).data<double>()[0]};
  if (options.rows < 1 || options.rows > kMostRows || options.lanes < 0 ||
      options.lanes > kMostLanes || !(options.scale > 0)) {
    return InvalidArgument("a stream has 1 to ", kMostRows, " rows in a batch, 0 to ", kMostLanes,
                           " lanes, and a scale above 0; found ", options.rows, ", ", options.lanes,
                           ", ", options.scale);
  }
  if (options.lanes == 0) options.lanes = ThreadBudget();
  auto stream = std::make_shared<GlmStream>(
      std::move(shard), std::move(design),
      GlmCoefficientParts(std::move(coefficients), state.parts), options);
  ctx.set_output(0, Tensor::Vector<int64_t>({options.lanes, stream->num_rows()}));
  resource->Open(std::move(stream));
  return OkStatus();
}

template <typename T>
Status OutputVector(KernelContext& ctx, int i, const CountedVector<T>& values) {
  TENON_ASSIGN_OR_RETURN(Tensor* const out,
                         ctx.CreateOutput(i, {static_cast<int64_t>(values.size())}));
  std::copy(values.begin(), values.end(), out->data<T>());
  return OkStatus();
}

/// Vectors of the same size as the rows of a matrix.
template <typename T>
Status OutputRows(KernelContext& ctx, int i, int64_t size,
                  const std::vector<CountedVector<T>>& rows) {
  TENON_ASSIGN_OR_RETURN(Tensor* const out,
                         ctx.CreateOutput(i, {static_cast<int64_t>(rows.size()), size}));
  T* to = out->data<T>();
  for (const CountedVector<T>& row : rows) to = std::copy(row.begin(), row.end(), to);
  return OkStatus();
}

Status BatchKernel(KernelContext& ctx, const PartsState& state) {
  TENON_ASSIGN_OR_RETURN(const auto resource, ResourceInput<GlmStreamResource>(ctx));
  TENON_ASSIGN_OR_RETURN(const auto stream, resource->Get());
  TENON_ASSIGN_OR_RETURN(const FileContext files, FilesFor(ctx));
  const int64_t lane = IntegerInput(ctx, 1);
  if (lane < 0 || lane >= stream->num_lanes() || state.parts != stream->num_parts()) {
    return InvalidArgument("a stream of ", stream->num_lanes(), " lanes and ", stream->num_parts(),
                           " parts has no lane ", lane, " of ", state.parts, " parts");
  }
  return stream->Next(lane, files, [&](const GlmBatch& batch) -> Status {
    ctx.set_output(0, Tensor::Vector<int64_t>({batch.num_read, batch.count}));
    int i = 1;
    for (const auto& columns : batch.columns) {
      TENON_RETURN_IF_ERROR(OutputVector(ctx, i++, columns));
    }
    TENON_RETURN_IF_ERROR(OutputRows(ctx, i++, batch.count, batch.places));
    TENON_RETURN_IF_ERROR(OutputRows(ctx, i++, batch.count, batch.numbers));
    TENON_RETURN_IF_ERROR(OutputVector(ctx, i++, batch.response));
    TENON_RETURN_IF_ERROR(OutputVector(ctx, i++, batch.weight));
    return OutputVector(ctx, i++, batch.offset);
  });
}

/// The family and link of a node.
struct GradientState : PartsState {
  explicit GradientState(KernelConstruction& c) : PartsState(c) {
    const auto family_name = ParseGlmFamily(c.Attr<std::string>("family"));
    const auto link_name = ParseGlmLink(c.Attr<std::string>("link"));
    c.Fail(family_name.status());
    c.Fail(link_name.status());
    if (!family_name.ok() || !link_name.ok()) return;
    family = *family_name;
    link = *link_name;
    c.Fail(CheckLink(family, link));
  }
  GlmFamily family = GlmFamily::kGaussian;
  GlmLink link = GlmLink::kIdentity;
};

Status BatchGradientKernel(KernelContext& ctx, const GradientState& state) {
  const auto parts = static_cast<int>(state.parts);
  CountedVector<double> weights;
  for (int p = 0; p < parts; ++p) {
    const Tensor& part = ctx.input(p);
    weights.insert(weights.end(), part.data<double>(), part.data<double>() + part.num_elements());
  }
  const auto columns = static_cast<int64_t>(weights.size());
  weights.push_back(0);
  const Tensor &places = ctx.input(parts), &numbers = ctx.input(parts + 1);
  const auto vector = [&](int i) { return ctx.input(parts + i).data<double>(); };
  const GlmBatchRows rows = {state.family,
                             state.link,
                             columns,
                             places.shape().dim(0),
                             numbers.shape().dim(0),
                             places.shape().dim(1),
                             places.data<int32_t>(),
                             numbers.data<double>(),
                             vector(2),
                             vector(3),
                             vector(4)};
  if (rows.num_numbers > rows.groups) {
    return InvalidArgument("a batch has numbers of ", rows.num_numbers, " groups, only ",
                           rows.groups, " places");
  }
  const int64_t num_places = places.num_elements();
  for (int64_t i = 0; i < num_places; ++i) {
    if (rows.places[i] < 0 || rows.places[i] > columns) {
      return InvalidArgument("places[", i, "] = ", rows.places[i], " is not in [0, ", columns, "]");
    }
  }
  CountedVector<double> gradient(columns + 1);
  const double deviance = AddBatchGradient(rows, weights.data(), gradient.data());
  const double* from = gradient.data();
  for (int p = 0; p < parts; ++p) {
    const int64_t size = ctx.input(p).num_elements();
    TENON_ASSIGN_OR_RETURN(Tensor* const out, ctx.CreateOutput(p, {size}));
    std::copy_n(from, size, out->data<double>());
    from += size;
  }
  ctx.set_output(parts, Tensor::Scalar(deviance));
  return OkStatus();
}

}  // namespace

void RegisterStreamKernels(OpRegistry& ops) {
  const auto get = [&ops](std::string_view name) {
    return ops.Get(name)
        .Shape(DeclaredShape)
        .NoExample("needs a table in files; glm_stream_test covers it");
  };
  get("TenonGlmStream").Shape(ScalarShape).Kernel<ResourceNodeKernel<GlmStreamResource>>(kCpu);
  get("TenonGlmStreamOpen").Kernel(kCpu, StreamOpenKernel);
  get("TenonGlmBatch").Kernel(kCpu, BatchKernel);
  get("TenonGlmBatchGradient").Kernel(kCpu, BatchGradientKernel);
}

}  // namespace tenon
