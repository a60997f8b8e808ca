// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "core/op/op_registry.h"
#include "data/records/event_file.h"
#include "ops/arguments.h"
#include "ops/io/files_for.h"
#include "ops/state/named_handle.h"
#include "ops/state/variables.h"
#include "ops/summary/summary_values.h"
#include "proto/event.pb.h"
#include "proto/graph.pb.h"

namespace tenon {
namespace {

/// An event file that nodes write to. Thread-safe.
class SummaryWriterResource final : public Resource {
 public:
  static constexpr std::string_view kKind = "summary_writer";

  explicit SummaryWriterResource(std::unique_ptr<EventWriter> writer)
      : writer_(std::move(writer)) {}
  std::string_view kind() const override { return kKind; }
  EventWriter& writer() { return *writer_; }

 private:
  const std::unique_ptr<EventWriter> writer_;
};

/// Gives a handle; CreateSummaryFileWriter makes what it names.
class SummaryWriterKernel final : public Kernel {
 public:
  explicit SummaryWriterKernel(KernelConstruction& c) : Kernel(c) {
    ResourceHandle handle = NamedHandle(c, "N10tensorflow22SummaryWriterInterfaceE");
    handle_ = Tensor::Scalar(std::move(handle));
  }
  Status Compute(KernelContext& ctx) const override { return ctx.Return(handle_); }
  bool is_expensive() const override { return false; }
  const Tensor* constant() const override { return &handle_; }

 private:
  Tensor handle_;
};

StatusOr<std::string> TextInput(const KernelContext& ctx, int i, std::string_view what) {
  TENON_RETURN_IF_ERROR(CheckRank(ctx.input(i), 0, what));
  return std::string(ctx.input(i).scalar<TString>());
}

/// Every event is written at once, so that there is no queue whose length and age would matter.
Status CreateFileWriterKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const ResourceHandle* handle, HandleInput(ctx, 0));
  TENON_ASSIGN_OR_RETURN(const std::string folder, TextInput(ctx, 1, "logdir"));
  TENON_ASSIGN_OR_RETURN(const std::string suffix, TextInput(ctx, 4, "filename_suffix"));
  TENON_ASSIGN_OR_RETURN(const FileContext files, FilesFor(ctx));
  return ctx.resources()
      .LookupOrCreate<SummaryWriterResource>(
          handle->container, handle->name,
          [&]() -> StatusOr<std::shared_ptr<SummaryWriterResource>> {
            TENON_ASSIGN_OR_RETURN(
                auto writer, EventWriter::Create(folder, {.suffix = suffix, .files = files.files}));
            return std::make_shared<SummaryWriterResource>(std::move(writer));
          })
      .status();
}

StatusOr<std::shared_ptr<SummaryWriterResource>> WriterInput(const KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const ResourceHandle* handle, HandleInput(ctx, 0));
  return ctx.resources().Lookup<SummaryWriterResource>(handle->container, handle->name);
}

Status FlushKernel(KernelContext& ctx) { return WriterInput(ctx).status(); }

Status CloseKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const auto resource, WriterInput(ctx));
  TENON_ASSIGN_OR_RETURN(const ResourceHandle* handle, HandleInput(ctx, 0));
  TENON_RETURN_IF_ERROR(
      ctx.resources().Delete(handle->container, SummaryWriterResource::kKind, handle->name));
  return resource->writer().Close();
}

/// Writes the event that `fill(event)` makes, of the step that input 1 gives.
template <typename Fill>
Status Write(KernelContext& ctx, Fill fill) {
  TENON_ASSIGN_OR_RETURN(const auto resource, WriterInput(ctx));
  TENON_ASSIGN_OR_RETURN(const int64_t step, ReadInteger(ctx.input(1), "step"));
  Event event;
  event.set_step(step);
  TENON_RETURN_IF_ERROR(fill(&event));
  return resource->writer().Add(std::move(event));
}

/// A kernel that writes what `kFill` makes of its inputs but the first two.
template <Status (*kFill)(KernelContext& ctx, Event* event)>
Status WriteKernel(KernelContext& ctx) {
  return Write(ctx, [&](Event* event) { return kFill(ctx, event); });
}

Status FillTensor(KernelContext& ctx, Event* event) {
  TENON_ASSIGN_OR_RETURN(const std::string tag, TextInput(ctx, 3, "tag"));
  TENON_ASSIGN_OR_RETURN(const std::string metadata, TextInput(ctx, 4, "summary_metadata"));
  Summary* const summary = event->mutable_summary();
  TENON_RETURN_IF_ERROR(AddTensor(tag, ctx.input(2), metadata, summary));
  if (metadata.empty()) summary->mutable_value(0)->clear_metadata();
  return OkStatus();
}

Status FillScalar(KernelContext& ctx, Event* event) {
  TENON_RETURN_IF_ERROR(CheckScalars(ctx, 2, {"tag", "value"}));
  return AddScalars(ctx.input(2), ctx.input(3), event->mutable_summary());
}

Status FillHistogram(KernelContext& ctx, Event* event) {
  TENON_ASSIGN_OR_RETURN(const std::string tag, TextInput(ctx, 2, "tag"));
  return AddHistogram(tag, ctx.input(3), tag, event->mutable_summary());
}

Status WriteImageKernel(KernelContext& ctx, int64_t max_images) {
  return Write(ctx, [&](Event* event) -> Status {
    TENON_ASSIGN_OR_RETURN(const std::string tag, TextInput(ctx, 2, "tag"));
    return AddImages(tag, ctx.input(3), ctx.input(4), max_images, event->mutable_summary());
  });
}

Status WriteAudioKernel(KernelContext& ctx, int64_t max_outputs) {
  return Write(ctx, [&](Event* event) -> Status {
    TENON_ASSIGN_OR_RETURN(const std::string tag, TextInput(ctx, 2, "tag"));
    TENON_RETURN_IF_ERROR(CheckScalars(ctx, 4, {"sample_rate"}));
    return AddSounds(tag, ctx.input(3), ctx.input(4).scalar<float>(), max_outputs,
                     event->mutable_summary());
  });
}

Status FillGraph(KernelContext& ctx, Event* event) {
  TENON_ASSIGN_OR_RETURN(std::string graph, TextInput(ctx, 2, "tensor"));
  GraphDef parsed;
  if (!parsed.ParseFromString(graph)) return DataLoss("the text is no GraphDef message");
  event->set_graph_def(std::move(graph));
  return OkStatus();
}

/// The values of several summaries become those of one.
Status FillSummaries(KernelContext& ctx, Event* event) {
  const Tensor& texts = ctx.input(2);
  Summary* const summary = event->mutable_summary();
  for (int64_t i = 0; i < texts.num_elements(); ++i) {
    Summary part;
    if (!part.ParseFromString(std::string(texts.data<TString>()[i]))) {
      return DataLoss("Bad tf.compat.v1.Summary binary proto tensor string at index ", i);
    }
    summary->MergeFrom(part);
  }
  return OkStatus();
}

Status ImportEventKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const auto resource, WriterInput(ctx));
  TENON_ASSIGN_OR_RETURN(const std::string text, TextInput(ctx, 1, "event"));
  Event event;
  if (!event.ParseFromString(text)) return DataLoss("Bad tf.Event binary proto tensor string");
  return resource->writer().Add(std::move(event));
}

}  // namespace

void RegisterSummaryWriters(OpRegistry& ops) {
  const auto get = [&ops](std::string_view name, ShapeFn shape = NoOutputShape) {
    return ops.Get(name).Shape(shape).NoExample("needs a writer; summary_writer_test covers it");
  };
  get("SummaryWriter", ScalarShape).Kernel<SummaryWriterKernel>(kCpu);
  get("CreateSummaryFileWriter").Kernel(kCpu, CreateFileWriterKernel);
  get("FlushSummaryWriter").Kernel(kCpu, FlushKernel);
  get("CloseSummaryWriter").Kernel(kCpu, CloseKernel);
  get("WriteSummary").Kernel(kCpu, WriteKernel<FillTensor>);
  get("WriteScalarSummary").Kernel(kCpu, WriteKernel<FillScalar>);
  get("WriteHistogramSummary").Kernel(kCpu, WriteKernel<FillHistogram>);
  get("WriteGraphSummary").Kernel(kCpu, WriteKernel<FillGraph>);
  get("WriteRawProtoSummary").Kernel(kCpu, WriteKernel<FillSummaries>);
  get("WriteImageSummary").Kernel(kCpu, WriteImageKernel, {.attrs = {"max_images"}});
  get("WriteAudioSummary").Kernel(kCpu, WriteAudioKernel, {.attrs = {"max_outputs"}});
  get("ImportEvent").Kernel(kCpu, ImportEventKernel);
}

}  // namespace tenon
