// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/build/building.h"
#include "ops/register.h"
#include "runtime/session/local_session.h"
#include "tests/testing/op_runner.h"

namespace tenon::testing {

/// A graph under construction, entered while it lives, and a session on it, which is opened by the
/// first run; nodes added after that are added to the session.
class GraphSession {
 public:
  Graph graph{AllOps()};
  GraphBuilding building{graph};

  /// Runs one step: the values of `fetches`, after running `targets` too. The feeds come last, as
  /// most steps have none.
  StatusOr<std::vector<Tensor>> Run(const std::vector<Output>& fetches,
                                    const std::vector<Output>& targets = {},
                                    const StepFeeds& feeds = {}) {
    TENON_RETURN_IF_ERROR(graph.error());
    if (session_ == nullptr) {
      TENON_ASSIGN_OR_RETURN(session_, MakeLocalSession(graph));
    } else {
      TENON_RETURN_IF_ERROR(session_->Extend(graph));
    }
    return session_->Run(feeds, fetches, targets);
  }

  /// The value of one output; invalid, and a failure, when the step failed.
  Tensor Value(Output fetch, const std::vector<Output>& targets = {}) {
    auto values = Run({fetch}, targets);
    EXPECT_TRUE(values.ok()) << values.status();
    return values.ok() ? (*values)[0] : Tensor();
  }

 private:
  std::unique_ptr<Session> session_;
};

/// The elements of a numeric tensor, as doubles.
inline std::vector<double> Numbers(const Tensor& t) {
  std::vector<double> values;
  Dispatch(t.dtype(), RealTypes(), [&](auto zero) {
    using T = decltype(zero);
    for (const T& v : t.flat<T>()) values.push_back(static_cast<double>(v));
  });
  return values;
}

}  // namespace tenon::testing
