"""A parameter server: numbers, in memory, by name."""

import json
import os
import socketserver
import threading

numbers = {}
lock = threading.Lock()


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            asked = json.loads(line)
            with lock:
                numbers[asked["name"]] = numbers.get(asked["name"], 0) + asked["add"]
                self.wfile.write(("%d\n" % numbers[asked["name"]]).encode())


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


config = json.loads(os.environ["TF_CONFIG"])
host, port = config["cluster"]["ps"][config["task"]["index"]].rsplit(":", 1)
Server((host, int(port)), Handler).serve_forever()
