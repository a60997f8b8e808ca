// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "distributed/protocol/job_end.h"
#include "tests/testing/simulated_clock.h"
#include "tests/train/simulated_training.h"
#include "train/sync/sync_servers.h"

namespace tenon::testing {

using Milliseconds = std::chrono::milliseconds;

/// All chance of a schedule.
class Chance {
 public:
  explicit Chance(uint64_t seed) : source_(seed) {}
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(source_() % static_cast<uint64_t>(high - low + 1));
  }
  Milliseconds Time(int64_t low, int64_t high) { return Milliseconds(Between(low, high)); }
  bool Happens(int of_a_thousand) { return Between(0, 999) < of_a_thousand; }

 private:
  std::mt19937_64 source_;
};

/// How bad the weather of a schedule is; chances are of 1000.
struct Weather {
  int lost = 0, doubled = 0, failed = 0;
  Milliseconds slowest{10};
};

/// A gradient that a worker has handed in.
struct SimulatedGradient {
  int64_t id = 0;
  int64_t read = 0;  // the step of the variables that it was computed of
};

/// What a parameter server keeps; it goes with its process.
struct SimulatedServer {
  int64_t incarnation = 0;  // 0: it is not there
  bool has_variables = false;
  int64_t step = 0;  // of the variables
  std::optional<SyncRecord> record;
  std::deque<SyncMessage> messages;
  std::vector<std::deque<SyncTurn>> turns;
  std::vector<std::vector<SimulatedGradient>> accumulators;  // one, or one a shard
  int64_t oldest_taken = 0;                                  // older gradients are refused
};

/// What all parts of a simulation use.
struct SimulatedWorld {
  SimulatedWorld(uint64_t seed, PlantedFault planted) : chance(seed), fault(planted) {}

  void Violate(const std::string& what) {
    if (violation.empty()) violation = StrCat("at ", Seconds(), " s: ", what);
  }
  double Seconds() { return std::chrono::duration<double>(clock.Now() - begin).count(); }

  Chance chance;
  const PlantedFault fault;
  SimulatedClock clock;
  const Clock::Time begin = clock.Now();
  Weather weather;
  SimulatedServer server;
  int64_t last_step = 0;
  std::set<int64_t> used_gradients;
  int64_t gradients = 0, updates = 0;
  std::string violation;
};

/// A worker's way to the parameter server, in one session.
class SimulatedWay final : public SyncServers {
 public:
  /// The session is one of the server's process that is there now.
  SimulatedWay(SimulatedWorld& world, int64_t worker)
      : world_(world), worker_(worker), incarnation_(world.server.incarnation) {}

  /// Whether the session's server is there.
  bool IsThere() const { return world_.server.incarnation == incarnation_; }
  /// The same as an error; Unavailable by chance too.
  Status Reach();
  /// What a run of the training step does: hands in a gradient of `done` that was computed of the
  /// variables of step `read`, and says so.
  Status HandIn(const SyncMessage& done, int64_t read);

  Status Say(const SyncMessage& message) override;
  StatusOr<std::optional<Turn>> TakeTurn(Milliseconds limit) override;
  Status DropTurns() override;
  StatusOr<SyncRecord> ReadRecord() override;
  Status WriteRecord(const SyncRecord& record) override;
  StatusOr<std::optional<Message>> TakeMessage(Milliseconds limit) override;
  Status Clear(int64_t step) override;
  Status Give(const Turns& turns, std::optional<int64_t> complete) override;

 private:
  /// Has `arrive` happen later, twice or never, as the weather is, unless the server dies before.
  void Send(std::function<void(SimulatedServer&)> arrive);
  void Update(int64_t step);

  SimulatedWorld& world_;
  const int64_t worker_;
  const int64_t incarnation_;                   // of the server
  std::set<std::array<int64_t, 3>> handed_in_;  // by epoch, step and shard
};

}  // namespace tenon::testing
