// SPDX-License-Identifier: Apache-2.0
// Saves and restores variables of every kind, for checkpoints_test.py:
//   checkpoint_program save|restore DIR ref|resource PARTS PREFIX_OF_NAMES [TARGET]
// The variables are those of `variables()` there, with the values of its `value()`. Saving prints
// the checkpoint's prefix; restoring fails unless the variables get just these values. With the
// address of a worker, they are on its two parameter servers, and each of those writes a shard.
#include <cstdio>

#include "distributed/client/remote_session.h"
#include "ops/array/constants.h"
#include "ops/register.h"
#include "runtime/session/local_session.h"
#include "train/saver/saver.h"
#include "train/variables.h"

namespace tenon {
namespace {

constexpr int64_t kRows = 12, kColumns = 3;

struct Flags {
  bool save = false;
  std::string folder;
  bool resource = false;
  int parts = 1;
  std::string renamed;
  std::string target;
};

/// Element `i` of every variable of that type.
template <typename T>
T ElementValue(int64_t i) {
  if constexpr (std::is_same_v<T, TString>) {
    return TString(StrCat("text ", i));
  } else if constexpr (std::is_same_v<T, bool>) {
    return i % 3 == 0;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(i - 7);
  } else {
    return T(static_cast<float>(i) * 0.25f - 2);
  }
}

using Types = decltype(ConcatTypes(RealTypes(), TypeList<bool, TString>()));

/// The rows from `first` on.
Tensor Rows(DType dtype, int64_t first, int64_t rows) {
  Tensor value = *Tensor::Allocate(CpuAllocator(), dtype, Shape({rows, kColumns}));
  Dispatch(dtype, Types(), [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < rows * kColumns; ++i) {
      value.data<T>()[i] = ElementValue<T>(first * kColumns + i);
    }
  });
  return value;
}

struct Built {
  std::string name;
  Variable variable;
  Tensor wanted;
};

/// Values to save, or as many zeros.
std::vector<Built> BuildVariables(const Flags& flags) {
  std::vector<Built> all;
  const auto add = [&](const std::string& name, const std::string& saved_as, const Tensor& value,
                       VariableOptions options) {
    const Tensor zeros = *Tensor::Allocate(CpuAllocator(), value.dtype(), value.shape());
    const DeviceScope ps(flags.target.empty() ? "" : StrCat("/job:ps/task:", all.size() % 2));
    options.resource = flags.resource;
    all.push_back({flags.renamed + saved_as, {}, value});
    all.back().variable = Variable(name, flags.save ? value : zeros, options);
  };
  for (const DType dtype : {DType::kFloat, DType::kDouble, DType::kInt32, DType::kInt64,
                            DType::kString, DType::kBool, DType::kBFloat16, DType::kHalf}) {
    const std::string name = "v_" + ToString(dtype);
    add(name, name, Rows(dtype, 0, kRows), {});
  }
  add("v_float/Momentum", "v_float/Momentum", Rows(DType::kFloat, 0, kRows), {.trainable = false});
  for (int i = 0; i < flags.parts; ++i) {
    const int64_t rows = kRows / flags.parts;
    VariableOptions options;
    options.part = VariablePart{"table", {kRows, kColumns}, {i * rows, 0}, {rows, kColumns}};
    add(StrCat("table/part_", i), "table", Rows(DType::kFloat, i * rows, rows), options);
  }
  return all;
}

Status CheckValues(Session& session, const std::vector<Built>& all) {
  for (const Built& b : all) {
    TENON_ASSIGN_OR_RETURN(const Tensor found, session.Run<Tensor>({}, b.variable));
    if (!found.Equals(b.wanted)) {
      return DataLoss("'", b.name, "' is ", found.ToString(), ", wanted ", b.wanted.ToString());
    }
  }
  return OkStatus();
}

Status SaveOrRestore(const Flags& flags) {
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  const std::vector<Built> all = BuildVariables(flags);
  SaverOptions options;
  options.sharded = !flags.target.empty();
  if (!flags.renamed.empty()) {
    for (const Built& b : all) options.variables.emplace_back(b.name, b.variable);
  }
  Saver saver(options);
  Node* const init = GlobalVariablesInitializer();
  TENON_ASSIGN_OR_RETURN(const auto session, flags.target.empty()
                                                 ? MakeLocalSession(graph)
                                                 : MakeRemoteSession(flags.target, graph));
  TENON_RETURN_IF_ERROR(session->Run({}, {}, {init}).status());
  if (flags.save) {
    TENON_ASSIGN_OR_RETURN(const std::string prefix,
                           saver.Save(*session, flags.folder + "/model", {.global_step = 5}));
    std::printf("%s\n", prefix.c_str());
    return OkStatus();
  }
  TENON_ASSIGN_OR_RETURN(const std::string prefix, LatestCheckpoint(flags.folder));
  TENON_RETURN_IF_ERROR(saver.Restore(*session, prefix));
  return CheckValues(*session, all);
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() < 5) {
    std::fprintf(stderr, "usage: checkpoint_program save|restore DIR KIND PARTS NAMES [TARGET]\n");
    return 2;
  }
  const tenon::Status status =
      tenon::SaveOrRestore({words[0] == "save", words[1], words[2] == "resource",
                            std::stoi(words[3]), words[4], words.size() > 5 ? words[5] : ""});
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(tenon::Message(status)).c_str());
  return status.ok() ? 0 : 1;
}
