#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What clients and foreign masters said to TensorFlow 2.15.1's servers, said to Tenon's.

tests/data/tf/traces has the calls of each recorded session with their answers. They are sent in the
same order, those that overlapped at the same time, with the handles and incarnations of now; the
answers must have the same status and the same tensors. Runs itself again under the TensorFlow
environment (TENON_TF_VENV), for its gRPC.
"""
import base64
import glob
import json
import os
import sys
import tempfile
import time

from tensorflow_environment import Servers, import_messages, main_with_tensorflow

SOURCE = os.environ.get("TENON_SOURCE_DIR", os.getcwd())
TRACES = os.path.join(SOURCE, "tests", "data", "tf", "traces")

LONGEST_PAUSE = 0.5  # seconds between calls that overlap, where the recording has more

# Where Tenon answers otherwise: scenario, call -> its status, and why.
NOT_SERVED = ("UNIMPLEMENTED", "collectives are between tasks of the same kind")
WITHOUT_OUTPUT = ("OK", "x is x:0; there the step waits for ever")
CLEANED_UP = ("ABORTED", "a step that has been cleaned up does not begin again")
OTHERWISE = {
    ("closing_reset", 19): ("OK", "TensorFlow's process had died of the Reset"),
    ("ps_restart", 17): ("ABORTED", "says why, where TensorFlow says which of two errors came first"),
    ("raw_probes", 26): CLEANED_UP,
    ("raw_probes", 27): CLEANED_UP,
    ("raw_probes", 49): ("NOT_FOUND", "what the step does not send is not waited for"),
    ("raw_probes", 72): NOT_SERVED,
    ("raw_probes", 88): WITHOUT_OUTPUT,
    ("raw_probes", 89): WITHOUT_OUTPUT,
    ("raw_probes", 90): ("OK", "what is fetched twice comes twice"),
    ("raw_probes", 99): ("INVALID_ARGUMENT", "it is the client's mistake, not the server's"),
}


class Replay:
    """One scenario on servers of its own."""

    def __init__(self, grpc, messages, name):
        with open(os.path.join(TRACES, name + ".json"), encoding="utf-8") as file:
            trace = json.load(file)
        self.grpc, self.messages, self.name = grpc, messages, name
        self.calls = trace["calls"]
        jobs = {}
        for task in trace["tasks"]:
            jobs[task.rstrip("0123456789")] = jobs.get(task.rstrip("0123456789"), 0) + 1
        self.folder = tempfile.TemporaryDirectory()  # for checkpoints, which have relative names
        self.servers = Servers(jobs, folder=self.folder.name)
        self.known = {}  # handles and incarnations: as they were recorded -> now
        self.channels = {}

    def message(self, method, suffix, content):
        name = method.split("/")[-1] + suffix
        module = next(m for m in self.messages if hasattr(m, name))
        return getattr(module, name).FromString(base64.b64decode(content))

    def channel(self, task):
        if task not in self.channels:
            job = task.rstrip("0123456789")
            address = self.servers.target(job, int(task[len(job):])).removeprefix("grpc://")
            self.channels[task] = self.grpc.insecure_channel(address)
            self.grpc.channel_ready_future(self.channels[task]).result(30)
        return self.channels[task]

    def learn(self, method, recorded, answered):
        """Takes note of what the servers call a thing now."""
        for field in ("session_handle", "graph_handle", "partial_run_handle", "handle"):
            if hasattr(recorded, field):
                self.known[getattr(recorded, field)] = getattr(answered, field)
        if method.endswith("GetStatus"):
            before = [d.incarnation for d in recorded.device_attributes]
            now = [d.incarnation for d in answered.device_attributes]
            for a, b in zip(before, now):
                self.known[a], self.known[f"{a:016x}"] = b, f"{b:016x}"
                self.known[signed(a)] = signed(b)

    def renamed(self, value):
        if isinstance(value, str) and ";" in value:
            return ";".join(self.known.get(part, part) for part in value.split(";"))
        return self.known.get(value, value) if isinstance(value, (str, int)) and value else value

    def rename(self, message):
        """Replaces handles and incarnations wherever they stand."""
        for field, value in message.ListFields():
            if field.message_type is not None and field.message_type.GetOptions().map_entry:
                for entry in value.values() if hasattr(value, "values") else []:
                    if hasattr(entry, "ListFields"):
                        self.rename(entry)
            elif field.message_type is not None:
                for each in value if field.label == field.LABEL_REPEATED else [value]:
                    self.rename(each)
            elif field.label == field.LABEL_REPEATED:
                for i, each in enumerate(value):
                    value[i] = self.renamed(each)
            elif field.cpp_type in (field.CPPTYPE_STRING, field.CPPTYPE_INT64, field.CPPTYPE_UINT64):
                if not isinstance(value, bytes):
                    setattr(message, field.name, self.renamed(value))

    def send(self, call):
        """What will be the answer to a call, which is on its way."""
        request = self.message(call["method"], "Request", call["request"])
        self.rename(request)
        method = self.channel(call["to"]).unary_unary("/tensorflow." + call["method"])
        return method.future(request.SerializeToString(), timeout=1 if call["status"] == "CANCELLED" else 30)

    def outcome(self, future):
        """(status, answer or None): CANCELLED stands for none in time."""
        try:
            return "OK", future.result()
        except self.grpc.RpcError as error:
            late = error.code() == self.grpc.StatusCode.DEADLINE_EXCEEDED
            return ("CANCELLED" if late else error.code().name), error.details()

    def check(self, call, status, answer):
        """What is wrong with the answer, or None."""
        wanted = call["status"]
        recorded = None
        if wanted == "OK":
            recorded = self.message(call["method"], "Response", call["response"])
            wanted = self.status_in(recorded)
        found, text = status, answer
        if status == "OK":
            answer = self.message(call["method"], "Response", base64.b64encode(answer))
            found, text = self.status_in(answer), getattr(answer, "status_error_message", "")
        other = OTHERWISE.get((self.name, call["call"]))
        if found != (other[0] if other else wanted):
            return f"{found} instead of {other[0] if other else wanted}: {text}"
        if status == "OK" and recorded is not None:
            self.learn(call["method"], recorded, answer)
            if other is None and self.tensors(recorded) != self.tensors(answer):
                return f"{self.tensors(answer)} instead of {self.tensors(recorded)}"
        return None

    def status_in(self, response):
        code = getattr(response, "status_code", 0)
        codes = {c.value[0]: c.name for c in self.grpc.StatusCode}
        return codes[code]

    def tensors(self, response):
        """Names, dtypes and shapes of the tensors in an answer."""
        found = []
        for field in ("tensor", "recv", "fetch"):
            values = getattr(response, field, [])
            for each in values if hasattr(values, "__len__") else [values]:
                tensor = getattr(each, "tensor", each)
                name = self.renamed(getattr(each, "name", ""))
                found.append((name, tensor.dtype, [d.size for d in tensor.tensor_shape.dim]))
        return sorted(found)

    def run(self):
        """Lines that tell of differences."""
        problems = []
        with self.folder, self.servers:
            running, previous = [], None
            for call in self.calls:
                # What had ended before this one began has ended.
                ended = [r for r in running
                         if r[0]["end_ms"] is not None and r[0]["end_ms"] <= call["start_ms"]]
                for before, future in ended:
                    problems += self.report(before, *self.outcome(future))
                    running.remove((before, future))
                if running:
                    # What was running when this one began has come to the server before it: a session that
                    # is reset ends the steps that it has, and does not know those that come later.
                    time.sleep(min((call["start_ms"] - previous["start_ms"]) / 1000, LONGEST_PAUSE))
                previous = call
                if "restarted" in call:
                    self.servers.restart(call["restarted"].rstrip("0123456789"))
                running.append((call, self.send(call)))
            for before, future in running:
                problems += self.report(before, *self.outcome(future))
        return problems

    def report(self, call, status, answer):
        problem = self.check(call, status, answer)
        if problem is None:
            return []
        return [f"{self.name} {call['call']:03d} {call['method'].split('/')[-1]}: {problem}"]


def signed(value):
    return value - (1 << 64) if value >= 1 << 63 else value


def main():
    import grpc
    messages = [import_messages(f"proto.{name}_pb2") for name in ("master", "worker")]
    names = sorted(os.path.basename(p)[:-5] for p in glob.glob(os.path.join(TRACES, "*.json")))
    chosen = [n for n in names if len(sys.argv) < 2 or n in sys.argv[1:]]
    problems = [line for name in chosen for line in Replay(grpc, messages, name).run()]
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    main_with_tensorflow(main)
