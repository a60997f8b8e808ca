// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>

#include "ops/arguments.h"
#include "ops/array/band.h"
#include "ops/array/mirrored_rows.h"
#include "ops/cuda/copy_plan.h"
#include "ops/cuda/index_check.h"
#include "ops/cuda/join_plan.h"
#include "ops/cuda/kernel_types.h"
#include "ops/cuda/reduction_index.h"
#include "ops/cuda/tuple_rows.h"
#include "ops/cuda/wide_rows.h"
#include "ops/register.h"
#include "tests/ops/nn/naive_offset.h"
#include "tests/testing/op_runner.h"
#include "tests/testing/status_matchers.h"

// The arithmetic of the GPU's kernels, which needs none to be tested.

namespace tenon::cuda {
namespace {

using testing::NaiveOffset;

Shape RandomShape(std::mt19937& random, int max_rank, int max_size) {
  DimVector dims(random() % (max_rank + 1));
  for (int64_t& d : dims) d = 1 + random() % max_size;
  return Shape(dims);
}

TEST(CudaDivisor, DividesAsTheProcessorDoes) {
  std::mt19937_64 random(1);
  const int64_t values[] = {1, 2, 3, 5, 7, 64, 641, 65535, 65537, (1 << 30) - 1, INT32_MAX};
  for (const int64_t value : values) {
    for (const int64_t most : {int64_t{INT32_MAX}, int64_t{1} << 31, int64_t{1} << 40}) {
      const Divisor divisor(value, most);
      for (int i = 0; i < 2000; ++i) {
        const auto n = static_cast<int64_t>(random() % (static_cast<uint64_t>(most) + 1));
        ASSERT_EQ(divisor.Quotient(n), n / value) << n << " / " << value;
      }
      for (const int64_t near : {value - 1, value, value + 1, 2 * value - 1, most}) {
        if (near > most) continue;
        ASSERT_EQ(divisor.Quotient(near), near / value) << near;
      }
    }
  }
  // A divisor beyond all that is divided.
  EXPECT_EQ(Divisor(int64_t{1} << 40, 1000).Quotient(1000), 0);
  EXPECT_EQ(Divisor(1001, 1000).Quotient(1000), 0);
  EXPECT_EQ(Divisor(1, 0).Quotient(0), 0);
}

TEST(CudaBroadcast, FindsOperandsAndTheirPacks) {
  std::mt19937 random(2);
  constexpr int64_t kPack = 4;
  int packed = 0;
  for (int round = 0; round < 2000; ++round) {
    const Shape full = RandomShape(random, 5, round % 2 == 0 ? 4 : 9);
    const auto shrunk = [&] {
      DimVector dims(full.dims().begin(), full.dims().end());
      dims.erase(dims.begin(), dims.begin() + random() % (dims.size() + 1));
      for (int64_t& d : dims) {
        if (random() % 3 == 0) d = 1;
      }
      return Shape(dims);
    };
    const Shape a = shrunk(), b = shrunk();
    const BroadcastPlan plan = PlanBroadcast({&a, &b}).value();
    const BroadcastIndex<2> index = IndexBroadcast<2>(plan, kPack).value();
    ASSERT_EQ(index.count, plan.shape.num_elements());
    const Shape* const shapes[] = {&a, &b};
    for (int64_t i = 0; i < index.count; ++i) {
      int64_t from[2];
      index.index.At(i, from);
      for (int k = 0; k < 2; ++k) ASSERT_EQ(from[k], NaiveOffset(*shapes[k], plan.shape, i));
    }
    if (!index.packs) continue;
    for (int64_t group = 0; group < index.count / kPack; ++group) {
      ++packed;
      int64_t from[2];
      index.index.At(group * kPack, from);
      for (int k = 0; k < 2; ++k) {
        ASSERT_TRUE(index.repeats[k] || from[k] % kPack == 0);
        for (int64_t j = 0; j < kPack; ++j) {
          ASSERT_EQ(from[k] + (index.repeats[k] ? 0 : j),
                    NaiveOffset(*shapes[k], plan.shape, group * kPack + j));
        }
      }
    }
  }
  EXPECT_GT(packed, 1000);
}

TEST(CudaBroadcast, RefusesMoreDimensionsThanItWalks) {
  DimVector one, other;
  for (int i = 0; i < 12; ++i) {
    one.push_back(i % 2 == 0 ? 2 : 1);
    other.push_back(i % 2 == 0 ? 1 : 2);
  }
  const Shape a(one), b(other);
  const BroadcastPlan plan = PlanBroadcast({&a, &b}).value();
  EXPECT_EQ(IndexBroadcast<2>(plan, 4).status().code(), StatusCode::kUnimplemented);
}

/// Does on the host what the kernels of a CopyPlan do.
void Execute(const CopyPlan& plan, const Tensor& from, Tensor* to) {
  const char* first = static_cast<const char*>(from.raw_data()) + plan.from;
  char* out = static_cast<char*>(to->raw_data()) + plan.to;
  const auto copy = [&](int64_t source, int64_t target, int64_t count) {
    std::memcpy(out + target * plan.bytes, first + source * plan.bytes, count * plan.bytes);
  };
  if (plan.kind == CopyPlan::Kind::kRun) return copy(0, 0, plan.count);
  if (plan.kind == CopyPlan::Kind::kNothing) return;
  for (int64_t i = 0; i < plan.count; ++i) {
    int64_t at[2];
    plan.index.At(i, at);
    if (plan.kind == CopyPlan::Kind::kElements) {
      ASSERT_EQ(reinterpret_cast<uintptr_t>(first + at[0] * plan.bytes) % plan.bytes, 0u);
      ASSERT_EQ(reinterpret_cast<uintptr_t>(out + at[1] * plan.bytes) % plan.bytes, 0u);
      copy(at[0], at[1], 1);
      continue;
    }
    for (int64_t p = 0; p < plan.first.size; ++p) {
      for (int64_t q = 0; q < plan.second.size; ++q) {
        copy(at[0] + p + q * plan.second.from, at[1] + p * plan.first.to + q, 1);
      }
    }
  }
}

TEST(CudaCopy, CopiesBoxesAsTheHostDoes) {
  std::mt19937 random(3);
  int kinds[4] = {}, wide = 0;
  for (int round = 0; round < 3000; ++round) {
    const DType type = std::vector<DType>{DType::kUInt8, DType::kHalf, DType::kFloat,
                                          DType::kDouble, DType::kComplex128}[random() % 5];
    const Shape shape = RandomShape(random, 4, round % 3 == 0 ? 24 : 5);
    // A box of the tensor, its dimensions in another order, some reversed.
    const int rank = shape.rank();
    std::vector<int> perm(rank);
    std::iota(perm.begin(), perm.end(), 0);
    if (random() % 2 == 0) std::shuffle(perm.begin(), perm.end(), random);
    const DimVector strides = StridesOf(shape.dims());
    StridedView source{0, DimVector(rank)};
    DimVector dims(rank);
    for (int i = 0; i < rank; ++i) {
      const int64_t size = shape.dim(perm[i]);
      int64_t begin = random() % 3 == 0 ? random() % size : 0;
      dims[i] = random() % 3 == 0 ? 1 + random() % (size - begin) : size - begin;
      source.strides[i] = strides[perm[i]];
      if (random() % 6 == 0) {
        begin += dims[i] - 1;
        source.strides[i] = -source.strides[i];
      } else if (random() % 8 == 0) {
        source.strides[i] = 0;
      }
      source.offset += begin * strides[perm[i]];
    }
    const int64_t before = random() % 4;
    const StridedView target{before, StridesOf(dims)};
    const Shape out{Product(dims) + before};
    const Tensor from = testing::Sample(type, shape, 0, 100, round);
    Tensor wanted = Tensor::Zeros(type, out), found = Tensor::Zeros(type, out);
    StridedCopy(from, source, &wanted, target, dims);
    const auto address = [](const Tensor& t) { return reinterpret_cast<uintptr_t>(t.raw_data()); };
    const CopyPlan plan = PlanCopy(static_cast<int64_t>(SizeOf(type)), address(from),
                                   address(found), source, target, dims)
                              .value();
    ++kinds[static_cast<int>(plan.kind)];
    wide += plan.bytes > static_cast<int64_t>(SizeOf(type));
    Execute(plan, from, &found);
    ASSERT_TRUE(found.Equals(wanted))
        << "round " << round << ", kind " << static_cast<int>(plan.kind);
  }
  for (const CopyPlan::Kind kind :
       {CopyPlan::Kind::kRun, CopyPlan::Kind::kTiles, CopyPlan::Kind::kElements}) {
    EXPECT_GT(kinds[static_cast<int>(kind)], 20);
  }
  EXPECT_GT(wide, 50);
}

TEST(CudaCopy, PlansNothingForBoxesWithoutElements) {
  const DimVector dims = {int64_t{1} << 62, 0, int64_t{1} << 62};
  const StridedView view{0, {1, 1, 1}};
  EXPECT_EQ(PlanCopy(4, 0, 0, view, view, dims).value().kind, CopyPlan::Kind::kNothing);
}

/// Every element belongs to the piece of the result that a naive walk says, and to no other.
TEST(CudaReduction, ReadsEveryElementOnce) {
  std::mt19937 random(4);
  int cut = 0;
  for (int round = 0; round < 400; ++round) {
    Shape shape = RandomShape(random, 4, 6);
    if (round % 10 == 0) shape = Shape{static_cast<int64_t>(1 + random() % 3), 20000};
    if (round % 10 == 1) shape = Shape{9000, static_cast<int64_t>(1 + random() % 3)};
    AxisFlags reduced(shape.rank());
    for (size_t i = 0; i < reduced.size(); ++i) reduced[i] = random() % 2 == 0;
    const ReductionPlan plan = PlanReduction(shape, reduced, false);
    const ReductionIndex index = IndexReduction(plan).value();
    cut += index.pieces > 1;
    ASSERT_GE(index.pieces * index.piece, index.num_reduced);
    ASSERT_GE(index.pieces, 1);
    std::vector<int> seen(shape.num_elements());
    OffsetWalk kept(plan.kept.data(), plan.kept.size(), 0);
    for (int64_t o = 0; o < index.num_kept; ++o, kept.Next()) {
      int64_t at[1];
      index.kept.At(o, at);
      ASSERT_EQ(at[0], kept.offset());
      OffsetWalk walk(plan.reduced.data(), plan.reduced.size(), 0);
      for (int64_t r = 0; r < index.num_reduced; ++r, walk.Next()) {
        int64_t in[1];
        index.reduced.At(r, in);
        ASSERT_EQ(in[0], walk.offset());
        ++seen[at[0] + in[0]];
      }
    }
    for (const int times : seen) ASSERT_EQ(times, 1);
  }
  EXPECT_GT(cut, 20);
}

TEST(CudaReduction, IsCutAlikeInEveryRun) {
  const ReductionPlan all = PlanReduction(Shape{1 << 24}, {true}, false);
  const ReductionIndex index = IndexReduction(all).value();
  EXPECT_EQ(index.pieces, kEnoughBlocks);
  EXPECT_EQ(index.piece, (1 << 24) / kEnoughBlocks);
  // Nothing is reduced to something.
  const ReductionIndex none =
      IndexReduction(PlanReduction(Shape{3, 0}, {false, true}, false)).value();
  EXPECT_EQ(none.num_kept, 3);
  EXPECT_EQ(none.pieces, 1);
  EXPECT_EQ(none.piece, 0);
}

TEST(CudaIndexCheck, NotesPlaceAndValue) {
  for (const int64_t place : {int64_t{0}, int64_t{7}, int64_t{INT32_MAX}}) {
    for (const int64_t value : {int64_t{0}, int64_t{-1}, int64_t{5}, int64_t{INT32_MIN}}) {
      const uint64_t word = WordOf({place, value});
      EXPECT_NE(word, 0u);
      EXPECT_EQ(NotedIndex(word).place, place);
      EXPECT_EQ(NotedIndex(word).value, value);
    }
  }
  const IndexNote far = NotedIndex(WordOf({int64_t{1} << 40, -(int64_t{1} << 40)}));
  EXPECT_EQ(far.place, INT32_MAX);
  EXPECT_EQ(far.value, INT32_MIN);
}

TEST(CudaIndexCheck, ReadsIndicesOfEveryType) {
  EXPECT_EQ(IndexReader(Tensor::Vector<int64_t>({1, -(int64_t{1} << 40)}))[1], -(int64_t{1} << 40));
  EXPECT_EQ(IndexReader(Tensor::Vector<int32_t>({1, -2}))[1], -2);
  EXPECT_EQ(IndexReader(Tensor::Vector<int16_t>({1, -3}))[1], -3);
  EXPECT_EQ(IndexReader(Tensor::Vector<uint16_t>({1, 65535}))[1], 65535);
  EXPECT_EQ(IndexReader(Tensor::Vector<int8_t>({1, -4}))[1], -4);
  EXPECT_EQ(IndexReader(Tensor::Vector<uint8_t>({1, 255}))[1], 255);
}

TEST(CudaTuples, NameTheRowsThatTheHostReads) {
  const Shape shape{3, 4, 2};
  const Tensor indices = Tensor::Of<int64_t>({3, 2}, {2, 3, 0, 0, 1, 2});
  const IndexTuples wanted = ReadTuples(indices, shape, "shape").value();
  const TupleRows rows = TupleRows::Create(indices, shape).value();
  for (int64_t i = 0; i < 3; ++i) {
    int64_t bad = 99;
    EXPECT_EQ(rows.Row(i, &bad), wanted.rows[i]);
    EXPECT_EQ(bad, 99);
  }
  const Tensor wrong_indices = Tensor::Of<int32_t>({2, 2}, {0, 4, -1, 0});
  const TupleRows wrong = TupleRows::Create(wrong_indices, shape).value();
  int64_t bad = 0;
  EXPECT_EQ(wrong.Row(0, &bad), -1);
  EXPECT_EQ(bad, 4);
  EXPECT_EQ(wrong.Row(1, &bad), -1);
  EXPECT_EQ(bad, -1);
}

TEST(CudaJoin, PutsEveryRunWhereTheHostPutsIt) {
  std::mt19937 random(5);
  int64_t widest = 0, several = 0;
  for (int round = 0; round < 200; ++round) {
    const int64_t rows = 1 + random() % 5, size = int64_t{1} << random() % 5;
    const int64_t unit = int64_t{1} << random() % 4;  // so that some may be taken together
    std::vector<JoinedBytes> arrays(1 + random() % 150);
    std::vector<std::string> contents;
    int64_t row = 0;
    for (JoinedBytes& a : arrays) {
      a.run = size * unit * (1 + random() % 3);
      row += a.run;
      contents.push_back(std::string(rows * a.run, 0));
      for (char& c : contents.back()) c = static_cast<char>(random());
      // Stands for an address; what lies there is looked up by number.
      a.address = reinterpret_cast<const char*>(uint64_t{4096} + 64 * contents.size());
    }
    std::string wanted, found(rows * row, 0);
    for (int64_t r = 0; r < rows; ++r) {
      for (size_t i = 0; i < arrays.size(); ++i) {
        wanted += contents[i].substr(r * arrays[i].run, arrays[i].run);
      }
    }
    const std::vector<JoinPlan> plans = PlanJoin(size, arrays, rows, 0);
    ASSERT_EQ(plans.size(), (arrays.size() + JoinPlan::kMostArrays - 1) / JoinPlan::kMostArrays);
    int64_t moved = 0;
    for (const JoinPlan& plan : plans) {
      ASSERT_EQ(plan.bytes % size, 0);
      widest = std::max(widest, plan.bytes / size);
      for (int64_t i = 0; i < plan.num_elements(); ++i) {
        const auto [array, from, to] = plan.At(i);
        const auto number = (reinterpret_cast<uintptr_t>(plan.arrays[array]) - 4096) / 64 - 1;
        found.replace(to * plan.bytes, plan.bytes, contents[number], from * plan.bytes, plan.bytes);
        moved += plan.bytes;
      }
    }
    several += plans.size() > 1;
    ASSERT_EQ(moved, rows * row);
    ASSERT_EQ(found, wanted) << rows << " rows of " << arrays.size() << " arrays";
  }
  EXPECT_EQ(widest, 8);
  EXPECT_GT(several, 50);
  // An address or a length that is not a multiple keeps elements small.
  const auto bytes = [](uint64_t address, int64_t run, uint64_t to) {
    return PlanJoin(2, {{reinterpret_cast<const char*>(address), run}}, 1, to)[0].bytes;
  };
  EXPECT_EQ(bytes(64, 32, 128), 16);
  EXPECT_EQ(bytes(68, 32, 128), 4);
  EXPECT_EQ(bytes(64, 24, 128), 8);
  EXPECT_EQ(bytes(64, 32, 130), 2);
}

TEST(CudaBand, IsWhatLiesNearTheDiagonal) {
  for (const auto& [rows, columns] : {std::pair(1, 1), {3, 5}, {5, 3}, {4, 4}}) {
    for (int64_t lower = 0; lower <= rows; ++lower) {
      for (int64_t upper = 0; upper <= columns; ++upper) {
        const Band band{rows, columns, lower, upper};
        for (int64_t i = 0; i < rows; ++i) {
          for (int64_t j = 0; j < columns; ++j) {
            ASSERT_EQ(j >= band.First(i) && j < band.End(i), i - j <= lower && j - i <= upper)
                << i << ", " << j << " in " << lower << ", " << upper;
          }
        }
      }
    }
  }
}

TEST(CudaMirroredRows, AreAllOfTheBlocksOnce) {
  // [2, 6, 3], of which rows 1 and 0 are added to rows 3 and 4.
  const MirroredRows rows{.blocks = 2, .rows = 6, .width = 3, .from = 1, .to = 3, .count = 2};
  ASSERT_EQ(rows.num_elements(), 12);
  std::map<int64_t, int64_t> found, wanted;
  for (int64_t k = 0; k < rows.num_elements(); ++k) {
    const auto [source, target] = rows.At(k);
    found[target] = source;
  }
  for (int64_t block = 0; block < 2; ++block) {
    for (int64_t column = 0; column < 3; ++column) {
      wanted[(block * 6 + 3) * 3 + column] = (block * 6 + 1) * 3 + column;
      wanted[(block * 6 + 4) * 3 + column] = block * 6 * 3 + column;
    }
  }
  EXPECT_EQ(found, wanted);
}

TEST(CudaWideRows, AreAsWideAsBothSidesAllow) {
  const auto widen = [](DType type, uint64_t a, uint64_t b, int64_t width) {
    const WideRows rows = WidenRows(type, a, b, width);
    return std::pair(SizeOf(rows.type), rows.width);
  };
  using Row = std::pair<size_t, int64_t>;
  EXPECT_EQ(widen(DType::kFloat, 0, 64, 8), Row(16, 2));
  EXPECT_EQ(widen(DType::kFloat, 0, 64, 6), Row(8, 3));
  EXPECT_EQ(widen(DType::kFloat, 4, 64, 8), Row(4, 8));
  EXPECT_EQ(widen(DType::kHalf, 0, 2, 8), Row(2, 8));
  EXPECT_EQ(widen(DType::kBool, 2, 2, 6), Row(2, 3));
  EXPECT_EQ(widen(DType::kComplex128, 0, 0, 3), Row(16, 3));
  EXPECT_EQ(widen(DType::kDouble, 0, 0, 0), Row(16, 0));
}

TEST(CudaKernelTypes, LeaveInt32ToTheHost) {
  const DTypeVector types = {DType::kFloat, DType::kInt32};
  const auto forms = [&](std::string_view op) {
    return DeviceForms(AllOps().Find(op)->schema, {.types = {{"T", types}}});
  };
  ASSERT_EQ(forms("Abs").size(), 1u);
  EXPECT_EQ(forms("Abs")[0].types[0].second, DTypeVector{DType::kFloat});
  // With an axis of int64 a sum of int32 is the device's.
  const std::vector<KernelOptions> sum = forms("Sum");
  ASSERT_EQ(sum.size(), 2u);
  EXPECT_EQ(sum[0].types[0].second, DTypeVector{DType::kFloat});
  EXPECT_EQ(sum[1].types[0].second, types);
  EXPECT_EQ(sum[1].types[1].first, "Tidx");
  EXPECT_EQ(sum[1].types[1].second, DTypeVector{DType::kInt64});
  ASSERT_EQ(forms("Softmax").size(), 1u);
  EXPECT_EQ(forms("Softmax")[0].types[0].second, types);
}

}  // namespace
}  // namespace tenon::cuda
