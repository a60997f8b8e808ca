#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How asynchronous training grows with the workers and the parameter servers of one machine.

Usage: share/bench/parameter_servers.py [--build FOLDER] [--data FOLDER] [--ps N ...] [--workers N ...] [--rounds N] [--steps N].
Each line has medians over the rounds of a `tenon launch -- tenon train mnist`: the steps a second of all workers, the slowest
worker's part of the fastest one's, the processor's time of a step in all tasks without their start and end, that in the parameter
servers, how much of all cores the first one is, and the memory that a parameter server has of its own at its most.
"""
import argparse
import os
import re
import resource
import statistics
import subprocess
import threading

TICKS = os.sysconf("SC_CLK_TCK")


def own_memory(process):
    """MiB that a process shares with nobody's files, or 0 where it has ended."""
    try:
        with open(f"/proc/{process}/status", encoding="utf-8") as status:
            return int(re.search(r"RssAnon:\s+(\d+)", status.read())[1]) / 1024
    except (OSError, TypeError):
        return 0.0


def processor_time(process):
    """Seconds until now, or 0 where it has ended."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8") as stat:
            return sum(int(ticks) for ticks in stat.read().rsplit(")", 1)[1].split()[11:13]) / TICKS
    except OSError:
        return 0.0


def servers_of(launcher):
    """The processes of parameter servers that this one has started."""
    found = []
    for task in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{task}/stat", encoding="utf-8") as stat:
                parent = int(stat.read().rsplit(")", 1)[1].split()[1])
            with open(f"/proc/{task}/cmdline", encoding="utf-8") as command:
                if parent == launcher and "--job_name=ps" in command.read().split("\0"):
                    found.append(int(task))
        except OSError:
            pass
    return found


class Watch:
    """The greatest own_memory of the parameter servers while they run, and the processor's time of all of them."""

    def __init__(self, launcher):
        self.launcher, self.most, self.times, self.ended = launcher, 0.0, {}, threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        servers = []
        while not self.ended.wait(.1):
            servers = servers or servers_of(self.launcher)
            self.most = max([self.most, *map(own_memory, servers)])
            for server in servers:
                self.times[server] = max(processor_time(server), self.times.get(server, 0.0))

    def end(self):
        self.ended.set()
        self.thread.join()
        return self.most, sum(self.times.values())


def train(flags, servers, workers, steps):
    """[steps a second of each worker], seconds of the processor, those of the parameter servers, MiB"""
    tenon = os.path.join(flags.build, "tenon")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with subprocess.Popen([tenon, "launch", "--ps", str(servers), "--workers", str(workers), "--", tenon, "train", "mnist", "--data",
                           flags.data, "--max_steps", str(steps)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True) as launch:
        watch = Watch(launch.pid)
        said = launch.stdout.read()
    memory, in_servers = watch.end()
    if launch.returncode != 0:
        raise SystemExit(said)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    rates = [float(rate) for rate in re.findall(r"steps per second, of this worker: ([\d.]+)", said)]
    return rates or [float(re.search(r"steps per second: ([\d.]+)", said)[1])], processor, in_servers, memory


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--data", default="share/mnist")
    parser.add_argument("--ps", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 8, 16, 32])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=6000, help="in all")
    flags = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    print(f"{'ps':>3} {'workers':>8} {'steps/s':>9} {'slowest/fastest':>16} {'ms of a core a step':>20} {'in a ps':>8} "
          f"{'of the cores':>13} {'MiB of a ps':>12}")
    for servers in flags.ps:
        for workers in flags.workers:
            rounds = []
            for _ in range(flags.rounds):
                _, start, _, _ = train(flags, servers, workers, 1)
                rates, processor, in_servers, memory = train(flags, servers, workers, flags.steps)
                step = max(processor - start, 1 / TICKS) / flags.steps
                rounds.append((sum(rates), min(rates) / max(rates), step * 1e3, in_servers / flags.steps * 1e3,
                               sum(rates) * step / cores, memory))
            rate, fairness, step, of_servers, load, memory = map(statistics.median, zip(*rounds))
            print(f"{servers:3} {workers:8} {rate:9.0f} {fairness:16.2f} {step:20.2f} {of_servers:8.2f} {load:13.2f} {memory:12.1f}",
                  flush=True)


if __name__ == "__main__":
    main()
