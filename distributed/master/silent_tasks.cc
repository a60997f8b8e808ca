// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/silent_tasks.h"

namespace tenon {

struct SilentTasks::Question {
  GetStatusRequest request;
  GetStatusResponse response;
  Mutex mu;
  bool answered ABSL_GUARDED_BY(mu) = false;
  Status answer ABSL_GUARDED_BY(mu) = Unavailable("no answer yet");
};

void SilentTasks::Ask(const std::vector<std::string>& tasks, Clock::Duration waited) {
  MutexLock lock(mu_);
  for (const std::string& task : tasks) {
    std::shared_ptr<Question>& question = questions_[task];
    bool answered = true;
    if (question != nullptr) {
      MutexLock answer_lock(question->mu);
      answered = question->answered;
      if (question->answer.ok()) {
        told_.erase(task);
      } else if (environment_->clock->Now() - told_[task] >= kNoticePause) {
        told_[task] = environment_->clock->Now();
        Tell(task, waited, question->answer);
      }
    }
    const auto worker = environment_->workers->Get(task);
    if (!answered || !worker.ok()) continue;
    question = std::make_shared<Question>();
    (*worker)->GetStatusAsync(question->request, &question->response,
                              [question, worker = *worker](const Status& status) {
                                MutexLock answer_lock(question->mu);
                                question->answered = true;
                                question->answer = status;
                              });
  }
}

void SilentTasks::Forget() {
  MutexLock lock(mu_);
  questions_.clear();
  told_.clear();
}

void SilentTasks::Tell(const std::string& task, Clock::Duration waited, const Status& error) const {
  environment_->notice(StrCat(environment_->task, " waits in a step, ",
                              std::chrono::duration_cast<std::chrono::seconds>(waited).count(),
                              " s now: ", task, " at ", environment_->workers->Address(task),
                              " does not answer: ", Message(error)));
}

}  // namespace tenon
