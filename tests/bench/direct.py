"""Three hosts and a coordinator on loopback, with a proxy on every way that adds a delay: a
generation of three stages as the coordinator relays it, and as the hosts pass their rows on
directly. Each way between two machines is as long as any other. The model is the demo's, so hardly
any time is spent computing."""

import asyncio
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = ROOT / "build/release/bin"
TOKENS = 48
PROMPT = "And the king said unto the people that they should go down to the river. " * 4


class Delay:
    """Proxies in a thread of their own. A piece that comes is passed on `seconds` later."""

    def __init__(self):
        self.seconds = 0.0
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def proxy(self, port, target):
        async def pump(reader, writer):
            pieces = asyncio.Queue()

            async def send():
                while True:
                    due, piece = await pieces.get()
                    await asyncio.sleep(max(0.0, due - time.monotonic()))
                    if not piece:
                        writer.close()
                        return
                    writer.write(piece)

            sending = asyncio.ensure_future(send())
            try:
                while piece := await reader.read(1 << 16):
                    pieces.put_nowait((time.monotonic() + self.seconds, piece))
            except OSError:
                pass
            pieces.put_nowait((time.monotonic() + self.seconds, b""))
            await sending

        async def serve(reader, writer):
            try:
                there_reader, there_writer = await asyncio.open_connection(*target)
            except OSError:
                writer.close()
                return
            for one in (writer, there_writer):
                one.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await asyncio.gather(pump(reader, there_writer), pump(there_reader, writer))

        async def start():
            server = await asyncio.start_server(serve, "127.0.0.1", port)
            return server.sockets[0].getsockname()[1]

        return asyncio.run_coroutine_threadsafe(start(), self.loop).result()


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def ask(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise SystemExit(" ".join(map(str, words)) + " failed:\n" + done.stdout + done.stderr)
    lines = done.stdout.strip().splitlines()
    return json.loads(lines[-1]) if lines else {}


def main():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="shoal-direct-"))
    data = folder / "coordinator"
    children, delay = [], Delay()
    log = open(folder / "log", "w")

    def ctl(*words):
        return ask(BIN / "shoalctl", "--data", data, "--json", *words)

    def start(*words):
        child = subprocess.Popen([str(word) for word in words], stdout=log, stderr=log)
        children.append(child)

    try:
        port = free_port()
        ctl("init")
        start(BIN / "shoal-coordinator", "--data", data, "--listen", f"127.0.0.1:{port}")
        while subprocess.run([str(BIN / "shoalctl"), "--data", str(data), "status"],
                             capture_output=True).returncode != 0:
            time.sleep(0.1)
        ctl("model", "publish", ROOT / "models/demo/shoal-demo-q8_0.gguf", "--name", "m")
        hosts = []
        for name in "abc":
            home = folder / name
            tap = delay.proxy(0, ("127.0.0.1", port))
            url = re.sub("^shoal://[^/]*/", f"shoal://127.0.0.1:{tap}/", ctl("invite")["url"])
            ask(BIN / "shoal-client", "attach", url, "--data", home, "--json")
            start(BIN / "shoal-client", "run", "--mode", "always", "--data", home, "--devices", "cpu",
                  "--threads", "1")
            hosts.append(home)
        while ctl("status")["devices_ready"] < len(hosts):
            time.sleep(0.2)

        def measure():
            best = {}
            for _ in range(3):
                got = ctl("generate", "--model", "m", "--prompt", PROMPT, "--max-tokens", TOKENS,
                          "--stages", "3", "--ignore-eos")
                if not best or got["tokens_per_second"] > best["tokens_per_second"]:
                    best = got
            return best

        latencies = [0, 5, 20]
        results = {}
        for direct in (False, True):
            if direct:
                for home in hosts:
                    # The coordinator sees its hosts at 127.0.0.1: there the proxy listens.
                    at = free_port()
                    delay.proxy(at, ("127.0.0.2", at))
                    for key, value in (("network.direct_listen", f"127.0.0.2:{at}"),
                                       ("network.direct", "true")):
                        ask(BIN / "shoal-client", "rules", "set", key, value, "--data", home, "--json")
                time.sleep(1)
            for latency in latencies:
                delay.seconds = latency / 1000
                time.sleep(5)  # For the coordinator to measure the ways.
                results[direct, latency] = measure()
        print(f"a stream over three hosts, load {os.getloadavg()[0]:.2f}:")
        print("  one way    relayed                        direct")
        for latency in latencies:
            row = f"  {latency:4} ms"
            for direct in (False, True):
                got = results[direct, latency]
                row += (f"   {got['tokens_per_second']:6.1f} tokens/s {got['prefill_ms']:5} ms prefill"
                        f" {got['relayed_bytes'] / 1024:7.1f} KiB")
            print(row)
        texts = {got["text"] for got in results.values()}
        print("  the text is", "the same" if len(texts) == 1 else "NOT the same")
    finally:
        for child in children:
            child.terminate()
        for child in children:
            child.wait()
        log.close()
        shutil.rmtree(folder, ignore_errors=True)


main()
