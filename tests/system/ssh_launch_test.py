#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`tenon launch --hosts` and `--hostfile` with three hosts that OpenSSH servers let in: who gets which task, what they
are given, each way in which a start fails, and that no host keeps a process, whatever ends the launcher."""
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time

from launch_test import sh, wait_until
from launchers_test import compare, estimates, fit, write_table
from processes_test import write_mnist
from ssh_hosts import SshHosts, missing
from tenon_process import BINARY, Process, main, run

SKIPPED = 77
TENON = os.path.abspath(os.path.join(BINARY, "tenon"))


class Scene:
    """The hosts, and folders that all of them see."""

    def __init__(self, hosts, folder):
        self.hosts, self.folder = hosts, folder
        self.table = write_table(folder)
        self.images = os.path.join(folder, "mnist")
        os.mkdir(self.images)
        write_mnist(self.images)

    def launch(self, *arguments, ssh=()):
        """The command, with options for ssh; of several -F the last one counts."""
        words = ["ssh", "-F", self.hosts.path("client.conf"), *ssh]
        return [TENON, "launch", "--ssh", shlex.join(words), *arguments]

    def run(self, *arguments, ssh=(), **options):
        return self.hosts.run(*self.launch(*arguments, ssh=ssh), **options)

    def start(self, *arguments, cwd=None):
        return Process(*self.hosts.command(*self.launch(*arguments), cwd=cwd), start_new_session=True)

    def succeeds(self, *arguments, **options):
        done = self.run(*arguments, **options)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def nothing_is_left(self, seconds):
        wait_until(lambda: not self.hosts.processes(), self.hosts.processes, seconds)


def estimates_of_one_process(scene):
    alone, folder = (os.path.join(scene.folder, name) for name in ("alone", "together"))
    done = run(*fit(scene.table, alone))
    assert done.returncode == 0, done.stderr
    said = scene.succeeds("--ps", 0, "--hosts", "h1:2,h2,h3:2", "--", *fit(scene.table, folder), "--root", "/")
    compare(estimates(folder), estimates(alone))
    hosts = re.findall(r"^worker (\d) \((h\d)\) at (h\d):(\d+), process \d+$", said, re.M)
    ports = [int(port) for *_, port in sorted(hosts)]
    assert [host for _, host, *_ in sorted(hosts)] == ["h1", "h1", "h2", "h3", "h3"], said
    assert ports == [ports[0] + i for i in (0, 1, 0, 0, 1)] and 10000 <= ports[0] <= 31900, said


def mnist_with_a_parameter_server(scene):
    scene.hosts.write("list", "# nodes\nh2 slots=1  # the server\n\nh3:1\nh1\n")
    curve = os.path.join(scene.folder, "c.svg")
    said = scene.succeeds("--hostfile", scene.hosts.path("list"), "--first_port", 12000, "--", TENON, "train", "mnist",
                          "--data", scene.images, "--epochs", 2, "--curve", curve)
    assert "ps 0 (h2) at h2:12000, process" in said and "worker 1 (h1) at h1:12000" in said, said
    assert re.search(r"^\[worker 0 \(h3\)\] .*test accuracy", said, re.M), said


def forty_tasks(scene):
    begin = time.monotonic()
    said = scene.succeeds("--hosts", "h1:14,h2:13,h3:13", "--ps", 3, *sh("echo $job $worker of $(hostname)"))
    assert time.monotonic() - begin < 50, time.monotonic() - begin
    found = re.findall(r"^\[(ps|worker) (\d+) \((h\d)\)\] \1 \2 of \3$", said, re.M)
    assert len(set(found)) == 40 and sum(job == "ps" for job, *_ in found) == 3, said
    assert ("worker", "10", "h1") in found and ("worker", "11", "h2") in found, found


def what_tasks_are_given(scene):
    """Their folder, variables and cores; of this shell's variables those that jobs need, and nothing to read."""
    folder, cores = os.path.join(scene.folder, "it's a folder"), len(os.sched_getaffinity(0))
    os.mkdir(folder)
    task = sh('pwd; echo "<$A> <$TENON_SOME> <$OTHER> <$PATH>"; grep Cpus_allowed_list /proc/self/status; cat; echo "$0"')
    task[4:] = ["it's $HOME \"`\\"]
    path = os.environ["PATH"] + ":/it's/here"
    said = scene.succeeds("--ps", 0, "--hosts", f"h3:{cores + 1}", "--env", "A=x\ny'z", "--cpus-per-task", 1, *task,
                          cwd=folder, env=dict(os.environ, TENON_SOME='"1 2"', OTHER="3", PATH=path))
    for worker in range(cores + 1):
        core = sorted(os.sched_getaffinity(0))[worker % cores]
        for line in (folder, "<x", f"y'z> <\"1 2\"> <> <{path}>", f"Cpus_allowed_list:\t{core}", task[4]):
            assert f"[worker {worker} (h3)] {line}\n" in said, (line, said)
        assert re.search(rf"^worker {worker} \(h3\) at .*, on cores {core}$", said, re.M), said
    done = scene.run("--ps", 0, "--hosts", "h1", "--cpus_per_task", 1 + cores, *task)
    assert done.returncode == 1 and f"h1: --cpus_per_task: found {1 + cores}, wanted at most {cores}" in done.stderr, done
    done = scene.run("--ps", 0, "--hosts", "h1", "--env", "A.B=1", *task)
    assert done.returncode == 2 and "--env: found A.B=1, wanted a name of letters" in done.stderr, done


def plans(scene):
    """Mistakes in them start nothing, and --dry_run prints commands that can be run by hand."""
    for arguments, wanted in (
            (["--hosts", "h1,h2:2", "--workers", 3],
             "found 4 tasks (1 of --ps and 3 of --workers) and 3 slots on 2 hosts (h1:1,h2:2), wanted a slot for each task"),
            (["--hosts", "h1"], "found 2 tasks (1 of --ps and 1 of --workers) and 1 slot on 1 host (h1:1)"),
            (["--hosts", "h1,"], "--hosts: found nothing, wanted HOST or HOST:SLOTS"),
            (["--hosts", "h1:0"], "--hosts: found h1:0, wanted HOST:SLOTS with 1 to 10000 slots"),
            (["--hosts", "fe80::1:2"], "found fe80::1:2, wanted HOST:SLOTS"),
            (["--hosts", "h1,me@h2"], "found me@h2, wanted a host without an account"),
            (["--hosts", "-oProxyCommand=x"], "found -oProxyCommand=x, wanted HOST or HOST:SLOTS"),
            (["--hosts", "localhost,h2"], "found host localhost, which is another one on each host"),
            (["--hosts", "h1:9", "--first_port", 65530], "--first_port: found 65530, with which port 65538"),
            (["--hosts", "h1", "--hostfile", "x"], "exclude each other"),
            (["--hostfile", "/none"], "'/none': No such file"),
            (["--hosts", "h1:2", "--ssh", " "], "--ssh: found nothing, wanted a program and its options"),
            (["--first_port", 2000], "--first_port needs --hosts or --hostfile")):
        done = run(TENON, "launch", *arguments, *sh("echo began"))
        assert done.returncode in (1, 2) and wanted in done.stderr and "began" not in done.stdout, (arguments, done)
    for text, wanted in (("h1\nh2 slot=4\n", ":2: found slot=4 after h2, wanted HOST slots=N or HOST:N"),
                         ("h1:2 slots=2\n", ":1: found slots=2 after h1:2"), ("h1 slots=x", ":1: found slots=x after h1"),
                         ("h1 slots=1 max_slots=2", ":1: found max_slots=2"), ("h/1", ":1: found h/1, wanted HOST"),
                         ("# none\n\n", "there is no host in ")):
        scene.hosts.write("list", text)
        done = run(TENON, "launch", "--hostfile", scene.hosts.path("list"), *sh("echo began"))
        assert done.returncode == 2 and wanted in done.stderr, (text, done)
    printed = scene.succeeds("--dry_run", "--hosts", "h1:1,h2:1,h1:1", "--env", "A=1 2", "--first_port", 4000,
                             "--", "sh", "-c", 'echo "<$A> $* $(hostname)"', "it's", env=dict(os.environ, TENON_TOKEN="secret"))
    lines = printed.splitlines()
    assert lines[0] == "# on h1" and lines[3] == "# on h2" and "secret" not in printed, printed
    assert "PATH, LD_LIBRARY_PATH, PYTHONPATH, TENON_*" in lines[5], printed
    done = scene.hosts.run("sh", "-c", lines[4])
    assert done.stdout == "<1 2> --ps_hosts=h1:4000 --worker_hosts=h1:4001,h2:4000 --job_name=worker --task_index=1 h2\n", done


def starts_that_fail(scene):
    """Each one names the host and why, soon, and leaves nothing."""
    script = sh("echo began; sleep 1000")
    for arguments, ssh, wanted in (
            (["--hosts", "h1,nosuch.invalid"], [], r"ps|worker 0 \(nosuch.invalid\) cannot be started: ssh does not reach "
             "nosuch.invalid: ssh: Could not resolve hostname nosuch.invalid: "),
            (["--hosts", "h2:2"], ["-p", "2"], r"\(h2\) cannot be started: ssh does not reach h2: ssh: connect to host h2 "
             "port 2: Connection refused"),
            (["--hosts", "h3:2"], ["-F", scene.hosts.path("stranger.conf")],
             r"\(h3\) cannot be started: ssh does not reach h3: .*Permission denied \(publickey\): passwords are not asked for"),
            (["--hosts", "h1:2"], ["-o", "UserKnownHostsFile=/dev/null"],
             r"\(h1\) cannot be started: ssh does not reach h1: Host key verification failed: the key of this host is none"),
            (["--hosts", "10.203.7.77:2"], [], r"\(10.203.7.77\) cannot be started: ssh does not reach 10.203.7.77: .*No route"),
            (["--hosts", "h1:2"], ["-o", "ProxyCommand=sleep 60", "-o", "ConnectTimeout=2"],
             r"\(h1\) cannot be started: ssh does not reach h1: .*timed out"),
            (["--hosts", "h1:2", "--ssh", "/no/ssh"], None, "cannot run /no/ssh: No such file")):
        begin = time.monotonic()
        done = scene.run(*arguments, *script, ssh=ssh) if ssh is not None else \
            scene.hosts.run(TENON, "launch", *arguments, *script)
        assert done.returncode == 1 and re.search(wanted, done.stderr), (arguments, ssh, done)
        assert time.monotonic() - begin < 30, (arguments, ssh)
        scene.nothing_is_left(25)
    for program in ("/no/tenon", "no_such_program"):
        done = scene.run("--hosts", "h1:2", "--", program)
        assert done.returncode == 1 and f"(h1) cannot be started: h1: there is no program {program} that" in done.stderr, done
    folder = os.path.join(scene.hosts.path("here"), "it's here")
    os.mkdir(folder)
    done = scene.run("--hosts", "h2:2", *script, cwd=folder)
    assert done.returncode == 1 and f"(h2) cannot be started: h2: the folder {folder} cannot be entered\n" in done.stderr, done


def first_failure(scene):
    """It is named with its host and last lines, which are in a file, too; what a task leaves is ended with it."""
    logs = os.path.join(scene.folder, "logs")
    task = sh("""[ $worker = 0 ] && exec sleep 1000
        sleep 1001 & sleep 0.3; seq 30; echo last >&2; printf half; exit 7""")
    done = scene.run("--ps", 0, "--hosts", "h1,h3", "--log_dir", logs, *task)
    wanted = ["  " + str(i) for i in range(13, 31)] + ["  last", "  half", ""]
    assert done.returncode == 1 and done.stderr == "\n".join([
        "tenon: ABORTED: worker 1 (h3) ended with exit code 7; the other tasks are ended; all it has printed is in "
        f"{logs}/worker-1.log", "The last lines of worker 1 (h3):", *wanted]), done
    assert "[worker 1 (h3)] last" not in done.stdout and "[worker 1 (h3)] ended with exit code 7\n" in done.stdout, done
    scene.nothing_is_left(25)
    done = scene.run("--ps", 0, "--hosts", "h1", *sh("exit 255"))
    assert "worker 0 (h1) ended with exit code 255; the other" in done.stderr, done


def killed_task_is_started_again(scene):
    mark = os.path.join(scene.folder, "mark")
    said = scene.succeeds("--ps", 0, "--hosts", "h1,h2", "--max_restarts", 1, *sh(f"""
        if [ $worker = 1 ] && [ ! -e {mark} ]; then : >{mark}; sleep 1000 & kill -KILL $$; fi; echo done"""))
    assert re.search(r"^\[worker 1 \(h2\)\] was ended by signal 9\n(.*\n)*\[worker 1 \(h2\)\] started again, process \d+\n"
                     r"(.*\n)*\[worker 1 \(h2\)\] done\n", said, re.M), said
    scene.nothing_is_left(25)


def secrets_are_on_no_command_line(scene):
    with scene.start("--hosts", "h1,h2,h3", *sh("echo token: $TENON_TOKEN; exec sleep 1000")) as job:
        wait_until(lambda: job.text().count("] token: ") == 3, job.text)
        tokens = set(re.findall(r"token: (.*)", job.text()))
        assert len(tokens) == 1 and re.fullmatch("[0-9a-f]{64}", min(tokens)), tokens
        lines = []
        for process in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{process}/cmdline", encoding="utf-8", errors="replace") as file:
                    lines.append(file.read())
            except OSError:
                continue
        assert sum("read -r n && eval" in line for line in lines) >= 3, lines
        assert not any(min(tokens) in line for line in lines)
        job.process.send_signal(signal.SIGTERM)
        assert job.finish(45) == 143, job.text()
    said = scene.succeeds("--hosts", "h1:2", "--", "sh", "-c", "echo token: $TENON_TOKEN.", "--insecure")
    assert said.count("] token: .\n") == 2, said


def whatever_ends_the_launcher(scene):
    task = sh("""sh -c 'trap "" INT; echo child; while :; do sleep 0.1; done' &
        trap 'echo saved; exit 143' TERM; trap 'echo saved; exit 130' INT; echo ready; while :; do sleep 0.1; done""")
    for number, code in ((signal.SIGKILL, -9), (signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)):
        with scene.start("--hosts", "h1:2,h2,h3", "--env", f"CASE={number}", *task) as job:
            wait_until(lambda: job.text().count("] ready") == 4 and job.text().count("] child") == 4, job.text)
            assert len(scene.hosts.processes()) >= 8
            job.process.send_signal(number)
            if number == signal.SIGINT:  # which the child ignores
                wait_until(lambda: job.text().count("] saved") == 4, job.text)
                job.process.send_signal(number)
            assert job.finish(25) == code, job.text()
            assert job.text().count("] saved") == (0 if number == signal.SIGKILL else 4), job.text()
        scene.nothing_is_left(25)


def connection_that_is_lost(scene):
    with scene.start("--ps", 0, "--hosts", "h1,h2", *sh("echo ready; exec sleep 1000")) as job:
        wait_until(lambda: job.text().count("] ready") == 2, job.text)
        for process, command in scene.hosts.processes(servers=True).items():
            if "notty" in command:
                os.kill(process, signal.SIGKILL)
        assert job.finish(45) == 1, job.text()
        assert re.search(r"tenon: UNAVAILABLE: worker \d \((h\d)\): the connection to \1 is lost: .*; the other tasks are "
                         "ended", job.text()), job.text()
    scene.nothing_is_left(25)


if __name__ == "__main__":
    if missing():
        print("skipped: needs", missing())
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory() as shared, SshHosts() as three:
        the_scene = Scene(three, shared)
        sys.exit(main([(case.__name__.replace("_", " "), lambda case=case: case(the_scene)) for case in (
            plans, estimates_of_one_process, mnist_with_a_parameter_server, forty_tasks, what_tasks_are_given, first_failure,
            killed_task_is_started_again, secrets_are_on_no_command_line, starts_that_fail, whatever_ends_the_launcher,
            connection_that_is_lost)]))
