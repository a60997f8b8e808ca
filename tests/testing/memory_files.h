// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "data/files/file.h"

namespace tenon::testing {

/// Files that are in memory alone: a fuzzing target makes thousands a second. Folders are not told
/// apart from what is in them. Used by one thread at a time.
class MemoryFiles final : public FileSystem {
 public:
  std::string& operator[](const std::string& path) { return *Place(path); }

  StatusOr<std::unique_ptr<InputFile>> OpenInput(const std::string& path) override;
  StatusOr<std::unique_ptr<OutputFile>> OpenOutput(const std::string& path,
                                                   WriteMode mode) override;
  StatusOr<FileInfo> Stat(const std::string& path) override;
  StatusOr<std::vector<std::string>> List(const std::string& folder) override;
  Status MakeFolders(const std::string&) override { return OkStatus(); }
  Status Rename(const std::string& from, const std::string& to) override;
  Status Publish(const std::string& from, const std::string& to) override {
    return Rename(from, to);
  }
  Status Remove(const std::string& path) override;
  Status RemoveTree(const std::string& path) override { return Remove(path); }
  Status SyncFolder(const std::string&) override { return OkStatus(); }

 private:
  using Content = std::shared_ptr<std::string>;
  Content& Place(const std::string& path);

  std::map<std::string, Content> files_;
};

/// The content of a file of tests/data.
std::string SampleFile(const std::string& name);

}  // namespace tenon::testing
