// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/group_programs.h"

#include <algorithm>
#include <utility>

#include "core/base/half.h"
#include "ops/array/constants.h"
#include "ops/collectives/collectives_ops.h"
#include "ops/math/math_ops.h"

namespace tenon::testing {
namespace {

constexpr int kLarge = 50000;

std::vector<float> DataOf(int i) { return {1.f + i, 2, -1.f * i}; }

/// What `combine` makes of one element after the other of all members' data.
Tensor Combined(int size, const std::function<float(float, float)>& combine, float divisor = 1) {
  std::vector<float> out = DataOf(0);
  for (int i = 1; i < size; ++i) {
    for (size_t j = 0; j < out.size(); ++j) out[j] = combine(out[j], DataOf(i)[j]);
  }
  for (float& value : out) value /= divisor;
  return Tensor::Vector<float>(out);
}

Tensor Matrix(const std::vector<float>& values, int64_t columns) {
  const auto rows = static_cast<int64_t>(values.size()) / columns;
  return *Tensor::Vector<float>(values).Reshaped(Shape{rows, columns});
}

/// The rows of member i: two for each member, of two columns.
std::vector<float> RowsOf(int i, int size) {
  std::vector<float> values;
  for (int row = 0; row < 2 * size; ++row) {
    values.push_back(100.f * i + row);
    values.push_back(7.f - 1.f * i * row);
  }
  return values;
}

std::vector<float> LargeData(int i) {
  std::vector<float> values(kLarge);
  for (int j = 0; j < kLarge; ++j) values[j] = static_cast<float>((i + 1) * (j % 1000));
  return values;
}

GroupProgram Reduction(const std::string& merge, const std::string& final,
                       const std::function<float(float, float)>& combine) {
  return {merge + final,
          [=](int i, int size) {
            return CollectiveReduceV2(Const(DataOf(i)), Const(size), Const(1), Const(2), {}, merge,
                                      final);
          },
          [=](int, int size) {
            return Combined(size, combine, final == "Div" ? static_cast<float>(size) : 1.f);
          }};
}

Tensor DealtRows(int i, int size) {
  std::vector<float> values;
  for (int from = 0; from < size; ++from) {
    const std::vector<float> rows = RowsOf(from, size);
    values.insert(values.end(), rows.begin() + 4L * i, rows.begin() + 4L * (i + 1));
  }
  return Matrix(values, 2);
}

Output Communicator(int rank, int size) {
  return CollectiveInitializeCommunicator(Const(7), Const(rank), Const(size));
}

Output NoAssignment() { return Const(Tensor(DType::kInt32, Shape{0, 0})); }

}  // namespace

std::vector<GroupProgram> GroupPrograms(bool between_tasks) {
  const auto sum = [](float a, float b) { return a + b; };
  std::vector<GroupProgram> programs = {
      Reduction("Add", "Id", sum),
      Reduction("Add", "Div", sum),
      Reduction("Mul", "Id", [](float a, float b) { return a * b; }),
      Reduction("Max", "Id", [](float a, float b) { return std::max(a, b); }),
      Reduction("Min", "Id", [](float a, float b) { return std::min(a, b); }),
      {"first version",
       [](int i, int size) {
         return CollectiveReduce(Const(DataOf(i)), size, 1, 2, "Add", "Id", {0});
       },
       [=](int, int size) { return Combined(size, sum); }},
      {"mean of integers",
       [](int i, int size) {
         return CollectiveReduceV2(Const(std::vector<int64_t>{-7 - i, 7}), Const(size), Const(1),
                                   Const(2), {}, "Add", "Div");
       },
       [](int, int size) {
         int64_t total = 0;
         for (int i = 0; i < size; ++i) total += -7 - i;
         return Tensor::Vector<int64_t>({total / size, 7});
       }},
      {"large sum",
       [](int i, int size) {
         return CollectiveReduceV2(Const(LargeData(i)), Const(size), Const(1), Const(3), {}, "Add",
                                   "Id");
       },
       [](int, int size) { return Tensor::Vector<float>(LargeData(size * (size + 1) / 2 - 1)); }},
      {"no elements",
       [](int, int size) {
         return CollectiveReduceV2(Const(Tensor(DType::kFloat, Shape{0, 3})), Const(size), Const(1),
                                   Const(4), {}, "Add", "Div");
       },
       [](int, int) {
         return Tensor(DType::kFloat, Shape{0, 3});
       }},
      {"gather",
       [](int i, int size) {
         return CollectiveGatherV2(Const(Matrix({1.f * i, 5, 6, 7.f + i}, 2)), Const(size),
                                   Const(1), Const(5), {});
       },
       [](int, int size) {
         std::vector<float> values;
         for (int i = 0; i < size; ++i) {
           for (const float value : {1.f * i, 5.f, 6.f, 7.f + i}) values.push_back(value);
         }
         return Matrix(values, 2);
       }},
      {"gather, first version",
       [](int i, int size) {
         return CollectiveGather(Const(std::vector<int32_t>{i}), size, 1, 6, PartialShape{size});
       },
       [](int, int size) {
         std::vector<int32_t> values;
         for (int i = 0; i < size; ++i) values.push_back(i);
         return Tensor::Vector<int32_t>(values);
       }},
      {"broadcast",
       [](int i, int size) {
         if (i == size - 1) {
           return CollectiveBcastSendV2(Const(DataOf(9)), Const(size), Const(1), Const(7));
         }
         return CollectiveBcastRecvV2(Const(size), Const(1), Const(7),
                                      Const(std::vector<int32_t>{3}), DType::kFloat);
       },
       [](int, int) { return Tensor::Vector<float>(DataOf(9)); }},
      {"broadcast, first version",
       [](int i, int size) {
         if (i == 0) {
           return CollectiveBcastSend(Const(std::vector<bool>{true, false}), size, 1, 8,
                                      PartialShape{2});
         }
         return CollectiveBcastRecv(DType::kBool, size, 1, 8, PartialShape{2});
       },
       [](int, int) {
         return Tensor::Vector<bool>({true, false});
       }},
      {"large broadcast",
       [](int i, int size) {
         if (i == 1 % size) {
           return CollectiveBcastSendV2(Const(LargeData(4)), Const(size), Const(1), Const(9));
         }
         return CollectiveBcastRecvV2(Const(size), Const(1), Const(9),
                                      Const(std::vector<int32_t>{kLarge}), DType::kFloat);
       },
       [](int, int) { return Tensor::Vector<float>(LargeData(4)); }},
      {"all to all",
       [](int i, int size) {
         return CollectiveAllToAllV2(Const(Matrix(RowsOf(i, size), 2)), Const(size), Const(1),
                                     Const(10), {});
       },
       DealtRows},
      {"reduce and scatter",
       [](int i, int size) {
         return CollectiveReduceScatterV2(Const(Matrix(RowsOf(i, size), 2)), Const(size), Const(1),
                                          Const(11), {}, "Max", "Id");
       },
       [](int i, int size) {
         std::vector<float> values;
         for (int row = 2 * i; row < 2 * i + 2; ++row) {
           values.push_back(100.f * static_cast<float>(size - 1) + static_cast<float>(row));
           values.push_back(7);
         }
         return Matrix(values, 2);
       }},
      {"third version",
       [](int i, int size) {
         return CollectiveReduceV3(Const(DataOf(i)), Communicator(i, size), NoAssignment(), "Add");
       },
       [=](int, int size) { return Combined(size, sum); }},
  };
  if (!between_tasks) {
    // The members in the opposite order.
    programs.push_back({"all to all by rank",
                        [](int i, int size) {
                          const int rank = size - 1 - i;
                          return CollectiveAllToAllV3(Const(Matrix(RowsOf(rank, size), 2)),
                                                      Communicator(rank, size), NoAssignment());
                        },
                        [](int i, int size) { return DealtRows(size - 1 - i, size); }});
  }
  return programs;
}

}  // namespace tenon::testing
