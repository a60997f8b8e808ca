#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training by allreduce: started by tenon launch and by mpirun, as one process on all the data; gone on by another
number of ranks; ended by a signal, a death, a rank that hangs, and wrong flags."""
import os
import re
import shutil
import signal
import sys
import time

from launchers_test import MPICH, OPEN_MPI
from processes_test import write_mnist
from tenon_process import TENON, Process, free_addresses, in_a_folder, main, run

LAUNCH = [TENON, "launch", "--allreduce", "--workers"]
SIMULATED = os.path.join(os.path.dirname(TENON), "simulated")
# The simulated device as each task's GPU.
ON_GPUS = ["--env", f"TENON_CUDA_PLUGIN={SIMULATED}/libtenon_simulated.so", "--env", f"LD_LIBRARY_PATH={SIMULATED}"]


def ranks_by(launch, ranks, command):
    """The command with so many ranks, by tenon launch or by an mpirun."""
    return [*launch, ranks, *(["--"] if launch is LAUNCH else []), *command]


def training(folder, *more):
    images = os.path.join(folder, "mnist")
    if not os.path.exists(images):
        os.mkdir(images)
        write_mnist(images)
    return [TENON, "train", "mnist", "--data", images, *more]


def results(text):
    """The (accuracy, step) that each process has reported."""
    return [(float(a), int(s)) for a, s in re.findall(r"test accuracy: ([\d.]+) \(step (\d+)\)", text)]


def pids(text):
    return [int(p) for p in re.findall(r"worker \d at .*, process (\d+)", text)]


class EndlessTraining:
    """Ranks that train until something ends them, from their first steps on."""

    def __init__(self, folder, ranks, *more, launch=LAUNCH):
        self.checkpoints = os.path.join(folder, "run")
        shutil.rmtree(self.checkpoints, ignore_errors=True)
        self.launcher = Process(*ranks_by(launch, ranks, training(
            folder, "--max_steps", 10**8, "--checkpoint_dir", self.checkpoints, "--save_seconds", 0.2, *more)))

    def __enter__(self):
        self.launcher.__enter__()
        deadline = time.monotonic() + 60
        while not re.search(r"saved .*model\.ckpt-[1-9]", self.launcher.text()):
            assert time.monotonic() < deadline and self.launcher.process.poll() is None, self.launcher.text()
            time.sleep(0.05)
        return self.launcher

    def __exit__(self, *error):
        self.launcher.__exit__(*error)


def as_one_process(folder, *more, launch=LAUNCH, numbers=(1, 2, 3)):
    """The ranks' batches together are those of one process, and so are the results, but for rounding."""
    alone = run(*training(folder, "--max_steps", 40, "--batch", 12))
    assert alone.returncode == 0, alone.stderr
    (wanted,) = results(alone.stdout)
    for ranks in numbers:
        command = training(folder, "--max_steps", 40, "--batch", 12 // ranks, *more)
        done = run(*ranks_by(launch, ranks, command))
        assert done.returncode == 0, done.stdout + done.stderr
        found = results(done.stdout)
        assert len(found) == ranks and len(set(found)) == 1, done.stdout
        assert found[0][1] == 40 and abs(found[0][0] - wanted[0]) < 0.05, (found, wanted)


def mpi(launch):
    def case(folder):
        done = run(*launch, 3, *training(folder, "--max_steps", 20, "--batch", 4))
        assert done.returncode == 0, done.stdout + done.stderr
        found = results(done.stdout)
        assert len(found) == 3 and len(set(found)) == 1 and found[0][1] == 20, done.stdout
        assert "/job:ps" not in done.stdout, done.stdout
        assert len(re.findall(r"^task: /job:worker/replica:0/task:[012] ", done.stdout, re.MULTILINE)) == 3, done.stdout
        done = run(*launch, 2, *training(folder, "--allreduce", "--num_ps", 1))
        assert done.returncode != 0 and "--allreduce trains without parameter servers" in done.stderr, done
    return case


def another_number_goes_on(folder):
    checkpoints = os.path.join(folder, "run")
    for ranks, steps, said in ((2, 10, None), (3, 20, "went on from step 10"), (1, 30, "went on from step 20")):
        done = run(*LAUNCH, ranks, "--", *training(folder, "--max_steps", steps, "--checkpoint_dir", checkpoints))
        assert done.returncode == 0, done.stdout + done.stderr
        assert set(s for _, s in results(done.stdout)) == {steps}, done.stdout
        assert said is None or f"[worker 0] {said}" in done.stdout, done.stdout
    assert os.path.exists(os.path.join(checkpoints, "model.ckpt-30.index")), os.listdir(checkpoints)
    assert os.path.exists(os.path.join(checkpoints, "learning_curve.svg"))


def a_signal(folder):
    endless = EndlessTraining(folder, 2)
    with endless as launcher:
        launcher.process.send_signal(signal.SIGTERM)
        assert launcher.finish() == 143, launcher.text()
    steps = re.findall(r"stopped by a signal after step (\d+)", launcher.text())
    assert len(steps) == 2 and steps[0] == steps[1], launcher.text()
    saved = os.listdir(endless.checkpoints)
    assert f"model.ckpt-{steps[0]}.index" in saved, (steps, saved)


def a_signal_to_one(folder):
    """All ranks end after the same step when one gets a signal."""
    with EndlessTraining(folder, 2) as launcher:
        os.kill(pids(launcher.text())[1], signal.SIGTERM)
        launcher.finish()
    steps = set(s for _, s in results(launcher.text()))
    assert len(results(launcher.text())) == 2 and len(steps) == 1, launcher.text()


def a_death(folder):
    for victim in (0, 1, 2):
        with EndlessTraining(folder, 3) as launcher:
            os.kill(pids(launcher.text())[victim], signal.SIGKILL)
            begin = time.monotonic()
            assert launcher.finish() == 1, launcher.text()
            assert time.monotonic() - begin < 40, launcher.text()  # ranks give up after minutes
        text = launcher.text()
        assert f"worker {victim}] was ended by signal 9" in text, text
        for rank in {0, 1, 2} - {victim}:
            assert re.search(rf"\[worker {rank}\] .*(rank {victim} has gone|rank 0, which keeps the notes)", text), text


def one_that_hangs(folder):
    """The others end within the limit, and say who did not come."""
    with EndlessTraining(folder, 3, "--rank_limit", 5) as launcher:
        victim = pids(launcher.text())[2]
        os.kill(victim, signal.SIGSTOP)
        begin = time.monotonic()
        launcher.wait_for("rank 2 did not come within 5000 ms")
        assert time.monotonic() - begin < 40, launcher.text()
        os.kill(victim, signal.SIGCONT)
        assert launcher.finish() == 1, launcher.text()


def different_programs(folder):
    """Two ranks whose graphs differ are told so, and do not wait for the limit."""
    addresses = ",".join(free_addresses(2))
    flags = ["--worker_hosts", addresses, "--job_name", "worker", "--allreduce", "--max_steps", 100]
    with Process(*training(folder, *flags, "--task_index", 0)) as first, \
            Process(*training(folder, *flags, "--task_index", 1, "--model", "classic")) as second:
        assert first.finish(90) == 1 and second.finish(90) == 1, first.text() + second.text()
    text = first.text() + second.text()
    assert "the ranks do not do the same" in text and "HorovodBroadcast" in text, text


def one_that_never_comes(folder):
    """Whichever of the ranks it is, the others say who."""
    for missing in (0, 1):
        addresses = ",".join(free_addresses(2))
        command = training(folder, "--worker_hosts", addresses, "--job_name", "worker", "--task_index", 1 - missing,
                           "--allreduce", "--start_up_deadline", 2)
        begin = time.monotonic()
        done = run(*command)
        assert done.returncode == 1 and time.monotonic() - begin < 40, done
        assert f"rank {1 - missing} of 2 cannot join the others from 127.0.0.1: " in done.stderr, done
        assert ("rank 1: it has not come within 2000 ms" if missing else addresses.split(",")[0]) in done.stderr, done


def by_gpus(folder):
    """Gradients that stay in the memory of the ranks' devices, and those that go by way of the hosts', are the same."""
    found = []
    for library in ("nccl", "auto", "gloo"):
        done = run(*LAUNCH, 2, *ON_GPUS, "--", *training(folder, "--max_steps", 30, "--collectives", library))
        assert done.returncode == 0, done.stdout + done.stderr
        assert "by way of the hosts' memory" not in done.stdout, done.stdout
        found.append(results(done.stdout))
    assert len(set(found[0])) == 1 and found[0] == found[1] == found[2], found
    # One of the ranks has no GPU: then all go by way of the hosts' memory, or end.
    addresses = ",".join(free_addresses(2))
    for library, code in (("auto", 0), ("nccl", 1)):
        command = training(folder, "--allreduce", "--max_steps", 30, "--collectives", library, "--worker_hosts", addresses,
                           "--job_name", "worker", "--task_index")
        gpu = dict(setting.split("=", 1) for setting in ON_GPUS[1::2])
        with Process(*command, 1, env={**os.environ, **gpu}) as other:
            done = run(*command, 0)
            assert done.returncode == code and other.finish() == code, done.stdout + done.stderr + other.text()
        why = "rank 0: it has no GPU"
        if code:
            assert f"ranks cannot join by NCCL, which one of them asks for: {why}" in done.stderr, done.stderr
            assert why in other.text(), other.text()
        else:
            assert f"collectives of GPUs go by way of the hosts' memory: {why}" in done.stdout, done.stdout
            assert results(done.stdout) == results(other.text()), (done.stdout, other.text())


def wrong_uses(folder):
    done = run(*training(folder, "--rank_limit", 1))
    assert done.returncode == 2 and "--rank_limit is one of --allreduce" in done.stderr, done
    done = run(*training(folder, "--sync", "--allreduce"))
    assert done.returncode == 2 and "--sync and --allreduce exclude each other" in done.stderr, done
    done = run(*LAUNCH, 2, "--ps", 1, "--", "true")
    assert done.returncode == 2 and "--ps and --allreduce exclude each other" in done.stderr, done
    done = run(TENON, "launch", "--ps", 1, "--workers", 1, "--", *training(folder, "--allreduce"))
    assert done.returncode == 1 and "--allreduce trains without parameter servers, and the cluster has 1" in done.stdout, done
    done = run(*LAUNCH, 2, "--env", "TENON_GLOO_PLUGIN=/nowhere.so", "--", *training(folder))
    assert done.returncode == 1, done
    assert "the plugin for collectives by gloo is missing: TENON_GLOO_PLUGIN names /nowhere.so" in done.stdout, done


if __name__ == "__main__":
    cases = [(case.__name__.replace("_", " "), in_a_folder(case))
             for case in (as_one_process, another_number_goes_on, a_signal, a_signal_to_one, a_death, one_that_hangs,
                          different_programs, one_that_never_comes, by_gpus, wrong_uses)]
    for name, launch in (("Open MPI", OPEN_MPI), ("MPICH", MPICH)):
        if shutil.which(launch[0]):
            cases.append((name, in_a_folder(mpi(launch))))
        else:
            print(f"skipped: {name}: {launch[0]} is not installed")
    sys.exit(main(cases))
