// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace tenon {

/// The nodes that a SyncReplicas has made, by name.
struct SyncNodes {
  std::string train;              // what the program runs; the hook adds one of `push`
  std::string local_step;         // fed: the step that the worker's gradients are of
  std::string message;            // fed: what is said with, or without, gradients (a SyncMessage)
  std::vector<std::string> push;  // by shard: hands in the gradients, then says `message`
  std::string say;                // says `message`
  std::string turn, turns_left;   // the worker's next turn, waiting for it; how many more there are
  std::string record, record_exists;  // a SyncRecord, and whether there is one

  // The chief's nodes follow.
  std::string next_message, messages_left;
  std::string messages_waiting, turns_waiting;      // how many there are, without taking one
  std::string apply;                                // the update of the variables
  std::string applied_step;                         // fed: the step that it is of
  std::string new_record, set_record;               // fed: a SyncRecord; sets it
  std::vector<std::string> turns_for;               // by worker, fed: turns, one a row
  std::vector<std::string> give, give_after_apply;  // by worker: gives `turns_for`
  std::vector<std::string> accumulated,
      taken;                       // by accumulator: how many gradients; takes them out
  std::string new_step, set_step;  // fed: the step of all accumulators; sets it
};

}  // namespace tenon
