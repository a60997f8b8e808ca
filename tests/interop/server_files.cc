// SPDX-License-Identifier: Apache-2.0
//
// server_files SCENARIO ROOT: what data/files/file.h does with files of a server, in the folder
// ROOT, such as "s3://bucket/folder", where nobody else writes. Exits with 0 when all of it is as
// it should be; the first thing that is not is told.
#include <algorithm>
#include <cstdio>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "data/files/byte_stream.h"
#include "data/files/file.h"
#include "data/files/match_files.h"

namespace tenon {
namespace {

#define CHECK_OK(expression)                                                \
  do {                                                                      \
    const auto& result = (expression);                                      \
    TENON_CHECK(result.ok(), status_internal::ToStatus(result).ToString()); \
  } while (false)

constexpr size_t kMebi = 1 << 20;

/// Bytes that no block has twice.
std::string Pattern(size_t size, uint64_t seed) {
  std::string bytes(size, '\0');
  uint64_t state = seed * 2654435761 + 1;
  for (char& c : bytes) {
    state = state * 6364136223846793005 + 1442695040888963407;
    c = static_cast<char>(state >> 56);
  }
  return bytes;
}

void Write(const std::string& path, std::string_view content, size_t step) {
  auto file = OpenOutput(path);
  CHECK_OK(file);
  while (!content.empty()) {
    CHECK_OK((*file)->Append(content.substr(0, step)));
    content.remove_prefix(std::min(step, content.size()));
  }
  CHECK_OK((*file)->Close());
}

void ExpectContent(const std::string& path, const std::string& wanted) {
  const auto found = ReadFileToString(path);
  CHECK_OK(found);
  TENON_CHECK(*found == wanted, path, ": ", found->size(), " other bytes, wanted ", wanted.size());
}

std::vector<std::string> Names(const std::string& folder) {
  auto names = ListFolder(folder);
  CHECK_OK(names);
  // What is left of a request that broke has such a name at HDFS.
  std::erase_if(*names, [](const std::string& name) { return name.starts_with(".tenon."); });
  return *std::move(names);
}

void Keys(const std::string& root) {
  std::vector<std::string> names = {"plain",       "with space", "a+b",
                                    "100%",        "%41",        "\u00fcn\u00efcode-\u65e5\u672c",
                                    "a=b&c=d",     "quote'\"",   "(x)[y]",
                                    "semi;colon",  "hash#mark?", "tilde~dot.",
                                    "back\\slash", "at@:comma,", "less<>&amp;"};
  if (!root.starts_with("s3:")) std::erase(names, "at@:comma,");  // HDFS takes no colon
  for (const std::string& name : names) {
    const std::string path = JoinPath(root, name);
    CHECK_OK(WriteStringToFile(path, name));
    ExpectContent(path, name);
    const auto info = StatFile(path);
    CHECK_OK(info);
    TENON_CHECK(info->size == static_cast<int64_t>(name.size()), path);
    const auto age = AgeOfFile(path);
    TENON_CHECK(age.ok() && *age < std::chrono::hours(1), path);
  }
  std::vector<std::string> wanted = names;
  std::sort(wanted.begin(), wanted.end());
  TENON_CHECK(Names(root) == wanted, Join(Names(root), " | "));
  CHECK_OK(MakeFolders(JoinPath(root, "moved")));
  for (const std::string& name : names) {
    const std::string path = JoinPath(root, name), other = JoinPath(root, "moved/" + name);
    CHECK_OK(RenameFile(path, other));
    ExpectContent(other, name);
    TENON_CHECK(!FileExists(path), path);
  }
  TENON_CHECK(Names(JoinPath(root, "moved")) == wanted);
  CHECK_OK(RemoveTree(root));
  TENON_CHECK(!FileExists(root));
}

void Sizes(const std::string& root) {
  const size_t part = 16 * kMebi;
  for (const size_t size :
       {size_t{0}, size_t{1}, kMebi / 4, kMebi / 4 + 1, 4 * kMebi, part + 1, 20 * kMebi}) {
    const std::string path = JoinPath(root, StrCat("size", size));
    const std::string content = Pattern(size, size);
    Write(path, content, size > 1000 ? size / 7 + 1 : 100);
    ExpectContent(path, content);
    const auto info = StatFile(path);
    TENON_CHECK(info.ok() && info->size == static_cast<int64_t>(size), path);
    // Small pieces, front to back.
    auto source = OpenSource(path, Compression::kNone);
    CHECK_OK(source);
    std::string read, piece(100000, '\0');
    while (true) {
      const auto n = (*source)->Read(piece.size(), piece.data());
      CHECK_OK(n);
      read.append(piece, 0, *n);
      if (*n < piece.size()) break;
    }
    TENON_CHECK(read == content, path);
    // Here and there, and past the end.
    const auto file = OpenInput(path);
    CHECK_OK(file);
    for (size_t i = 0; i < 20; ++i) {
      const size_t at = (i * 7919 * 4001) % (size + 10);
      std::string some(i * 1000 + 1, '\0');
      const auto n = (*file)->ReadAt(static_cast<int64_t>(at), some.size(), some.data());
      CHECK_OK(n);
      some.resize(*n);
      const std::string there = at < size ? content.substr(at, i * 1000 + 1) : "";
      TENON_CHECK(some == there, path, " at ", at);
    }
  }
  CHECK_OK(RemoveTree(root));
}

/// A file of several parts, whoever writes it, which another one replaces.
void Large(const std::string& root) {
  const std::string path = JoinPath(root, "large");
  for (uint64_t seed = 0; seed < 2; ++seed) {
    const std::string content = Pattern(70 * kMebi, seed);
    Write(path, content, 5 * kMebi);
    ExpectContent(path, content);
  }
  // Who has opened a file reads that one, or nothing.
  const auto file = OpenInput(path);
  CHECK_OK(file);
  const std::string other = Pattern(70 * kMebi, 7);
  Write(path, other, 9 * kMebi);
  std::string some(kMebi, '\0');
  const auto n = (*file)->ReadAt(40 * kMebi, some.size(), some.data());
  TENON_CHECK(n.status().code() == StatusCode::kFailedPrecondition, n.status().ToString());
  ExpectContent(path, other);
  CHECK_OK(RemoveTree(root));
}

void Folders(const std::string& root) {
  const auto is = [](const Status& status, StatusCode code) {
    TENON_CHECK(status.code() == code, status.ToString());
  };
  is(StatFile(root).status(), StatusCode::kNotFound);
  is(ListFolder(root).status(), StatusCode::kNotFound);
  is(OpenInput(JoinPath(root, "no")).status(), StatusCode::kNotFound);
  is(RemoveFile(JoinPath(root, "no")), StatusCode::kNotFound);
  is(RemoveTree(JoinPath(root, "no")), StatusCode::kNotFound);
  is(RenameFile(JoinPath(root, "no"), JoinPath(root, "yes")), StatusCode::kNotFound);
  CHECK_OK(MakeFolders(JoinPath(root, "a/b")));
  for (const char* const name : {"a/b/1", "a/b/2", "a/c", "ab", "a.x"}) {
    CHECK_OK(WriteStringToFile(JoinPath(root, name), name));
  }
  TENON_CHECK(IsFolder(JoinPath(root, "a")) && !IsFolder(JoinPath(root, "ab")));
  TENON_CHECK(IsRegularFile(JoinPath(root, "ab")) && !IsRegularFile(JoinPath(root, "a")));
  TENON_CHECK((Names(root) == std::vector<std::string>{"a", "a.x", "ab"}));
  TENON_CHECK((Names(JoinPath(root, "a/")) == std::vector<std::string>{"b", "c"}));
  is(OpenInput(JoinPath(root, "a")).status(), StatusCode::kFailedPrecondition);
  is(OpenInput(JoinPath(root, "a/")).status(), StatusCode::kFailedPrecondition);
  is(OpenOutput(JoinPath(root, "a/")).status(), StatusCode::kFailedPrecondition);
  is(ListFolder(JoinPath(root, "ab")).status(), StatusCode::kFailedPrecondition);
  is(RemoveFile(JoinPath(root, "a")), StatusCode::kAlreadyExists);
  is(OpenOutput(JoinPath(root, "ab"), WriteMode::kNew).status(), StatusCode::kAlreadyExists);
  const auto found = MatchFiles(JoinPath(root, "*/b/[12]"));
  TENON_CHECK(found.ok() && found->size() == 2 && (*found)[0] == JoinPath(root, "a/b/1"));
  CHECK_OK(PublishFile(JoinPath(root, "a"), JoinPath(root, "z")));
  ExpectContent(JoinPath(root, "z/b/2"), "a/b/2");
  TENON_CHECK(!FileExists(JoinPath(root, "a")) && FileExists(JoinPath(root, "ab")));
  CHECK_OK(WriteStringToFile(JoinPath(root, "y/1"), ""));
  is(RenameFile(JoinPath(root, "y"), JoinPath(root, "z")), StatusCode::kAlreadyExists);
  CHECK_OK(RemoveTree(JoinPath(root, "z")));
  TENON_CHECK((Names(root) == std::vector<std::string>{"a.x", "ab", "y"}));
  CHECK_OK(RemoveTree(root));
}

/// A file that grows is seen at each Sync, one that is given up never.
void Growing(const std::string& root) {
  const std::string path = JoinPath(root, "log");
  std::string content;
  for (const WriteMode mode : {WriteMode::kTruncate, WriteMode::kAppend}) {
    auto file = OpenOutput(path, mode);
    CHECK_OK(file);
    for (int i = 0; i < 3; ++i) {
      const std::string more = Pattern(1000, i);
      CHECK_OK((*file)->Append(more));
      content += more;
      CHECK_OK((*file)->Sync());
      ExpectContent(path, content);
    }
    CHECK_OK((*file)->Append("last"));
    content += "last";
    CHECK_OK((*file)->Flush());  // soon after another: not yet seen
    *file = nullptr;
    ExpectContent(path, content);
  }
  {
    auto file = OpenOutput(JoinPath(root, "never"));
    CHECK_OK(file);
    CHECK_OK((*file)->Append(Pattern(17 * kMebi, 1)));
  }
  TENON_CHECK(!FileExists(JoinPath(root, "never")));
  CHECK_OK(RemoveTree(root));
}

/// The same for one that the server has to copy at each step.
void GrowingLarge(const std::string& root) {
  const std::string path = JoinPath(root, "log");
  std::string content;
  for (const WriteMode mode : {WriteMode::kTruncate, WriteMode::kAppend}) {
    auto file = OpenOutput(path, mode);
    CHECK_OK(file);
    if (mode == WriteMode::kTruncate) {
      content = Pattern(17 * kMebi, 1);
      CHECK_OK((*file)->Append(content));
      CHECK_OK((*file)->Sync());
    }
    CHECK_OK((*file)->Append("more"));
    content += "more";
    CHECK_OK((*file)->Close());
    ExpectContent(path, content);
  }
  CHECK_OK(RemoveTree(root));
}

/// Prints how many names the folder has.
void List(const std::string& root) {
  std::printf("%zu names\n", Names(root).size());
  const auto found = MatchFiles(JoinPath(root, "*7"));
  CHECK_OK(found);
  std::printf("%zu matches\n", found->size());
}

int Main(int argc, char** argv) {
  const std::pair<std::string_view, void (*)(const std::string&)> scenarios[] = {
      {"keys", Keys},       {"sizes", Sizes}, {"folders", Folders},
      {"growing", Growing}, {"list", List},   {"growing_large", GrowingLarge},
      {"large", Large}};
  for (const auto& [name, run] : scenarios) {
    if (argc == 3 && argv[1] == name) {
      run(argv[2]);
      return 0;
    }
  }
  std::fprintf(stderr, "usage: server_files SCENARIO ROOT\n");
  return 2;
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) { return tenon::Main(argc, argv); }
