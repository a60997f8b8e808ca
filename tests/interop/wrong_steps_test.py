#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a graph, a step or a state is the same error on Tenon's servers as on TensorFlow's.

Makes the calls of wrong_steps.py's table, as a client does on the wire, to a parameter server and a
worker of each kind, and compares the classes of the errors. `wrong_steps_test.py NAME...` runs the
cases whose names contain one of these. Runs itself again under the TensorFlow environment
(TENON_TF_VENV).
"""
import random
import sys

import wrong_steps
from tensorflow_environment import Servers, import_messages, main_with_tensorflow
from wrong_steps import HANG

# Seconds that a busy machine does not take for a call, and those for the steps of TensorFlow's servers that never end.
LIMIT, ENDLESS = 60., 4.


class Client:
    """Calls of one master, which get `limit` seconds; the answers as names of error classes."""

    def __init__(self, target):
        import grpc
        self.grpc, self.pb = grpc, import_messages("proto.master_pb2")
        self.limit = LIMIT
        self.channel = grpc.insecure_channel(target[len("grpc://"):])
        self.target = target

    def call(self, method, request):
        """(name of the error's class, answer)."""
        response = getattr(self.pb, method + "Response")
        stub = self.channel.unary_unary("/tensorflow.MasterService/" + method,
                                        lambda m: m.SerializeToString(), response.FromString)
        try:
            answer = stub(request, timeout=self.limit, wait_for_ready=True)
            code = getattr(answer, "status_code", 0)
            self.message = getattr(answer, "status_error_message", "")
        except self.grpc.RpcError as e:
            answer, code, self.message = None, e.code().value[0], e.details()
            if code == 4 and self.message == "Deadline Exceeded":
                return HANG, None
        return error_class(code), answer

    def create(self, graph, config=None):
        request = self.pb.CreateSessionRequest(target=self.target)
        request.graph_def.ParseFromString(graph.SerializeToString())
        if config is not None:
            request.config.ParseFromString(config.SerializeToString())
        code, answer = self.call("CreateSession", request)
        return code, answer.session_handle if answer else None

    def extend(self, session, graph, version):
        request = self.pb.ExtendSessionRequest(session_handle=session, current_graph_version=version)
        request.graph_def.ParseFromString(graph.SerializeToString())
        return self.call("ExtendSession", request)[0]

    def step_request(self, session, feed=(), fetch=(), target=(), options=None, **fields):
        request = self.pb.RunStepRequest(session_handle=session, fetch=fetch, target=target,
                                         options=options, store_errors_in_response_body=True, **fields)
        for name, value in feed:
            self.set_tensor(request.feed.add(name=name).tensor, value)
        return request

    @staticmethod
    def set_tensor(tensor, value):
        import tensorflow as tf
        tensor.ParseFromString(tf.make_tensor_proto(value).SerializeToString())

    def step(self, session, **step):
        return self.call("RunStep", self.step_request(session, **step))[0]

    def close(self, session):
        return self.call("CloseSession", self.pb.CloseSessionRequest(session_handle=session))[0]

    def reset(self):
        return self.call("Reset", self.pb.ResetRequest())[0]


def error_class(code):
    import tensorflow.compat.v1 as tf
    return tf.errors.exception_type_from_error_code(code).__name__ if code else "OK"


def parse(text):
    import tensorflow as tf
    from google.protobuf import text_format
    graph = text_format.Parse(text, tf.compat.v1.GraphDef())
    if not graph.HasField("versions"):
        graph.versions.producer = 1645
    return graph


def graph_of(build):
    import tensorflow.compat.v1 as tf
    with tf.Graph().as_default() as graph:
        build(tf)
    return graph.as_graph_def()


def node_steps(tf):
    """The graph of NODES, and a step for each."""
    steps = []

    def build(tf):
        for number, (name, make, *values) in enumerate(wrong_steps.nodes(tf)):
            feeds, fetched = [], f"step{number}"

            def x(dtype):
                fed = tf.placeholder(dtype, name=f"feed{number}_{len(feeds)}")
                value = values[len(feeds)]
                feeds.append((fed.name, tf.make_ndarray(tf.make_tensor_proto(value, dtype))))
                return fed

            with tf.device(wrong_steps.WORKER):
                tf.identity(make(x), name=fetched)
            assert len(feeds) == len(values), name
            steps.append((name, dict(feed=feeds, fetch=[fetched + ":0"])))

    return graph_of(build), steps


def states():
    """Cases that are more than one graph or step: functions of a Client and the base graph."""
    def unknown_session(client, _):
        pb = client.pb
        return [client.close("no"), client.step("no", fetch=["k:0"]), client.extend("no", parse(""), 0),
                client.call("ListDevices", pb.ListDevicesRequest(session_handle="no"))[0],
                client.call("PartialRunSetup", pb.PartialRunSetupRequest(session_handle="no"))[0],
                client.call("MakeCallable", pb.MakeCallableRequest(session_handle="no"))[0],
                client.call("RunCallable", pb.RunCallableRequest(session_handle="no"))[0],
                client.call("ReleaseCallable", pb.ReleaseCallableRequest(session_handle="no"))[0]]

    def closed_session(client, base):
        _, session = client.create(base)
        return [client.close(session), client.close(session), client.step(session, fetch=["k:0"]),
                client.extend(session, parse(""), 0)]

    def session_after_reset(client, base):
        _, session = client.create(base)
        return [client.reset(), client.step(session, fetch=["k:0"])]

    def extension_of_another_version(client, base):
        _, session = client.create(base)
        more = parse('node {name: "more" op: "NoOp"}')
        return [client.extend(session, more, 3), client.extend(session, more, 0),
                client.extend(session, parse('node {name: "yet" op: "NoOp"}'), 0),
                client.step(session, target=["more"])]

    def refused_extension(client, base):
        """The session goes on."""
        _, session = client.create(base)
        return [client.extend(session, parse('node {name: "n" op: "NoOp"}'), 0),
                client.step(session, fetch=["k:0"]),
                client.extend(session, parse('node {name: "well" op: "NoOp"}'), 0),
                client.step(session, target=["well"])]

    def request_twice(client, base):
        _, session = client.create(base)
        number = random.getrandbits(62)
        return [client.step(session, fetch=["k:0"], request_id=n) for n in (number, number, 0, 0)]

    def callable_functions(client, session):
        pb = client.pb

        def make(**options):
            return client.call("MakeCallable", pb.MakeCallableRequest(
                session_handle=session, options=options))[0]

        def run(handle, *feeds):
            request = pb.RunCallableRequest(session_handle=session, handle=handle)
            for value in feeds:
                client.set_tensor(request.feed.add(), value)
            return client.call("RunCallable", request)[0]

        def release(handle):
            return client.call("ReleaseCallable", pb.ReleaseCallableRequest(
                session_handle=session, handle=handle))[0]

        return make, run, release

    def callables_with_wrong_feeds(client, base):
        _, session = client.create(base)
        make, run, _ = callable_functions(client, session)
        return [make(feed=["p:0"], fetch=["sum:0"]), run(0), run(0, [1., 2.], 1.)]

    def callables(client, base):
        _, session = client.create(base)
        make, run, release = callable_functions(client, session)
        return [make(feed=["p:0"], fetch=["sum:0"]), run(0, [1., 2.]), run(7), make(fetch=["no:0"]), make(feed=["no:0"], fetch=["k:0"]), make(target=["no"]),
                make(), make(feed=["p:0"], fetch=["p:0"]), make(feed=["p:0", "p:0"], fetch=["sum:0"]),
                release(7), release(0), run(0, [1., 2.]), release(0)]

    def partial_runs(client, base):
        pb = client.pb
        _, session = client.create(base)

        def open_run(**names):
            code, answer = client.call("PartialRunSetup", pb.PartialRunSetupRequest(
                session_handle=session, **names))
            return code, answer.partial_run_handle if answer else ""

        def run(handle, **step):
            return client.step(session, partial_run_handle=handle, **step)

        p, scalar = ("p:0", [1., 2.]), ("scalar:0", 1.)
        _, handle = open_run(feed=["p:0", "scalar:0"], fetch=["sum:0", "k:0"])
        return [open_run(fetch=["no:0"])[0], open_run(feed=["no:0"], fetch=["k:0"])[0],
                open_run(target=["no"])[0], open_run()[0],
                open_run(feed=["p:0", "p:0"], fetch=["sum:0"])[0],
                run("no", fetch=["k:0"]), run(handle, fetch=["alive:0"]),
                run(handle, feed=[("default:0", [1., 2.])]), run(handle, fetch=["sum:0"]),
                run(handle, feed=[p], fetch=["sum:0"]), run(handle, feed=[p]),
                run(handle, fetch=["sum:0"]), run(handle, feed=[scalar], fetch=["k:0"]),
                run(handle, fetch=["k:0"])]

    def configs(client, base):
        import tensorflow.compat.v1 as tf
        codes = []
        for config in (tf.ConfigProto(use_per_session_threads=True),
                       tf.ConfigProto(session_inter_op_thread_pool=[dict(num_threads=1)]),
                       tf.ConfigProto(device_filters=["/job:worker"]),
                       tf.ConfigProto(isolate_session_state=True)):
            code, session = client.create(base, config)
            codes.append(code)
            if session:
                client.close(session)
        return codes

    def a_filter_that_is_none(client, base):
        import tensorflow.compat.v1 as tf
        return [client.create(base, tf.ConfigProto(device_filters=["nonsense"]))[0]]

    return [unknown_session, closed_session, session_after_reset, extension_of_another_version,
            refused_extension, request_twice, callables_with_wrong_feeds, callables, partial_runs,
            configs, a_filter_that_is_none]


def answers(client, wanted, endless=()):
    """What the table's cases give, those for which wanted(group, name): by group and name, a code or
    codes. The names of steps that never end are `endless`."""
    import tensorflow.compat.v1 as tf
    found = {}
    base = graph_of(wrong_steps.build_base)
    graph, steps = node_steps(tf)
    _, session = client.create(graph)
    for name, step in steps:
        if wanted("node", name):
            found["node", name] = client.step(session, **step)
    client.close(session)
    for name, *steps in wrong_steps.STEPS:
        if wanted("step", name):
            # Steps leave queues closed and variables behind.
            client.reset()
            _, session = client.create(base)
            client.limit = ENDLESS if name in endless else LIMIT
            found["step", name] = [client.step(session, **step) for step in steps]
            client.limit = LIMIT
            client.close(session)
    for name, text in wrong_steps.GRAPHS:
        if wanted("graph", name):
            found["graph", name], session = client.create(parse(text))
            if session:
                client.close(session)
    for name, text in wrong_steps.EXTENSIONS:
        if wanted("extension", name):
            _, session = client.create(base)
            found["extension", name] = client.extend(session, parse(text), 0)
            client.close(session)
    for state in states():
        if wanted("state", state.__name__):
            found["state", state.__name__] = state(client, base)
    return found


def run_all():
    import tensorflow.compat.v1 as tf
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.ERROR)
    names = sys.argv[1:]
    jobs = {"ps": 1, "worker": 1}
    found = []
    for tensorflow in (True, False):

        def wanted(group, name):
            if tensorflow and (group, name) in wrong_steps.FATAL:
                return False
            return not names or any(n in name for n in names)

        with Servers(jobs, tensorflow=[(job, 0) for job in jobs] if tensorflow else []) as servers:
            found.append(answers(Client(servers.target("worker")), wanted, wrong_steps.ENDLESS if tensorflow else ()))
    failed = 0
    for case, ours in found[1].items():
        theirs = found[0].get(case, wrong_steps.FATAL.get(case))
        wanted, why = wrong_steps.DIFFERENT.get(case, (theirs, None))
        if ours != wanted or (why is not None and ours == theirs):
            failed += 1
            print(f"{case[0]} '{case[1]}': TensorFlow gives {theirs}, Tenon {ours}"
                  + (f", expected {wanted}" if why else ""))
    print(f"{len(found[1])} cases, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    main_with_tensorflow(run_all)
