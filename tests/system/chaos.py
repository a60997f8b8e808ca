#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws faults and lets real trainings meet them: tasks killed, stopped, ended by SIGTERM and started again by
the same command; a disk that is full; a folder of checkpoints that is removed; tasks cut off one way and
both, links that lose and delay; and two at once. Every training must end as it would have: exit codes 0,
its last step saved and readable, with the same bits where that is promised, nobody silent for long while
waiting, no process and no file left behind.

    tools/chaos.sh --schedules 200 --seed 7      # prints a line a schedule, then how often each fault struck
    tools/chaos.sh --only 17 --seed 7            # one of them again, with all output

A schedule is made by the seed and its number alone. What the machine does meanwhile is not."""
import argparse
import collections
import concurrent.futures
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback

import chaos_jobs
from chaos_network import Network, can_make_networks
from processes_test import write_mnist
from tenon_process import TENON, run

FAULTS = ["kill", "stop", "term", "disk full", "folder removed", "cut one way", "cut both ways",
          "loss and delay", "two at once"]
ON_NETWORK = {"cut one way", "cut both ways", "loss and delay"}
ON_DISK = {"disk full", "folder removed"}
# A training that stands still for so long must say why; a line may come as much later, since one wait may
# follow another that ended before it was due.
SILENCE, SLACK = 5, 5
LIMIT = 240


class Fault:
    """One that strikes `task`, so many seconds after the training is under way, for so long."""

    def __init__(self, kind, task, other, at, lasts):
        self.kind, self.task, self.other, self.at, self.lasts = kind, task, other, at, lasts
        self.struck = False

    def __str__(self):
        where = {"disk full": "", "folder removed": ""}.get(self.kind, f" {self.task}")
        if self.other:
            where += f" and {self.other}"
        return f"{self.kind}{where} at {self.at:.1f} s for {self.lasts:.1f} s"


class Schedule:
    def __init__(self, number, seed, scale):
        draw = random.Random(f"{seed} {number}")
        kinds = chaos_jobs.kinds(scale)
        what = FAULTS[number % len(FAULTS)]
        chosen = [what]
        if what == "two at once":
            chosen = draw.sample(FAULTS[:-1], 2)
        # TensorFlow's own session dies when it cannot save.
        may_be_monitored = os.path.exists(chaos_jobs.TF_PYTHON) and not ON_DISK & set(chosen)
        names = [n for n in kinds if n != "monitored" or may_be_monitored]
        if ON_NETWORK & set(chosen):
            names.remove("supervisor")  # whose example has no flag for files beyond loopback
        self.number, self.what = number, what
        self.name = draw.choice(names)
        self.kind = kinds[self.name]
        self.on_network = bool(ON_NETWORK & set(chosen))
        tasks = self.kind.tasks()
        hosts = list(tasks)
        if self.name == "monitored":
            tasks += [f"client {i}" for i in range(self.kind.workers)]
        self.faults = []
        at = draw.uniform(.3, 3)
        for kind in chosen:
            task = draw.choice(hosts if kind in ON_NETWORK else tasks)
            other = draw.choice([t for t in hosts if t != task]) if (
                kind in ON_NETWORK and draw.random() < .5) else None
            lasts = {"kill": (.2, 6), "term": (.2, 6), "stop": (1, 20), "disk full": (1, 7),
                     "folder removed": (0, 0), "cut one way": (1, 18), "cut both ways": (1, 18),
                     "loss and delay": (3, 15)}[kind]
            shorter = 1 if scale >= 1 else .4
            self.faults.append(Fault(kind, task, other, at, draw.uniform(*lasts) * shorter))
            at += draw.uniform(0, 1)

    def __str__(self):
        return f"{self.number:3d} {self.name}: " + "; ".join(map(str, self.faults))


class Run:
    """A schedule on its way."""

    def __init__(self, schedule, job, network, disk):
        self.schedule, self.job, self.network, self.disk = schedule, job, network, disk
        self.problems, self.down, self.asked_to_end = [], set(), set()
        self.lock = threading.Lock()

    def strike(self, fault):
        time.sleep(fault.at)
        process = self.job.tasks.get(fault.task)
        name = fault.kind.replace(" ", "_")
        if fault.kind in ("kill", "stop", "term") and not process.lives():
            return  # it has ended before
        fault.struck = True
        getattr(self, name)(fault, process)

    def again(self, fault, process):
        time.sleep(fault.lasts)
        if self.had_done_all(fault.task, process):
            self.asked_to_end.add((fault.task, process.process.poll()))
            return
        self.job.start(fault.task)

    def had_done_all(self, task, process):
        """Whether a task that was struck was about to end by itself, and the others, who have ended, need it no more."""
        others = [t for t in self.job.kind.tasks() if t != task] if task == "ps 0" else ["ps 0"]
        return (task == "ps 0" or "total time" in process.text().lower()) and \
            all(self.job.tasks[t].process.poll() == 0 for t in others)

    def kill(self, fault, process):
        process.process.kill()
        process.finish()
        self.down.add(fault.task)
        self.again(fault, process)
        self.down.discard(fault.task)

    def stop(self, fault, process):
        process.process.send_signal(signal.SIGSTOP)
        self.down.add(fault.task)
        time.sleep(fault.lasts)
        process.process.send_signal(signal.SIGCONT)
        self.down.discard(fault.task)

    def term(self, fault, process):
        process.process.terminate()
        if fault.task.startswith("ps") and self.job.name != "monitored":
            # A parameter server ends with the workers, and as any process where these have ended.
            self.asked_to_end.update([(fault.task, 128 + signal.SIGTERM), (fault.task, -signal.SIGTERM)])
            return
        try:
            code = process.finish(40)
        except subprocess.TimeoutExpired:
            self.problems.append(f"{fault.task} has not ended 40 s after SIGTERM")
            return
        # Before its session is open, or as TensorFlow's client, it ends as any process.
        if code not in (0, 128 + signal.SIGTERM, -signal.SIGTERM):
            self.problems.append(f"{fault.task} ended with {code} after SIGTERM")
        self.down.add(fault.task)
        self.again(fault, process)
        self.down.discard(fault.task)

    def disk_full(self, fault, _):
        filler = os.path.join(self.disk, "filler")
        with contextlib.suppress(OSError), open(filler, "wb", buffering=0) as out:
            while True:
                out.write(bytes(1 << 16))
        time.sleep(fault.lasts)
        os.remove(filler)

    def folder_removed(self, _fault, _process):
        # At once, which rmtree is not while somebody writes there.
        with contextlib.suppress(FileNotFoundError):
            os.rename(self.job.folder, self.job.removed)

    def links(self, fault, both, **how):
        hosts = self.job.kind.tasks()
        others = [fault.other] if fault.other else [t for t in hosts if t != fault.task]
        for other in others:
            self.network.set_link(fault.task, other, **how)
            if both:
                self.network.set_link(other, fault.task, **how)

    def cut(self, fault, both):
        self.links(fault, both, loss=1)
        self.down.add(fault.task)
        time.sleep(fault.lasts)
        self.links(fault, both)
        self.down.discard(fault.task)

    def cut_one_way(self, fault, _):
        self.cut(fault, False)

    def cut_both_ways(self, fault, _):
        self.cut(fault, True)

    def loss_and_delay(self, fault, _):
        self.links(fault, True, loss=.2, delay=.03)
        time.sleep(fault.lasts)
        self.links(fault, True)

    def watch_silence(self, end):
        """Each worker that waits, as all in step do while nothing is saved, must say so."""
        step, since, told = -1, time.monotonic(), set()
        started, was_down = {}, {}
        while not end.wait(.25):
            now = time.monotonic()
            was_down.update(dict.fromkeys(self.down, now))
            for task, process in list(self.job.tasks.items()):
                started.setdefault(process, now)
            saved = self.job.saved_step()
            if saved != step:
                step, since = saved, now
                continue
            all_wait = "--sync" in self.job.kind.flags or "ps 0" in self.down
            if now - since < SILENCE + SLACK or not all_wait or self.job.name == "monitored":
                continue
            for task, process in list(self.job.tasks.items()):
                quiet = now - max(process.spoke, started[process], since, was_down.get(task, 0))
                if task.startswith("worker") and task not in self.down and process.lives() and \
                        quiet > SILENCE + SLACK and task not in told:
                    told.add(task)
                    self.problems.append(f"{task} waits and has said nothing for {quiet:.0f} s")

    def finish(self, tasks):
        """Waits for their end, after all faults."""
        deadline = time.monotonic() + LIMIT
        for task in tasks:
            try:
                code = self.job.tasks[task].finish(max(1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.problems.append(f"{task} has not ended in {LIMIT} s")
                return False
            # A signal that asks for the end is told by the code; a worker that got one is started again.
            if code != 0 and (task, code) not in self.asked_to_end:
                self.codes[task] = code
        return True

    def let_server_end(self):
        """Returns when the parameter server has ended, or says that no worker has told it of its end: all workers have
        ended, and a failure that it has heard of ends it."""
        deadline = time.monotonic() + 30
        while self.job.tasks["ps 0"].lives() and time.monotonic() < deadline:
            if "; ended tasks: none" in run(TENON, "status", "grpc://" + self.job.addresses["ps 0"]).stdout:
                return
            time.sleep(.1)

    def go(self, reference):
        job, schedule = self.job, self.schedule
        self.codes = {}
        job.start_all()
        deadline = time.monotonic() + 180
        while not job.is_under_way():
            if time.monotonic() > deadline:
                return ["it has not begun in 180 s"]
            time.sleep(.05)
        end = threading.Event()
        watcher = threading.Thread(target=self.watch_silence, args=[end])
        watcher.start()
        strikes = [threading.Thread(target=self.strike, args=[f]) for f in schedule.faults]
        for s in strikes:
            s.start()
        for s in strikes:
            s.join()
        lost_ps = any(f.struck and f.kind == "kill" and f.task == "ps 0" for f in schedule.faults)
        if lost_ps and not job.kind.recovers:
            self.finish([t for t in job.ends() if t != "ps 0"])
            if self.codes:
                # Documented: the workers end, and the same commands go on from the last checkpoint. The
                # parameter server, started again meanwhile, has heard of it, or waits for them.
                self.codes = {}
                self.let_server_end()
                for task in job.kind.tasks():
                    if not job.tasks[task].lives():
                        job.start(task)
        ended = self.finish(job.ends())
        end.set()
        watcher.join()
        for task, code in self.codes.items():
            self.problems.append(f"{task} ended with {code}")
        if isinstance(job, chaos_jobs.MonitoredJob) and ended:
            for task, code in job.stop_servers().items():
                if code != 0:
                    self.problems.append(f"server {task} ended with {code}")
        if ended:
            self.problems.extend(job.check_end(reference))
        return self.problems


@contextlib.contextmanager
def small_disk(size="48m"):
    """A file system that can be filled."""
    folder = tempfile.mkdtemp(prefix="tenon-chaos-")
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)
        os.rmdir(folder)


def undisturbed(data, scale):
    """The checkpoints of the exact kinds, by name, and the folders that hold them."""
    checkpoints = {}
    folder = tempfile.mkdtemp(prefix="tenon-chaos-")
    for name, kind in chaos_jobs.kinds(scale).items():
        if kind.exact:
            with chaos_jobs.make(name, kind, data, os.path.join(folder, name), None) as job:
                job.start_all()
                for task in job.ends():
                    assert job.tasks[task].finish(LIMIT) == 0, job.text()
                checkpoints[name] = job.latest()
    return checkpoints, folder


def run_schedule(schedule, data, references):
    """(what is wrong, the output of all tasks, seconds)"""
    begin = time.monotonic()
    text = ""
    try:
        with contextlib.ExitStack() as stack:
            disk = stack.enter_context(small_disk())
            network = (stack.enter_context(Network(schedule.kind.tasks())) if schedule.on_network
                       else None)
            job = stack.enter_context(chaos_jobs.make(schedule.name, schedule.kind, data,
                                                      os.path.join(disk, "run"), network))
            problems = Run(schedule, job, network, disk).go(references.get(schedule.name))
            text = job.text()
    except Exception:  # One schedule that could not be carried out must not hide the others.
        problems = [traceback.format_exc()]
    return problems, text, time.monotonic() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedules", type=int, default=9, help="how many")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--only", type=int, nargs="+", help="numbers of some, whose output is shown")
    parser.add_argument("--short", action="store_true", help="short trainings and faults")
    parser.add_argument("--at_once", type=int, default=2)
    flags = parser.parse_args()
    if not can_make_networks():
        print("skipped: needs root, `ip` and /dev/net/tun, to make network namespaces")
        return 77
    scale = .4 if flags.short else 1
    numbers = range(flags.schedules) if flags.only is None else flags.only
    schedules = [Schedule(n, flags.seed, scale) for n in numbers]
    failed, struck = 0, collections.Counter()
    with tempfile.TemporaryDirectory() as data:
        write_mnist(data)
        references, held = undisturbed(data, scale)
        try:
            with concurrent.futures.ThreadPoolExecutor(flags.at_once) as pool:
                runs = {pool.submit(run_schedule, s, data, references): s for s in schedules}
                for done in concurrent.futures.as_completed(runs):
                    schedule = runs[done]
                    problems, text, seconds = done.result()
                    struck.update(f.kind for f in schedule.faults if f.struck)
                    if schedule.what == "two at once" and all(f.struck for f in schedule.faults):
                        struck["two at once"] += 1
                    print(f"{'FAILED' if problems else 'ok'} {schedule}; {seconds:.0f} s", flush=True)
                    for problem in problems:
                        print(f"    {problem}")
                    if problems or flags.only is not None:
                        failed += bool(problems)
                        print(text, flush=True)
        finally:
            shutil.rmtree(held)
    print(f"{len(schedules)} schedules, {failed} failed; struck: " +
          ", ".join(f"{kind} {struck[kind]}" for kind in FAULTS))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
