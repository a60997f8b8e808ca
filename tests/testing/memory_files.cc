// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/memory_files.h"

#include <algorithm>
#include <cstring>

namespace tenon::testing {
namespace {

using SharedContent = std::shared_ptr<std::string>;

class MemoryInput final : public InputFile {
 public:
  MemoryInput(std::string path, SharedContent content)
      : path_(std::move(path)), content_(std::move(content)) {}
  const std::string& path() const override { return path_; }
  int64_t size() const override { return static_cast<int64_t>(content_->size()); }
  StatusOr<size_t> ReadAt(int64_t offset, size_t size, char* out) const override {
    TENON_CHECK(offset >= 0);
    const auto begin = std::min(static_cast<size_t>(offset), content_->size());
    size = std::min(size, content_->size() - begin);
    std::copy_n(content_->data() + begin, size, out);
    return size;
  }

 private:
  const std::string path_;
  const SharedContent content_;
};

class MemoryOutput final : public OutputFile {
 public:
  explicit MemoryOutput(SharedContent content) : content_(std::move(content)) {}
  Status Append(std::string_view data) override {
    content_->append(data);
    return OkStatus();
  }
  Status Flush() override { return OkStatus(); }
  Status Sync() override { return OkStatus(); }
  Status Close() override { return OkStatus(); }

 private:
  const SharedContent content_;
};

}  // namespace

MemoryFiles::Content& MemoryFiles::Place(const std::string& path) {
  Content& content = files_[path];
  if (content == nullptr) content = std::make_shared<std::string>();
  return content;
}

StatusOr<std::unique_ptr<InputFile>> MemoryFiles::OpenInput(const std::string& path) {
  const auto found = files_.find(path);
  if (found == files_.end()) return NotFound("no file '", path, "'");
  return std::make_unique<MemoryInput>(path, found->second);
}

StatusOr<std::unique_ptr<OutputFile>> MemoryFiles::OpenOutput(const std::string& path,
                                                              WriteMode mode) {
  if (mode == WriteMode::kTruncate) files_.erase(path);
  return std::make_unique<MemoryOutput>(Place(path));
}

StatusOr<FileInfo> MemoryFiles::Stat(const std::string& path) {
  const auto found = files_.find(path);
  if (found == files_.end()) return NotFound("no file '", path, "'");
  FileInfo info;
  info.size = static_cast<int64_t>(found->second->size());
  info.identity = path;
  return info;
}

StatusOr<std::vector<std::string>> MemoryFiles::List(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& [path, content] : files_) {
    if (FolderOf(path) == folder) names.push_back(NameOf(path));
  }
  return names;
}

Status MemoryFiles::Rename(const std::string& from, const std::string& to) {
  const auto found = files_.find(from);
  if (found == files_.end()) return NotFound("no file '", from, "'");
  files_[to] = std::move(found->second);
  files_.erase(from);
  return OkStatus();
}

Status MemoryFiles::Remove(const std::string& path) {
  return files_.erase(path) > 0 ? OkStatus() : NotFound("no file '", path, "'");
}

std::string SampleFile(const std::string& name) {
  auto content = ReadFileToString(StrCat("tests/data/", name));
  TENON_CHECK(content.ok(), content.status().ToString());
  return *std::move(content);
}

}  // namespace tenon::testing
