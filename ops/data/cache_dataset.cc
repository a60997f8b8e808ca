// SPDX-License-Identifier: Apache-2.0
#include "core/device/device.h"
#include "data/checkpoint/tensor_bundle.h"
#include "data/files/file.h"
#include "ops/data/dataset.h"

namespace tenon {
namespace {

/// The input's elements, which are kept in the first complete pass.
struct CacheDataset final : DatasetOver<CacheDataset> {
  static constexpr unsigned kTraits = kKeepsRows | kKeepsFiles;
  using Elements = std::vector<DatasetElement>;

  /// What a complete pass has kept.
  struct Cache {
    Mutex mu;
    std::shared_ptr<const Elements> complete ABSL_GUARDED_BY(mu);
  };

  using DatasetOver::DatasetOver;

  /// The iterator of a pass that keeps what it gives.
  class Walk final : public WalkOver<CacheDataset> {
   public:
    using WalkOver::WalkOver;
    StatusOr<bool> Next(DatasetElement* out) override {
      if (input_ == nullptr) return false;
      const StatusOr<bool> found = input_->Next(out);
      // A pass that lacks an element is no complete one.
      if (!found.ok()) kept_ = nullptr;
      TENON_RETURN_IF_ERROR(found.status());
      if (*found) {
        if (kept_ != nullptr) kept_->push_back(*out);
        return true;
      }
      input_ = nullptr;
      MutexLock lock(of_->cache->mu);
      if (kept_ != nullptr && of_->cache->complete == nullptr) {
        of_->cache->complete = std::move(kept_);
      }
      return false;
    }

   private:
    std::shared_ptr<Elements> kept_ = std::make_shared<Elements>();
  };

  class KeptWalk final : public ElementIterator {
   public:
    explicit KeptWalk(std::shared_ptr<const Elements> elements) : elements_(std::move(elements)) {}
    StatusOr<bool> Next(DatasetElement* out) override {
      if (at_ == elements_->size()) return false;
      *out = (*elements_)[at_++];
      return true;
    }
    bool IsReady() const override { return true; }

   private:
    const std::shared_ptr<const Elements> elements_;
    size_t at_ = 0;
  };

  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    {
      MutexLock lock(cache->mu);
      if (cache->complete != nullptr) return std::make_unique<KeptWalk>(cache->complete);
    }
    return DatasetOver::MakeIterator(context);
  }
  int64_t CountElements() const override { return input->Cardinality(); }
  DatasetPtr WithInputs(const std::vector<DatasetPtr>& others) const override {
    return std::make_shared<CacheDataset>(others[0]);
  }

  const std::shared_ptr<Cache> cache = std::make_shared<Cache>();
};

/// The same in files, as TensorFlow writes them: a checkpoint with a tensor for each component of
/// each element, which is there when the pass is complete.
struct FileCacheDataset final : DatasetOver<FileCacheDataset> {
  static constexpr unsigned kTraits = kKeepsRows | kKeepsFiles;

  FileCacheDataset(DatasetPtr from, std::string files, FileAccess file_access)
      : DatasetOver(std::move(from)), prefix(std::move(files)), access(std::move(file_access)) {}

  static std::string Key(int64_t element, size_t component, size_t num_components) {
    // Numbers are padded, so that the order of the names is that of the elements.
    const size_t width = StrCat(num_components - 1).size();
    const std::string e = StrCat(element), c = StrCat(component);
    return StrCat(std::string(e.size() < 7 ? 7 - e.size() : 0, ' '), e, "_",
                  std::string(width - c.size(), ' '), c);
  }

  class Walk final : public WalkOver<FileCacheDataset> {
   public:
    using WalkOver::WalkOver;
    StatusOr<bool> Next(DatasetElement* out) override {
      if (input_ == nullptr) return false;
      const StatusOr<bool> found = input_->Next(out);
      Status status = found.status();
      if (status.ok()) status = Keep(*found ? out : nullptr);
      // A pass that lacks an element is no complete one.
      if (!status.ok()) incomplete_ = true;
      TENON_RETURN_IF_ERROR(status);
      if (!*found) input_ = nullptr;
      return *found;
    }

   private:
    /// Null: the end.
    Status Keep(const DatasetElement* element) {
      if (incomplete_) return OkStatus();
      if (writer_ == nullptr) {
        TENON_ASSIGN_OR_RETURN(files_, of_->Files(*context_));
        TENON_ASSIGN_OR_RETURN(writer_, BundleWriter::Create(of_->prefix, files_));
      }
      if (element == nullptr) return writer_->Finish();
      for (size_t i = 0; i < element->size(); ++i) {
        TENON_RETURN_IF_ERROR(writer_->Add(Key(count_, i, element->size()), (*element)[i]));
      }
      ++count_;
      return OkStatus();
    }

    FileContext files_;
    std::unique_ptr<BundleWriter> writer_;
    int64_t count_ = 0;
    bool incomplete_ = false;
  };

  class KeptWalk final : public ElementIterator {
   public:
    KeptWalk(std::shared_ptr<const FileCacheDataset> of, ContextPtr context)
        : of_(std::move(of)), context_(std::move(context)) {}
    StatusOr<bool> Next(DatasetElement* out) override {
      if (reader_ == nullptr) {
        TENON_ASSIGN_OR_RETURN(files_, of_->Files(*context_));
        TENON_ASSIGN_OR_RETURN(reader_, BundleReader::Open(of_->prefix, files_));
      }
      const size_t components = of_->types().size();
      if (!reader_->Contains(Key(at_, 0, components))) return false;
      DatasetElement element;
      for (size_t i = 0; i < components; ++i) {
        TENON_ASSIGN_OR_RETURN(Tensor t, reader_->Read(Key(at_, i, components)));
        element.push_back(std::move(t));
      }
      TENON_RETURN_IF_ERROR(CheckElement({of_->types(), of_->shapes()}, element));
      *out = std::move(element);
      ++at_;
      return true;
    }

   private:
    const std::shared_ptr<const FileCacheDataset> of_;
    const ContextPtr context_;
    FileContext files_;
    std::unique_ptr<BundleReader> reader_;
    int64_t at_ = 0;
  };

  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    TENON_ASSIGN_OR_RETURN(const FileContext files, Files(*context));
    if (FileExists(BundleIndexName(prefix), files)) {
      return std::make_unique<KeptWalk>(Self<FileCacheDataset>(), context);
    }
    return DatasetOver::MakeIterator(context);
  }
  int64_t CountElements() const override { return input->Cardinality(); }

  StatusOr<FileContext> Files(IteratorContext& context) const {
    return FileContext::Of(access, &context.cancellation());
  }

  const std::string prefix;
  const FileAccess access;
};

Status CacheKernel(KernelContext& ctx, DatasetPtr input) {
  if (std::string prefix(ctx.input(1).scalar<TString>()); !prefix.empty()) {
    return ReturnDataset(ctx, std::make_shared<FileCacheDataset>(
                                  std::move(input), std::move(prefix), ctx.device().files()));
  }
  return ReturnDataset(ctx, std::make_shared<CacheDataset>(std::move(input)));
}

}  // namespace

void RegisterCacheDataset(OpRegistry& ops) {
  for (const char* name : {"CacheDataset", "CacheDatasetV2"}) {
    ops.Add(name, ScalarShape, CacheKernel).NoExample("needs an iterator; datasets_test covers it");
  }
}

}  // namespace tenon
