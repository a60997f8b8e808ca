# SPDX-License-Identifier: Apache-2.0
"""What the tests of files on servers run of Tenon's, and how they kill it."""
import contextlib
import http.server
import os
import signal
import subprocess
import threading
import time

SOURCE = os.path.abspath(os.environ.get("TENON_SOURCE_DIR", "."))
BUILD = os.path.abspath(os.environ.get("TENON_BINARY_DIR", "build/release"))
TENON, FILES = os.path.join(BUILD, "tenon"), os.path.join(BUILD, "server_files")
VALUES = os.path.join(BUILD, "stored_values")
FLIGHTS = os.path.join(SOURCE, "share", "flights", "flights_sample.csv.gz")
PATIENCE = 120  # seconds


def run(env, *command, code=0):
    done = subprocess.run([str(c) for c in command], env=env, capture_output=True, text=True, timeout=PATIENCE)
    assert code is None or done.returncode == code, (command, done.returncode, done.stdout, done.stderr)
    return done


@contextlib.contextmanager
def web_server(handler):
    """Answers with `handler`, a class of http.server, at the URL that it gives."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield "http://127.0.0.1:%d" % server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


class Saves:
    """A process that saves checkpoints, the steps of which it tells as it goes."""

    def __init__(self, env, folder, mebibytes, files, count):
        self.begun, self.ended = [], {}  # steps; the seconds that each took
        self.changed = threading.Condition()
        self.process = subprocess.Popen([VALUES, "save", folder, str(mebibytes), str(files), str(count)], env=env,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            with self.changed:
                words = line.split()
                if words[0] == "saving":
                    self.begun.append(int(words[1]))
                else:
                    self.ended[int(words[1])] = float(words[2])
                self.changed.notify_all()

    def wait_for(self, condition):
        with self.changed:
            assert self.changed.wait_for(condition, PATIENCE), self.process.poll()

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.reader.join()
        self.process.stdout.close()
        self.process.stderr.close()


def kill_while_saving(env, folder, moments, mebibytes):
    """Saves checkpoints there and kills the process at moments that are spread over a save. After each the last one
    that the state file names is whole, and no older than the last that was said to be saved. The steps that
    were found."""
    saves = Saves(env, folder, mebibytes, 2, 3)
    saves.process.wait(PATIENCE)
    saves.reader.join()
    took = saves.ended[3]
    steps = []
    for moment in range(moments):
        saves = Saves(env, folder, mebibytes, 2, 1000)
        try:
            whole, part = divmod(1.6 * moment / moments, 1)
            saves.wait_for(lambda: saves.begun and len(saves.ended) >= whole)
            time.sleep(took * part)
        finally:
            saves.kill()
        told = max([*saves.ended, *steps, 3])
        found = int(run(env, VALUES, "check", folder, mebibytes, 2).stdout.split()[1])
        assert told <= found <= max(saves.begun), (moment, told, found, saves.begun)
        steps.append(found)
    return steps
