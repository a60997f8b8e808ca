// SPDX-License-Identifier: Apache-2.0
//
// Random order. From the same seeds come the orders that TensorFlow's datasets have: a Philox
// stream draws from a buffer, whose part of one epoch is given whole before that of the next.
#include <deque>
#include <random>

#include "core/device/device.h"
#include "ops/data/dataset.h"
#include "ops/random/philox.h"
#include "ops/state/variables.h"

namespace tenon {
namespace {

/// The words of a Philox stream, one after the other.
class Words {
 public:
  explicit Words(std::pair<uint64_t, uint64_t> seeds) : stream_(seeds.first, seeds.second) {}
  uint32_t Next() {
    if (used_ == block_.size()) {
      block_ = stream_.Next();
      used_ = 0;
    }
    return block_[used_++];
  }

 private:
  Philox stream_;
  Philox::Block block_{};
  size_t used_ = block_.size();
};

/// Gives each iterator its seeds: always the same ones, or the next of a stream.
class SeedGenerator final : public Resource {
 public:
  static constexpr std::string_view kKind = "seed generator";
  static constexpr std::string_view kTypeName = "N10tensorflow4data20SeedGeneratorManagerE";

  SeedGenerator(int64_t seed, int64_t seed2, bool reshuffles) : reshuffles_(reshuffles) {
    const Philox seeds = Philox::FromSeeds(seed, seed2);
    seeds_ = {seeds.key(), seeds.seed2()};
    words_.emplace(seeds_);
  }
  std::string_view kind() const override { return kKind; }

  std::pair<uint64_t, uint64_t> Next() {
    if (!reshuffles_) return seeds_;
    MutexLock lock(mu_);
    const uint64_t first = words_->Next();
    return {first, words_->Next()};
  }

 private:
  const bool reshuffles_;
  std::pair<uint64_t, uint64_t> seeds_;
  Mutex mu_;
  std::optional<Words> words_ ABSL_GUARDED_BY(mu_);
};

/// The input in random order, another one for each iterator.
struct ShuffleDataset final : DatasetOfOne<ShuffleDataset> {
  static constexpr unsigned kTraits = kKeepsRows | kKeepsFiles | kShuffles;

  ShuffleDataset(DatasetPtr from, int64_t buffer, std::shared_ptr<SeedGenerator> generator)
      : DatasetOfOne(std::move(from)), size(buffer), seeds(std::move(generator)) {}

  class Walk final : public WalkOver<ShuffleDataset> {
   public:
    Walk(std::shared_ptr<const ShuffleDataset> of, IteratorPtr input, ContextPtr context)
        : WalkOver(of, std::move(input), std::move(context)), words_(of->seeds->Next()) {}

    StatusOr<bool> Next(DatasetElement* out) override {
      while (input_ != nullptr && static_cast<int64_t>(buffer_.size()) < of_->size) {
        DatasetElement element;
        TENON_ASSIGN_OR_RETURN(const bool found, input_->Next(&element));
        if (found) {
          buffer_.push_back(std::move(element));
        } else {
          input_ = nullptr;
        }
      }
      if (buffer_.empty()) return false;
      const size_t drawn = words_.Next() % buffer_.size();
      *out = std::move(buffer_[drawn]);
      if (drawn > 0) buffer_[drawn] = std::move(buffer_.front());
      buffer_.pop_front();
      return true;
    }

   private:
    Words words_;
    std::deque<DatasetElement> buffer_;
  };
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    TENON_ASSIGN_OR_RETURN(IteratorPtr walk, input->MakeIterator(context));
    return std::make_unique<Walk>(Self<ShuffleDataset>(), std::move(walk), context);
  }
  int64_t CountElements() const override { return input->Cardinality(); }

  const int64_t size;
  const std::shared_ptr<SeedGenerator> seeds;
};

StatusOr<int64_t> ReadBufferSize(const Tensor& t) {
  TENON_ASSIGN_OR_RETURN(const int64_t size, ReadInteger(t, "buffer_size"));
  if (size == -2) return std::numeric_limits<int64_t>::max();
  if (size > 0) return size;
  return InvalidArgument(
      "buffer_size must be greater than zero or UNKNOWN_CARDINALITY (-2), found ", size);
}

/// The generator of the seeds that the inputs from number `first` on are.
StatusOr<std::shared_ptr<SeedGenerator>> ReadSeeds(const KernelContext& ctx, int first,
                                                   bool reshuffles) {
  TENON_ASSIGN_OR_RETURN(const int64_t seed, ReadInteger(ctx.input(first), "seed"));
  TENON_ASSIGN_OR_RETURN(const int64_t seed2, ReadInteger(ctx.input(first + 1), "seed2"));
  return std::make_shared<SeedGenerator>(seed, seed2, reshuffles);
}

StatusOr<DatasetPtr> MakeShuffled(KernelContext& ctx, std::shared_ptr<SeedGenerator> seeds) {
  TENON_ASSIGN_OR_RETURN(DatasetPtr input, DatasetInput(ctx));
  TENON_ASSIGN_OR_RETURN(const int64_t size, ReadBufferSize(ctx.input(1)));
  return std::make_shared<ShuffleDataset>(std::move(input), size, std::move(seeds));
}

Status ReturnShuffled(KernelContext& ctx, std::shared_ptr<SeedGenerator> seeds) {
  TENON_ASSIGN_OR_RETURN(DatasetPtr shuffled, MakeShuffled(ctx, std::move(seeds)));
  return ReturnDataset(ctx, std::move(shuffled));
}

Status ShuffleKernel(KernelContext& ctx, bool reshuffle_each_iteration) {
  TENON_ASSIGN_OR_RETURN(auto seeds, ReadSeeds(ctx, 2, reshuffle_each_iteration));
  return ReturnShuffled(ctx, std::move(seeds));
}

Status ShuffleAndRepeatKernel(KernelContext& ctx, bool reshuffle_each_iteration) {
  TENON_ASSIGN_OR_RETURN(auto seeds, ReadSeeds(ctx, 2, reshuffle_each_iteration));
  TENON_ASSIGN_OR_RETURN(const int64_t count, ReadInteger(ctx.input(4), "count"));
  if (count <= 0 && count != -1) {
    return InvalidArgument("count must be greater than zero or equal to -1.");
  }
  TENON_ASSIGN_OR_RETURN(DatasetPtr shuffled, MakeShuffled(ctx, std::move(seeds)));
  return ReturnDataset(ctx, MakeRepeatDataset(std::move(shuffled), count));
}

StatusOr<std::shared_ptr<SeedGenerator>> GeneratorInput(const KernelContext& ctx, int i) {
  TENON_ASSIGN_OR_RETURN(const ResourceHandle* handle, HandleInput(ctx, i));
  return ctx.resources().Lookup<SeedGenerator>(handle->container, handle->name);
}

Status ShuffleByGeneratorKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(auto seeds, GeneratorInput(ctx, 2));
  return ReturnShuffled(ctx, std::move(seeds));
}

/// Version 3: where the generator is a dummy, the seeds count.
Status ShuffleBySeedsOrGeneratorKernel(KernelContext& ctx, bool reshuffle_each_iteration) {
  StatusOr<std::shared_ptr<SeedGenerator>> seeds = GeneratorInput(ctx, 4);
  if (!seeds.ok()) seeds = ReadSeeds(ctx, 2, reshuffle_each_iteration);
  TENON_RETURN_IF_ERROR(seeds.status());
  return ReturnShuffled(ctx, *std::move(seeds));
}

/// Random numbers without end.
struct RandomDataset final : Dataset {
  RandomDataset(const ElementSpec& spec, std::shared_ptr<SeedGenerator> generator)
      : Dataset(spec.types, spec.shapes), seeds(std::move(generator)) {}

  class Walk final : public ElementIterator {
   public:
    explicit Walk(std::pair<uint64_t, uint64_t> seeds) : words_(seeds) {}
    StatusOr<bool> Next(DatasetElement* out) override {
      *out = {Tensor::Scalar<int64_t>(words_.Next())};
      return true;
    }
    bool IsReady() const override { return true; }

   private:
    Words words_;
  };
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr&) const override {
    return std::make_unique<Walk>(seeds->Next());
  }
  int64_t CountElements() const override { return kInfinite; }

  const std::shared_ptr<SeedGenerator> seeds;
};

Status ReturnRandom(KernelContext& ctx, const ElementSpec& spec,
                    StatusOr<std::shared_ptr<SeedGenerator>> seeds) {
  TENON_RETURN_IF_ERROR(seeds.status());
  if (spec.types != DTypeVector{DType::kInt64}) {
    return InvalidArgument("output_types is ", Join(spec.types, ", "), ", wanted int64");
  }
  return ReturnDataset(ctx, std::make_shared<RandomDataset>(spec, *std::move(seeds)));
}

Status RandomKernel(KernelContext& ctx, const ElementSpec& spec) {
  return ReturnRandom(ctx, spec, ReadSeeds(ctx, 0, false));
}

Status RandomV2Kernel(KernelContext& ctx, bool rerandomize_each_iteration,
                      const ElementSpec& spec) {
  StatusOr<std::shared_ptr<SeedGenerator>> seeds = GeneratorInput(ctx, 2);
  if (!seeds.ok()) seeds = ReadSeeds(ctx, 0, rerandomize_each_iteration);
  return ReturnRandom(ctx, spec, std::move(seeds));
}

Tensor HandleOf(KernelContext& ctx, std::string_view name) {
  ResourceHandle handle;
  handle.device = ctx.device().name();
  handle.container = ctx.resources().default_container();
  handle.name = name;
  handle.type_name = SeedGenerator::kTypeName;
  return Tensor::Scalar(std::move(handle));
}

/// Input 2 of the newer one says whether the seeds change.
Status SeedGeneratorKernel(KernelContext& ctx, Integer seed, Integer seed2) {
  static std::atomic<int64_t> made{0};
  bool reshuffles = true;
  if (ctx.num_inputs() > 2) {
    TENON_RETURN_IF_ERROR(CheckScalars(ctx, 2, {"reshuffle"}));
    reshuffles = ctx.input(2).scalar<bool>();
  }
  const std::string name = StrCat("_seed_generator_", made.fetch_add(1));
  TENON_RETURN_IF_ERROR(
      ctx.resources()
          .LookupOrCreate<SeedGenerator>(
              "", name, [&] { return std::make_shared<SeedGenerator>(seed, seed2, reshuffles); })
          .status());
  ctx.set_output(0, HandleOf(ctx, name));
  ctx.set_output(1, Tensor::Scalar(Variant()));
  return OkStatus();
}

Status DeleteSeedGeneratorKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const ResourceHandle* handle, HandleInput(ctx, 0));
  return ctx.resources().Delete(handle->container, SeedGenerator::kKind, handle->name);
}

Status DummySeedGeneratorKernel(KernelContext& ctx) {
  return ctx.Return(HandleOf(ctx, "_no_seed_generator"));
}

Status TwoScalars(ShapeContext& c) {
  c.set_output(0, PartialShape(Shape{}));
  c.set_output(1, PartialShape(Shape{}));
  return OkStatus();
}

}  // namespace

void RegisterShuffleDatasets(OpRegistry& ops) {
  constexpr std::string_view kCovered = "needs an iterator; datasets_test covers it";
  const KernelOptions reshuffle = {.attrs = {"reshuffle_each_iteration"}};
  ops.Add("ShuffleDataset", ScalarShape, ShuffleKernel, reshuffle).NoExample(kCovered);
  ops.Add("ShuffleDatasetV2", ScalarShape, ShuffleByGeneratorKernel).NoExample(kCovered);
  ops.Add("ShuffleDatasetV3", ScalarShape, ShuffleBySeedsOrGeneratorKernel, reshuffle)
      .NoExample(kCovered);
  for (const char* name : {"ShuffleAndRepeatDataset", "ShuffleAndRepeatDatasetV2"}) {
    ops.Add(name, ScalarShape, ShuffleAndRepeatKernel, reshuffle).NoExample(kCovered);
  }
  ops.Add("RandomDataset", ScalarShape, RandomKernel).NoExample(kCovered);
  ops.Add("RandomDatasetV2", ScalarShape, RandomV2Kernel, {.attrs = {"rerandomize_each_iteration"}})
      .NoExample(kCovered);
  for (const char* name : {"AnonymousSeedGenerator", "AnonymousRandomSeedGenerator"}) {
    ops.Add(name, TwoScalars, SeedGeneratorKernel).NoExample(kCovered);
  }
  for (const char* name : {"DeleteSeedGenerator", "DeleteRandomSeedGenerator"}) {
    ops.Add(name, NoOutputShape, DeleteSeedGeneratorKernel).NoExample(kCovered);
  }
  ops.Add("DummySeedGenerator", ScalarShape, DummySeedGeneratorKernel).NoExample(kCovered);
}

}  // namespace tenon
