// SPDX-License-Identifier: Apache-2.0
#include "data/hdfs/hdfs_files.h"

#include <algorithm>
#include <utility>

#include "data/hdfs/hdfs_client.h"
#include "data/hdfs/hdfs_input.h"
#include "data/hdfs/hdfs_output.h"
#include "data/hdfs/hdfs_place.h"

namespace tenon {
namespace {

class HdfsFileSystem final : public FileSystem {
 public:
  HdfsFileSystem(HdfsSettings settings, Clock& clock, RetryPolicy policy)
      : client_(std::move(settings), clock, policy) {}

  StatusOr<std::unique_ptr<InputFile>> OpenInput(const std::string& path) override {
    TENON_ASSIGN_OR_RETURN(const HdfsPlace place, Parse(path));
    return OpenHdfsInput(client_, place);
  }
  StatusOr<std::unique_ptr<OutputFile>> OpenOutput(const std::string& path,
                                                   WriteMode mode) override {
    TENON_ASSIGN_OR_RETURN(const HdfsPlace place, Parse(path));
    if (path.ends_with('/') || place.path == "/") {
      return FailedPrecondition("cannot open for writing '", path, "': it is a folder");
    }
    return OpenHdfsOutput(client_, place, mode);
  }
  StatusOr<FileInfo> Stat(const std::string& path) override {
    TENON_ASSIGN_OR_RETURN(const HdfsPlace place, Parse(path));
    TENON_ASSIGN_OR_RETURN(const HdfsFileInfo found, client_.Stat(place));
    FileInfo info;
    info.kind = found.is_folder ? FileInfo::Kind::kFolder : FileInfo::Kind::kFile;
    info.size = found.size;
    info.modified_at = found.modified_at;
    info.identity = place.Path();
    return info;
  }
  StatusOr<std::vector<std::string>> List(const std::string& folder) override {
    TENON_ASSIGN_OR_RETURN(const HdfsPlace place, Parse(folder));
    TENON_ASSIGN_OR_RETURN(std::vector<std::string> names, client_.List(place));
    std::sort(names.begin(), names.end());
    return names;
  }
  Status MakeFolders(const std::string& folder) override {
    TENON_ASSIGN_OR_RETURN(const HdfsPlace place, Parse(folder));
    return client_.MakeFolders(place);
  }
  Status Rename(const std::string& from, const std::string& to) override {
    TENON_ASSIGN_OR_RETURN(const HdfsPlace source, Parse(from));
    TENON_ASSIGN_OR_RETURN(const HdfsPlace target, Parse(to));
    if (source.Path() == target.Path()) return OkStatus();
    return client_.Rename(source, target, /*replace=*/true,
                          StrCat("rename to '", target.Path(), "'"), source);
  }
  Status Publish(const std::string& from, const std::string& to) override {
    return Rename(from, to);
  }
  bool WritesWhole(const std::string&) override { return true; }
  Status Remove(const std::string& path) override {
    TENON_ASSIGN_OR_RETURN(const HdfsPlace place, Parse(path));
    return client_.Remove(place, /*tree=*/false);
  }
  Status RemoveTree(const std::string& path) override {
    TENON_ASSIGN_OR_RETURN(const HdfsPlace place, Parse(path));
    return client_.Remove(place, /*tree=*/true);
  }
  /// A change that a namenode has answered is in its journal: nothing is left to do.
  Status SyncFolder(const std::string& folder) override { return Parse(folder).status(); }

 private:
  StatusOr<HdfsPlace> Parse(const std::string& path) const {
    TENON_ASSIGN_OR_RETURN(HdfsPlace place, ParseHdfsPath(path));
    if (place.authority.empty() && client_.settings().namenodes.empty()) {
      return InvalidArgument("'", path, "' names no namenode, and TENON_HDFS_NAMENODES is not set");
    }
    return place;
  }

  HdfsClient client_;
};

}  // namespace

StatusOr<std::unique_ptr<FileSystem>> MakeHdfsFiles(const Environment& environment,
                                                    const std::string& login, Clock& clock,
                                                    RetryPolicy policy) {
  TENON_ASSIGN_OR_RETURN(HdfsSettings settings, ReadHdfsSettings(environment, login));
  return std::unique_ptr<FileSystem>(
      std::make_unique<HdfsFileSystem>(std::move(settings), clock, policy));
}

}  // namespace tenon
