"""What the tests of shoal-sensors share: the program itself, and fakes of what it asks."""

import concurrent.futures
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import dbus

BIN = os.environ.get("SHOAL_BIN_DIR", "build/release/bin")
TESTS = os.environ.get("SHOAL_TESTS_DIR", "build/release/tests")
LIMIT = 20  # Seconds. Generous: a busy machine is no failure.
MOCK = "org.freedesktop.DBus.Mock"

BUS_CONFIGURATION = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:dir=%s</listen>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/>
<allow own="*"/></policy></busconfig>
"""


def wait_until(what, holds, limit=LIMIT):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        found = holds()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"not within {limit} s: {what}")


class Sensors:
    """The real program, and what it said last of each sensor."""

    def __init__(self, test, environment=None, arguments=()):
        own = {name: value for name, value in os.environ.items()
               if name not in ("DISPLAY", "WAYLAND_DISPLAY", "XDG_SESSION_TYPE")
               and not name.startswith("DBUS_")}
        # Where nothing is, unless a test says otherwise.
        own.update({"XDG_RUNTIME_DIR": test.folder("run"),
                    "DBUS_SYSTEM_BUS_ADDRESS": "", "DBUS_SESSION_BUS_ADDRESS": ""})
        own.update(environment or {})
        roots = ["--dev", test.folder("dev"), "--sys", test.folder("sys"),
                 "--x11-sockets", test.folder("x11")]
        self.process = subprocess.Popen(
            [f"{BIN}/shoal-sensors", *roots, *arguments], env=own, text=True, bufsize=1,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        test.addCleanup(self.end)
        self.lines = queue.Queue()
        self.last = {}
        self.backends = {}
        self.all = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for text in self.process.stdout:
            self.lines.put((time.monotonic(), json.loads(text)))

    def _take(self, wait):
        at, line = self.lines.get(timeout=wait)
        name = line["sensor"]
        self.last[name] = line
        self.all.append((at, line))
        if "backends" in line:
            self.backends[name] = {backend["name"]: backend for backend in line["backends"]}
        return at, line

    def wait(self, sensor, holds, limit=LIMIT):
        """The first line of that sensor, from now on or the last, of which `holds` is true."""
        end = time.monotonic() + limit
        if sensor in self.last and holds(self.last[sensor]):
            return self.last[sensor]
        while True:
            left = end - time.monotonic()
            try:
                if left <= 0:
                    raise queue.Empty
                _, line = self._take(left)
            except queue.Empty:
                raise AssertionError(
                    f"{sensor} did not say so within {limit} s; it said last: "
                    f"{self.last.get(sensor)}; it is {self.process.poll()}") from None
            if line["sensor"] == sensor and holds(line):
                return line

    def next(self, sensor, holds=lambda line: True, limit=LIMIT):
        """Like wait, but of lines that have not been looked at yet."""
        self.last.pop(sensor, None)
        return self.wait(sensor, holds, limit)

    def drain(self):
        """Forgets what has been said and not looked at."""
        while not self.lines.empty():
            self._take(0)

    def send(self, wish):
        self.process.stdin.write(json.dumps(wish) + "\n")
        self.process.stdin.flush()

    def configure(self, **wishes):
        self.send({"configure": wishes})

    def test(self, sensor, id=7):
        self.send({"test": sensor, "id": id})
        return self.next(sensor, lambda line: id in line.get("tests", []))

    def memory(self):
        with open(f"/proc/{self.process.pid}/status") as status:
            fields = dict(line.split(":", 1) for line in status)
        return int(fields["VmRSS"].split()[0]) * 1024

    def end(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            try:
                self.process.wait(LIMIT)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if not self.process.stdin.closed:
            self.process.stdin.close()
        self.reader.join(LIMIT)
        self.process.stdout.close()


class Mock:
    """One service of python-dbusmock, in a process of its own, which can be stopped."""

    def __init__(self, test, bus, name=None, path=None, interface=None, template=None,
                 parameters=None):
        self.bus = bus
        kind = "--system" if bus.system else "--session"
        argv = [sys.executable, "-m", "dbusmock", kind]
        if template:
            argv += ["--template", template]
            if parameters:
                argv += ["--parameters", json.dumps(parameters)]
        else:
            argv += [name, path, interface]
        self.process = subprocess.Popen(argv, env={**os.environ, **bus.environment},
                                        stdout=subprocess.DEVNULL)
        self.name = name
        test.addCleanup(self.end)

    def ready(self, name=None):
        self.name = name or self.name
        wait_until(f"{self.name} on its bus",
                   lambda: self.bus.connection.name_has_owner(self.name))
        return self

    def at(self, path, interface=MOCK):
        return dbus.Interface(self.bus.connection.get_object(self.name, path, introspect=False),
                              interface)

    def stop(self):
        os.kill(self.process.pid, signal.SIGSTOP)

    def go_on(self):
        os.kill(self.process.pid, signal.SIGCONT)

    def end(self):
        if self.process.poll() is None:
            self.go_on()
            self.process.terminate()
            self.process.wait()


class Bus:
    def __init__(self, test, system):
        self.system = system
        name = "system" if system else "session"
        folder = test.folder(name + "_bus")
        configuration = os.path.join(folder, "bus.conf")
        with open(configuration, "w") as file:
            file.write(BUS_CONFIGURATION % folder)
        self.process = subprocess.Popen(
            ["dbus-daemon", "--nofork", "--print-address", "--config-file", configuration],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.address = self.process.stdout.readline().strip()
        self.process.stdout.close()
        self.environment = {f"DBUS_{name.upper()}_BUS_ADDRESS": self.address}
        self.connection = dbus.bus.BusConnection(self.address)
        self.connection.set_exit_on_disconnect(False)
        test.addCleanup(self.end)

    def end(self):
        if self.process.poll() is None:
            self.connection.close()
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            self.process.wait()


class SensorsTest(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="shoal-sensors-")
        self.addCleanup(shutil.rmtree, self.root, ignore_errors=True)

    def folder(self, *parts):
        path = os.path.join(self.root, *parts)
        os.makedirs(path, mode=0o700, exist_ok=True)
        return path

    def write(self, path, text):
        """A file below the test's root, with the folders that it needs."""
        whole = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        beside = whole + ".new"
        with open(beside, "w") as file:
            file.write(text)
        os.replace(beside, whole)
        return whole

    def session_bus(self):
        return Bus(self, system=False)

    def system_bus(self):
        return Bus(self, system=True)

    def start(self, *buses, arguments=(), **environment):
        merged = {}
        for bus in buses:
            merged.update(bus.environment)
        merged.update(environment)
        return Sensors(self, merged, arguments)


def known(line):
    return line["known"]


def unknown(line):
    return not line["known"]


def run_all(module):
    """Runs the tests of a module a few at a time: they wait more than they work. Arguments are parts
    of names, to run those alone."""
    found = unittest.defaultTestLoader.loadTestsFromModule(sys.modules[module])
    tests = [test for suite in found for test in suite
             if len(sys.argv) < 2 or any(part in test.id() for part in sys.argv[1:])]

    def run(test):
        result = unittest.TestResult()
        began = time.monotonic()
        test.run(result)
        return test, result, time.monotonic() - began

    failed = 0
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for test, result, took in pool.map(run, tests):
            bad = [text for _, text in result.failures + result.errors]
            failed += bool(bad)
            print(f"{'FAIL' if bad else 'PASS'} {took:5.1f} s {test.id()}", *bad, sep="\n",
                  flush=True)
    print(f"{len(tests)} tests, {failed} failed")
    sys.exit(1 if failed or not tests else 0)
