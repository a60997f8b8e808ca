// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "core/op/op_registry.h"
#include "data/csv/read_number.h"
#include "data/files/file.h"
#include "ops/arguments.h"
#include "ops/io/files_for.h"
#include "ops/random/draws.h"
#include "ops/random/stream.h"

namespace tenon {
namespace {

/// Classes 0 ... range - 1 and how probable each is.
class ClassSampler {
 public:
  explicit ClassSampler(int64_t range) : range_(range) {}
  virtual ~ClassSampler() = default;
  int64_t range() const { return range_; }
  virtual int64_t Draw(WordDraws& draws) const = 0;
  virtual float Probability(int64_t value) const = 0;
  /// Tells what the true classes of a step were.
  virtual void Learn(absl::Span<const int64_t>) {}

 private:
  const int64_t range_;
};

class UniformSampler final : public ClassSampler {
 public:
  using ClassSampler::ClassSampler;
  int64_t Draw(WordDraws& draws) const override {
    return static_cast<int64_t>(draws.Below(static_cast<uint64_t>(range())));
  }
  float Probability(int64_t) const override {
    return static_cast<float>(1.0 / static_cast<double>(range()));
  }
};

class LogUniformSampler final : public ClassSampler {
 public:
  explicit LogUniformSampler(int64_t range)
      : ClassSampler(range), log_range_(std::log1p(static_cast<double>(range))) {}
  int64_t Draw(WordDraws& draws) const override {
    return (static_cast<int64_t>(std::exp(draws.Double() * log_range_)) - 1) % range();
  }
  float Probability(int64_t value) const override {
    const double v = static_cast<double>(value);
    return static_cast<float>(std::log((v + 2) / (v + 1)) / log_range_);
  }

 private:
  const double log_range_;
};

/// Counts classes, in a tree of sums: node i has the children 2i and 2i + 1, and the leaves follow
/// each other.
class LearnedSampler final : public ClassSampler {
 public:
  explicit LearnedSampler(int64_t range) : ClassSampler(range) {
    while (leaves_ < range) leaves_ *= 2;
    sums_.assign(2 * leaves_, 0);
    std::fill_n(sums_.begin() + leaves_, range, 1);
    for (int64_t i = leaves_ - 1; i > 0; --i) sums_[i] = sums_[2 * i] + sums_[2 * i + 1];
  }
  int64_t Draw(WordDraws& draws) const override {
    int32_t left = static_cast<int32_t>(draws.Below(static_cast<uint32_t>(sums_[1])));
    int64_t node = 1;
    while (node < leaves_) {
      node *= 2;
      if (left < sums_[node]) continue;
      left -= sums_[node];
      ++node;
    }
    return node - leaves_;
  }
  float Probability(int64_t value) const override {
    return static_cast<float>(sums_[leaves_ + value]) / static_cast<float>(sums_[1]);
  }
  void Learn(absl::Span<const int64_t> values) override {
    for (const int64_t value : values) {
      if (sums_[1] == std::numeric_limits<int32_t>::max()) return;
      for (int64_t node = leaves_ + value; node > 0; node /= 2) ++sums_[node];
    }
  }

 private:
  int64_t leaves_ = 1;
  CountedVector<int32_t> sums_;
};

/// A sampler with given weights, by Walker's table of aliases: a class, and which other one comes
/// up in its stead with the rest of its share.
class WeightedSampler final : public ClassSampler {
 public:
  WeightedSampler(const CountedVector<float>& weights, float total)
      : ClassSampler(static_cast<int64_t>(weights.size())),
        weights_(weights),
        total_(total),
        table_(weights.size()) {
    const size_t n = weights.size();
    double sum = 0;
    for (const float w : weights) sum += w;
    CountedVector<double> shares(n);
    CountedVector<size_t> high, low;
    for (size_t i = 0; i < n; ++i) {
      shares[i] = static_cast<double>(weights[i] * static_cast<float>(n)) / sum;
      (shares[i] < 1 ? low : high).push_back(i);
    }
    while (!high.empty() && !low.empty()) {
      const size_t l = low.back(), h = high.back();
      low.pop_back();
      high.pop_back();
      table_[l] = {static_cast<float>(shares[l]), static_cast<int64_t>(h)};
      shares[h] -= 1 - shares[l];
      (shares[h] < 1 ? low : high).push_back(h);
    }
    for (const auto& rest : {high, low}) {
      for (const size_t i : rest) table_[i] = {1, static_cast<int64_t>(i)};
    }
  }
  int64_t Draw(WordDraws& draws) const override {
    const float share = draws.Float();
    const uint32_t i = draws.Below(static_cast<uint32_t>(table_.size()));
    return share < table_[i].share ? i : table_[i].other;
  }
  float Probability(int64_t value) const override { return weights_[value] / total_; }

 private:
  struct Entry {
    float share = 1;
    int64_t other = 0;
  };
  const CountedVector<float> weights_;
  const float total_;
  CountedVector<Entry> table_;
};

/// What all samplers' nodes say.
struct SamplerAttrs {
  explicit SamplerAttrs(KernelConstruction& c)
      : num_true(c.Attr<int64_t>("num_true")),
        num_sampled(c.Attr<int64_t>("num_sampled")),
        unique(c.Attr<bool>("unique")) {}
  const int64_t num_true, num_sampled;
  const bool unique;
};

Status CheckTrueClasses(const Tensor& classes, int64_t num_true, int64_t range) {
  if (classes.rank() != 2 || classes.dim(1) != num_true) {
    return InvalidArgument("true_classes must be a matrix of num_true = ", num_true,
                           " columns, found shape ", classes.shape());
  }
  for (const int64_t value : classes.flat<int64_t>()) {
    if (value >= 0 && value < range) continue;
    return InvalidArgument("`true_classes` out of range [0, ", range, "), received ", value);
  }
  return OkStatus();
}

/// How often a class is to be expected among `sampled` that took `tries` to find.
float ExpectedCount(float p, int64_t sampled, int64_t tries) {
  if (tries == sampled) return p * static_cast<float>(sampled);
  return -std::expm1(static_cast<float>(tries) * std::log1p(-p));
}

/// S makes the sampler of the node.
template <typename S>
class SamplerKernel final : public Kernel {
 public:
  explicit SamplerKernel(KernelConstruction& c) : Kernel(c), attrs_(c), stream_(c), source_(c) {}

  Status Compute(KernelContext& ctx) const override {
    MutexLock lock(mu_);
    if (sampler_ == nullptr) {
      TENON_ASSIGN_OR_RETURN(sampler_, source_.Make(ctx));
    }
    const int64_t range = sampler_->range(), n = attrs_.num_sampled;
    const Tensor& classes = ctx.input(0);
    TENON_RETURN_IF_ERROR(CheckTrueClasses(classes, attrs_.num_true, range));
    if (attrs_.unique && n > range) {
      return InvalidArgument("Sampler's range is too small: ", n, " of ", range, " classes");
    }
    TENON_ASSIGN_OR_RETURN(Tensor * sampled, ctx.CreateOutput(0, {n}));
    TENON_ASSIGN_OR_RETURN(Tensor * true_counts, ctx.AllocateOutput(1, classes.shape()));
    TENON_ASSIGN_OR_RETURN(Tensor * counts, ctx.CreateOutput(2, {n}));
    WordDraws draws(stream_.Reserve(kWordsPerSample / 4 * n));
    const auto values = sampled->flat<int64_t>();
    std::unordered_set<int64_t, std::hash<int64_t>, std::equal_to<>, CountedAllocator<int64_t>>
        used;
    int64_t tries = 0;
    for (int64_t i = 0; i < n; ++tries) {
      if (tries % kStepsBetweenLooks == 0 && Interrupted()) return OkStatus();
      values[i] = sampler_->Draw(draws);
      if (!attrs_.unique || used.insert(values[i]).second) ++i;
    }
    const auto count = [&, &sampler = *sampler_](absl::Span<const int64_t> of, float* to) {
      for (const int64_t c : of) *to++ = ExpectedCount(sampler.Probability(c), n, tries);
    };
    count(values, counts->data<float>());
    count(classes.flat<int64_t>(), true_counts->data<float>());
    sampler_->Learn(classes.flat<int64_t>());
    return OkStatus();
  }

 private:
  static constexpr uint64_t kWordsPerSample = 2048;

  const SamplerAttrs attrs_;
  const Stream stream_;
  const S source_;
  mutable Mutex mu_;
  mutable std::unique_ptr<ClassSampler> sampler_ ABSL_GUARDED_BY(mu_);
};

template <typename Sampler>
class OfRange {
 public:
  explicit OfRange(KernelConstruction& c) : range_(c.Attr<int64_t>("range_max")) {
    if constexpr (std::is_same_v<Sampler, LearnedSampler>) {
      if (range_ >= std::numeric_limits<int32_t>::max()) {
        c.Fail(InvalidArgument("range_max must be less than 2^31 - 1, found ", range_));
      }
    }
  }
  StatusOr<std::unique_ptr<ClassSampler>> Make(const KernelContext&) const {
    return std::make_unique<Sampler>(range_);
  }

 private:
  const int64_t range_;
};

/// Weights of a list or a file, of which the node may take every num_shards-th only.
class OfWeights {
 public:
  explicit OfWeights(KernelConstruction& c)
      : range_(c.Attr<int64_t>("range_max")),
        file_(c.Attr<std::string>("vocab_file")),
        given_(c.Attr<std::vector<float>>("unigrams")),
        distortion_(c.Attr<float>("distortion")),
        reserved_(c.Attr<int64_t>("num_reserved_ids")),
        shards_(c.Attr<int64_t>("num_shards")),
        shard_(c.Attr<int64_t>("shard")) {
    if (file_.empty() == given_.empty()) {
      c.Fail(InvalidArgument("exactly one of vocab_file and unigrams must be given"));
    }
    StatusOr<int64_t> limit = MultiplySizes(range_, shards_);
    if (limit.ok()) limit = AddSizes(*limit, 1);
    if (!limit.ok()) {
      c.Fail(limit.status());
    } else if (reserved_ < 0 || reserved_ >= *limit) {
      c.Fail(NotInRange(reserved_, *limit, "num_reserved_ids"));
    }
  }

  StatusOr<std::unique_ptr<ClassSampler>> Make(const KernelContext& ctx) const {
    CountedVector<float> given(given_.begin(), given_.end());
    if (!file_.empty()) {
      TENON_ASSIGN_OR_RETURN(given, ReadWeights(ctx));
    }
    CountedVector<float> weights(reserved_ / shards_ + (shard_ < reserved_ % shards_ ? 1 : 0), 0);
    // TensorFlow goes on from the number of weights so far, not of ids.
    int64_t id = static_cast<int64_t>(weights.size());
    float total = 0;
    for (const float w : given) {
      if (id++ % shards_ != shard_) continue;
      if (!(w >= 0)) return InvalidArgument("a weight is ", w, ", wanted at least 0");
      weights.push_back(std::pow(w, distortion_));
      total += weights.back();
    }
    if (static_cast<int64_t>(weights.size()) != range_) {
      return InvalidArgument("range_max is ", range_, " and must be the number of weights, ",
                             weights.size());
    }
    if (!(total > 0 && total < std::numeric_limits<float>::infinity())) {
      return InvalidArgument("the sum of weights is ", total, ", wanted a positive number");
    }
    return std::make_unique<WeightedSampler>(weights, total);
  }

 private:
  /// What follows the last comma of each line.
  StatusOr<CountedVector<float>> ReadWeights(const KernelContext& ctx) const {
    TENON_ASSIGN_OR_RETURN(const FileContext files, FilesFor(ctx));
    TENON_ASSIGN_OR_RETURN(const std::string content, ReadFileToString(file_, files));
    CountedVector<float> weights;
    std::string_view rest = content;
    while (!rest.empty()) {
      const size_t end = rest.find('\n');
      const std::string_view line = rest.substr(0, end);
      rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
      float weight = 0;
      if (!ReadNumber(line.substr(line.rfind(',') + 1), &weight)) {
        return InvalidArgument("Wrong vocabulary format at line: ", line);
      }
      weights.push_back(weight);
    }
    return weights;
  }

  const int64_t range_;
  const std::string file_;
  const std::vector<float> given_;
  const float distortion_;
  const int64_t reserved_, shards_, shard_;
};

Status AllCandidatesKernel(KernelContext& ctx, int64_t num_true, int64_t num_sampled) {
  const Tensor& classes = ctx.input(0);
  TENON_RETURN_IF_ERROR(CheckTrueClasses(classes, num_true, num_sampled));
  TENON_ASSIGN_OR_RETURN(Tensor * sampled, ctx.CreateOutput(0, {num_sampled}));
  TENON_ASSIGN_OR_RETURN(Tensor * true_counts, ctx.AllocateOutput(1, classes.shape()));
  TENON_ASSIGN_OR_RETURN(Tensor * counts, ctx.CreateOutput(2, {num_sampled}));
  std::iota(sampled->data<int64_t>(), sampled->data<int64_t>() + num_sampled, 0);
  std::fill_n(true_counts->data<float>(), true_counts->num_elements(), 1.0f);
  std::fill_n(counts->data<float>(), num_sampled, 1.0f);
  return OkStatus();
}

Status AccidentalHitsKernel(KernelContext& ctx, int64_t num_true) {
  const Tensor &classes = ctx.input(0), &sampled = ctx.input(1);
  if (classes.rank() != 2 || classes.dim(1) != num_true || classes.dim(0) > INT32_MAX) {
    return InvalidArgument("true_candidates must be a batch_size * num_true matrix, found shape ",
                           classes.shape());
  }
  std::unordered_map<int64_t, int64_t> places;
  for (int64_t i = 0; i < sampled.num_elements(); ++i) places[sampled.data<int64_t>()[i]] = i;
  std::vector<std::pair<int32_t, int64_t>> hits;
  for (int64_t i = 0; i < classes.num_elements(); ++i) {
    const auto found = places.find(classes.data<int64_t>()[i]);
    if (found == places.end()) continue;
    hits.emplace_back(static_cast<int32_t>(i / num_true), found->second);
  }
  const Shape shape = {static_cast<int64_t>(hits.size())};
  TENON_ASSIGN_OR_RETURN(Tensor * rows, ctx.AllocateOutput(0, shape));
  TENON_ASSIGN_OR_RETURN(Tensor * ids, ctx.AllocateOutput(1, shape));
  TENON_ASSIGN_OR_RETURN(Tensor * weights, ctx.AllocateOutput(2, shape));
  for (size_t i = 0; i < hits.size(); ++i) {
    rows->data<int32_t>()[i] = hits[i].first;
    ids->data<int64_t>()[i] = hits[i].second;
    weights->data<float>()[i] = -std::numeric_limits<float>::max();
  }
  return OkStatus();
}

}  // namespace

void RegisterCandidateSamplers(OpRegistry& ops) {
  const Tensor classes = Tensor::Of<int64_t>({2, 1}, {1, 4});
  AttributeMap attrs = {{"num_true", 1}, {"num_sampled", 3}, {"unique", true}, {"seed", 1}};
  ops.Add("AllCandidateSampler", AllCandidatesKernel, {.attrs = {"num_true", "num_sampled"}})
      .Example({Tensor::Of<int64_t>({2, 1}, {1, 2})}, attrs);
  ops.Add("ComputeAccidentalHits", AccidentalHitsKernel, {.attrs = {"num_true"}})
      .Example({classes, Tensor::Vector<int64_t>({4, 0})}, {{"num_true", 1}});
  attrs.Set("range_max", 5);
  const auto add = [&]<typename S>(std::string_view name, S*) {
    return ops.Add<SamplerKernel<S>>(name, DeclaredShape).Example({classes}, attrs);
  };
  add("UniformCandidateSampler", static_cast<OfRange<UniformSampler>*>(nullptr));
  add("LogUniformCandidateSampler", static_cast<OfRange<LogUniformSampler>*>(nullptr));
  add("LearnedUnigramCandidateSampler", static_cast<OfRange<LearnedSampler>*>(nullptr));
  add("ThreadUnsafeUnigramCandidateSampler", static_cast<OfRange<LearnedSampler>*>(nullptr));
  attrs.Set("unigrams", std::vector<float>{1, 2, 3, 4, 5});
  add("FixedUnigramCandidateSampler", static_cast<OfWeights*>(nullptr));
}

}  // namespace tenon
