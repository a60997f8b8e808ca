// SPDX-License-Identifier: Apache-2.0
//
// Datasets that pass on the elements of others: some of them, again, side by side.
#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <set>

#include "core/memory/counted_memory.h"
#include "ops/data/dataset.h"

namespace tenon {
namespace {

/// The input, as it is.
Status PassOnKernel(KernelContext& ctx) {
  TENON_RETURN_IF_ERROR(DatasetInput(ctx).status());
  return ctx.Return(ctx.input(0));
}

/// The first `count` elements.
struct TakeDataset final : DatasetOver<TakeDataset> {
  static constexpr unsigned kTraits = kKeepsRows | kKeepsFiles;

  TakeDataset(DatasetPtr from, int64_t n) : DatasetOver(std::move(from)), count(n) {}

  class Walk final : public WalkOver<TakeDataset> {
   public:
    using WalkOver::WalkOver;
    StatusOr<bool> Next(DatasetElement* out) override {
      if (taken_ == of_->count) {
        input_ = nullptr;  // what it makes ahead nobody needs
        return false;
      }
      TENON_ASSIGN_OR_RETURN(const bool found, input_->Next(out));
      if (found) ++taken_;
      return found;
    }
    bool IsReady() const override { return taken_ == of_->count || input_->IsReady(); }

   private:
    int64_t taken_ = 0;
  };
  int64_t CountElements() const override {
    const int64_t n = input->Cardinality();
    return n == kInfinite ? count : n == kUnknown ? kUnknown : std::min(n, count);
  }

  const int64_t count;
};

Status TakeKernel(KernelContext& ctx, DatasetPtr input, Integer count) {
  if (count < 0) return ReturnDataset(ctx, std::move(input));
  return ReturnDataset(ctx, std::make_shared<TakeDataset>(std::move(input), count));
}

/// All but the first `count` elements.
struct SkipDataset final : DatasetOver<SkipDataset> {
  static constexpr unsigned kTraits = kKeepsRows | kKeepsFiles;

  SkipDataset(DatasetPtr from, int64_t n) : DatasetOver(std::move(from)), count(n) {}

  class Walk final : public WalkOver<SkipDataset> {
   public:
    using WalkOver::WalkOver;
    StatusOr<bool> Next(DatasetElement* out) override {
      for (; skipped_ < of_->count; ++skipped_) {
        TENON_ASSIGN_OR_RETURN(const bool found, input_->Next(out));
        if (!found) return false;
      }
      return input_->Next(out);
    }

   private:
    int64_t skipped_ = 0;
  };
  int64_t CountElements() const override {
    const int64_t n = input->Cardinality();
    return n < 0 ? n : std::max<int64_t>(0, n - count);
  }

  const int64_t count;
};

Status SkipKernel(KernelContext& ctx, DatasetPtr input) {
  TENON_ASSIGN_OR_RETURN(int64_t count, ReadInteger(ctx.input(1), "count"));
  if (count < 0) count = std::numeric_limits<int64_t>::max();
  return ReturnDataset(ctx, std::make_shared<SkipDataset>(std::move(input), count));
}

/// The input `count` times over; forever when that is negative.
struct RepeatDataset final : DatasetOfOne<RepeatDataset> {
  static constexpr unsigned kTraits = kKeepsRows | kKeepsFiles;

  RepeatDataset(DatasetPtr from, int64_t n) : DatasetOfOne(std::move(from)), count(n) {}

  class Walk final : public ElementIterator {
   public:
    Walk(std::shared_ptr<const RepeatDataset> of, ContextPtr context)
        : of_(std::move(of)), context_(std::move(context)) {}
    StatusOr<bool> Next(DatasetElement* out) override {
      while (of_->count < 0 || begun_ <= of_->count) {
        if (input_ == nullptr) {
          if (begun_ == of_->count) break;
          TENON_ASSIGN_OR_RETURN(input_, of_->input->MakeIterator(context_));
          ++begun_;
          empty_ = true;
        }
        TENON_ASSIGN_OR_RETURN(const bool found, input_->Next(out));
        if (found) {
          empty_ = false;
          return true;
        }
        input_ = nullptr;
        // For ever an empty input would never give an element.
        if (empty_ && of_->count < 0) return false;
        TENON_RETURN_IF_ERROR(context_->cancellation().status());
      }
      return false;
    }
    bool IsReady() const override { return input_ != nullptr && input_->IsReady(); }

   private:
    const std::shared_ptr<const RepeatDataset> of_;
    const ContextPtr context_;
    int64_t begun_ = 0;
    bool empty_ = true;
    IteratorPtr input_;
  };
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    return std::make_unique<Walk>(Self<RepeatDataset>(), context);
  }
  int64_t CountElements() const override {
    const int64_t n = input->Cardinality();
    if (count == 0 || n == 0) return 0;
    if (count < 0) return kInfinite;
    if (n < 0) return n;
    int64_t all = 0;
    return __builtin_mul_overflow(n, count, &all) ? kUnknown : all;
  }

  const int64_t count;
};

Status RepeatKernel(KernelContext& ctx, DatasetPtr input, Integer count) {
  return ReturnDataset(ctx, MakeRepeatDataset(std::move(input), count));
}

/// What shapes have in common.
std::vector<PartialShape> CommonShapes(const Dataset& a, const Dataset& b) {
  std::vector<PartialShape> common;
  for (size_t i = 0; i < a.shapes().size(); ++i) {
    const PartialShape &x = a.shapes()[i], &y = b.shapes()[i];
    if (x.rank() < 0 || x.rank() != y.rank()) {
      common.emplace_back();
      continue;
    }
    DimVector dims;
    for (int d = 0; d < x.rank(); ++d) {
      dims.push_back(x.dim(d) == y.dim(d) ? x.dim(d) : PartialShape::kUnknownDim);
    }
    common.emplace_back(dims);
  }
  return common;
}

/// The elements of one dataset, then those of another.
struct ConcatenateDataset final : Dataset {
  ConcatenateDataset(DatasetPtr a, DatasetPtr b)
      : Dataset(*a, CommonShapes(*a, *b)), first(std::move(a)), second(std::move(b)) {}

  class Walk final : public WalkOver<ConcatenateDataset> {
   public:
    using WalkOver::WalkOver;
    StatusOr<bool> Next(DatasetElement* out) override {
      TENON_ASSIGN_OR_RETURN(const bool found, input_->Next(out));
      if (found || in_second_) return found;
      TENON_ASSIGN_OR_RETURN(input_, of_->second->MakeIterator(context_));
      in_second_ = true;
      return input_->Next(out);
    }
    bool IsReady() const override { return input_->IsReady(); }

   private:
    bool in_second_ = false;
  };
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    TENON_ASSIGN_OR_RETURN(IteratorPtr walk, first->MakeIterator(context));
    return std::make_unique<Walk>(Self<ConcatenateDataset>(), std::move(walk), context);
  }
  int64_t CountElements() const override {
    const int64_t a = first->Cardinality(), b = second->Cardinality();
    if (a == kInfinite || b == kInfinite) return kInfinite;
    int64_t sum = 0;
    return a < 0 || b < 0 || __builtin_add_overflow(a, b, &sum) ? kUnknown : sum;
  }
  unsigned traits() const override { return kKeepsRows | kKeepsFiles; }
  std::vector<DatasetPtr> Inputs() const override { return {first, second}; }
  DatasetPtr WithInputs(const std::vector<DatasetPtr>& others) const override {
    return std::make_shared<ConcatenateDataset>(others[0], others[1]);
  }

  const DatasetPtr first, second;
};

Status ConcatenateKernel(KernelContext& ctx, DatasetPtr first, DatasetPtr second) {
  if (first->types() != second->types()) {
    return InvalidArgument("input dataset and dataset to concatenate have different types: ",
                           Join(first->types(), ", "), " and ", Join(second->types(), ", "));
  }
  return ReturnDataset(ctx,
                       std::make_shared<ConcatenateDataset>(std::move(first), std::move(second)));
}

/// The components of each input's element side by side.
struct ZipDataset final : Dataset {
  ZipDataset(std::vector<DatasetPtr> from, DTypeVector types, std::vector<PartialShape> shapes)
      : Dataset(std::move(types), std::move(shapes)), inputs(std::move(from)) {}

  class Walk final : public ElementIterator {
   public:
    explicit Walk(std::vector<IteratorPtr> inputs) : inputs_(std::move(inputs)) {}
    StatusOr<bool> Next(DatasetElement* out) override {
      out->clear();
      for (const IteratorPtr& input : inputs_) {
        DatasetElement part;
        TENON_ASSIGN_OR_RETURN(const bool found, input->Next(&part));
        if (!found) {
          inputs_.clear();
          return false;
        }
        std::move(part.begin(), part.end(), std::back_inserter(*out));
      }
      return !inputs_.empty();
    }
    bool IsReady() const override {
      return std::all_of(inputs_.begin(), inputs_.end(),
                         [](const IteratorPtr& input) { return input->IsReady(); });
    }

   private:
    std::vector<IteratorPtr> inputs_;
  };
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    std::vector<IteratorPtr> walks;
    for (const DatasetPtr& input : inputs) {
      TENON_ASSIGN_OR_RETURN(IteratorPtr walk, input->MakeIterator(context));
      walks.push_back(std::move(walk));
    }
    return std::make_unique<Walk>(std::move(walks));
  }
  int64_t CountElements() const override {
    int64_t least = kInfinite;
    for (const DatasetPtr& input : inputs) {
      const int64_t n = input->Cardinality();
      if (n == kUnknown) return kUnknown;
      if (n != kInfinite) least = least == kInfinite ? n : std::min(least, n);
    }
    return least;
  }
  unsigned traits() const override { return kKeepsRows | kKeepsFiles; }
  std::vector<DatasetPtr> Inputs() const override { return inputs; }
  DatasetPtr WithInputs(const std::vector<DatasetPtr>& others) const override {
    return std::make_shared<ZipDataset>(others, types(), shapes());
  }

  const std::vector<DatasetPtr> inputs;
};

Status ZipKernel(KernelContext& ctx) {
  std::vector<DatasetPtr> inputs;
  DTypeVector types;
  std::vector<PartialShape> shapes;
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    TENON_ASSIGN_OR_RETURN(DatasetPtr input, DatasetInput(ctx, i));
    types.insert(types.end(), input->types().begin(), input->types().end());
    shapes.insert(shapes.end(), input->shapes().begin(), input->shapes().end());
    inputs.push_back(std::move(input));
  }
  return ReturnDataset(
      ctx, std::make_shared<ZipDataset>(std::move(inputs), std::move(types), std::move(shapes)));
}

/// Elements that cannot be made are left out.
struct IgnoreErrorsDataset final : DatasetOver<IgnoreErrorsDataset> {
  using DatasetOver::DatasetOver;

  class Walk final : public WalkOver<IgnoreErrorsDataset> {
   public:
    using WalkOver::WalkOver;
    StatusOr<bool> Next(DatasetElement* out) override {
      while (true) {
        StatusOr<bool> found = input_->Next(out);
        if (found.ok() || context_->cancellation().cancelled()) return found;
      }
    }
  };
};

Status IgnoreErrorsKernel(KernelContext& ctx, DatasetPtr input) {
  return ReturnDataset(ctx, std::make_shared<IgnoreErrorsDataset>(std::move(input)));
}

/// Each value once: the first that is equal to it.
struct UniqueDataset final : DatasetOver<UniqueDataset> {
  using DatasetOver::DatasetOver;

  class Walk final : public WalkOver<UniqueDataset> {
   public:
    using WalkOver::WalkOver;
    StatusOr<bool> Next(DatasetElement* out) override {
      while (true) {
        TENON_ASSIGN_OR_RETURN(const bool found, input_->Next(out));
        if (!found) return false;
        const Tensor& t = (*out)[0];
        if (known_[t.shape().ToString()].insert(Key(t)).second) return true;
      }
    }

   private:
    using Bytes = std::basic_string<char, std::char_traits<char>, CountedAllocator<char>>;

    static Bytes Key(const Tensor& t) {
      Bytes key;
      Dispatch(t.dtype(), TypeList<int32_t, int64_t, TString>(), [&]<typename T>(T) {
        for (const T& x : absl::MakeConstSpan(t.data<T>(), t.num_elements())) {
          if constexpr (std::is_same_v<T, TString>) {
            const size_t size = x.size();
            key.append(reinterpret_cast<const char*>(&size), sizeof(size));
            key.append(x.data(), size);
          } else {
            key.append(reinterpret_cast<const char*>(&x), sizeof(x));
          }
        }
      });
      return key;
    }

    std::map<std::string, std::set<Bytes>> known_;  // by shape
  };
};

Status UniqueKernel(KernelContext& ctx, DatasetPtr input) {
  if (input->types().size() != 1) {
    return InvalidArgument("UniqueDataset only supports inputs with a single component, found ",
                           input->types().size());
  }
  const DType type = input->types()[0];
  if (type != DType::kInt32 && type != DType::kInt64 && type != DType::kString) {
    return InvalidArgument(
        "UniqueDataset only supports inputs with a single `tf.int32`, `tf.int64`, or `tf.string` "
        "component, found ",
        type);
  }
  return ReturnDataset(ctx, std::make_shared<UniqueDataset>(std::move(input)));
}

/// The input, which is known to have so many elements; a walk that finds another number fails.
struct AssertCardinalityDataset final : DatasetOver<AssertCardinalityDataset> {
  static constexpr unsigned kTraits = kKeepsRows | kCountsElements;

  AssertCardinalityDataset(DatasetPtr from, const ElementSpec& spec, int64_t n)
      : DatasetOver(std::move(from), spec), cardinality(n) {}

  class Walk final : public WalkOver<AssertCardinalityDataset> {
   public:
    using WalkOver::WalkOver;
    StatusOr<bool> Next(DatasetElement* out) override {
      TENON_ASSIGN_OR_RETURN(const bool found, input_->Next(out));
      const int64_t wanted = of_->cardinality;
      found_ += found ? 1 : 0;
      if (!found && found_ != wanted) return Wrong(" but contained only ");
      if (wanted != kInfinite && found_ > wanted) return Wrong(" but contained at least ");
      return found;
    }
    bool IsReady() const override { return input_->IsReady(); }

   private:
    Status Wrong(std::string_view but) const {
      return FailedPrecondition("Input dataset was expected to contain ",
                                Elements(of_->cardinality), but, Elements(found_), ".");
    }
    static std::string Elements(int64_t n) {
      if (n == kInfinite) return "an infinite number of elements";
      return StrCat(n, n == 1 ? " element" : " elements");
    }
    int64_t found_ = 0;
  };
  int64_t CountElements() const override { return cardinality; }

  const int64_t cardinality;
};

Status AssertCardinalityKernel(KernelContext& ctx, DatasetPtr input, Integer cardinality,
                               const ElementSpec& spec) {
  return ReturnDataset(
      ctx, std::make_shared<AssertCardinalityDataset>(std::move(input), spec, cardinality));
}

}  // namespace

DatasetPtr MakeRepeatDataset(DatasetPtr input, int64_t count) {
  return std::make_shared<RepeatDataset>(std::move(input), count);
}

void RegisterElementDatasets(OpRegistry& ops) {
  const auto add = [&ops](std::string_view name, auto kernel, KernelOptions options = {}) {
    ops.Add(name, ScalarShape, kernel, std::move(options))
        .NoExample("needs an iterator; datasets_test covers it");
  };
  add("TakeDataset", TakeKernel);
  add("SkipDataset", SkipKernel);
  add("RepeatDataset", RepeatKernel);
  add("ConcatenateDataset", ConcatenateKernel);
  add("ZipDataset", ZipKernel);
  add("IgnoreErrorsDataset", IgnoreErrorsKernel);
  add("UniqueDataset", UniqueKernel);
  add("AssertCardinalityDataset", AssertCardinalityKernel);
  // What these ask for is how to run the datasets before them, which is decided here as it runs.
  for (const char* name : {"OptionsDataset", "ModelDataset", "OptimizeDataset", "OptimizeDatasetV2",
                           "RewriteDataset", "NonSerializableDataset", "FinalizeDataset",
                           "MaxIntraOpParallelismDataset", "PrivateThreadPoolDataset"}) {
    add(name, PassOnKernel);
  }
}

}  // namespace tenon
