#!/usr/bin/env python3
"""A network between namespaces with the delay, losses and speed that it is told (Linux's own `netem` is not in every kernel).

    wire.py NAME=PID=ADDRESS ...    NAME: of a node, PID: a process in its network namespace, ADDRESS: as 10.77.0.11

Each node gets an interface `eth0` (a TUN device) whose packets come here and go on to the node that has their address. Lines
on the standard input, with what was not said as before:

    delay MS       from each node to each other one (0)
    jitter MS      at most so much more, drawn for each packet; packets of a node do not overtake each other (0)
    loss PERCENT   of the packets, at random (0)
    rate MBIT      into each node; a second of packets waits, what comes then is lost (0: as fast as this program is)
    mute NAME      loses all packets from that node; `deaf NAME` all to it, `cut NAME` both; `join NAME` undoes them
    hold SECONDS   lets no packet go on for so long, and loses none

"ready" on the standard output says that the interfaces are up. They go with this process.
"""
import collections
import ctypes
import fcntl
import heapq
import os
import random
import selectors
import socket
import struct
import subprocess
import sys
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
MTU = 1500
Packet = collections.namedtuple("Packet", "due number target bytes")


def enter(path):
    libc = ctypes.CDLL(None, use_errno=True)
    with open(path, "rb") as space:
        if libc.setns(space.fileno(), 0) != 0:
            raise OSError(ctypes.get_errno(), f"setns {path}")


def open_interface(pid, address):
    """The file whose reads and writes are the packets of a new interface of that process's network."""
    enter(f"/proc/{pid}/ns/net")
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", b"eth0", IFF_TUN | IFF_NO_PI))
    for words in (["addr", "add", f"{address}/24", "dev", "eth0"], ["link", "set", "lo", "up"],
                  ["link", "set", "eth0", "up", "mtu", str(MTU), "txqueuelen", "10000"]):
        subprocess.run(["ip", *words], check=True)
    return tun


class Wire:
    def __init__(self, nodes):
        self.delay = self.jitter = self.loss = self.rate = 0.0
        self.held_until = 0.0
        self.mute, self.deaf = set(), set()
        self.names, self.targets = {}, {}
        for name, pid, address in nodes:
            tun = open_interface(pid, address)
            self.names[tun] = name
            self.targets[socket.inet_aton(address)] = tun
        self.free = dict.fromkeys(self.names, 0.0)  # when the node's link has sent what it has
        self.latest = {}  # of each pair of nodes, when its last packet is due
        self.waiting, self.number = [], 0

    def obey(self, line):
        word, value = line.split()
        if word in ("mute", "deaf", "cut", "join"):
            for nodes, words in ((self.mute, ("mute", "cut")), (self.deaf, ("deaf", "cut"))):
                if word in words:
                    nodes.add(value)
                elif word == "join":
                    nodes.discard(value)
        elif word == "hold":
            self.held_until = time.monotonic() + float(value)
        else:
            setattr(self, word, float(value) * {"delay": 1e-3, "jitter": 1e-3, "loss": 1e-2, "rate": 1e6 / 8}[word])

    def take(self, source, packet):
        target = self.targets.get(packet[16:20])
        if target is None or packet[0] >> 4 != 4 or random.random() < self.loss:
            return
        now = time.monotonic()
        due = now
        if self.rate > 0:
            due = max(now, self.free[target]) + len(packet) / self.rate
            if due > now + 1:
                return
            self.free[target] = due
        pair = source, target
        due = max(due + self.delay + random.random() * self.jitter, self.latest.get(pair, 0.0))
        self.latest[pair] = due
        self.number += 1
        heapq.heappush(self.waiting, Packet(due, self.number, target, packet))

    def send_due(self):
        """Returns the seconds until the next packet is due."""
        while self.waiting:
            now = time.monotonic()
            due = max(self.waiting[0].due, self.held_until)
            if due > now:
                return due - now
            packet = heapq.heappop(self.waiting)
            source = self.names.get(self.targets.get(packet.bytes[12:16]))
            if source not in self.mute and self.names[packet.target] not in self.deaf:
                try:
                    os.write(packet.target, packet.bytes)
                except OSError:  # a queue of the kernel is full, or the node is gone: a lost packet
                    pass
        return None

    def run(self):
        selector = selectors.SelectSelector()  # epoll waits for whole milliseconds
        for tun in self.names:
            selector.register(tun, selectors.EVENT_READ)
        selector.register(sys.stdin, selectors.EVENT_READ)
        print("ready", flush=True)
        while True:
            for key, _ in selector.select(self.send_due()):
                if key.fileobj is sys.stdin:
                    line = os.read(sys.stdin.fileno(), 4096).decode()
                    if not line:
                        return
                    for each in line.splitlines():
                        self.obey(each)
                    continue
                for _ in range(64):
                    try:
                        self.take(key.fileobj, os.read(key.fileobj, 65536))
                    except BlockingIOError:
                        break


if __name__ == "__main__":
    Wire([node.split("=") for node in sys.argv[1:]]).run()
