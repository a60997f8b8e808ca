// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "core/base/status.h"
#include "data/hdfs/hdfs_place.h"
#include "data/http/http_client.h"

namespace tenon {

/// The error that a server answers with, a RemoteException.
struct HdfsError {
  int status = 0;         // 404
  std::string exception;  // "FileNotFoundException"; empty where the answer has none
  std::string message;    // its first line

  /// Whether a namenode is one that waits for the active one to fail.
  bool IsStandby() const;
  /// Whether somebody else, or this process by a request that broke, still writes the file.
  bool IsBusy() const;
  /// Whether the same request may be answered another time.
  bool IsTransient() const;
};

/// The mistake that a response tells of: any status but 2xx. Nothing (status 0) without one.
HdfsError HdfsErrorOf(const HttpResponse& response);

/// "cannot read 'hdfs://n/f': 403 AccessControlException: Permission denied: ...; <what may help>".
/// `server` is who answered, "http://host:9870".
Status StatusOfHdfs(const HdfsError& error, std::string_view what, const HdfsPlace& place,
                    std::string_view server, const HdfsSettings& settings);

}  // namespace tenon
