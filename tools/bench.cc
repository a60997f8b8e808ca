// SPDX-License-Identifier: Apache-2.0
#include "tools/bench.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/device/device_plugin.h"
#include "ops/register.h"
#include "tools/commands.h"
#include "tools/processes.h"

namespace tenon::tools {
namespace {

struct BenchFlags {
  std::string device;
  std::vector<std::string> rows;
  int runs = 5;
  std::string peer;
  std::string peer_python;
  std::string output;
};

/// Whether `python` runs, and has what the script of the other system imports; the error ends with
/// `advice`.
Status CheckPython(const std::string& python, std::string_view advice) {
  constexpr const char* kAsk =
      "import importlib.util as i; print('has', *(not i.find_spec(m) for m in ('tensorflow', "
      "'numpy')))";
  TENON_ASSIGN_OR_RETURN(Child child, StartChild({python, "-c", kAsk}, {.take_errors = true}));
  std::string said;  // the last line
  while (true) {
    StatusOr<std::string> line = ReadLine(child);
    if (!line.ok()) break;
    said = *std::move(line);
  }
  EndChild(&child);
  if (said == "has False False") return OkStatus();
  if (said.starts_with("has ")) {
    return FailedPrecondition(python, " has no ", said == "has False True" ? "NumPy" : "TensorFlow",
                              advice);
  }
  return FailedPrecondition(python, " is no Python that runs: ",
                            said.empty() ? "it prints nothing" : StrCat("it prints '", said, "'"),
                            advice);
}

/// The other system: a process that is given the name of a row on a line and answers with a figure.
class Peer {
 public:
  static StatusOr<std::unique_ptr<Peer>> Start(const BenchFlags& flags) {
    TENON_ASSIGN_OR_RETURN(const std::string script,
                           FindShared(StrCat("bench/", flags.peer, "_peer.py")));
    std::string python = flags.peer_python;
    std::string_view advice = "; --peer_python names one that has TensorFlow 2.15";
    if (python.empty()) {
      advice = "; tools/install_tensorflow.sh makes one that has TensorFlow, or give --peer_python";
      const char *const chosen = std::getenv("TENON_TF_VENV"), *const home = std::getenv("HOME");
      python =
          StrCat(chosen != nullptr ? chosen
                                   : StrCat(home != nullptr ? home : "", "/.cache/tenon/tf-2.15.1"),
                 "/bin/python");
    }
    std::unique_ptr<Peer> peer(new Peer);
    TENON_RETURN_IF_ERROR(CheckPython(python, advice));
    TENON_ASSIGN_OR_RETURN(peer->child_, StartChild({python, script}, {.give_input = true}));
    const StatusOr<std::string> name = ReadLine(peer->child_);
    if (!name.ok()) {
      return FailedPrecondition(python, " ", script, " ended before it began to measure; what it ",
                                "printed stands above", advice);
    }
    peer->name_ = *name;
    return peer;
  }
  ~Peer() { EndChild(&child_); }

  const std::string& name() const { return name_; }

  StatusOr<double> Measure(const std::string& row) {
    const std::string line = row + "\n";
    if (write(child_.input, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
      return Unavailable("the peer has ended");
    }
    TENON_ASSIGN_OR_RETURN(const std::string answer, ReadLine(child_));
    char* end = nullptr;
    const double value = std::strtod(answer.c_str(), &end);
    if (end == answer.c_str()) return Internal("the peer answered '", answer, "' for ", row);
    return value;
  }

 private:
  Peer() = default;
  Child child_;
  std::string name_;
};

StatusOr<std::vector<BenchRow>> ChooseRows(const BenchFlags& flags, const OpRegistry& ops) {
  std::vector<BenchRow> all;
  if (flags.device == "gpu") {
    TENON_RETURN_IF_ERROR(Annotate(ListGpus().status(), "no GPU"));
    all = DeviceBenchRows(ops);
  } else {
    all = LocalBenchRows(ops);
    for (const auto& rows : {TrainingBenchRows(ops), InferenceBenchRows(ops), GraphBenchRows(ops),
                             ReaderBenchRows(), ClusterBenchRows(ops)}) {
      all.insert(all.end(), rows.begin(), rows.end());
    }
  }
  if (flags.rows.empty()) return all;
  std::vector<std::string> names;
  for (const BenchRow& row : all) names.push_back(row.name);
  std::vector<BenchRow> chosen;
  for (const std::string& name : flags.rows) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      return InvalidArgument("there is no row '", name, "'; the rows are ", Join(names, ", "));
    }
    chosen.push_back(all[found - names.begin()]);
  }
  return chosen;
}

Status Bench(const BenchFlags& flags, const OpRegistry& ops) {
  TENON_ASSIGN_OR_RETURN(const std::vector<BenchRow> rows, ChooseRows(flags, ops));
  std::unique_ptr<Peer> peer;
  if (!flags.peer.empty()) {
    TENON_ASSIGN_OR_RETURN(peer, Peer::Start(flags));
  }
  std::printf("%-56s %10s", "median of the runs", "tenon");
  if (peer != nullptr) std::printf(" %16s %8s", peer->name().c_str(), "faster");
  std::printf("\n");
  nlohmann::json json = nlohmann::json::array();
  for (const BenchRow& row : rows) {
    std::vector<double> ours, theirs;
    for (int i = 0; i < flags.runs; ++i) {
      auto value = row.measure();
      if (!value.ok()) return Annotate(value.status(), row.name);
      ours.push_back(*value);
      if (peer == nullptr) continue;
      TENON_ASSIGN_OR_RETURN(const double other, peer->Measure(row.name));
      theirs.push_back(other);
    }
    nlohmann::json entry = {{"row", row.name},
                            {"what", row.what},
                            {"unit", row.unit},
                            {"tenon", Median(ours)},
                            {"tenon_runs", ours}};
    const std::string what = row.unit.empty() ? row.what : StrCat(row.what, ", ", row.unit);
    std::printf("%-56s %10.4g", what.c_str(), Median(ours));
    if (peer != nullptr) {
      const double ratio =
          row.more_is_better ? Median(ours) / Median(theirs) : Median(theirs) / Median(ours);
      std::printf(" %16.4g %7.1fx", Median(theirs), ratio);
      entry[flags.peer] = Median(theirs);
      entry[flags.peer + "_runs"] = theirs;
      entry["ratio"] = ratio;
    }
    std::printf("\n");
    std::fflush(stdout);
    json.push_back(std::move(entry));
  }
  return flags.output.empty() ? OkStatus() : WriteTextFile(flags.output, json.dump(2) + "\n");
}

}  // namespace

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

StatusOr<double> TimeCalls(int count, const std::function<Status()>& fn) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i) TENON_RETURN_IF_ERROR(fn());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

StatusOr<double> MedianCall(int count, const std::function<Status()>& fn) {
  std::vector<double> seconds;
  for (int i = 0; i < count; ++i) {
    TENON_ASSIGN_OR_RETURN(const double s, TimeCalls(1, fn));
    seconds.push_back(s);
  }
  return Median(std::move(seconds));
}

void AddBenchCommand(CLI::App& app, Command* chosen) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App* bench = app.add_subcommand(
      "bench",
      "Measure this machine, beside another system when --peer names one: one run of each "
      "in turn");
  bench->add_option("--row", flags->rows, "Only these rows");
  bench
      ->add_option("--device", flags->device,
                   "gpu: rows of one GPU, of steps, products and copies (default: those of the "
                   "CPU and of clusters)")
      ->check(CLI::IsMember({"cpu", "gpu"}));
  bench->add_option("--runs", flags->runs, "Runs of each row")->check(AtLeast(1));
  CLI::Option* const peer = bench->add_option("--peer", flags->peer, "The other system")
                                ->check(CLI::IsMember({"tensorflow"}));
  bench
      ->add_option("--peer_python,--peer-python", flags->peer_python,
                   "Its Python (default: what tools/install_tensorflow.sh makes)")
      ->needs(peer);
  bench->add_option("--output", flags->output, "Write every run to this JSON file");
  bench->callback([=] { *chosen = [flags] { return Report(Bench(*flags, AllOps())); }; });
}

}  // namespace tenon::tools
