# SPDX-License-Identifier: Apache-2.0
"""A proxy before a server on loopback that does harm."""
import contextlib
import http.client
import http.server
import random
import socket
import struct
import threading
import time


class Faults:
    """Answers a part of all requests wrongly, in an order that the seed decides: statuses 500 and 503, connections
    that are reset before or after the server has done it, or with half of the request at the server, half answers
    and slow ones."""
    KINDS = ("500", "503", "reset", "lost", "half", "slow")

    def __init__(self, endpoint, part=0.3, seed=1):
        self.upstream = endpoint[len("http://"):]
        self.part, self.random, self.lock = part, random.Random(seed), threading.Lock()
        self.counts = dict.fromkeys(self.KINDS, 0)
        faults = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def answer(self):
                with contextlib.suppress(ConnectionError):  # of who ends a request
                    faults.answer(self)

            do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = answer

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.endpoint = "http://127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def error(self, status):
        """The type and the body of an answer of this status."""
        return "text/plain", f"{status} was drawn"

    def route(self, path):
        """The server that has the path, and what the path is there."""
        return self.upstream, path

    def header(self, name, value):
        """The value of a header of an answer, as clients are to see it."""
        del name
        return value

    def delay(self, handler):
        """Seconds by which half of a request that was cut comes after its client saw it end."""
        del handler
        return 0

    def draw(self, path):
        """What is done to a request for the path; None: nothing."""
        del path
        with self.lock:
            if self.random.random() >= self.part:
                return None
            kind = self.random.choice(self.KINDS)
            self.counts[kind] += 1
            return kind

    def answer(self, handler):
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        kind = self.draw(handler.path)
        if kind == "reset":
            return self.reset(handler)
        if kind in ("500", "503"):
            content_type, text = self.error(kind)
            return self.reply(handler, int(kind), [("Content-Type", content_type)], text.encode())
        server, path = self.route(handler.path)
        upstream = http.client.HTTPConnection(server, timeout=60)
        try:
            upstream.putrequest(handler.command, path, skip_host=True, skip_accept_encoding=True)
            for name, value in handler.headers.items():
                if name.lower() not in ("expect", "connection"):
                    upstream.putheader(name, value)
            if kind == "cut":
                delay = self.delay(handler)
                if delay:
                    handler.connection.shutdown(socket.SHUT_RDWR)
                    time.sleep(delay)
                upstream.endheaders(body[:len(body) // 2])
                time.sleep(0.02)
                self.set_to_reset(upstream.sock)
                upstream.close()
                return self.reset(handler)
            upstream.endheaders(body)
            response = upstream.getresponse()
            content, headers = response.read(), response.getheaders()
        finally:
            upstream.close()
        if kind == "lost":
            return self.reset(handler)
        headers = [(name, self.header(name, value)) for name, value in headers]
        return self.reply(handler, response.status, headers, content, kind)

    @staticmethod
    def set_to_reset(connection):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def reset(self, handler):
        self.set_to_reset(handler.connection)
        handler.close_connection = True
        handler.connection.close()

    def reply(self, handler, status, headers, content, kind=None):
        handler.send_response_only(status)
        for name, value in headers:
            if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                handler.send_header(name, value)
        length = dict((n.lower(), v) for n, v in headers).get("content-length", len(content))
        handler.send_header("Content-Length", length if handler.command == "HEAD" else len(content))
        handler.end_headers()
        if handler.command == "HEAD":
            return
        if kind == "half" and content:
            handler.wfile.write(content[:len(content) // 2])
            handler.wfile.flush()
            return self.reset(handler)
        if kind == "slow":
            for i in range(3):
                handler.wfile.write(content[i * len(content) // 3:(i + 1) * len(content) // 3])
                handler.wfile.flush()
                time.sleep(0.02)
            return
        handler.wfile.write(content)
