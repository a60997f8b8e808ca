// SPDX-License-Identifier: Apache-2.0
//
// Datasets that divide elements and batches among the workers and replicas of a job.
#include <algorithm>

#include "core/base/hash_map.h"
#include "core/op/function.h"
#include "ops/data/batch.h"
#include "ops/elements.h"

namespace tenon {
namespace {

/// The number of shards of a dataset for which AutoShardDataset finds it (tf.data's SHARD_HINT).
constexpr int64_t kShardHint = -1;

/// Every `count`-th element from number `index` on.
struct ShardDataset final : DatasetOver<ShardDataset> {
  static constexpr unsigned kTraits = kKeepsRows | kKeepsFiles;

  ShardDataset(DatasetPtr from, int64_t n, int64_t i, bool non_empty)
      : DatasetOver(std::move(from)), count(n), index(i), needs_all(non_empty) {}

  class Walk final : public WalkOver<ShardDataset> {
   public:
    using WalkOver::WalkOver;
    StatusOr<bool> Next(DatasetElement* out) override {
      if (of_->count == kShardHint) {
        return FailedPrecondition(
            "a dataset of shard(SHARD_HINT, ...) is for a strategy that divides it with "
            "AutoShardPolicy.HINT, and this one is not divided");
      }
      while (input_ != nullptr) {
        TENON_ASSIGN_OR_RETURN(const bool found, input_->Next(out));
        if (!found) break;
        if (at_++ % of_->count != of_->index) continue;
        if (of_->needs_all && at_ < of_->count) TENON_RETURN_IF_ERROR(PassOthers());
        return true;
      }
      input_ = nullptr;
      return false;
    }

   private:
    /// Passes over the first elements of the shards behind this one.
    Status PassOthers() {
      for (DatasetElement others; at_ < of_->count; ++at_) {
        TENON_ASSIGN_OR_RETURN(const bool found, input_->Next(&others));
        if (found) continue;
        input_ = nullptr;
        return InvalidArgument("Could not apply FILE based sharding: the dataset only has ", at_,
                               " file(s), which is not enough for the required ", of_->count,
                               " shards/workers.");
      }
      return OkStatus();
    }
    int64_t at_ = 0;
  };
  int64_t CountElements() const override {
    const int64_t n = input->Cardinality();
    if (count == kShardHint) return kUnknown;
    return n < 0 ? n : n / count + (index < n % count ? 1 : 0);
  }

  const int64_t count, index;
  const bool needs_all;
};

/// One of `count` shares of a dataset.
struct Share {
  int64_t count, index;
};

Status CheckShare(const Share& share) {
  if (share.count <= 0) {
    return InvalidArgument(
        "Number of shards must be greater than zero (currently num_shards = ", share.count, ").");
  }
  if (share.index >= 0 && share.index < share.count) return OkStatus();
  return InvalidArgument("Index must be between 0 and ", share.count - 1,
                         " (currently index = ", share.index, ").");
}

Status ShardKernel(KernelContext& ctx, DatasetPtr input, Integer count, Integer index,
                   bool require_non_empty) {
  if (count != kShardHint) TENON_RETURN_IF_ERROR(CheckShare({count, index}));
  return ReturnDataset(
      ctx, std::make_shared<ShardDataset>(std::move(input), count, index, require_non_empty));
}

/// The rows of the input's elements in batches of other sizes, which take turns.
struct RebatchDataset final : DatasetOver<RebatchDataset> {
  static constexpr unsigned kTraits = kKeepsFiles;

  RebatchDataset(DatasetPtr from, const ElementSpec& spec, DimVector rows, bool drops)
      : DatasetOver(std::move(from), spec), sizes(std::move(rows)), drop_remainder(drops) {}

  class Walk final : public WalkOver<RebatchDataset> {
   public:
    using WalkOver::WalkOver;
    StatusOr<bool> Next(DatasetElement* out) override {
      const int64_t wanted = of_->sizes[turn_];
      std::vector<DatasetElement> parts;
      int64_t rows = 0;
      while (rows < wanted && input_ != nullptr) {
        if (row_ == num_rows_) {
          row_ = num_rows_ = 0;
          TENON_ASSIGN_OR_RETURN(const bool found, input_->Next(&batch_));
          if (!found) {
            input_ = nullptr;
            break;
          }
          TENON_ASSIGN_OR_RETURN(num_rows_, NumRows(batch_));
        }
        const int64_t end = std::min(num_rows_, row_ + (wanted - rows));
        if (end > row_) {
          DatasetElement& part = parts.emplace_back();
          for (const Tensor& t : batch_) part.push_back(t.Slice(row_, end));
        }
        rows += end - row_;
        row_ = end;
      }
      if (wanted == 0) return EmptyBatch(out);
      if (rows == 0 || (of_->drop_remainder && rows < wanted)) return false;
      out->clear();
      // The input may have cleared batch_ when it ended.
      for (size_t c = 0; c < parts[0].size(); ++c) {
        TENON_ASSIGN_OR_RETURN(Tensor t, Joined(parts, c, rows));
        out->push_back(std::move(t));
      }
      NextTurn();
      return true;
    }

   private:
    void NextTurn() { turn_ = (turn_ + 1) % of_->sizes.size(); }

    /// A batch of no rows. It is given only while the input has not ended.
    StatusOr<bool> EmptyBatch(DatasetElement* out) {
      if (input_ == nullptr) return false;
      NextTurn();
      out->clear();
      for (size_t c = 0; c < of_->types().size(); ++c) {
        DimVector dims = {0};
        if (!batch_.empty()) {
          dims = DimVector(batch_[c].shape().dims().begin(), batch_[c].shape().dims().end());
        } else if (const PartialShape& shape = of_->shapes()[c]; shape.rank() > 0) {
          dims = DimVector(shape.dims().begin(), shape.dims().end());
        }
        for (int64_t& d : dims) d = std::max<int64_t>(d, 0);
        dims[0] = 0;
        out->emplace_back(of_->types()[c], Shape(dims));
      }
      return true;
    }

    /// Component `c` of the parts, one after the other.
    static StatusOr<Tensor> Joined(const std::vector<DatasetElement>& parts, size_t c,
                                   int64_t rows) {
      const Tensor& first = parts[0][c];
      if (parts.size() == 1) return first;
      TENON_ASSIGN_OR_RETURN(const Shape shape,
                             Shape::Create(PartialShape(first.shape()).WithDim(0, rows).dims()));
      TENON_ASSIGN_OR_RETURN(Tensor all, Tensor::Allocate(CpuAllocator(), first.dtype(), shape));
      int64_t at = 0;
      for (const DatasetElement& part : parts) {
        if (part[c].rank() != first.rank() ||
            part[c].shape().WithoutDim(0) != first.shape().WithoutDim(0)) {
          return InvalidArgument("Cannot batch tensors with different shapes in component ", c,
                                 ": found rows of ", first.shape(), " and ", part[c].shape());
        }
        CopyElements(part[c], 0, &all, at, part[c].num_elements());
        at += part[c].num_elements();
      }
      return all;
    }

    DatasetElement batch_;
    int64_t row_ = 0, num_rows_ = 0;
    size_t turn_ = 0;
  };

  const DimVector sizes;
  const bool drop_remainder;
};

Status RebatchKernel(KernelContext& ctx, DatasetPtr input, const Tensor& sizes,
                     const ElementSpec& spec) {
  if (sizes.rank() > 1) {
    return InvalidArgument("batch_sizes must be a scalar or a vector, found shape ", sizes.shape());
  }
  const DimVector rows(sizes.data<int64_t>(), sizes.data<int64_t>() + sizes.num_elements());
  const bool valid = std::all_of(rows.begin(), rows.end(), [](int64_t n) { return n >= 0; });
  if (!valid || std::all_of(rows.begin(), rows.end(), [](int64_t n) { return n == 0; })) {
    return InvalidArgument("batch_sizes must be at least 0 and not all 0, found [", Join(rows, ","),
                           "]");
  }
  TENON_RETURN_IF_ERROR(CheckScalars(ctx, 2, {"drop_remainder"}));
  return ReturnDataset(ctx, std::make_shared<RebatchDataset>(std::move(input), spec, rows,
                                                             ctx.input(2).scalar<bool>()));
}

/// Each element cut into one for each replica, of as many rows but for the last ones, which may
/// have none.
struct ReplicaBatches final : DatasetOver<ReplicaBatches> {
  static constexpr unsigned kTraits = kKeepsFiles;

  ReplicaBatches(DatasetPtr from, const ElementSpec& spec, int64_t number)
      : DatasetOver(std::move(from), spec), replicas(number) {}

  class Walk final : public WalkOver<ReplicaBatches> {
   public:
    using WalkOver::WalkOver;
    StatusOr<bool> Next(DatasetElement* out) override {
      if (replica_ == 0) {
        TENON_ASSIGN_OR_RETURN(const bool found, input_->Next(&batch_));
        if (!found) return false;
        for (const Tensor& t : batch_) {
          if (t.rank() > 0) continue;
          return InvalidArgument(
              "Cannot rebatch dataset: All components must have at least one dimension. Perhaps "
              "your input dataset is not batched? Component ",
              &t - batch_.data(), " is scalar.");
        }
      }
      out->clear();
      for (const Tensor& t : batch_) {
        const int64_t rows = t.dim(0), share = rows / of_->replicas + (rows % of_->replicas != 0);
        const int64_t begin = std::min(rows, share * replica_);
        out->push_back(t.Slice(begin, std::min(rows, begin + share)));
      }
      replica_ = (replica_ + 1) % of_->replicas;
      return true;
    }

   private:
    DatasetElement batch_;
    int64_t replica_ = 0;
  };

  const int64_t replicas;
};

Status ReplicaBatchesKernel(KernelContext& ctx, DatasetPtr input, Integer num_replicas,
                            const ElementSpec& spec) {
  if (num_replicas <= 0) {
    return InvalidArgument("num_replicas must be greater than zero, found ", num_replicas.value);
  }
  return ReturnDataset(ctx, std::make_shared<ReplicaBatches>(std::move(input), spec, num_replicas));
}

/// How many datasets a walk from this one to all of its sources meets, one as often as there are
/// ways to it; at most `most`.
int64_t CountWays(const Dataset& dataset, int64_t most,
                  flat_hash_map<const Dataset*, int64_t>* known) {
  if (const auto found = known->find(&dataset); found != known->end()) return found->second;
  int64_t ways = 1;
  for (const DatasetPtr& input : dataset.Inputs()) {
    ways = std::min(most, ways + CountWays(*input, most, known));
  }
  known->emplace(&dataset, ways);
  return ways;
}

/// InvalidArgument for a dataset that is made of others, such as itself twice, in so many ways that
/// a walk through all of them would take for ever.
Status CheckWays(const Dataset& dataset) {
  constexpr int64_t kMost = 1 << 16;
  flat_hash_map<const Dataset*, int64_t> known;
  if (CountWays(dataset, kMost, &known) < kMost) return OkStatus();
  return InvalidArgument("the dataset is made of other datasets in ", kMost, " ways or more");
}

/// The rows of an element that a batch has made; -1: not known.
int64_t BatchSizeOf(const Dataset& dataset) {
  if (dataset.batch_size() > 0) return dataset.batch_size();
  if ((dataset.traits() & Dataset::kKeepsRows) == 0) return -1;
  int64_t size = 0;
  for (const DatasetPtr& input : dataset.Inputs()) {
    const int64_t found = BatchSizeOf(*input);
    if (found < 0 || (size != 0 && found != size)) return -1;
    size = found;
  }
  return size;
}

Status BatchSizeKernel(KernelContext& ctx, DatasetPtr input) {
  TENON_RETURN_IF_ERROR(CheckWays(*input));
  return ctx.Return(Tensor::Scalar<int64_t>(BatchSizeOf(*input)));
}

/// Whether an op, in whatever version, makes a dataset of the files that its input names.
bool OpensFiles(std::string_view op) {
  constexpr std::string_view kReaders[] = {"FixedLengthRecordDataset", "TextLineDataset",
                                           "TFRecordDataset"};
  return std::any_of(std::begin(kReaders), std::end(kReaders),
                     [&](std::string_view reader) { return op.starts_with(reader); });
}

/// Whether the function, or one that a dataset in it calls for datasets, opens files.
bool OpensFiles(const FunctionRuntime& functions, const std::string& name) {
  StringSet seen = {name};
  std::vector<std::string> pending = {name};
  while (!pending.empty()) {
    const FunctionDefinition* const function = functions.Find(pending.back());
    pending.pop_back();
    if (function == nullptr) continue;
    for (const FunctionNode& node : function->nodes) {
      if (OpensFiles(node.op)) return true;
      const bool makes_datasets = node.op.starts_with("FlatMapDataset") ||
                                  node.op.find("InterleaveDataset") != std::string::npos;
      const Attribute* const f = makes_datasets ? node.attrs.Find("f") : nullptr;
      const FunctionName* const called = f == nullptr ? nullptr : f->get_if<FunctionName>();
      if (called != nullptr && seen.insert(called->name).second) pending.push_back(called->name);
    }
  }
  return false;
}

/// The dataset without what shuffles elements of it; `shuffle` gets the one that comes first.
DatasetPtr WithoutShuffles(const DatasetPtr& dataset, DatasetPtr* shuffle) {
  if ((dataset->traits() & Dataset::kShuffles) != 0) {
    *shuffle = dataset;
    return WithoutShuffles(dataset->Inputs()[0], shuffle);
  }
  std::vector<DatasetPtr> inputs = dataset->Inputs();
  bool changes = false;
  for (DatasetPtr& input : inputs) {
    DatasetPtr without = WithoutShuffles(input, shuffle);
    changes |= without != input;
    input = std::move(without);
  }
  return changes ? dataset->WithInputs(inputs) : dataset;
}

DatasetPtr ShareOf(DatasetPtr dataset, const Share& share) {
  return std::make_shared<ShardDataset>(std::move(dataset), share.count, share.index,
                                        /*non_empty=*/true);
}

/// The dataset, whose input is to be divided: what shuffles the input does so afterwards, or
/// workers would have elements in common.
DatasetPtr WithShareOfInput(const DatasetPtr& dataset, const Share& share) {
  DatasetPtr shuffle;
  DatasetPtr input = ShareOf(WithoutShuffles(dataset->Inputs()[0], &shuffle), share);
  if (shuffle != nullptr) input = shuffle->WithInputs({std::move(input)});
  return dataset->WithInputs({std::move(input)});
}

/// Divides the elements of the first dataset before this one that a function makes of tensors, such
/// as names of files; null: there is none.
DatasetPtr WithShareOfMade(const DatasetPtr& dataset, const Share& share) {
  const DatasetPtr input = dataset->Inputs()[0];
  const auto has = [](const DatasetPtr& d, Dataset::Trait t) { return (d->traits() & t) != 0; };
  if (has(input, Dataset::kMakesDatasets)) {
    const bool of_tensors = has(input->Inputs()[0], Dataset::kHoldsTensors);
    return of_tensors ? WithShareOfInput(dataset, share) : nullptr;
  }
  if (!has(input, Dataset::kKeepsFiles) || input->Inputs().size() != 1) return nullptr;
  DatasetPtr divided = WithShareOfMade(input, share);
  return divided == nullptr ? nullptr : dataset->WithInputs({std::move(divided)});
}

/// The dataset with a share of the files that it reads: where their names are elements of another
/// dataset. NotFound where there are no such names.
StatusOr<DatasetPtr> ShareOfFiles(const DatasetPtr& dataset, const Share& share) {
  const unsigned traits = dataset->traits();
  std::vector<DatasetPtr> inputs = dataset->Inputs();
  // Other elements than all are no error of a worker.
  if ((traits & Dataset::kCountsElements) != 0) return ShareOfFiles(inputs[0], share);
  if ((traits & (Dataset::kKeepsFiles | Dataset::kMakesDatasets)) == 0) {
    return NotFound(
        "Did not find a shardable source: the elements come from a dataset that reads no files "
        "whose names are elements of another one. Consider either turning off auto-sharding or "
        "switching the auto_shard_policy to DATA to shard this dataset.");
  }
  const DatasetFunction* const called = dataset->function_called();
  if ((traits & Dataset::kMakesDatasets) != 0) {
    if (DatasetPtr divided = WithShareOfMade(dataset, share)) return divided;
  }
  if (called != nullptr && OpensFiles(*called->runtime, called->name.name)) {
    return WithShareOfInput(dataset, share);
  }
  for (DatasetPtr& input : inputs) {
    TENON_ASSIGN_OR_RETURN(input, ShareOfFiles(input, share));
  }
  return dataset->WithInputs(inputs);
}

/// Every `share.count`-th element, made ahead where they were. What makes batches for the replicas
/// of one worker makes them for those of all, whose batches are then divided.
StatusOr<DatasetPtr> ShareOfElements(const DatasetPtr& dataset, const Share& share,
                                     int64_t replicas) {
  if ((dataset->traits() & Dataset::kBuffers) != 0) {
    TENON_ASSIGN_OR_RETURN(DatasetPtr input,
                           ShareOfElements(dataset->Inputs()[0], share, replicas));
    return dataset->WithInputs({std::move(input)});
  }
  const auto* const rebatch = dynamic_cast<const RebatchDataset*>(dataset.get());
  if (rebatch == nullptr) return ShareOf(dataset, share);
  if (replicas < 1) {
    return InvalidArgument("num_replicas must be above 0 for a dataset that is rebatched, found ",
                           replicas);
  }
  ElementSpec spec(rebatch->types(), rebatch->shapes());
  for (PartialShape& shape : spec.shapes) {
    if (shape.rank() > 0) shape = shape.WithDim(0, PartialShape::kUnknownDim);
  }
  return ShareOf(std::make_shared<ReplicaBatches>(rebatch->input, spec, replicas), share);
}

/// The dataset with the user's own shards, where he has left their number open.
DatasetPtr ShareOfHints(const DatasetPtr& dataset, const Share& share) {
  std::vector<DatasetPtr> inputs = dataset->Inputs();
  for (DatasetPtr& input : inputs) input = ShareOfHints(input, share);
  const auto* const shard = dynamic_cast<const ShardDataset*>(dataset.get());
  if (shard != nullptr && shard->count == kShardHint) return ShareOf(inputs[0], share);
  return inputs == dataset->Inputs() ? dataset : dataset->WithInputs(inputs);
}

Status AutoShardKernel(KernelContext& ctx, DatasetPtr input, Integer num_workers, Integer index,
                       int64_t auto_shard_policy, int64_t num_replicas) {
  constexpr int64_t kOff = -1, kAuto = 0, kFile = 1, kData = 2, kHint = 3;
  if (num_workers <= 0) {
    return InvalidArgument("num_workers must be greater than zero, found ", num_workers.value);
  }
  const Share share = {num_workers, index};
  if (index < 0 || index >= num_workers) {
    return InvalidArgument("index must be between 0 and ", num_workers - 1, ", found ",
                           index.value);
  }
  if (num_replicas < 0) return InvalidArgument("num_replicas should be >= 0");
  TENON_RETURN_IF_ERROR(CheckWays(*input));
  StatusOr<DatasetPtr> divided = input;
  switch (auto_shard_policy) {
    case kOff:
      break;
    case kFile:
      if (num_workers > 1) divided = ShareOfFiles(input, share);
      break;
    case kData:
      divided = ShareOfElements(input, share, num_replicas);
      break;
    case kHint:
      divided = ShareOfHints(input, share);
      break;
    case kAuto:
      divided = ShareOfFiles(input, share);
      if (divided.status().code() == StatusCode::kNotFound) {
        divided = ShareOfElements(input, share, num_replicas);
      }
      break;
    default:
      return InvalidArgument("auto_shard_policy is invalid: found ", auto_shard_policy,
                             ", wanted -1 to 3");
  }
  TENON_RETURN_IF_ERROR(divided.status());
  return ReturnDataset(ctx, *std::move(divided));
}

}  // namespace

void RegisterDividedDatasets(OpRegistry& ops) {
  const auto add = [&ops](std::string_view name, auto kernel, KernelOptions options = {}) {
    ops.Add(name, ScalarShape, kernel, std::move(options))
        .NoExample("needs an iterator; divided_pipelines_test.py covers it");
  };
  add("ShardDataset", ShardKernel, {.attrs = {"require_non_empty"}});
  add("RebatchDatasetV2", RebatchKernel);
  add("RebatchDataset", ReplicaBatchesKernel);
  add("ComputeBatchSize", BatchSizeKernel);
  add("AutoShardDataset", AutoShardKernel, {.attrs = {"auto_shard_policy", "num_replicas"}});
}

}  // namespace tenon
