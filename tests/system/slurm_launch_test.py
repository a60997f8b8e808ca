#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`tenon launch --slurm` and `--print_slurm` with a real Slurm, whose nodes have addresses beyond loopback: what the
tasks are given, what comes back, and that nothing is left in the queue."""
import os
import re
import signal
import subprocess
import sys
import time

import slurm_nodes
from launchers_test import Scene, compare, estimates, fit
from tenon_process import BINARY, Process, in_a_folder, main, run

SKIPPED = 77
# Tasks of Slurm begin in a folder of their own.
TENON = os.path.abspath(os.path.join(BINARY, "tenon"))
LAUNCH = [TENON, "launch", "--slurm"]


def sh(script):
    return ["--", "sh", "-c", script, "sh"]


class OnNode(Process):
    """A command of a user of the cluster."""

    def __init__(self, nodes, *words):
        super().__init__(*nodes.command(*words), env=nodes.environment)

    def signal(self, number):
        """Not for nsenter, whose child the command is."""
        done = subprocess.run(["pgrep", "-P", str(self.process.pid)], capture_output=True, text=True, check=True)
        os.kill(int(done.stdout), number)


def queue(nodes):
    done = nodes.run("squeue", "--noheader", "--format", "%i %T %D")
    assert done.returncode == 0, done
    return done.stdout.split("\n")[:-1]


def wait_until(holds, what, seconds=60):
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, what()
        time.sleep(0.05)


def without_waiting(text):
    """A text without what srun says while the nodes of an earlier job are made free."""
    return re.sub(r"srun: job \d+ (queued and waiting for resources|has been allocated resources)\n", "", text)


def left_nothing(nodes):
    wait_until(lambda: not queue(nodes), lambda: queue(nodes))


def job_of_its_own(nodes, scene):
    """Outside of an allocation, with the job's token; the estimates are those of one process."""
    folder = os.path.join(scene.folder, "own")
    done = nodes.run(*LAUNCH, "--nodes", 3, "--ps", 0, "--workers", 5, "--slurm_args", "--partition=all --time=10", "--",
                     *fit(scene.table, folder), "--root", "/")
    assert done.returncode == 0 and done.stderr == "", done.stdout + done.stderr
    compare(estimates(folder), scene.wanted)
    for worker in range(5):
        assert f"[worker {worker}] task: /job:worker/replica:0/task:{worker} (SLURM_PROCID)\n" in done.stdout, done.stdout
    assert re.search(r"worker=n1:(\d+),n1:\d+,.*,n3:\1 ", done.stdout), done.stdout
    left_nothing(nodes)


def training(nodes, scene):
    done = nodes.run(*LAUNCH, "--nodes", 3, "--workers", 2, "--", *scene.mnist("--curve", scene.folder + "/own.svg"))
    assert done.returncode == 0, done.stdout + done.stderr
    for text in ("[ps 0] task: /job:ps/replica:0/task:0 (SLURM_PROCID)", "[worker 0] test accuracy"):
        assert text in done.stdout, done.stdout


def what_tasks_are_given(nodes, folder):
    logs = os.path.join(folder, "logs")
    given = 'echo "$SLURM_PROCID <$A> $SLURM_CPUS_PER_TASK $# $1 $TENON_TOKEN"; printf "no end" >&2'
    command = [*LAUNCH, "--ps", 2, "--workers", 2, "--cpus_per_task", 3, "--env", "A=x y", "--log_dir", logs]
    done = nodes.run(*command, *sh(given))
    assert done.returncode == 0 and without_waiting(done.stdout) == "" and done.stderr == "", done
    tokens = set()
    for rank, name in enumerate(("ps-0", "ps-1", "worker-0", "worker-1")):
        with open(os.path.join(logs, name + ".log"), encoding="utf-8") as file:
            lines = sorted(file.read().splitlines())
        found = re.fullmatch(rf"{rank} <x y> 3 1 --num_ps=2 ([0-9a-f]{{64}})", lines[0])
        assert found and lines[1:] == ["no end"], (name, lines)
        tokens.add(found[1])
    assert len(tokens) == 1, tokens
    # Another job has another token, one of the user's is kept, and none is made where there are flags about security.
    done = nodes.run(*command, "--tee", *sh(given))
    assert "[worker 1] 3 <x y> 3 1 --num_ps=2 " in done.stdout and tokens.pop() not in done.stdout, done
    done = nodes.run("env", "TENON_TOKEN=mine", *LAUNCH, *sh('echo "$TENON_TOKEN"'))
    assert done.stdout.count("] mine\n") == 2, done
    for flag in ("--insecure", "--token-file=/f", "--tls_ca"):
        done = nodes.run(*LAUNCH, *sh('echo "<$TENON_TOKEN>"'), flag)
        assert done.stdout.count("] <>\n") == 2, done
    # Also where a batch script's variables are not to be handed on.
    done = nodes.run("env", "SLURM_EXPORT_ENV=NONE", *LAUNCH, *sh('echo "${#TENON_TOKEN}"'))
    assert done.stdout.count("] 64\n") == 2, done


def nobody_without_the_token(nodes, folder):
    """No command line has it, and a server beyond loopback asks for it."""
    with OnNode(nodes, *LAUNCH, "--nodes", 2, "--", TENON, "serve", "--root", folder) as job:
        job.wait_for("listening at")
        wait_until(lambda: job.text().count("listening at") == 2, job.text)
        address = re.search(r"cluster: ps=(n\d:\d+)", job.text())[1]
        done = nodes.run(TENON, "status", "grpc://" + address)
        assert done.returncode == 1 and "UNAUTHENTICATED" in done.stderr, done
        lines = nodes.run("ps", "-eww", "-o", "args").stdout
        assert "srun" in lines and not re.search("[0-9a-f]{64}|TENON_TOKEN", lines), lines
        nodes.run("scancel", queue(nodes)[0].split()[0])
        job.finish(60)
        assert "[ps 0] SIGTERM: ending" in job.text(), job.text()
    left_nothing(nodes)


def failures(nodes, folder):
    """Each has one message, and an exit code."""
    # Tasks that have not ended when another one fails are killed, which srun says, too.
    done = nodes.run(*LAUNCH, "--workers", 2, *sh(f"""echo said; [ $SLURM_PROCID = 2 ] || {{ echo $$ >{folder}/$SLURM_PROCID; exit 0; }}
        for other in 0 1; do
            until [ -s {folder}/$other ] && ! kill -0 $(cat {folder}/$other) 2>/dev/null; do sleep 0.05; done
        done; exit 3"""))
    assert done.returncode == 1 and done.stdout.count("] said\n") == 3, done
    # Any node may be the first one that is free.
    assert re.fullmatch(r"tenon: ABORTED: srun ended with exit code 3: n\d: task 2: Exited with exit code 3\n", done.stderr), done
    done = nodes.run(*LAUNCH, "--log_dir", folder, *sh("kill -KILL $$"))
    assert done.returncode == 1 and f"; what tasks print is in {folder}: n" in done.stderr, done
    # Tasks whose end is noticed at different times have a line each.
    assert re.search(r": n\d: tasks? [-\d,]+: Killed\n( +n\d: tasks? [-\d,]+: Killed\n)*$", done.stderr), done
    done = nodes.run(*LAUNCH, "--slurm_args=-p none", *sh("true"))
    assert done.returncode == 1 and without_waiting(done.stdout) == "", done
    assert "ABORTED: srun ended with exit code 1: invalid partition specified: none" in done.stderr, done
    done = nodes.run(*LAUNCH, "--slurm_args", "--no_such_option", *sh("true"))
    assert done.returncode == 1 and "unrecognized option '--no_such_option'" in done.stdout + done.stderr, done
    done = nodes.run("env", "PATH=/nowhere", *LAUNCH, *sh("true"))
    assert done.returncode == 1 and done.stderr.startswith("tenon: NOT_FOUND: srun cannot be run: "), done
    with open(os.path.join(nodes.folder, "slurm.conf"), encoding="utf-8") as file:
        nodes.write("down.conf", file.read().replace(f"SlurmctldPort={slurm_nodes.FIRST_PORT}", "SlurmctldPort=9"))
    done = nodes.run("env", f"SLURM_CONF={nodes.folder}/down.conf", *LAUNCH, *sh("true"))
    assert done.returncode == 1 and "Unable to contact slurm controller (connect failure)\n" in done.stderr, done
    done = nodes.run("srun", "-n2", "--label", *LAUNCH, *sh("true"))
    assert done.returncode == 1 and "this process is itself one of 2 tasks that Slurm has started (SLURM_PROCID)" in \
        done.stderr, done
    left_nothing(nodes)


def wrong_flags():
    for flags, wanted in ((["--slurm", "--max_restarts", 1], "--max_restarts: srun does not start a task again"),
                          (["--nodes", 2], "--nodes needs --slurm or --print_slurm"),
                          (["--slurm_args=-p x"], "--slurm_args needs --slurm or --print_slurm"),
                          (["--slurm", "--hosts", "h1"], "--slurm excludes --hosts and --hostfile"),
                          (["--slurm", "--print_slurm"], "exclude each other"),
                          (["--slurm", "--nodes", 0], "--nodes: found 0, wanted at least 1"),
                          (["--print_slurm", "--nodes", 3], "--nodes: found 3, wanted at most 2, as many as there are tasks"),
                          (["--slurm", "--slurm_args", "all"], "--slurm_args: found 'all', wanted options of srun"),
                          (["--slurm", "--slurm_args=-n 5"], "--slurm_args: found -n; --ps and --workers say"),
                          (["--slurm", "--slurm_args=-N5"], "--slurm_args: found -N5; --nodes of this command"),
                          (["--slurm", "--slurm_args", "-q x --export=NONE"], "found --export=NONE; --env says it"),
                          (["--print_slurm", "--slurm_args=--nodes=2"], "found --nodes=2; --nodes of this command"),
                          (["--print_slurm", "--log_dir", "d"], "--log_dir: in a script of sbatch"),
                          (["--print_slurm", "--dry_run"], "--print_slurm starts nothing in any case"),
                          (["--slurm", "--tee"], "--tee needs --log_dir")):
        done = run(TENON, "launch", *flags, *sh("true"))
        assert done.returncode == 2 and wanted in done.stderr and done.stdout == "", (flags, done)


def signals(nodes, scene):
    """Ctrl-C and SIGTERM end workers with a checkpoint."""
    endless = [s if s != 3 else 1000000 for s in scene.mnist()]
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        folder = os.path.join(scene.folder, f"signal{number}")
        with OnNode(nodes, *LAUNCH, "--nodes", 3, "--workers", 2, "--", *endless, "--checkpoint_dir", folder, "--save_seconds", 0.5,
                                    "--root", scene.folder) as job:
            wait_until(lambda j=job: j.text().count("[worker 0] saved") > 1, job.text)
            job.signal(number)
            assert job.finish(60) == code, job.text()
        assert any(name.endswith(".index") for name in os.listdir(folder)), (os.listdir(folder), job.text())
        assert "stopped by " in job.text(), job.text()
        left_nothing(nodes)


def ends_at_once(nodes):
    """What does not end at the first signal ends at the second one, and what waits in the queue at the first."""
    with OnNode(nodes, *LAUNCH, *sh("trap '' INT TERM; echo begun; sleep 100")) as job:
        wait_until(lambda: job.text().count("begun") == 2, job.text)
        job.signal(signal.SIGINT)
        job.wait_for("a second signal ends them at once")
        assert job.process.poll() is None, job.text()
        job.signal(signal.SIGINT)
        assert job.finish(60) == 130, job.text()
    left_nothing(nodes)
    # Nobody reads what they print.
    done = nodes.run("bash", "-c", f"{TENON} launch --slurm -- sh -c 'while echo line; do sleep 0.05; done' | grep -m 1 line")
    assert done.stdout.endswith("] line\n") and "Broken pipe" in done.stderr, done
    left_nothing(nodes)
    with OnNode(nodes, *LAUNCH, "--slurm_args=--begin=now+1hour", *sh("true")) as job:
        job.wait_for("queued and waiting for resources")
        assert len(queue(nodes)) == 1, queue(nodes)
        job.signal(signal.SIGINT)
        assert job.finish(60) == 130, job.text()
    left_nothing(nodes)


def launcher_that_is_killed(nodes):
    with OnNode(nodes, *LAUNCH, *sh("echo begun; sleep 100")) as job:
        wait_until(lambda: job.text().count("begun") == 2, job.text)
        job.signal(signal.SIGKILL)
        left_nothing(nodes)


def within_an_allocation(nodes):
    done = nodes.run("salloc", "-N2", "-n3", *LAUNCH, "--workers", 2, *sh("echo job $SLURM_JOB_ID of $SLURM_STEP_NUM_TASKS"))
    assert done.returncode == 0, done
    job = re.search(r"Granted job allocation (\d+)", done.stderr)[1]
    assert done.stdout.count(f"] job {job} of 3\n") == 3, done
    done = nodes.run("salloc", "-N1", "-n1", *LAUNCH, "--workers", 40, *sh("true"))
    assert done.returncode == 1 and "More processors requested than permitted" in done.stderr, done
    # This cluster knows of no GPU.
    done = nodes.run(*LAUNCH, "--gpus_per_task", 2, "--dry_run", *sh("true"))
    assert done.returncode == 0 and " --gpus-per-task=2 " in done.stdout, done
    done = nodes.run(*LAUNCH, "--gpus_per_task", 2, *sh("true"))
    assert done.returncode == 1 and "generic resource" in done.stderr, done
    # The printed line of a shell does the same.
    done = nodes.run(*LAUNCH, "--dry_run", "--env", "A=it's", "--slurm_args=--time=5", *sh('echo "$A ${#TENON_TOKEN} $@"'))
    assert done.returncode == 0 and "srun --ntasks=2 " in done.stdout and " --time=5 sh -c" in done.stdout, done
    done = nodes.run("bash", "-c", done.stdout)
    assert sorted(done.stdout.splitlines()) == [f"{rank}: it's 64 --num_ps=1" for rank in (0, 1)], done
    left_nothing(nodes)


def script_for_sbatch(nodes, scene):
    folder = os.path.join(scene.folder, "script")
    done = nodes.run(TENON, "launch", "--print_slurm", "--nodes", 3, "--ps", 0, "--workers", 4, "--slurm_args",
                     f"--partition=all --output={folder}.log", "--env", "A=it's \"$HOME\"", "--", *fit(scene.table, folder),
                     "--root", "/")
    assert done.returncode == 0 and "\n#SBATCH --nodes=3\n" in done.stdout, done
    script = os.path.join(scene.folder, "job.sh")
    with open(script, "w", encoding="utf-8") as file:
        file.write(done.stdout.replace("exec srun", "echo \"A is <$A>, the token ${#TENON_TOKEN}\"\nexec srun"))
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0
    done = nodes.run("sbatch", "--wait", script)
    with open(folder + ".log", encoding="utf-8") as file:
        said = file.read()
    assert done.returncode == 0, done.stdout + done.stderr + said
    compare(estimates(folder), scene.wanted)
    assert "A is <it's \"$HOME\">, the token 64\n" in said and "3: task: /job:worker/replica:0/task:3" in said, said
    left_nothing(nodes)


def cases(nodes, scene):
    return [("a job of its own", lambda: job_of_its_own(nodes, scene)), ("training", lambda: training(nodes, scene)),
            ("what tasks are given", in_a_folder(lambda folder: what_tasks_are_given(nodes, folder))),
            ("nobody without the token", in_a_folder(lambda folder: nobody_without_the_token(nodes, folder))),
            ("failures", in_a_folder(lambda folder: failures(nodes, folder))), ("wrong flags", wrong_flags),
            ("signals", lambda: signals(nodes, scene)),
            ("ends at once", lambda: ends_at_once(nodes)), ("a launcher that is killed", lambda: launcher_that_is_killed(nodes)),
            ("within an allocation", lambda: within_an_allocation(nodes)),
            ("a script for sbatch", lambda: script_for_sbatch(nodes, scene))]


def with_slurm(folder):
    scene = Scene(folder)
    with slurm_nodes.SlurmNodes("10.77.0.1") as nodes:
        only = set(sys.argv[1:])
        assert main([case for case in cases(nodes, scene) if not only or case[0] in only]) == 0, "see above"


if __name__ == "__main__":
    if slurm_nodes.missing():
        print("skipped: Slurm needs", slurm_nodes.missing())
        sys.exit(SKIPPED if main([("wrong flags", wrong_flags)]) == 0 else 1)
    sys.exit(main([("Slurm", in_a_folder(with_slurm))]))
