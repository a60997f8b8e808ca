// SPDX-License-Identifier: Apache-2.0
// Checkpoints of any size in any folder, for tests of files on servers:
//   stored_values save FOLDER MEBIBYTES FILES COUNT   saves steps that go on from the last one
//                               there, says when each begins and ends, and how many seconds it took
//   stored_values check FOLDER MEBIBYTES FILES        restores the last one, says how many seconds
//                               it took, and fails unless all is as it was saved
// Four variables on so many devices, each of which writes a file of its own. Element i at step s is
// s + i % 8192, so that a part of the bytes of another step, or from elsewhere, is found.
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "tenon/tenon.h"

namespace tenon {
namespace {

constexpr int kVariables = 4;

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Output ValuesAt(const Output& step, int32_t count) {
  return step + Cast(Mod(Range(0, count, 1), 8192), DType::kFloat);
}

Status Main(bool save, const std::string& folder, int64_t mebibytes, int files, int64_t count) {
  StatusOr<std::string> latest = LatestCheckpoint(folder);
  int64_t step = 0;
  if (latest.ok()) step = std::atoll(latest->substr(latest->rfind('-') + 1).c_str());
  const auto elements = static_cast<int32_t>(mebibytes * ((1 << 20) / sizeof(float)) / kVariables);
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  const Output at = Placeholder(DType::kFloat, Shape());
  const Output wanted = ValuesAt(at, elements);
  std::vector<std::string> changes;  // names of nodes
  Output good = Const(true);
  for (int i = 0; i < kVariables; ++i) {
    const DeviceScope device(StrCat("/cpu:", i % files));
    const Variable v(StrCat("v", i), Fill({elements}, 0.0f), {.resource = true});
    changes.push_back(ChangeVariable(*FindVariable(v), "Assign", wanted)->name());
    good = LogicalAnd(good, All(Equal(v, wanted)));
  }
  Saver saver({.sharded = files > 1, .max_to_keep = 2});
  const StatusOr<CheckpointPaths> kept = GetCheckpointState(folder);
  if (kept.ok()) saver.RecoverLastCheckpoints(kept->all);
  LocalSessionOptions options;
  options.devices.cpus = files;
  TENON_ASSIGN_OR_RETURN(const auto session, MakeLocalSession(graph, options));
  const auto value = [&] { return static_cast<float>(step); };
  if (save) {
    for (int64_t i = 0; i < count; ++i) {
      ++step;
      TENON_RETURN_IF_ERROR(session->Run({{at, value()}}, {}, changes).status());
      std::printf("saving %lld\n", static_cast<long long>(step));
      std::fflush(stdout);
      const double begin = Seconds();
      TENON_RETURN_IF_ERROR(
          saver.Save(*session, JoinPath(folder, "model"), {.global_step = step}).status());
      std::printf("saved %lld %.6f\n", static_cast<long long>(step), Seconds() - begin);
      std::fflush(stdout);
    }
    return OkStatus();
  }
  TENON_RETURN_IF_ERROR(latest.status());
  const double begin = Seconds();
  TENON_RETURN_IF_ERROR(saver.Restore(*session, *latest));
  const double end = Seconds();
  TENON_ASSIGN_OR_RETURN(const bool same, session->Run<bool>({{at, value()}}, good));
  if (!same) return DataLoss("'", *latest, "' has other values than were saved");
  std::printf("restored %lld %.6f\n", static_cast<long long>(step), end - begin);
  return OkStatus();
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (argc != (what == "save" ? 6 : 5) || (what != "save" && what != "check")) {
    std::fprintf(stderr,
                 "usage: stored_values save FOLDER MEBIBYTES FILES COUNT\n"
                 "       stored_values check FOLDER MEBIBYTES FILES\n");
    return 2;
  }
  const tenon::Status status = tenon::Main(what == "save", argv[2], std::atoll(argv[3]),
                                           std::atoi(argv[4]), argc == 6 ? std::atoll(argv[5]) : 0);
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(tenon::Message(status)).c_str());
  return status.ok() ? 0 : 1;
}
