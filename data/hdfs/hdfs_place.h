// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "data/http/environment.h"

namespace tenon {

/// A file or folder of an HDFS.
struct HdfsPlace {
  std::string scheme;      // "hdfs", "webhdfs" or "swebhdfs"
  std::string authority;   // "host:port" as it is written; may be empty
  std::string path = "/";  // from the root on, without empty parts and a slash at the end

  /// "hdfs://host/path"
  std::string Path() const;
  /// The folder that it is in; the root is in itself.
  HdfsPlace Folder() const;
  /// The place of that name in this folder.
  HdfsPlace In(std::string_view name) const;
};

/// Parts of "hdfs://host:port/path", and of paths of the other two schemes. InvalidArgument for
/// parts that are "." or "..", and for what is no host.
StatusOr<HdfsPlace> ParseHdfsPath(const std::string& path);

/// Where the namenodes are and who asks them.
struct HdfsSettings {
  std::string user = {};   // user.name; empty: the server's default
  std::string token = {};  // a delegation token, which says who asks
  /// "http://host:9870" of hdfs:// paths; empty: their hosts.
  std::vector<std::string> namenodes = {};
  std::string ca_file = {};  // empty: the certificates that the system trusts

  /// Addresses of the namenodes that have the place, one of which is active.
  std::vector<std::string> NamenodesOf(const HdfsPlace& place) const;
};

/// Settings of the environment: HADOOP_USER_NAME (or `login`, this account's name), and
/// TENON_HDFS_TOKEN, TENON_HDFS_NAMENODES and SSL_CERT_FILE. InvalidArgument names the variable
/// and what is wrong with it.
StatusOr<HdfsSettings> ReadHdfsSettings(const Environment& environment, const std::string& login);

}  // namespace tenon
