// SPDX-License-Identifier: Apache-2.0
#include "tools/bench.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

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

/// A module that the script of another system imports, and what people call it.
struct PeerModule {
  std::string_view module, name;
};

/// Another system, which the script share/bench/NAME_peer.py measures.
struct PeerKind {
  std::string_view name;
  std::string_view release;         // what --peer_python names has
  const char* variable = nullptr;   // names the folder of its Python environment, when it is set
  std::string_view folder;          // in ~/.cache/tenon, where that is otherwise
  std::string_view installer = {};  // makes it; by default the script does, with --install
  std::vector<PeerModule> modules = {};
};

const std::vector<PeerKind>& PeerKinds() {
  static const auto& kinds = *new std::vector<PeerKind>{
      {.name = "tensorflow",
       .release = "TensorFlow 2.15",
       .variable = "TENON_TF_VENV",
       .folder = "tf-2.15.1",
       .installer = "tools/install_tensorflow.sh",
       .modules = {{"tensorflow", "TensorFlow"}, {"numpy", "NumPy"}}},
      {.name = "jax",
       .release = "JAX 0.4",
       .folder = "jax-0.4.38",
       .modules = {{"jax", "JAX"}, {"jaxlib", "jaxlib"}, {"numpy", "NumPy"}}},
      {.name = "onnxruntime",
       .release = "ONNX Runtime 1.20",
       .folder = "onnxruntime-1.20.1",
       .modules = {{"onnxruntime", "ONNX Runtime"}, {"onnx", "ONNX"}, {"numpy", "NumPy"}}},
  };
  return kinds;
}

std::vector<std::string> PeerNames() {
  std::vector<std::string> names;
  for (const PeerKind& kind : PeerKinds()) names.emplace_back(kind.name);
  return names;
}

/// The Python of the environment that the installer makes.
std::string InstalledPython(const PeerKind& kind) {
  const char* const chosen = kind.variable != nullptr ? std::getenv(kind.variable) : nullptr;
  if (chosen != nullptr) return StrCat(chosen, "/bin/python");
  const char* const home = std::getenv("HOME");
  return StrCat(home != nullptr ? home : "", "/.cache/tenon/", kind.folder, "/bin/python");
}

/// Whether `python` runs, and has what the script of the other system imports; the error ends with
/// `advice`.
Status CheckPython(const std::string& python, const PeerKind& kind, std::string_view advice) {
  std::vector<std::string> modules;
  for (const PeerModule& m : kind.modules) modules.push_back(StrCat("'", m.module, "'"));
  const std::string ask =
      StrCat("import importlib.util as i; print('lacks', *(n for n, m in enumerate((",
             Join(modules, ", "), ")) if not i.find_spec(m)))");
  TENON_ASSIGN_OR_RETURN(Child child, StartChild({python, "-c", ask}, {.take_errors = true}));
  std::string said;  // the last line
  while (true) {
    StatusOr<std::string> line = ReadLine(child);
    if (!line.ok()) break;
    said = *std::move(line);
  }
  EndChild(&child);
  if (said == "lacks") return OkStatus();
  for (size_t i = 0; i < kind.modules.size(); ++i) {
    const std::string first = StrCat("lacks ", i);
    if (said == first || said.starts_with(first + " ")) {
      return FailedPrecondition(python, " has no ", kind.modules[i].name, advice);
    }
  }
  return FailedPrecondition(python, " is no Python that runs: ",
                            said.empty() ? "it prints nothing" : StrCat("it prints '", said, "'"),
                            advice);
}

/// The other system: a process that is given the name of a row on a line and answers with a figure,
/// or with "none" when it has no such row.
class Peer {
 public:
  static StatusOr<std::unique_ptr<Peer>> Start(const BenchFlags& flags) {
    const PeerKind& kind = *std::find_if(PeerKinds().begin(), PeerKinds().end(),
                                         [&](const PeerKind& k) { return k.name == flags.peer; });
    TENON_ASSIGN_OR_RETURN(const std::string script,
                           FindShared(StrCat("bench/", kind.name, "_peer.py")));
    std::string python = flags.peer_python;
    std::string advice = StrCat("; --peer_python names one that has ", kind.release);
    if (python.empty()) {
      python = InstalledPython(kind);
      advice = StrCat("; ",
                      kind.installer.empty() ? StrCat("python3 ", script, " --install")
                                             : std::string(kind.installer),
                      " makes one that has ", kind.modules[0].name, ", or give --peer_python");
    }
    std::unique_ptr<Peer> peer(new Peer);
    TENON_RETURN_IF_ERROR(CheckPython(python, kind, advice));
    TENON_ASSIGN_OR_RETURN(peer->child_, StartChild({python, script}, {.give_input = true}));
    std::signal(SIGPIPE, SIG_IGN);  // a peer that has ended is an error of the row
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

  /// Nothing when it has no such row.
  StatusOr<std::optional<double>> Measure(const std::string& row) {
    const std::string line = row + "\n";
    if (write(child_.input, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
      return Unavailable("the peer has ended");
    }
    TENON_ASSIGN_OR_RETURN(const std::string answer, ReadLine(child_));
    if (answer == "none") return std::nullopt;
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
  std::vector<std::string> left_out;
  for (const BenchRow& row : rows) {
    std::vector<double> ours, theirs;
    bool compared = peer != nullptr;
    for (int i = 0; i < flags.runs; ++i) {
      if (compared) {
        const StatusOr<std::optional<double>> other = peer->Measure(row.name);
        if (!other.ok()) return Annotate(other.status(), StrCat(peer->name(), ", ", row.name));
        compared = other->has_value();
        if (compared) theirs.push_back(**other);
      }
      // Whoever chose the row wants it, with a peer or without.
      if (peer != nullptr && !compared && flags.rows.empty()) break;
      auto value = row.measure();
      if (!value.ok()) return Annotate(value.status(), row.name);
      ours.push_back(*value);
    }
    if (ours.empty()) {
      left_out.push_back(row.name);
      continue;
    }
    nlohmann::json entry = {{"row", row.name},
                            {"what", row.what},
                            {"unit", row.unit},
                            {"tenon", Median(ours)},
                            {"tenon_runs", ours}};
    const std::string what = row.unit.empty() ? row.what : StrCat(row.what, ", ", row.unit);
    std::printf("%-56s %10.4g", what.c_str(), Median(ours));
    if (peer != nullptr && !compared) std::printf(" %16s %8s", "-", "-");
    if (compared) {
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
  if (!left_out.empty()) {
    std::printf("%s has no row for %s\n", peer->name().c_str(), Join(left_out, ", ").c_str());
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
  CLI::Option* const peer =
      bench
          ->add_option("--peer", flags->peer,
                       "The other system; rows that it lacks are left out unless --row names them")
          ->check(CLI::IsMember(PeerNames()));
  bench
      ->add_option("--peer_python,--peer-python", flags->peer_python,
                   "Its Python (default: what tools/install_tensorflow.sh makes, or "
                   "share/bench/PEER_peer.py --install)")
      ->needs(peer);
  bench->add_option("--output", flags->output, "Write every run to this JSON file");
  bench->callback([=] { *chosen = [flags] { return Report(Bench(*flags, AllOps())); }; });
}

}  // namespace tenon::tools
