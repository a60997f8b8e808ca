// SPDX-License-Identifier: Apache-2.0
#include "tools/access_flags.h"

#include <climits>

#include "core/memory/memory_limit.h"
#include "data/files/file.h"
#include "distributed/resolver/task_credentials.h"
#include "tools/commands.h"
#include "train/replica_flags.h"

namespace tenon::tools {
namespace {

/// So that their bytes are a number.
constexpr double kMostMebibytes = 1e12;

}  // namespace

void ServerAccessFlags::AddTo(CLI::App& app) {
  AddCredentialFlags(app, &credentials);
  app.add_flag(
      "--insecure", insecure,
      "Listen beyond loopback without TLS and token: whoever reaches the port can run what "
      "they like");
  app.add_option("--loopback_port", loopback_port,
                 "Also listen at this port of loopback, without TLS and token, for TensorFlow's "
                 "client")
      ->check(Between(0, 65535));
  app.add_option("--root", root,
                 "What graphs may read and write: a folder, such as /data, or one at s3:// or "
                 "hdfs://, or several joined by commas; default: everything "
                 "on loopback, nothing beyond");
  app.add_option("--memory_limit", memory_mebibytes,
                 "MiB that tensors may take; default: the machine's, or the container's")
      ->check(Between(1, kMostMebibytes));
  app.add_option(
         "--max_session_memory", session_mebibytes,
         "MiB that the tensors of one session may take, variables included; default: no limit")
      ->check(Between(1, kMostMebibytes));
  app.add_option("--max_message_bytes", limits.message_bytes, "Largest message that is taken")
      ->check(Between(4 << 20, INT_MAX));  // the tasks of a job join messages up to half of that
  app.add_option("--max_graph_nodes", limits.graph_nodes, "Largest graph of a session")
      ->check(AtLeast(1));
  app.add_option("--max_sessions", limits.sessions, "Sessions at once")->check(AtLeast(1));
  app.add_option("--max_concurrent_steps", limits.steps, "Steps at once")->check(AtLeast(1));
  app.add_option("--max_connections", limits.connections, "Connections at once")->check(AtLeast(1));
  app.add_option("--max_calls", limits.calls, "Calls at once")->check(AtLeast(1));
  app.add_option("--session_timeout", session_timeout,
                 "Seconds after which a session is closed that nobody uses; 0: never")
      ->check(Between(0, 1e9));
}

Status ServerAccessFlags::ApplyTo(ServerOptions* options) const {
  TENON_ASSIGN_OR_RETURN(options->credentials, FindCredentials(credentials));
  options->insecure = insecure;
  options->loopback_port = loopback_port;
  options->limits = limits;
  if (session_mebibytes > 0) options->limits.session_memory = session_mebibytes << 20;
  options->limits.session_timeout = std::chrono::duration_cast<std::chrono::seconds>(
      std::chrono::duration<double>(session_timeout > 0 ? std::max(1.0, session_timeout) : 0));
  if (!root.empty()) {
    options->files = FileAccess{FileAccess::Kind::kRoot, root};
    TENON_RETURN_IF_ERROR(FilesOf(*options->files).status());
  }
  if (memory_mebibytes > 0) SetCpuMemoryLimit(memory_mebibytes << 20);
  return OkStatus();
}

}  // namespace tenon::tools
