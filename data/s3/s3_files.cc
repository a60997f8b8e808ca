// SPDX-License-Identifier: Apache-2.0
#include "data/s3/s3_files.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "core/base/mutex.h"
#include "data/http/workers.h"
#include "data/s3/s3_client.h"
#include "data/s3/s3_input.h"
#include "data/s3/s3_output.h"

namespace tenon {
namespace {

constexpr int kPage = 1000;
constexpr int kMostAtOnce = 8;

FileReader ReaderOf(FileSystem& local) {
  return [&local](const std::string& path) -> StatusOr<std::string> {
    TENON_ASSIGN_OR_RETURN(const auto file, local.OpenInput(path));
    constexpr int64_t kMost = 1 << 20;
    if (file->size() > kMost) {
      return InvalidArgument("'", path, "' has ", file->size(), " bytes, wanted ", kMost,
                             " at most");
    }
    std::string content(static_cast<size_t>(file->size()), '\0');
    TENON_ASSIGN_OR_RETURN(const size_t found, file->ReadAt(0, content.size(), content.data()));
    content.resize(found);
    return content;
  };
}

class S3FileSystem final : public FileSystem {
 public:
  S3FileSystem(std::unique_ptr<AwsCredentialSource> credentials, S3Settings settings, Clock& clock,
               RetryPolicy policy)
      : credentials_(std::move(credentials)),
        client_(std::move(settings), *credentials_, clock, policy) {}

  StatusOr<std::unique_ptr<InputFile>> OpenInput(const std::string& path) override {
    TENON_ASSIGN_OR_RETURN(const S3Place place, ParseS3Path(path));
    if (IsFolderName(place)) return NoFile("open", path);
    auto file = OpenS3Input(client_, path, place);
    if (file.status().code() == StatusCode::kNotFound) {
      const StatusOr<bool> is_folder = HasKeys(place);
      if (is_folder.ok() && *is_folder) return NoFile("open", path);
    }
    return file;
  }

  StatusOr<std::unique_ptr<OutputFile>> OpenOutput(const std::string& path,
                                                   WriteMode mode) override {
    TENON_ASSIGN_OR_RETURN(const S3Place place, ParseS3Path(path));
    if (IsFolderName(place)) return NoFile("open for writing", path);
    if (mode == WriteMode::kNew) {
      const StatusOr<S3ObjectInfo> old = client_.Head(place, "open for writing");
      if (old.ok()) return AlreadyExists("cannot open for writing '", path, "': it is there");
      if (old.status().code() != StatusCode::kNotFound) return old.status();
    }
    return OpenS3Output(client_, path, place, mode == WriteMode::kAppend);
  }

  StatusOr<FileInfo> Stat(const std::string& path) override {
    TENON_ASSIGN_OR_RETURN(const S3Place place, ParseS3Path(path));
    FileInfo info;
    if (!IsFolderName(place)) {
      const StatusOr<S3ObjectInfo> object = client_.Head(place);
      if (object.ok()) {
        info.size = std::max<int64_t>(object->size, 0);
        info.modified_at = object->modified_at;
        info.identity = place.Path();
        return info;
      }
      if (object.status().code() != StatusCode::kNotFound) return object.status();
    }
    TENON_ASSIGN_OR_RETURN(const bool is_folder, HasKeys(place));
    if (!is_folder) {
      return NotFound("cannot look at '", path, "': there is no such object, and none in it");
    }
    info.kind = FileInfo::Kind::kFolder;
    info.identity = place.Path();
    return info;
  }

  StatusOr<std::vector<std::string>> List(const std::string& folder) override {
    TENON_ASSIGN_OR_RETURN(const S3Place place, ParseS3Path(folder));
    const std::string prefix = place.FolderPrefix();
    std::vector<std::string> names;
    bool found = prefix.empty();  // a bucket may be empty
    std::string token;
    do {
      TENON_ASSIGN_OR_RETURN(S3Listing page,
                             client_.ListPage({place.bucket, prefix}, "/", token, kPage));
      found = found || !page.keys.empty() || !page.prefixes.empty();
      for (const std::string& key : page.keys) AddName(key, prefix, &names);
      for (const std::string& inner : page.prefixes) {
        AddName(inner.substr(0, inner.size() - 1), prefix, &names);
      }
      token = std::move(page.next);
    } while (!token.empty());
    if (!found) {
      // The name of an object is no folder, as for other files.
      if (client_.Head(place, "list").ok()) {
        return FailedPrecondition("cannot list '", folder, "': it is an object, not a folder");
      }
      return NotFound("cannot list '", folder, "': there is no object in it");
    }
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
  }

  Status MakeFolders(const std::string& folder) override {
    return folder.empty() ? OkStatus() : ParseS3Path(folder).status();
  }

  Status Rename(const std::string& from, const std::string& to) override {
    TENON_ASSIGN_OR_RETURN(const S3Place source, ParseS3Path(from));
    TENON_ASSIGN_OR_RETURN(const S3Place target, ParseS3Path(to));
    if (source.bucket == target.bucket && source.key == target.key) return OkStatus();
    const Status copied = IsFolderName(source) ? NotFound("") : Copy(source, target);
    if (copied.ok()) return client_.Delete(source);
    if (copied.code() != StatusCode::kNotFound) return copied;
    return RenameFolder(source, target, copied);
  }

  Status Publish(const std::string& from, const std::string& to) override {
    return Rename(from, to);
  }

  Status Remove(const std::string& path) override {
    TENON_ASSIGN_OR_RETURN(S3Place place, ParseS3Path(path));
    if (!IsFolderName(place)) {
      const StatusOr<S3ObjectInfo> object = client_.Head(place, "remove");
      if (object.ok()) return client_.Delete(place);
      if (object.status().code() != StatusCode::kNotFound) return object.status();
    }
    // A key that ends with a slash is what other programs make of an empty folder.
    const S3Place folder{place.bucket, place.FolderPrefix()};
    TENON_ASSIGN_OR_RETURN(const S3Listing page, client_.ListPage(folder, "", "", 2, "remove"));
    if (page.keys.empty()) {
      return NotFound("cannot remove '", path, "': there is no such object, and none in it");
    }
    if (page.keys.size() > 1 || page.keys[0] != folder.key) {
      return AlreadyExists("cannot remove '", path, "': it is a folder that is not empty");
    }
    return client_.Delete(folder);
  }

  Status RemoveTree(const std::string& path) override {
    TENON_ASSIGN_OR_RETURN(const S3Place place, ParseS3Path(path));
    if (place.key.empty()) {
      return InvalidArgument("cannot remove '", path, "': it is a bucket, which stays");
    }
    TENON_ASSIGN_OR_RETURN(std::vector<std::string> keys,
                           client_.ListAll({place.bucket, place.FolderPrefix()}, "remove"));
    if (!IsFolderName(place)) {
      const StatusOr<S3ObjectInfo> object = client_.Head(place, "remove");
      if (object.ok()) keys.push_back(place.key);
      if (!object.ok() && object.status().code() != StatusCode::kNotFound) return object.status();
    }
    if (keys.empty()) {
      return NotFound("cannot remove '", path, "': there is no such object, and none in it");
    }
    return ForEach(keys, [&](const std::string& key) {
      return client_.Delete({place.bucket, key});
    });
  }

  bool WritesWhole(const std::string&) override { return true; }
  /// A write that was answered outlives machines already, so that nothing is left to do.
  Status SyncFolder(const std::string& folder) override {
    return folder.empty() ? OkStatus() : ParseS3Path(folder).status();
  }

 private:
  static bool IsFolderName(const S3Place& place) {
    return place.key.empty() || place.key.ends_with('/');
  }
  static Status NoFile(std::string_view what, const std::string& path) {
    return FailedPrecondition("cannot ", what, " '", path, "': it is a folder");
  }
  static void AddName(const std::string& key, const std::string& prefix,
                      std::vector<std::string>* names) {
    if (key.size() > prefix.size() && key.starts_with(prefix)) {
      names->push_back(key.substr(prefix.size()));
    }
  }

  /// Whether there are objects in the folder; the root of a bucket that is there is one without.
  StatusOr<bool> HasKeys(const S3Place& place) {
    const std::string prefix = place.FolderPrefix();
    TENON_ASSIGN_OR_RETURN(const S3Listing page,
                           client_.ListPage({place.bucket, prefix}, "", "", 1, "look at"));
    return prefix.empty() || !page.keys.empty();
  }

  Status Copy(const S3Place& from, const S3Place& to) {
    TENON_ASSIGN_OR_RETURN(const S3ObjectInfo info, client_.Head(from, "copy"));
    if (info.size <= kLargestCopy) return client_.Copy(from, to);
    TENON_ASSIGN_OR_RETURN(const auto source, OpenS3Input(client_, from.Path(), from));
    TENON_ASSIGN_OR_RETURN(const auto target, OpenS3Output(client_, to.Path(), to, false));
    std::string piece(16 << 20, '\0');
    for (int64_t at = 0; at < source->size(); at += static_cast<int64_t>(piece.size())) {
      TENON_ASSIGN_OR_RETURN(const size_t found, source->ReadAt(at, piece.size(), piece.data()));
      TENON_RETURN_IF_ERROR(target->Append(std::string_view(piece).substr(0, found)));
    }
    return target->Close();
  }

  Status RenameFolder(const S3Place& source, const S3Place& target, const Status& no_object) {
    const std::string from = source.FolderPrefix(), to = target.FolderPrefix();
    if (from.empty() || to.empty()) {
      return InvalidArgument("cannot rename '", source.Path(), "' to '", target.Path(),
                             "': a bucket keeps its name");
    }
    TENON_ASSIGN_OR_RETURN(const std::vector<std::string> keys,
                           client_.ListAll({source.bucket, from}, "rename"));
    if (keys.empty()) return no_object;
    TENON_ASSIGN_OR_RETURN(const bool taken, HasKeys(target));
    if (taken) {
      return AlreadyExists("cannot rename '", source.Path(), "' to '", target.Path(),
                           "': there are objects in it");
    }
    // Who looks into a folder looks for what is directly in it, which so appears when the rest is
    // there.
    std::vector<std::string> inner, outer;
    for (const std::string& key : keys) {
      const bool is_inner = key.find('/', from.size()) != std::string::npos;
      (is_inner ? inner : outer).push_back(key);
    }
    const auto copy = [&](const std::string& key) {
      return Copy({source.bucket, key}, {target.bucket, to + key.substr(from.size())});
    };
    TENON_RETURN_IF_ERROR(ForEach(inner, copy));
    TENON_RETURN_IF_ERROR(ForEach(outer, copy));
    return ForEach(keys, [&](const std::string& key) {
      return client_.Delete({source.bucket, key});
    });
  }

  /// Calls `act` for every key, some at once, until one fails; the first error.
  Status ForEach(const std::vector<std::string>& keys,
                 const std::function<Status(const std::string&)>& act) {
    struct {
      Mutex mu;
      CondVar changed;
      Status status ABSL_GUARDED_BY(mu);
      size_t next ABSL_GUARDED_BY(mu) = 0;
      int running ABSL_GUARDED_BY(mu) = 0;
    } shared;
    const auto work = [&] {
      while (true) {
        size_t index = 0;
        {
          MutexLock lock(shared.mu);
          if (shared.next == keys.size() || !shared.status.ok()) {
            --shared.running;
            shared.changed.NotifyAll();
            return;
          }
          index = shared.next++;
        }
        const Status status = act(keys[index]);
        MutexLock lock(shared.mu);
        shared.status.Update(status);
      }
    };
    const auto count = std::min<size_t>(kMostAtOnce, keys.size());
    for (size_t i = 0; i < count; ++i) {
      {
        MutexLock lock(shared.mu);
        ++shared.running;
      }
      const Status started = for_keys_.Run(work);
      MutexLock lock(shared.mu);
      if (started.ok()) continue;
      --shared.running;
      shared.status.Update(started);
      break;
    }
    MutexLock lock(shared.mu);
    while (shared.running > 0) shared.changed.Wait(shared.mu);
    return shared.status;
  }

  const std::unique_ptr<AwsCredentialSource> credentials_;
  S3Client client_;
  Workers for_keys_{kMostAtOnce};  // whose work may wait for that of the client's
};

}  // namespace

StatusOr<std::unique_ptr<FileSystem>> MakeS3Files(Environment environment, FileSystem& local,
                                                  Clock& clock, RetryPolicy policy) {
  const FileReader read_file = ReaderOf(local);
  TENON_ASSIGN_OR_RETURN(AwsProfile profile, ReadAwsProfile(environment, read_file));
  TENON_ASSIGN_OR_RETURN(S3Settings settings, ReadS3Settings(environment, profile));
  auto credentials = std::make_unique<AwsCredentialSource>(
      std::move(environment), read_file, std::move(profile), settings.region,
      HttpOptions{settings.verify_certificates, settings.ca_file}, clock);
  return std::unique_ptr<FileSystem>(
      std::make_unique<S3FileSystem>(std::move(credentials), std::move(settings), clock, policy));
}

}  // namespace tenon
