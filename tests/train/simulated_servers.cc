// SPDX-License-Identifier: Apache-2.0
#include "tests/train/simulated_servers.h"

namespace tenon::testing {

Status SimulatedWay::Reach() {
  if (!IsThere()) return Unavailable("the parameter server of the session is gone");
  if (world_.chance.Happens(world_.weather.failed)) return Unavailable("the connection broke");
  return OkStatus();
}

void SimulatedWay::Send(std::function<void(SimulatedServer&)> arrive) {
  if (world_.chance.Happens(world_.weather.lost)) return;
  const int times = world_.chance.Happens(world_.weather.doubled) ? 2 : 1;
  for (int i = 0; i < times; ++i) {
    world_.clock.CallAfter(world_.chance.Time(0, world_.weather.slowest.count()),
                           [&world = world_, incarnation = incarnation_, arrive] {
                             if (world.server.incarnation == incarnation) arrive(world.server);
                           });
  }
}

Status SimulatedWay::Say(const SyncMessage& message) {
  TENON_RETURN_IF_ERROR(Reach());
  Send([message](SimulatedServer& server) { server.messages.push_back(message); });
  return Reach();
}

Status SimulatedWay::HandIn(const SyncMessage& done, int64_t read) {
  TENON_RETURN_IF_ERROR(Reach());
  SimulatedServer& server = world_.server;
  if (!handed_in_.insert({done.epoch, done.step, done.shard}).second) {
    world_.Violate(StrCat("worker ", worker_, " hands in gradients of step ", done.step, " twice"));
  }
  if (done.step >= server.oldest_taken) {
    const auto shard = static_cast<size_t>(done.shard);
    server.accumulators[shard].push_back({++world_.gradients, read});
  }
  // The connection may break between the gradients and the message, and after both.
  return Say(done);
}

StatusOr<std::optional<SyncServers::Turn>> SimulatedWay::TakeTurn(Milliseconds limit) {
  (void)limit;
  TENON_RETURN_IF_ERROR(Reach());
  std::deque<SyncTurn>& turns = world_.server.turns[worker_];
  if (turns.empty()) return std::optional<Turn>();
  const SyncTurn turn = turns.front();
  turns.pop_front();
  TENON_RETURN_IF_ERROR(Reach());
  return std::optional<Turn>({turn, !turns.empty()});
}

Status SimulatedWay::DropTurns() {
  TENON_RETURN_IF_ERROR(Reach());
  world_.server.turns[worker_].clear();
  return OkStatus();
}

StatusOr<SyncRecord> SimulatedWay::ReadRecord() {
  TENON_RETURN_IF_ERROR(Reach());
  return world_.server.record.value_or(SyncRecord());
}

Status SimulatedWay::WriteRecord(const SyncRecord& record) {
  TENON_RETURN_IF_ERROR(Reach());
  if (record.over && record.step < world_.last_step) {
    world_.Violate(
        StrCat("training is said to be over at step ", record.step, " of ", world_.last_step));
  }
  if (record.over && world_.fault == PlantedFault::kEndIsNotRecorded) return OkStatus();
  world_.server.record = record;
  return Reach();
}

StatusOr<std::optional<SyncServers::Message>> SimulatedWay::TakeMessage(Milliseconds limit) {
  (void)limit;
  TENON_RETURN_IF_ERROR(Reach());
  std::deque<SyncMessage>& messages = world_.server.messages;
  if (messages.empty()) return std::optional<Message>();
  SyncMessage message = messages.front();
  messages.pop_front();
  if (world_.fault == PlantedFault::kEpochsAreIgnored && message.epoch > 0) {
    message.epoch = world_.server.record->epoch;
  }
  TENON_RETURN_IF_ERROR(Reach());
  return std::optional<Message>({message, !messages.empty()});
}

Status SimulatedWay::Clear(int64_t step) {
  TENON_RETURN_IF_ERROR(Reach());
  world_.server.messages.clear();
  for (auto& gradients : world_.server.accumulators) gradients.clear();
  world_.server.oldest_taken = step;
  return Reach();
}

void SimulatedWay::Update(int64_t step) {
  SimulatedServer& server = world_.server;
  if (server.step != step) {
    world_.Violate(
        StrCat("the update of step ", step, " is made of variables of step ", server.step));
  }
  for (auto& gradients : server.accumulators) {
    if (gradients.empty()) {
      world_.Violate(StrCat("the update of step ", step, " lacks gradients"));
    }
    for (const SimulatedGradient& gradient : gradients) {
      if (gradient.read != step) {
        world_.Violate(
            StrCat("a gradient of step ", gradient.read, " is in the update of step ", step));
      }
      if (!world_.used_gradients.insert(gradient.id).second) {
        world_.Violate(StrCat("a gradient of step ", step, " is applied twice"));
      }
    }
    gradients.clear();
  }
  ++server.step;
  ++world_.updates;
  server.oldest_taken = server.step;
}

Status SimulatedWay::Give(const Turns& turns, std::optional<int64_t> complete) {
  TENON_RETURN_IF_ERROR(Reach());
  if (complete) Update(*complete);
  const Status updated = Reach();
  if (!updated.ok() && complete && world_.fault == PlantedFault::kUpdateIsRepeated) {
    if (IsThere()) Update(*complete);
  }
  TENON_RETURN_IF_ERROR(updated);
  for (const auto& [worker, given] : turns) {
    for (const SyncTurn& turn : given) {
      Send([worker = worker, turn](SimulatedServer& server) {
        server.turns[worker].push_back(turn);
      });
    }
  }
  return Reach();
}

}  // namespace tenon::testing
