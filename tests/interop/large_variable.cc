// SPDX-License-Identifier: Apache-2.0
// Saves or restores a variable of 3 GiB, for large_checkpoint.py: large_variable save|restore
// PREFIX.
#include <cstdio>

#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/register.h"
#include "runtime/session/local_session.h"
#include "train/saver/saver.h"
#include "train/variables.h"

namespace tenon {
namespace {

constexpr int32_t kRows = 768, kColumns = 1 << 20;  // of float

/// Each element tells its row, and nearly its column.
Output WantedRow(const Output& row) {
  return row + Cast(Range(0, kColumns, 1), DType::kFloat) % 1024.0f / 1024.0f;
}

Status SaveOrRestore(bool save, const std::string& prefix) {
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  const Output rows = Reshape(Cast(Range(0, kRows, 1), DType::kFloat), {kRows, 1});
  const Output initial = save ? WantedRow(rows) : Fill({kRows, kColumns}, 0.0f);
  const Variable w("w", initial, {.resource = true});
  const Output row = Placeholder(DType::kInt32, Shape());
  const Output good = All(Equal(w[row], WantedRow(Cast(row, DType::kFloat))));
  Saver saver;
  TENON_ASSIGN_OR_RETURN(const auto session, MakeLocalSession(graph));
  if (save) {
    TENON_RETURN_IF_ERROR(session->Run({}, {}, {FindVariable(w)->initializer}).status());
    return saver.Save(*session, prefix).status();
  }
  TENON_RETURN_IF_ERROR(saver.Restore(*session, prefix));
  for (int32_t i = 0; i < kRows; ++i) {
    TENON_ASSIGN_OR_RETURN(const bool same, session->Run<bool>({{row, i}}, good));
    if (!same) return DataLoss("row ", i, " is wrong");
  }
  return OkStatus();
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: large_variable save|restore PREFIX\n");
    return 2;
  }
  const tenon::Status status = tenon::SaveOrRestore(argv[1] == std::string("save"), argv[2]);
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(tenon::Message(status)).c_str());
  return status.ok() ? 0 : 1;
}
