#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`tenon launch` with small shell programs as tasks: where their output goes, what they are given, the
first failure, signals, and that nothing is left of them."""
import errno
import os
import pty
import re
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
import time

from tenon_process import TENON, Process, in_a_folder, main, processes_of_session, run, slowness

LAUNCH = [TENON, "launch", "--ps", "0"]
SIMULATED = os.path.join(os.path.dirname(TENON), "simulated")


def sh(script):
    """The program of a task, in which $job and $worker are its job and number."""
    begin = """for word; do case $word in
            --job_name=*) job=${word#*=};; --task_index=*) worker=${word#*=};; esac; done
        """
    return ["--", "sh", "-c", begin + script, "sh"]


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def until(path):
    """A task's wait for a file."""
    return f"until [ -e {path} ]; do sleep 0.05; done"


def wait_until(holds, what, seconds=60):
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, what()
        time.sleep(0.02)


class Launched(Process):
    """A launcher in a session of its own, of which nothing may be left."""

    def __init__(self, *arguments, **options):
        super().__init__(*LAUNCH, *arguments, start_new_session=True, **options)

    def end(self, code, seconds):
        begin = time.monotonic()
        assert self.finish(60) == code, self.text()
        assert time.monotonic() - begin < seconds, self.text()
        assert not processes_of_session(self.process.pid), self.text()

    def __exit__(self, *_):
        for process in processes_of_session(self.process.pid):
            os.kill(process, signal.SIGKILL)
        super().__exit__()


class OnTerminal:
    """A launcher whose controlling terminal is ours."""

    def __init__(self, *arguments):
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.execv(TENON, [*LAUNCH, *arguments])
        self.text, self.code = "", None

    def wait_for(self, pattern, seconds=60):
        """Reads until the text has the pattern; its place."""
        deadline = time.monotonic() + seconds
        while not (found := re.search(pattern, self.text)):
            assert time.monotonic() < deadline, (pattern, self.text)
            assert self.read(), (pattern, self.text)
        return found.start()

    def read(self):
        try:
            piece = os.read(self.terminal, 1 << 16)
        except OSError:  # nobody has the other end any more
            return False
        self.text += piece.decode()
        return bool(piece)

    def type(self, key):
        os.write(self.terminal, key)

    def end(self):
        """The exit code, as a shell has it."""
        while self.read():
            pass
        status = os.waitpid(self.pid, 0)[1]
        self.code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
        assert not processes_of_session(self.pid), self.text
        return self.code

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in processes_of_session(self.pid):
            os.kill(process, signal.SIGKILL)
        if self.code is None:
            os.waitpid(self.pid, 0)
        os.close(self.terminal)


def each_task_has_a_file(folder):
    logs, mark = os.path.join(folder, "new", "logs"), os.path.join(folder, "mark")
    # Workers end when the parameter servers, which would be ended with them, have printed all.
    task = sh(f'''echo "out of $job $worker"; echo "err of $job $worker" >&2; printf "no end"; : >{folder}/$job$worker
        if [ $job = worker ]; then {until(folder + "/ps0")}; {until(folder + "/ps1")}; fi
        if [ $job$worker = worker1 ] && ! [ -e {mark} ]; then : >{mark}; kill -KILL $$; fi''')
    command = [TENON, "launch", "--ps", "2", "--workers", "2", "--log_dir", logs, "--max_restarts", "1"]
    done = run(*command, *task)
    assert done.returncode == 0 and done.stderr == "", done
    tasks = ["ps 0", "ps 1", "worker 0", "worker 1"]
    assert sorted(os.listdir(logs)) == [task.replace(" ", "-") + ".log" for task in tasks]
    for task_name in tasks:
        wanted = f"out of {task_name}\nerr of {task_name}\nno end" * (2 if task_name == "worker 1" else 1)
        assert read(logs, task_name.replace(" ", "-") + ".log") == wanted, task_name
    lines = done.stdout.splitlines()
    assert [line.split(" at ")[0] for line in lines[:4]] == tasks, done.stdout
    assert lines[4] == "[worker 1] was ended by signal 9", done.stdout
    assert re.fullmatch(r"\[worker 1\] started again, process \d+", lines[5]) and len(lines) == 6, done.stdout
    before = read(logs, "worker-0.log")
    done = run(*command, "--tee", *task)
    assert read(logs, "worker-0.log") == before * 2
    for line in ("[worker 0] out of worker 0", "[ps 0] err of ps 0", "[worker 1] no end"):
        assert line in done.stdout.splitlines(), done.stdout


def log_that_is_full(folder):
    """What cannot be written is printed, and the job has not succeeded."""
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    done = subprocess.run([*LAUNCH, "--log_dir", folder, *sh("seq 2000; echo end")], capture_output=True,
                          text=True, timeout=60, preexec_fn=limit, check=False)
    assert done.returncode == 1 and "worker-0.log': File too large" in done.stderr, done
    assert "worker-0.log': File too large; what it prints comes here alone\n" in done.stdout, done.stdout
    assert "[worker 0] end\n" in done.stdout and "[worker 0] 2000\n" in done.stdout, done.stdout
    done = run(*LAUNCH, "--log_dir", "/proc/no/logs", *sh("echo said"))
    assert done.returncode == 1 and "/proc/no" in done.stderr and "said" not in done.stdout, done


def variables_of_all_tasks():
    done = run(*LAUNCH, "--workers", "2", "--env", "A=first", "--env", "B=x y=z,w", "--env=A=", "--env",
               "A=last", *sh('echo "<$A> <$B> <$HOME>"'))
    for worker in (0, 1):
        assert f"[worker {worker}] <last> <x y=z,w> <{os.environ.get('HOME', '')}>\n" in done.stdout, done
    for wrong in ("A", "=x", ""):
        done = run(*LAUNCH, "--env", wrong, *sh("echo began"))
        assert done.returncode == 2 and f"--env: found {wrong}, wanted NAME=VALUE" in done.stderr, done
        assert "began" not in done.stdout, done


def tasks_have_their_cores():
    cores = sorted(os.sched_getaffinity(0))
    task = sh("grep Cpus_allowed_list /proc/self/status")
    done = run(*LAUNCH, "--workers", len(cores) + 1, "--cpus-per-task", 1, *task)
    for worker in range(len(cores) + 1):
        core = cores[worker % len(cores)]
        assert f"[worker {worker}] Cpus_allowed_list:\t{core}\n" in done.stdout, done.stdout
        assert re.search(rf"^worker {worker} at .*, process \d+, on cores {core}$", done.stdout, re.M), done
    one = {cores[-1]}
    for cpus, code in ((1, 0), (2, 2)):
        done = subprocess.run([*LAUNCH, "--cpus_per_task", str(cpus), *task], capture_output=True, text=True,
                              preexec_fn=lambda: os.sched_setaffinity(0, one), timeout=60, check=False)
        assert done.returncode == code, done
        assert (f"Cpus_allowed_list:\t{cores[-1]}\n" in done.stdout) == (code == 0), done
    assert "--cpus_per_task: found 2, wanted at most 1, the cores " in done.stderr, done


def workers_have_their_gpus():
    """The simulated device is two."""
    task = sh("echo sees ${CUDA_VISIBLE_DEVICES-all}.")
    simulated = {"TENON_CUDA_PLUGIN": f"{SIMULATED}/libtenon_simulated.so", "LD_LIBRARY_PATH": SIMULATED}

    def launched(*flags, **variables):
        return subprocess.run([TENON, "launch", *flags, *task], capture_output=True, text=True, timeout=60, check=False,
                              env={**{k: v for k, v in os.environ.items() if k != "CUDA_VISIBLE_DEVICES"}, **simulated, **variables})

    for visible, first, second in ((None, "0", "1"), ("3,GPU-5", "3", "GPU-5")):
        variables = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
        done = launched("--ps", "1", "--workers", "2", "--gpus_per_task", "1", **variables)
        for line in ("[ps 0] sees .", f"[worker 0] sees {first}.", f"[worker 1] sees {second}."):
            assert done.returncode == 0 and f"{line}\n" in done.stdout, (line, done)
    done = launched("--ps", "0", "--workers", "1", "--gpus-per-task", "2")
    assert "[worker 0] sees 0,1.\n" in done.stdout, done
    assert "[worker 0] sees all.\n" in launched("--ps", "0", "--workers", "1").stdout
    done = launched("--ps", "0", "--workers", "3", "--gpus_per_task", "1", "--dry_run")
    assert done.returncode == 2 and "--gpus_per_task: found 1 for each of 3 workers, and there are 2 here" in done.stderr, done
    done = launched("--ps", "0", "--workers", "1", "--gpus_per_task", "1", TENON_CUDA_PLUGIN="/nowhere")
    assert done.returncode == 1 and "/nowhere" in done.stderr, done
    done = launched("--ps", "1", "--hosts", "h1:3,h2:1", "--gpus_per_task", "2", "--dry_run")
    assert re.findall("CUDA_VISIBLE_DEVICES=[0-9,]*", done.stdout) == [
        f"CUDA_VISIBLE_DEVICES={gpus}" for gpus in ("", "0,1", "2,3", "0,1")], done


def dry_run_starts_nothing(folder):
    made, logs = os.path.join(folder, "it's made"), os.path.join(folder, "logs")
    program = ["sh", "-c", 'touch "$0"; echo "$A|$*"', made, "a  b", "$HOME", ""]
    done = run(TENON, "launch", "--ps", "1", "--workers", "2", "--dry_run", "--env", "A=1 2", "--log_dir",
               logs, "--", *program)
    assert done.returncode == 0 and done.stderr == "", done
    assert not os.path.exists(made) and not os.path.exists(logs)
    lines = done.stdout.splitlines()
    for line, task in zip(lines, ("ps 0", "worker 0", "worker 1"), strict=True):
        words = shlex.split(line)
        job, index = task.split()
        assert words[:2 + len(program)] == ["env", "A=1 2", *program], line
        assert words[-2:] == [f"--job_name={job}", f"--task_index={index}"], line
        assert re.fullmatch(r"--ps_hosts=127.0.0.1:\d+", words[-4]), line
        assert re.fullmatch(r"--worker_hosts=127.0.0.1:\d+,127.0.0.1:\d+", words[-3]), line
    printed = subprocess.run(["sh", "-c", lines[1]], capture_output=True, text=True, check=True).stdout
    assert printed.startswith("1 2|a  b $HOME  --ps_hosts=") and os.path.exists(made), printed


def first_failure_is_told_last(folder):
    ready = os.path.join(folder, "ready")
    task = sh(f"""if [ $worker = 0 ]; then trap 'echo "other ends"; exit 5' TERM; : >{ready}; sleep 60 & wait; fi
        {until(ready)}; for i in $(seq 30); do echo line $i; done; echo last >&2; printf half; exit 7""")
    done = subprocess.run([*LAUNCH, "--workers", "2", *task], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.STDOUT, timeout=60, check=False)
    assert done.returncode == 1, done
    before, summary = done.stdout.split("tenon: ABORTED: ")
    assert "[worker 0] other ends\n" in before and "[worker 1] line 1\n" in before, done.stdout
    assert "[worker 1] ended with exit code 7\n" in before, done.stdout
    wanted = [f"  line {i}" for i in range(13, 31)] + ["  last", "  half", ""]
    assert summary == "\n".join(["worker 1 ended with exit code 7; the other tasks are ended",
                                 "The last lines of worker 1:", *wanted]), summary
    done = run(*LAUNCH, "--log_dir", folder, *sh("echo reason; kill -SEGV $$"))
    assert done.returncode == 1 and "reason" not in done.stdout, done
    assert done.stderr == "tenon: ABORTED: worker 0 was ended by signal 11; the other tasks are ended; all it " \
        f"has printed is in {folder}/worker-0.log\nThe last lines of worker 0:\n  reason\n", done
    done = run(*LAUNCH, *sh("exit 4"))
    assert done.stderr.endswith("exit code 4; the other tasks are ended; it printed nothing\n"), done


def nothing_is_left_of_a_task(folder):
    """Neither what ends by SIGTERM nor what ignores it."""
    mark = os.path.join(folder, "mark")
    with Launched(*sh(f"""sleep 1000 & (trap '' TERM; echo deaf; while :; do sleep 1; done) &
                      {until(mark)}; echo done""")) as job:
        job.wait_for("deaf")
        pid = job.process.pid
        wait_until(lambda: "sleep" in processes_of_session(pid).values(), lambda: processes_of_session(pid))
        with open(mark, "w", encoding="ascii"):
            pass
        job.wait_for("[worker 0] has left processes, which are ended")
        job.end(0, 20)
        assert "[worker 0] done" in job.lines, job.text()


def failure_ends_who_is_deaf(folder):
    mark = os.path.join(folder, "mark")
    with Launched("--workers", "2", *sh(f"""if [ $worker = 0 ]; then {until(mark)}; exit 9; fi
                      trap '' TERM; : >{mark}; echo deaf; sleep 1000; while :; do sleep 1; done""")) as job:
        job.wait_for("[worker 1] deaf")
        job.end(1, 25)
        assert "worker 0 ended with exit code 9" in job.text(), job.text()


def killed_task_leaves_nothing_to_the_next(folder):
    mark = os.path.join(folder, "mark")
    with Launched("--max_restarts", "1", *sh(f"""if [ -e {mark} ]; then echo again; exec sleep 1000; fi
                      : >{mark}; (trap '' TERM INT; exec sleep 1001) & kill -KILL $$""")) as job:
        job.wait_for("[worker 0] again")
        pid = job.process.pid
        wait_until(lambda: len(processes_of_session(pid)) == 2, lambda: processes_of_session(pid))
        job.process.send_signal(signal.SIGTERM)
        job.end(143, 20)


def hangup_ends_in_good_order():
    with Launched(*sh("trap 'echo saved; exit 143' TERM; echo ready; while :; do sleep 0.1; done")) as job:
        job.wait_for("ready")
        job.process.send_signal(signal.SIGHUP)
        job.end(128 + signal.SIGHUP, 25)
        assert "[worker 0] saved" in job.lines, job.text()


def ctrl_c_comes_once():
    """Each process of a task gets it from the launcher, and not from the terminal, too."""
    task = sh("""n=0; trap 'n=$((n + 1)); echo "got $n"' INT; echo ready
                 while :; do sleep 0.1; done""")
    with OnTerminal("--workers", "2", *task) as job:
        for worker in (0, 1):
            job.wait_for(rf"\[worker {worker}\] ready")
        job.type(b"\x03")
        for worker in (0, 1):
            job.wait_for(rf"\[worker {worker}\] got 1")
        job.wait_for("SIGINT: waiting for the tasks to end; a second one ends them at once")
        time.sleep(1)
        begin = time.monotonic()
        job.type(b"\x03")
        assert job.end() == 130, job.text
        assert time.monotonic() - begin < 25 and "got 2" not in job.text, job.text
        assert "SIGINT: the tasks are ended" in job.text, job.text


def ctrl_z_stops_the_tasks(folder):
    path = os.path.join(folder, "beats")
    with OnTerminal(*sh(f"echo ready; while :; do echo beat >>{path}; sleep 0.05; done")) as job:
        job.wait_for("ready")
        wait_until(lambda: os.path.exists(path), lambda: job.text)
        job.type(b"\x1a")
        assert os.WIFSTOPPED(os.waitpid(job.pid, os.WUNTRACED)[1])
        time.sleep(0.2)
        size = os.path.getsize(path)
        time.sleep(0.5)
        assert os.path.getsize(path) == size, job.text
        os.kill(job.pid, signal.SIGCONT)
        wait_until(lambda: os.path.getsize(path) > size, lambda: job.text)
        os.kill(job.pid, signal.SIGTERM)
        assert job.end() == 143, job.text


def tasks_read_no_terminal():
    """A group in the background that reads one would be stopped."""
    with OnTerminal(*sh("cat; echo end of input")) as job:
        job.wait_for("end of input")
        assert job.end() == 0, job.text
    done = subprocess.run([*LAUNCH, *sh("cat")], input="fed\n", capture_output=True, text=True, timeout=60,
                          check=True)
    assert "[worker 0] fed\n" in done.stdout, done


def state_is_shown_on_a_terminal(folder):
    mark = os.path.join(folder, "mark")
    task = sh(f"sleep 0.$worker; if [ $worker = 0 ]; then {until(mark)}; fi; echo bye")
    with OnTerminal("--workers", "3", *task) as job:
        shown = job.wait_for(r"1 of 3 tasks run, worker [12] ended")
        with open(mark, "w", encoding="ascii"):
            pass
        assert job.end() == 0, job.text
        after = job.text[shown:].split("ended", 1)[1]
        assert after.startswith("\r\033[K[worker 0] bye\r\n"), job.text
    done = run(*LAUNCH, "--workers", "3", *task)
    assert "tasks run" not in done.stdout + done.stderr and "\033" not in done.stderr, done


def endless_output_takes_no_memory():
    """Nor does it keep the lines of others back, nor signals while nobody reads."""
    def peak():
        return int(re.search(r"VmHWM:\s+(\d+) kB", read(f"/proc/{job.pid}/status"))[1])

    task = sh("""case $worker in
        0) exec tr '\\0' x </dev/zero;; 1) exec yes '';; *) sleep 0.5; echo tick; exec sleep 1000;; esac""")
    with subprocess.Popen([*LAUNCH, "--workers", "3", *task], stdout=subprocess.PIPE, start_new_session=True,
                          stderr=subprocess.DEVNULL) as job:
        try:
            at_first, bytes_read, longest, ticked, rest = None, 0, 0, False, b""
            deadline = time.monotonic() + 120
            while bytes_read < 1 << 26 or not ticked:
                assert time.monotonic() < deadline, (bytes_read, ticked)
                piece = os.read(job.stdout.fileno(), 1 << 20)
                at_first = at_first or peak()
                bytes_read += len(piece)
                *lines, rest = (rest + piece).split(b"\n")
                ticked = ticked or b"[worker 2] tick" in lines
                longest = max(longest, max(map(len, lines), default=0))
            assert longest == 65536 + len("[worker 0] "), longest
            time.sleep(1)  # nobody reads
            assert peak() - at_first < 8 << 10, (at_first, peak())
            job.send_signal(signal.SIGINT)
            wait_until(lambda: not set(processes_of_session(job.pid)) - {job.pid},
                       lambda: processes_of_session(job.pid), 20)
            job.send_signal(signal.SIGINT)
            assert job.wait(20) == 130
        finally:
            for process in processes_of_session(job.pid):
                os.kill(process, signal.SIGKILL)


def output_that_nobody_reads_ends_the_job():
    with subprocess.Popen([*LAUNCH, "--workers", "2", *sh("while :; do echo more; sleep 0.1; done")],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          start_new_session=True) as job:
        assert job.stdout.readline().startswith("worker 0 at ")
        job.stdout.close()
        assert job.wait(40) == 1
        assert "cannot write to the standard output: Broken pipe; the tasks are ended" in job.stderr.read()
        assert not processes_of_session(job.pid)


def ports_stay_the_tasks_own():
    """A socket that takes what is free does not get a task's port, and the task's server listens there."""
    program = """import socket, sys
flags = dict(a.split("=") for a in sys.argv[1:])
host, port = flags["--worker_hosts"].split(",")[int(flags["--task_index"])].split(":")
for reuse in (0, 1):
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, reuse)
        try:
            s.bind((host, int(port)))
            s.listen()
            print("listens")
        except OSError as e:
            print(e.strerror)
"""
    done = run(*LAUNCH, "--workers", "2", "--", sys.executable, "-c", program)
    for worker in (0, 1):
        lines = re.findall(rf"^\[worker {worker}\] (.*)$", done.stdout, re.M)
        assert lines == [os.strerror(errno.EADDRINUSE), "listens"], done


def two_hundred_tasks():
    before, begin = slowness(), time.monotonic()
    done = run(*LAUNCH, "--workers", "200", "--", "sh", "-c", "echo hi")
    seconds = time.monotonic() - begin
    slow = max(before, slowness())
    assert done.returncode == 0 and seconds < 10 * slow, (seconds, slow, done.stderr)
    said = re.findall(r"^\[worker (\d+)\] hi$", done.stdout, re.M)
    assert sorted(map(int, said)) == list(range(200)), done.stdout
    print(f"200 tasks: {seconds:.2f} s")


if __name__ == "__main__":
    sys.exit(main([
        ("200 tasks", two_hundred_tasks),
        ("a file for each task", in_a_folder(each_task_has_a_file)),
        ("a log that is full", in_a_folder(log_that_is_full)),
        ("variables", variables_of_all_tasks),
        ("cores", tasks_have_their_cores),
        ("gpus", workers_have_their_gpus),
        ("ports", ports_stay_the_tasks_own),
        ("a dry run", in_a_folder(dry_run_starts_nothing)),
        ("the first failure", in_a_folder(first_failure_is_told_last)),
        ("nothing is left", in_a_folder(nothing_is_left_of_a_task)),
        ("who is deaf ends", in_a_folder(failure_ends_who_is_deaf)),
        ("nothing is left to the next process", in_a_folder(killed_task_leaves_nothing_to_the_next)),
        ("a hangup", hangup_ends_in_good_order),
        ("ctrl-C", ctrl_c_comes_once),
        ("ctrl-Z", in_a_folder(ctrl_z_stops_the_tasks)),
        ("a terminal's input", tasks_read_no_terminal),
        ("the state", in_a_folder(state_is_shown_on_a_terminal)),
        ("endless output", endless_output_takes_no_memory),
        ("output that nobody reads", output_that_nobody_reads_ends_the_job),
    ], at_once=6))
