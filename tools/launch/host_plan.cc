// SPDX-License-Identifier: Apache-2.0
#include "tools/launch/host_plan.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <random>
#include <sstream>

#include "core/base/plural.h"
#include "core/base/strings.h"
#include "data/files/file.h"
#include "tools/commands.h"

namespace tenon::tools {
namespace {

constexpr int kMostSlots = 10000, kMostPort = 65535;
/// Where ranks of launchers have their ports, too: below those that systems give to clients.
constexpr int kFirstPort = 10000, kLastFirstPort = 31900;

constexpr std::string_view kSpaces = " \t\r";

std::optional<int> SlotCount(std::string_view text) {
  int count = 0;
  const char* const end = text.data() + text.size();
  const auto [read, error] = std::from_chars(text.data(), end, count);
  if (error != std::errc() || read != end || count < 1 || count > kMostSlots) return std::nullopt;
  return count;
}

/// A name or an address, an IPv6 one in brackets: nothing that ssh or a list of addresses would
/// take for something else.
bool IsHostName(std::string_view name) {
  const bool has_brackets = name.size() > 2 && name.front() == '[' && name.back() == ']';
  if (has_brackets) name = name.substr(1, name.size() - 2);
  const std::string_view marks = has_brackets ? ":.%" : "-._";
  return !name.empty() && name.front() != '-' &&
         std::all_of(name.begin(), name.end(), [&](unsigned char c) {
           return std::isalnum(c) != 0 ||
                  marks.find(static_cast<char>(c)) != std::string_view::npos;
         });
}

bool IsOwnName(std::string_view host) {
  return host == "localhost" || host.starts_with("localhost.") || host.starts_with("127.") ||
         host == "[::1]";
}

/// "h1", "h1:4", "[fe80::1]:4". `where` comes before what is wrong.
StatusOr<HostSlots> ParseEntry(std::string_view entry, std::string_view where) {
  HostSlots host;
  const size_t bracket = entry.find(']');
  const size_t colon = entry.find(':', bracket == std::string_view::npos ? 0 : bracket);
  host.name = entry.substr(0, colon);
  if (host.name.find('@') != std::string::npos) {
    return WrongUsage(StrCat(where, "found ", entry,
                             ", wanted a host without an account, which --ssh 'ssh -l NAME' or "
                             "~/.ssh/config gives"));
  }
  if (!IsHostName(host.name)) {
    return WrongUsage(
        StrCat(where, "found ", entry.empty() ? "nothing" : entry, ", wanted HOST or HOST:SLOTS"));
  }
  if (colon == std::string_view::npos) return host;
  const std::optional<int> slots = SlotCount(entry.substr(colon + 1));
  if (!slots) {
    return WrongUsage(StrCat(where, "found ", entry, ", wanted HOST:SLOTS with 1 to ", kMostSlots,
                             " slots; an IPv6 address stands in brackets"));
  }
  host.slots = *slots;
  return host;
}

void AddHost(HostSlots host, std::vector<HostSlots>* hosts) {
  const auto same = std::find_if(hosts->begin(), hosts->end(),
                                 [&](const HostSlots& other) { return other.name == host.name; });
  if (same == hosts->end()) {
    hosts->push_back(std::move(host));
  } else {
    same->slots += host.slots;
  }
}

/// The words of a line up to a comment.
std::vector<std::string> WordsOf(std::string_view line) {
  std::vector<std::string> words;
  std::istringstream text{std::string(line.substr(0, line.find('#')))};
  for (std::string word; text >> word;) words.push_back(word);
  return words;
}

Status AddHostLine(std::string_view line, const std::string& where, std::vector<HostSlots>* hosts) {
  const std::vector<std::string> words = WordsOf(line);
  if (words.empty()) return OkStatus();
  TENON_ASSIGN_OR_RETURN(HostSlots host, ParseEntry(words[0], where));
  for (size_t i = 1; i < words.size(); ++i) {
    constexpr std::string_view kSlots = "slots=";
    const std::optional<int> slots =
        words[i].starts_with(kSlots) ? SlotCount(std::string_view(words[i]).substr(kSlots.size()))
                                     : std::nullopt;
    if (!slots || i > 1 || words[0].size() != host.name.size()) {
      return WrongUsage(StrCat(where, "found ", words[i], " after ", words[0],
                               ", wanted HOST slots=N or HOST:N, N from 1 to ", kMostSlots));
    }
    host.slots = *slots;
  }
  AddHost(std::move(host), hosts);
  return OkStatus();
}

std::string HostList(const std::vector<HostSlots>& hosts) {
  std::vector<std::string> texts;
  for (const HostSlots& host : hosts) texts.push_back(StrCat(host.name, ":", host.slots));
  return Join(texts, ",");
}

Status CheckHosts(const ClusterShape& shape, const std::vector<HostSlots>& hosts) {
  const int tasks = shape.ps + shape.workers;
  if (tasks > NumSlots(hosts)) {
    return WrongUsage(StrCat("found ", Plural(tasks, "task"), " (", shape.ps, " of --ps and ",
                             shape.workers, " of --workers) and ", Plural(NumSlots(hosts), "slot"),
                             " on ", Plural(static_cast<int64_t>(hosts.size()), "host"), " (",
                             HostList(hosts), "), wanted a slot for each task"));
  }
  for (const HostSlots& host : hosts) {
    if (hosts.size() > 1 && IsOwnName(host.name)) {
      return WrongUsage(StrCat("found host ", host.name,
                               ", which is another one on each host; wanted the name by which the "
                               "others reach this machine"));
    }
  }
  return OkStatus();
}

StatusOr<int> FirstPort(int wanted, const std::vector<HostSlots>& hosts) {
  std::random_device random;
  const int drawn = std::uniform_int_distribution<int>(kFirstPort, kLastFirstPort)(random);
  const int first = wanted == 0 ? drawn : wanted;
  for (const HostSlots& host : hosts) {
    const int last = first + host.slots - 1;
    if (last > kMostPort) {
      return WrongUsage(StrCat("--first_port: found ", first, ", with which port ", last,
                               " would be that of the last slot of ", host.name,
                               ", wanted ports of at most ", kMostPort));
    }
  }
  return first;
}

}  // namespace

StatusOr<std::vector<HostSlots>> ParseHosts(std::string_view text) {
  std::vector<HostSlots> hosts;
  while (true) {
    const size_t comma = text.find(',');
    std::string_view entry = text.substr(0, comma);
    entry.remove_prefix(std::min(entry.find_first_not_of(kSpaces), entry.size()));
    entry.remove_suffix(entry.size() - entry.find_last_not_of(kSpaces) - 1);
    TENON_ASSIGN_OR_RETURN(HostSlots host, ParseEntry(entry, "--hosts: "));
    AddHost(std::move(host), &hosts);
    if (comma == std::string_view::npos) return hosts;
    text.remove_prefix(comma + 1);
  }
}

StatusOr<std::vector<HostSlots>> ReadHostFile(const std::string& path) {
  TENON_ASSIGN_OR_RETURN(const std::string text, ReadFileToString(path));
  std::vector<HostSlots> hosts;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    TENON_RETURN_IF_ERROR(
        AddHostLine(line, StrCat("--hostfile: ", path, ":", ++number, ": "), &hosts));
  }
  if (hosts.empty()) return WrongUsage(StrCat("--hostfile: there is no host in ", path));
  return hosts;
}

int NumSlots(const std::vector<HostSlots>& hosts) {
  int slots = 0;
  for (const HostSlots& host : hosts) slots += host.slots;
  return slots;
}

StatusOr<std::vector<TaskPlan>> PlanTasksOnHosts(const ClusterShape& shape,
                                                 const std::vector<HostSlots>& hosts,
                                                 int first_port) {
  TENON_RETURN_IF_ERROR(CheckHosts(shape, hosts));
  TENON_ASSIGN_OR_RETURN(const int port, FirstPort(first_port, hosts));
  std::vector<std::string> addresses;
  for (const HostSlots& host : hosts) {
    for (int i = 0; i < host.slots; ++i) addresses.push_back(StrCat(host.name, ":", port + i));
  }
  addresses.resize(shape.ps + shape.workers);
  std::vector<TaskPlan> plans = TasksAt(addresses, shape);
  auto task = plans.begin();
  for (const HostSlots& host : hosts) {
    for (int i = 0; i < host.slots && task != plans.end(); ++i, ++task) {
      task->host = host.name;
      task->place = i;
    }
  }
  return plans;
}

}  // namespace tenon::tools
