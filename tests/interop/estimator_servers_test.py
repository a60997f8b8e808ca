#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An Estimator's script whose TF_CONFIG has no word about Tenon: chief and workers start TensorFlow's servers, as
tf.estimator does by itself, and only the parameter servers are Tenon's."""
import os
import sys

from estimator_jobs import EVALUATOR, SCRIPT, TENSORFLOW, Flights, Job, alone, check_ended
from tensorflow_environment import PYTHON, SKIPPED, TENON, VENV

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from tenon_process import in_a_folder, main  # noqa: E402

STEPS = 3000


def trained(folder):
    with Job(workers=2) as job:
        flights, model_dir = Flights(folder), os.path.join(folder, "model")
        job.start(job.servers, [TENON, "serve", "--end_when_idle", "15"], dict(os.environ))
        job.start_evaluator_first(job.trainers,
                                  [PYTHON, SCRIPT, *flights.flags(flights.folder, model_dir), "--max_steps", STEPS],
                                  dict(os.environ, **TENSORFLOW))
        wanted = alone(flights, folder)
        job.finish(job.trainers + EVALUATOR, 400)
        job.finish(job.servers, 60)  # by themselves
        check_ended(job, STEPS, model_dir, wanted, flights)


if __name__ == "__main__":
    if not os.path.exists(PYTHON):
        print(f"no TensorFlow environment at {VENV}; tools/install_tensorflow.sh makes it")
        sys.exit(SKIPPED)
    sys.exit(main([("only the parameter servers are Tenon's", in_a_folder(trained))]))
