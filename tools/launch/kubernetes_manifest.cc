// SPDX-License-Identifier: Apache-2.0
#include "tools/launch/kubernetes_manifest.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "core/base/strings.h"
#include "data/files/path.h"
#include "distributed/protocol/task_role.h"
#include "distributed/resolver/task_credentials.h"
#include "tools/commands.h"
#include "tools/launch/job_token.h"

namespace tenon::tools {
namespace {

/// The port of every task, which has an address of its own.
constexpr int kPort = 2222;
/// What a name of a host may have.
constexpr size_t kLongestLabel = 63;
/// Containers that die are started again so often when nobody says more: a worker that returns
/// within half a minute is waited for.
constexpr int kRestarts = 3;
/// Pods may come minutes after each other, by the time that an image takes to arrive.
constexpr int kPodsStartUpSeconds = 300;

/// The text between double quotes, as JSON has it, which YAML reads too.
StatusOr<std::string> Quoted(const std::string& text, std::string_view flag) {
  using nlohmann::json;
  std::string quoted = json(text).dump(-1, ' ', false, json::error_handler_t::replace);
  if (json::parse(quoted) != json(text)) {
    return WrongUsage(
        StrCat(flag, ": found bytes that are no UTF-8 in ", quoted, ", which YAML cannot have"));
  }
  // The one character that JSON lets stand and YAML does not.
  for (size_t i = 0; (i = quoted.find('\x7f', i)) != std::string::npos;) {
    quoted.replace(i, 1, "\\u007f");
  }
  return quoted;
}

/// The text for a word of a command or the value of a variable, in which Kubernetes puts variables
/// for "$(NAME)", and one dollar for two.
std::string WithoutVariables(const std::string& text) {
  std::string escaped;
  for (const char c : text) escaped.append(c == '$' ? 2 : 1, c);
  return escaped;
}

Status CheckName(const std::string& name, int workers, int ps) {
  const auto is_small = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const bool is_label = !name.empty() && is_small(name.front()) &&
                        (is_small(name.back()) || is_digit(name.back())) &&
                        std::all_of(name.begin(), name.end(),
                                    [&](char c) { return is_small(c) || is_digit(c) || c == '-'; });
  if (!is_label) {
    return WrongUsage(StrCat("--print_kubernetes: found '", name,
                             "', wanted a name of small letters, digits and '-' that begins with a "
                             "letter and does not end with '-', such as mnist-1"));
  }
  const size_t longest =
      std::max(StrCat("-worker-", workers - 1).size(), ps > 0 ? StrCat("-ps-", ps - 1).size() : 0);
  if (name.size() + longest > kLongestLabel) {
    return WrongUsage(StrCat("--print_kubernetes: found a name of ", name.size(),
                             " characters, wanted at most ", kLongestLabel - longest,
                             ": the names of pods begin with it"));
  }
  return OkStatus();
}

Status CheckImage(const std::string& image) {
  if (image.empty()) {
    return WrongUsage("--image is missing: the name of the container's image with the program");
  }
  constexpr std::string_view kSigns = "._-/:@";
  const bool is_word = std::all_of(image.begin(), image.end(), [&](unsigned char c) {
    return std::isalnum(c) != 0 || kSigns.find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (is_word) return OkStatus();
  return WrongUsage(StrCat("--image: found '", image,
                           "', wanted the name of a container's image, such as "
                           "registry.example.com/tenon:1"));
}

Status CheckVariableName(const std::string& name) {
  constexpr std::string_view kSigns = "_.-";
  const bool is_name = std::all_of(name.begin(), name.end(), [&](unsigned char c) {
    return std::isalnum(c) != 0 || kSigns.find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (is_name && std::isdigit(static_cast<unsigned char>(name[0])) == 0) return OkStatus();
  return WrongUsage(StrCat("--env: found the name '", name,
                           "', which Kubernetes takes for no variable: wanted letters, digits, "
                           "'_', '-' and '.', no digit first"));
}

/// The parts of a manifest that Jobs and a TFJob have in common.
class Manifest {
 public:
  static StatusOr<Manifest> Make(const KubernetesJob& job) {
    TENON_RETURN_IF_ERROR(CheckName(job.name, job.shape.workers, job.shape.ps));
    TENON_RETURN_IF_ERROR(CheckImage(job.image));
    Manifest manifest(job);
    for (const std::string& word : job.shape.command) {
      TENON_ASSIGN_OR_RETURN(std::string quoted, Quoted(WithoutVariables(word), "command"));
      manifest.command_.push_back(std::move(quoted));
    }
    if (manifest.IsTenon() && !HasFlag(job.shape.command, "--start_up_deadline")) {
      manifest.command_.push_back(StrCat("\"--start_up_deadline=", kPodsStartUpSeconds, "\""));
    }
    for (const std::string& variable : job.environment) {
      const size_t equals = variable.find('=');
      std::string name = variable.substr(0, equals);
      TENON_RETURN_IF_ERROR(CheckVariableName(name));
      TENON_ASSIGN_OR_RETURN(std::string value,
                             Quoted(WithoutVariables(variable.substr(equals + 1)), "--env"));
      manifest.environment_.emplace_back(std::move(name), std::move(value));
    }
    manifest.has_token_ = WantsJobToken(job.shape.command);
    if (manifest.has_token_) {
      TENON_ASSIGN_OR_RETURN(manifest.token_, MakeJobToken());
    }
    return manifest;
  }

  std::string Jobs() const {
    std::string text =
        Head(StrCat("#   kubectl wait --for=condition=complete --timeout=-1s job/", job_.name,
                    "-worker\n", "#   kubectl logs --follow job/", job_.name, "-worker\n"));
    text += Service();
    text += Secret();
    if (job_.shape.ps > 0) text += RoleJob(kParameterServerJob, job_.shape.ps);
    return text + RoleJob(kWorkerJob, job_.shape.workers);
  }

  std::string TfJob() const {
    std::string text = Head(
        StrCat("#   kubectl wait --for=condition=Succeeded --timeout=-1s tfjob/", job_.name, "\n",
               "# The cluster needs Kubeflow's training operator, which writes TF_CONFIG.\n"));
    text += Secret();
    StrAppend(&text, "---\napiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata:\n  name: \"",
              job_.name, "\"\nspec:\n  runPolicy:\n    backoffLimit: ", Restarts(),
              "\n    # Parameter servers that still run end when the workers have ended.\n"
              "    cleanPodPolicy: Running\n"
              "  # Each worker trains its part, and none is ended because another has finished.\n"
              "  successPolicy: AllWorkers\n  tfReplicaSpecs:\n");
    if (job_.shape.ps > 0) text += Replicas("PS", job_.shape.ps);
    return text + Replicas("Worker", job_.shape.workers);
  }

 private:
  explicit Manifest(const KubernetesJob& job) : job_(job) {}

  int Restarts() const { return job_.max_restarts.value_or(kRestarts); }

  std::string Head(const std::string& following) const {
    return StrCat("# ", job_.shape, ", printed by tenon launch --print_kubernetes.\n",
                  "# Lines for you to change are below \"Change:\". With this file as job.yaml:\n",
                  "#   kubectl apply -f job.yaml\n", following,
                  "#   kubectl delete -f job.yaml    (ends it, and takes all of it away)\n");
  }

  /// Pods have names by it, such as NAME-worker-0.NAME.
  std::string Service() const {
    return StrCat(
        "---\napiVersion: v1\nkind: Service\nmetadata:\n  name: \"", job_.name,
        "\"\nspec:\n  # No address of its own: each pod has a name, such as ", job_.name,
        "-worker-0.", job_.name,
        ".\n  clusterIP: None\n"
        "  # A task looks up its own name before it listens, and is not ready until then.\n"
        "  publishNotReadyAddresses: true\n  selector:\n    app.kubernetes.io/instance: \"",
        job_.name, "\"\n  ports:\n  - name: tenon\n    port: ", kPort, "\n");
  }

  std::string Secret() const {
    if (!has_token_) return "";
    return StrCat(
        "---\n# The secret by which the tasks know each other, drawn for this file, which is "
        "therefore a secret too.\n"
        "# For one of your own, take this object away and run:\n"
        "#   kubectl create secret generic ",
        job_.name, "-token --from-file=token=FILE    (one line, without its end)\n",
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: ", job_.name,
        "-token\nstringData:\n  token: \"", token_, "\"\n");
  }

  std::string Hosts(const char* role, int count) const {
    std::vector<std::string> hosts;
    for (int i = 0; i < count; ++i) {
      hosts.push_back(StrCat(job_.name, "-", role, "-", i, ".", job_.name, ":", kPort));
    }
    return Join(hosts, ",");
  }

  /// The words by which `tenon launch` tells each task who it is.
  std::vector<std::string> TaskFlags(const char* role) const {
    std::vector<std::string> flags;
    if (job_.shape.ps > 0) {
      flags.push_back(StrCat("--ps_hosts=", Hosts(kParameterServerJob, job_.shape.ps)));
    }
    flags.push_back(StrCat("--worker_hosts=", Hosts(kWorkerJob, job_.shape.workers)));
    flags.push_back(StrCat("--job_name=", role));
    flags.emplace_back("--task_index=$(JOB_COMPLETION_INDEX)");
    return flags;
  }

  std::string RoleJob(const char* role, int count) const {
    std::string text = StrCat(
        "---\napiVersion: batch/v1\nkind: Job\nmetadata:\n  name: ", job_.name, "-", role,
        "\nspec:\n  completionMode: Indexed\n  completions: ", count, "\n  parallelism: ", count,
        "\n  backoffLimit: ", Restarts(),
        "\n  template:\n    metadata:\n      labels:\n        app.kubernetes.io/instance: \"",
        job_.name, "\"\n        app.kubernetes.io/component: ", role,
        "\n    spec:\n      subdomain: \"", job_.name,
        "\"\n      # A container that dies is started again in its pod, with its name and address: "
        "what docs/fault_tolerance.md says.\n      restartPolicy: OnFailure\n"
        "      # SIGTERM ends a worker with a checkpoint.\n"
        "      terminationGracePeriodSeconds: 60\n      containers:\n");
    text += Container("      ", role, std::string_view(role) == kWorkerJob, TaskFlags(role));
    StrAppend(&text, "        ports:\n        - name: tenon\n          containerPort: ", kPort,
              "\n        # ", ProbeComment(), "\n",
              "        # Change: a program that takes longer than 5 minutes to listen.\n"
              "        startupProbe:\n",
              Probe(), "          periodSeconds: 5\n          failureThreshold: 60\n",
              "        livenessProbe:\n", Probe(),
              "          periodSeconds: 10\n          timeoutSeconds: 5\n"
              "          failureThreshold: 6\n");
    return text + Volumes("      ");
  }

  /// Whether the pods run this command.
  bool IsTenon() const { return NameOf(job_.shape.command.front()) == "tenon"; }
  /// Whether each task has gRPC's health service for whoever asks: Kubernetes' probes have no
  /// certificate, and other programs' servers may not have it.
  bool HasHealthService() const { return IsTenon() && !HasTlsFlags(job_.shape.command); }
  std::string ProbeComment() const {
    if (HasHealthService()) return "Probes ask whether the server answers, which wants no token.";
    return "Probes have neither the token nor a certificate: whether the task listens is all that "
           "they ask.";
  }
  std::string Probe() const {
    if (HasHealthService()) return StrCat("          grpc:\n            port: ", kPort, "\n");
    return "          tcpSocket:\n            port: tenon\n";
  }

  std::string Replicas(const char* role, int count) const {
    std::string text = StrCat("    ", role, ":\n      replicas: ", count,
                              "\n      restartPolicy: OnFailure\n      template:\n        spec:\n"
                              "          terminationGracePeriodSeconds: 60\n"
                              "          containers:\n");
    text += Container("          ", "tensorflow", std::string_view(role) == "Worker", {});
    StrAppend(&text, "            ports:\n            - name: tfjob-port\n",
              "              containerPort: ", kPort, "\n");
    return text + Volumes("          ");
  }

  /// `indent` is that of the list of containers.
  std::string Container(const std::string& indent, const char* name, bool is_worker,
                        const std::vector<std::string>& task_flags) const {
    std::string text = StrCat(indent, "- name: ", name, "\n", indent, "  image: ", "\"", job_.image,
                              "\"\n", indent, "  command:\n");
    for (const std::string& word : command_) StrAppend(&text, indent, "  - ", word, "\n");
    for (const std::string& word : task_flags) StrAppend(&text, indent, "  - \"", word, "\"\n");
    if (has_token_ || !environment_.empty()) StrAppend(&text, indent, "  env:\n");
    if (has_token_) {
      StrAppend(&text, indent, "  - name: ", kTokenVariable, "\n", indent, "    valueFrom:\n",
                indent, "      secretKeyRef:\n", indent, "        name: ", job_.name, "-token\n",
                indent, "        key: token\n");
    }
    for (const auto& [variable, value] : environment_) {
      StrAppend(&text, indent, "  - name: \"", variable, "\"\n", indent, "    value: ", value,
                "\n");
    }
    StrAppend(&text, indent, "  # Change: what a task takes; limits end what takes more memory.\n",
              indent, "  resources:\n", indent, "    requests:\n", indent,
              "      cpu: ", std::max(1, job_.shape.cpus_per_task), "\n", indent,
              "      memory: 1Gi\n");
    if (is_worker && job_.shape.gpus_per_task > 0) {
      StrAppend(&text, indent, "    limits:\n", indent,
                "      nvidia.com/gpu: ", job_.shape.gpus_per_task, "\n");
    }
    return text;
  }

  /// Comments for what only the user knows.
  std::string Volumes(const std::string& indent) const {
    return StrCat(indent,
                  "  # Change: a volume that all pods see, for data and --checkpoint_dir.\n",
                  indent, "  # volumeMounts: [{name: shared, mountPath: /shared}]\n", indent,
                  "# volumes: [{name: shared, persistentVolumeClaim: {claimName: CLAIM}}]\n");
  }

  const KubernetesJob& job_;
  std::vector<std::string> command_;                              // quoted
  std::vector<std::pair<std::string, std::string>> environment_;  // names, quoted values
  bool has_token_ = false;
  std::string token_;
};

}  // namespace

void KubernetesFlags::AddTo(CLI::App& launch) {
  CLI::Option* const print = launch.add_option(
      "--print_kubernetes", name,
      "NAME: start nothing, and print a manifest of a job of that name for Kubernetes, for "
      "kubectl apply -f");
  launch.add_option("--image", image, "With it: the image that has the program")->needs(print);
  launch
      .add_flag("--tfjob", tfjob,
                "With it: a TFJob of Kubeflow's training operator instead of Kubernetes' own Jobs")
      ->needs(print);
}

StatusOr<std::string> KubernetesManifest(const KubernetesJob& job) {
  TENON_ASSIGN_OR_RETURN(const Manifest manifest, Manifest::Make(job));
  return manifest.Jobs();
}

StatusOr<std::string> TfJobManifest(const KubernetesJob& job) {
  TENON_ASSIGN_OR_RETURN(const Manifest manifest, Manifest::Make(job));
  return manifest.TfJob();
}

}  // namespace tenon::tools
