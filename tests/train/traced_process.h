// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/base/status.h"

// A process whose system calls on the files of a folder are counted, and that dies before one of
// them: a crash at any place one likes.

namespace tenon::testing {

/// What a traced process did to the files of its folder.
struct FileTrace {
  /// The calls, "rename m.index", the one before which it died last.
  std::vector<std::string> calls;
  /// Files that were written and not synced when it died.
  std::set<std::string> unsynced;
  /// What would be lost, or come in another order, if the machine had died too: a file that is
  /// renamed before it is synced, a checkpoint that is entered or deleted before the folder is.
  std::vector<std::string> mistakes;
  bool finished = false;  // before its death; `exit_code` is then valid
  int exit_code = 0;
};

/// Says whether this process can trace another one: PermissionDenied or Unimplemented, and why not.
Status CanTrace();

/// Runs this program again, with those arguments and variables of the environment besides its own.
/// It must call LetCallsBeTraced before it opens files in `folder`. Dies before call `die_at`,
/// counted from 1; 0: never.
FileTrace RunTraced(const std::vector<std::string>& arguments,
                    const std::map<std::string, std::string>& environment,
                    const std::string& folder, int die_at);

/// From here on the calling thread, and those that it starts, stop at each call that changes files.
void LetCallsBeTraced();

}  // namespace tenon::testing
