"""In place of a server of etcd, which clusterrun does not need."""

import socket


class EtcdServer:
    """An address at which nobody listens."""

    def start(self):
        self._socket = socket.socket()
        self._socket.bind(("localhost", 0))

    def get_endpoint(self):
        return "localhost:%d" % self._socket.getsockname()[1]

    def stop(self):
        self._socket.close()
