# SPDX-License-Identifier: Apache-2.0
"""Asks servers for their health as Kubernetes' probes do, and watches the first one. A program for the Python of
tools/install_kubernetes.sh.

    health_probe.py HOST:PORT..."""
import sys
import threading
import time

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

SECONDS = 1


def main(*addresses):
    status = health_pb2.HealthCheckResponse
    for address in addresses:
        with grpc.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)]) as channel:
            stub = health_pb2_grpc.HealthStub(channel)
            answer = stub.Check(health_pb2.HealthCheckRequest(), timeout=10)
            assert answer.status == status.SERVING, answer
            try:
                stub.Check(health_pb2.HealthCheckRequest(service="none"), timeout=10)
                raise AssertionError("a service that is not there is healthy")
            except grpc.RpcError as error:
                assert error.code() == grpc.StatusCode.NOT_FOUND, error
            if address == addresses[0]:
                for service, wanted in (("tensorflow.WorkerService", status.SERVING), ("none", status.SERVICE_UNKNOWN)):
                    watch = stub.Watch(health_pb2.HealthCheckRequest(service=service), timeout=60)
                    assert next(watch).status == wanted, (service, wanted)
                    begin = time.monotonic()
                    threading.Timer(SECONDS, watch.cancel).start()
                    try:
                        next(watch)
                        raise AssertionError("nothing has changed, and something was said")
                    except grpc.RpcError as error:
                        assert error.code() == grpc.StatusCode.CANCELLED, error
                    assert time.monotonic() - begin > SECONDS - 0.1, time.monotonic() - begin
        print("serving", address, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
