// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "core/op/shape_inference.h"
#include "ops/state/variables.h"

// Nodes that make a resource other than a variable (a queue, an accumulator, a table), and those
// that use it. Their edge carries a resource handle or, with the ops of TensorFlow 1, a reference
// to a vector of two strings: container and name.

namespace tenon {

/// The T that input `i` names or carries; NotFound when it is gone, InvalidArgument for what names
/// none.
template <typename T>
StatusOr<std::shared_ptr<T>> ResourceInput(const KernelContext& ctx, int i = 0) {
  const Tensor& t = ctx.input(i);
  if (t.dtype() != DType::kString) {
    TENON_ASSIGN_OR_RETURN(const ResourceHandle* handle, HandleInput(ctx, i));
    if (handle->resource == nullptr) {
      return ctx.resources().Lookup<T>(handle->container, handle->name);
    }
    if (handle->resource->kind() == T::kKind) return std::static_pointer_cast<T>(handle->resource);
    return InvalidArgument("input ", i, " is a ", handle->resource->kind(), ", wanted a ",
                           T::kKind);
  }
  if (t.num_elements() != 2) {
    return InvalidArgument("input ", i, " must be a reference to container and name of a ",
                           T::kKind, ", found shape ", t.shape());
  }
  return ctx.resources().Lookup<T>(t.data<TString>()[0], t.data<TString>()[1]);
}

/// The shape of such a reference.
inline Status ReferenceShape(ShapeContext& c) { return c.Return(Shape{2}); }

/// The kernel of a node that makes a T when it first runs, and gives a handle of it. Nodes of the
/// same `container` and `shared_name` have one together; without a `shared_name` the node's name
/// takes its place where T::kNamedByNode or the node wishes it, else it is the node's own and ends
/// with the kernel. T has also kKind and kTypeName (as TensorFlow's processes write it), and an
/// Options, which is made of a KernelConstruction; it is made of these and its name, and has
/// `Status CheckShared(const Options&)`, which refuses nodes that want another one. A kernel whose
/// resource needs more than that to be made overrides Make.
template <typename T>
class ResourceNodeKernel : public Kernel {
 public:
  explicit ResourceNodeKernel(KernelConstruction& c)
      : Kernel(c),
        container_(c.Attr<std::string>("container")),
        shared_name_(SharedName(c)),
        is_reference_(c.output_types()[0] != DType::kResource),
        options_(c) {}

  ~ResourceNodeKernel() override {
    if (store_ != nullptr && shared_name_.empty()) {
      // Not there any more after a Reset.
      (void)store_->Delete(handle_.container, T::kKind, handle_.name);
    }
  }

  Status Compute(KernelContext& ctx) const override {
    MutexLock lock(mu_);
    const uint64_t removals = ctx.resources().removals();
    if (store_ == nullptr || removals != removals_) {
      TENON_RETURN_IF_ERROR(Find(ctx));
      removals_ = removals;
    }
    return ReturnHandle(ctx);
  }
  /// The same where the resource is there and nobody makes it just now; false otherwise. Never
  /// waits.
  bool ComputeIfMade(KernelContext& ctx, Status* status) const {
    if (!mu_.TryLock()) return false;
    const bool made = store_ != nullptr && ctx.resources().removals() == removals_;
    if (made) *status = ReturnHandle(ctx);
    mu_.Unlock();
    return made;
  }
  bool is_expensive() const override { return false; }

 protected:
  const typename T::Options& options() const { return options_; }
  /// Called when there is none of this `name`; of several that are made at once one stays.
  virtual StatusOr<std::shared_ptr<T>> Make(KernelContext&, const std::string& name) const {
    if constexpr (std::is_abstract_v<T>) {
      return Internal("nothing makes a ", T::kKind, " '", name, "'");
    } else {
      return std::make_shared<T>(options_, name);
    }
  }

 private:
  static std::string SharedName(KernelConstruction& c) {
    std::string name = c.Attr<std::string>("shared_name");
    const bool by_node = T::kNamedByNode || c.attrs().GetOr("use_node_name_sharing", false);
    return name.empty() && by_node ? c.name() : name;
  }

  Status ReturnHandle(KernelContext& ctx) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (!is_reference_) return ctx.Return(Tensor::Scalar(handle_));
    return ctx.Return(Tensor::Vector<TString>({handle_.container, handle_.name}));
  }

  Status Find(KernelContext& ctx) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    static std::atomic<int64_t> made{0};
    ResourceStore& store = ctx.resources();
    if (handle_.name.empty()) {
      handle_.name =
          shared_name_.empty() ? StrCat("_", made.fetch_add(1), "_", name()) : shared_name_;
    }
    handle_.device = ctx.device().name();
    handle_.container = container_.empty() ? store.default_container() : container_;
    handle_.type_name = T::kTypeName;
    const std::string key(handle_.name);
    StatusOr<std::shared_ptr<T>> found = store.Lookup<T>(handle_.container, key);
    if (!found.ok()) {
      TENON_ASSIGN_OR_RETURN(const std::shared_ptr<T> made, Make(ctx, key));
      TENON_ASSIGN_OR_RETURN(found,
                             store.LookupOrCreate<T>(handle_.container, key, [&] { return made; }));
    }
    TENON_RETURN_IF_ERROR((*found)->CheckShared(options_));
    store_ = &store;
    return OkStatus();
  }

  const std::string container_;
  const std::string shared_name_;
  const bool is_reference_;
  const typename T::Options options_;
  mutable Mutex mu_;
  mutable ResourceStore* store_ ABSL_GUARDED_BY(mu_) = nullptr;
  mutable uint64_t removals_ ABSL_GUARDED_BY(mu_) = 0;
  mutable ResourceHandle handle_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tenon
