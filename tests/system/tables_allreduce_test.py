#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""examples/tables_allreduce.cc, alone, under tenon launch and under mpirun: the same model, near the greatest area
under the ROC curve that there is; ranks with more and fewer rows end together; folders with mistakes end all ranks,
each of which says why; a training that a signal has ended goes on."""
import os
import random
import re
import shutil
import signal
import sys
import time

from launchers_test import MPICH, OPEN_MPI
from tenon_process import BINARY, SOURCE, TENON, Process, in_a_folder, main, run

sys.path.append(os.path.join(SOURCE, "share", "bench"))
import make_tables  # noqa: E402  pylint: disable=wrong-import-position

PROGRAM = os.path.join(BINARY, "example_tables_allreduce")
ALONE, LAUNCH = [], [TENON, "launch", "--allreduce", "--workers", 2, "--"]
# Two ranks of Open MPI are bound to a core each, which others may use.
MPIRUNS = {"Open MPI": [OPEN_MPI[0], "--bind-to", "none", *OPEN_MPI[1:]], "MPICH": MPICH}
ROWS = 8000
# How near areas are.
APART, FROM_BEST = .001, .003
SECONDS = 50  # for a job that cannot begin: ranks that wait for others give up after 60


def mpiruns():
    return {name: command for name, command in MPIRUNS.items() if shutil.which(command[0])}


def train(launch, folder, *flags):
    """What it prints, without the prefixes of tenon launch."""
    done = run(*launch, PROGRAM, "--data", folder, *flags)
    assert done.returncode == 0, done.stdout + done.stderr
    return re.sub(r"^\[worker \d\] ", "", done.stdout, flags=re.M)


def best_of(printed):
    """The restart, its loss and its area, which one rank alone has printed."""
    (found,) = re.findall(r"^best: restart (\d+), loss (\S+), AUC (\S+) of (\d+) rows", printed, re.M)
    return int(found[0]), float(found[1]), float(found[2])


def rows_of_ranks(printed):
    """{rank: (rows, shards)}"""
    return {int(rank): (int(rows), int(shards)) for rank, rows, shards in
            re.findall(r"^rank (\d+) of \d+: (\d+) rows of 20 descriptors in (\d+) shards$", printed, re.M)}


def losses(printed):
    return re.findall(r"^restart \d+: loss (\S+)$", printed, re.M)


def the_same_everywhere(folder):
    tables = os.path.join(folder, "tables")
    greatest = make_tables.write_shards(tables, 5, ROWS, 1)
    flags = ["--restarts", 3]
    alone = train(ALONE, tables, *flags)
    assert rows_of_ranks(alone) == {0: (ROWS, 5)}, alone
    runs = {"tenon launch": train(LAUNCH, tables, *flags)}
    for name, mpirun in mpiruns().items():
        runs[name] = train([*mpirun, 2], tables, *flags)
    restart, loss, area = best_of(alone)
    assert loss == min(float(text) for text in losses(alone)) == float(losses(alone)[restart - 1]), alone
    assert abs(area - greatest) < FROM_BEST, (area, greatest)
    for name, printed in runs.items():
        assert rows_of_ranks(printed) == {0: (4800, 3), 1: (3200, 2)}, printed
        # Two ranks do the same whoever has started them.
        assert losses(printed) == losses(runs["tenon launch"]) and len(losses(printed)) == 3, (name, runs)
        assert abs(best_of(printed)[2] - area) < APART, (name, printed, alone)
        assert abs(best_of(printed)[2] - greatest) < FROM_BEST, (name, printed, greatest)


def chosen_shards_and_columns(folder):
    tables = os.path.join(folder, "tables")
    make_tables.write_shards(tables, 5, 1003, 1)
    flags = ["--restarts", 1, "--iterations", 10]
    div = train(LAUNCH, tables, "--partition_strategy", "div", *flags)
    assert rows_of_ranks(div) == {0: (603, 3), 1: (400, 2)}, div  # of 201, 201, 201, 200, 200
    few = train(LAUNCH, tables, "--descriptors", "x5,x1", *flags)
    assert "rank 1 of 2: 401 rows of 2 descriptors in 2 shards" in few, few


def parameter_servers_are_refused(folder):
    done = run(TENON, "launch", "--ps", 1, "--workers", 1, "--", PROGRAM, "--data", folder)
    assert done.returncode == 1, done
    assert "ranks train without parameter servers, and the cluster has 1" in done.stdout, done.stdout


def uneven_ranks(folder):
    """Ranks with folders of their own: of one shard and of five, of which the last has three rows; and of three rows
    alone."""
    one, five, three = (os.path.join(folder, name) for name in ("one", "five", "three"))
    make_tables.write_shards(five, 7, 3500, 1)
    for name, moved in ((one, 0), (three, 6)):
        os.mkdir(name)
        shutil.move(os.path.join(five, f"shard_{moved:03d}"), name)
    for last in (os.path.join(five, "shard_005"), os.path.join(three, "shard_006")):
        path = os.path.join(last, "descriptors.tsv")
        with open(path, encoding="utf-8") as file:
            lines = list(file)[:4]
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(lines)
    flags = ["--partition_strategy", "own", "--restarts", 2, "--iterations", 300]
    for name, mpirun in mpiruns().items():
        for first, second, wanted in ((one, five, {0: (500, 1), 1: (2003, 5)}),
                                      (five, three, {0: (2003, 5), 1: (3, 1)})):
            done = run(*mpirun, 1, PROGRAM, "--data", first, *flags, ":", "-np", 1, PROGRAM, "--data", second, *flags)
            assert done.returncode == 0, (name, done.stdout + done.stderr)
            assert rows_of_ranks(done.stdout) == wanted and len(losses(done.stdout)) == 2, (name, done.stdout)
            best_of(done.stdout)


def change_line(path, number, change):
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    changed = change(lines[number - 1].split("\t"))
    lines[number - 1:number] = [] if changed is None else ["\t".join(changed)]
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines))


def add_line(path, fields):
    with open(path, "a", encoding="utf-8") as file:
        file.write("\t".join(fields) + "\n")


def mistakes(tables):
    """(what is wrong, how it becomes so, flags, ranks, what all ranks say) of a folder of four shards, 50 rows each."""
    def file(shard, name):
        return os.path.join(tables, f"shard_{shard:03d}", name + ".tsv")

    def first_id(shard):
        with open(file(shard, "descriptors"), encoding="utf-8") as opened:
            return list(opened)[1].split("\t")[0]

    def line_of(shard, name, wanted):
        with open(file(shard, name), encoding="utf-8") as opened:
            return [line.split("\t")[0] for line in opened].index(wanted) + 1

    def drop_target():
        change_line(file(2, "targets"), line_of(2, "targets", first_id(2)), lambda _: None)

    def empty_odd_shards():
        for shard in (1, 3):
            change_lines(file(shard, "descriptors"), 1)

    def change_lines(path, kept):
        with open(path, encoding="utf-8") as opened:
            lines = list(opened)[:kept]
        with open(path, "w", encoding="utf-8") as opened:
            opened.writelines(lines)

    def copy_row(source, target):
        with open(file(source, "descriptors"), encoding="utf-8") as opened:
            add_line(file(target, "descriptors"), list(opened)[1].rstrip("\n").split("\t"))
        add_line(file(target, "targets"), [first_id(source), "1"])

    def one_class():
        for shard in range(4):
            for line in range(2, 53):
                change_line(file(shard, "targets"), line, lambda fields: [fields[0], "1"])

    descriptors = file(1, "descriptors")
    return [
        ("a file is missing", lambda: os.remove(file(1, "targets")), [], 2,
         f"NOT_FOUND: rank 1: cannot open '{file(1, 'targets')}': No such file or directory"),
        ("a field is no number", lambda: change_line(descriptors, 5, lambda f: [*f[:3], "abc", *f[4:]]), [], 2,
         f"rank 1: '{descriptors}', line 5: column 'x2': found 'abc', wanted float"),
        ("a field is not finite", lambda: change_line(descriptors, 6, lambda f: [*f[:3], "-inf", *f[4:]]), [], 2,
         f"rank 1: '{descriptors}', line 6: column 'x2': found -inf, wanted a finite number"),
        ("a field is missing", lambda: change_line(descriptors, 7, lambda f: f[:-1]), [], 2,
         f"rank 1: '{descriptors}', line 7: found 20 fields, wanted 21"),
        ("a target is no class", lambda: change_line(file(0, "targets"), 4, lambda f: [f[0], "2"]), [], 2,
         f"rank 0: '{file(0, 'targets')}', line 4: column 'target': found '2', wanted bool"),
        ("an ID has no target", drop_target, [], 2,
         f"rank 0: '{file(2, 'descriptors')}', line 2: ID 's2-0' has no row in '{file(2, 'targets')}'"),
        ("an ID comes twice in a shard", lambda: copy_row(1, 1), [], 2,
         f"rank 1: '{descriptors}', line 52: ID 's1-0' is that of line 2, too"),
        ("an ID comes in two shards of a rank", lambda: copy_row(1, 3), [], 2,
         f"rank 1: '{file(3, 'descriptors')}', line 52: ID 's1-0' is that of '{descriptors}', line 2, too"),
        ("an ID comes on two ranks", lambda: copy_row(0, 1), [], 2,
         f"rank 1: '{descriptors}', line 52: ID 's0-0' is that of a row of rank 0, too"),
        ("a column of the schema is missing", lambda: None, ["--descriptors", "x3,weight"], 2,
         f"rank 1: '{descriptors}' has no column 'weight'; it has ID, x0, x1"),
        ("the target's column is missing", lambda: None, ["--target", "active"], 2,
         f"rank 0: '{file(0, 'targets')}' has no column 'active'; it has ID, target"),
        ("more ranks than shards", lambda: None, [], 6,
         f"FAILED_PRECONDITION: ranks 4, 5: no shard is left for it: '{tables}' has 4 and there are 6 ranks"),
        ("a rank without rows", empty_odd_shards, [], 2,
         "FAILED_PRECONDITION: rank 1: it has no rows: there is none in 'descriptors.tsv' of its 2 shards"),
        ("all rows are of one class", one_class, [], 2, "all ranks: all targets are 1, wanted some of 0 and some of 1"),
        ("there is no folder", lambda: shutil.rmtree(tables), [], 2, f"all ranks: cannot list '{tables}'"),
        ("an empty file", lambda: change_lines(descriptors, 0), [], 2,
         f"rank 1: '{descriptors}' is empty, wanted a first line with the names of columns"),
    ]


def mistakes_under(name, mpirun):
    def case(folder):
        tables = os.path.join(folder, "tables")
        for what, spoil, flags, ranks, wanted in mistakes(tables):
            shutil.rmtree(tables, ignore_errors=True)
            make_tables.write_shards(tables, 4, 200, 1)
            spoil()
            begin = time.monotonic()
            done = run(*mpirun, ranks, PROGRAM, "--data", tables, *flags)
            assert done.returncode != 0, (name, what)
            assert time.monotonic() - begin < SECONDS, (name, what)
            told = [line for line in done.stdout.split("\n") if "all ranks end: " in line and wanted in line]
            assert len(told) == ranks, (name, what, wanted, done.stdout + done.stderr)
    return case


def a_signal(folder):
    """To one rank ends all after the same step; the same command goes on, and a restart that is over is not done
    again."""
    tables, checkpoints = os.path.join(folder, "tables"), os.path.join(folder, "run")
    make_tables.write_shards(tables, 4, 400, 1)
    flags = [PROGRAM, "--data", tables, "--restarts", 2, "--checkpoint_dir", checkpoints]
    with Process(*LAUNCH, *flags, "--iterations", 10**7) as launcher:
        launcher.wait_for("rank 1 of 2")
        deadline = time.monotonic() + 60
        while not os.path.exists(os.path.join(checkpoints, "restart_1", "checkpoint")):
            assert time.monotonic() < deadline, launcher.text()
            time.sleep(0.05)
        time.sleep(1 + random.random())
        (pid,) = re.findall(r"worker 1 at .*, process (\d+)", launcher.text())
        os.kill(int(pid), signal.SIGTERM)
        launcher.finish()
    (step,) = re.findall(r"stopped by a signal after step (\d+); the same command goes on", launcher.text())
    assert f"model.ckpt-{step}.index" in os.listdir(os.path.join(checkpoints, "restart_1")), launcher.text()
    assert "best" not in launcher.text(), launcher.text()
    last = int(step) + 10
    first = train(LAUNCH, tables, *flags[3:], "--iterations", last)
    again = train(LAUNCH, tables, *flags[3:], "--iterations", last)
    assert losses(first) == losses(again) and best_of(first) == best_of(again), (first, again)
    assert f"in {checkpoints}/restart_" in first, first
    for restart in (1, 2):
        assert f"model.ckpt-{last}.index" in os.listdir(os.path.join(checkpoints, f"restart_{restart}")), first


if __name__ == "__main__":
    cases = [(case.__name__.replace("_", " "), in_a_folder(case))
             for case in (the_same_everywhere, chosen_shards_and_columns, parameter_servers_are_refused, uneven_ranks,
                          a_signal)]
    cases += [("mistakes under " + name, in_a_folder(mistakes_under(name, mpirun)))
              for name, mpirun in mpiruns().items()]
    for name in MPIRUNS.keys() - mpiruns().keys():
        print(f"skipped: {name} is not installed")
    sys.exit(main(cases))
