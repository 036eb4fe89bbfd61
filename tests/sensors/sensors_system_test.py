#!/usr/bin/python3
"""Goal: the files of the kernel and NVIDIA's library are read rightly, also when they are strange,
late, or hang; and the program ends with its client. Method: the real shoal-sensors on folders that
look like /proc, /sys and /dev, and on a fake of the library."""

import json
import os
import subprocess

from sensors_support import BIN, LIMIT, SensorsTest, TESTS, known, run_all, unknown


def stat_line(pid, parent, ticks):
    """A name with a parenthesis and blanks, as any program may call itself."""
    return f"{pid} (a ) S 1 (b) S {parent} " + "0 " * 9 + f"{ticks} 0 0 0 20 0 1 0\n"


class Load(SensorsTest):
    def proc_stat(self, user, idle):
        self.write("proc/stat", f"cpu  {user} 0 0 {idle} 0 0 0 900 0 0\ncpu0 1 1 1 1\n")

    def process(self, pid, parent, ticks):
        self.write(f"proc/{pid}/stat", stat_line(pid, parent, ticks))

    def run_load(self):
        self.proc_stat(1_000, 1_000)
        self.process(1, 0, 500)
        self.process(100, 1, 10)   # The client.
        self.process(200, 100, 50)  # Its worker.
        self.process(201, 200, 5)
        self.process(300, 1, 7_000)  # Somebody else's.
        sensors = self.start(arguments=["--proc", self.folder("proc"), "--own-root", "100"])
        sensors.wait("load", unknown)
        # Of 1,000 ticks 600 were used: 400 by ours, one of them new.
        self.process(200, 100, 350)
        self.process(202, 200, 100)
        self.more()
        self.proc_stat(1_600, 1_400)
        line = sensors.wait("load", known)
        self.assertAlmostEqual(line["other_cpu_load"], 0.2)
        return sensors

    def more(self):
        pass

    def test_own_load_does_not_count(self):
        sensors = self.run_load()
        self.write("proc/stat", "cpu  soon\n")
        sensors.next("load", unknown)

    def test_own_load_by_lists_of_children(self):
        self.write("proc/100/task/100/children", "200 ")
        self.write("proc/200/task/200/children", "201 202")
        self.write("proc/201/task/201/children", "")
        self.run_load()


class Files(SensorsTest):
    def test_memory(self):
        self.write("proc/meminfo", "MemTotal: 9 kB\nMemAvailable:    4096 kB\n")
        line = self.start(arguments=["--proc", self.folder("proc")]).wait("memory", known)
        self.assertEqual(line["memory_available"], 4 << 20)
        self.write("proc/meminfo", "MemAvailable:    -1 kB\n")
        self.start(arguments=["--proc", self.folder("proc")]).wait("memory", unknown)

    def test_disk(self):
        sensors = self.start()
        sensors.wait("disk", unknown)
        sensors.configure(cache_folder=os.path.join(self.root, "not", "made", "yet"))
        free = sensors.next("disk", known)["cache_disk_free"]
        status = os.statvfs(self.root)
        self.assertAlmostEqual(free, status.f_bavail * status.f_frsize, delta=1 << 31)

    def test_exclusive_programs(self):
        """By the file that runs: whole path, or last name; never what it calls itself."""
        for pid, target in ((10, "/usr/bin/blender"), (11, "/opt/game/bin/game (deleted)"),
                            (12, "/usr/bin/blender-thumbnailer")):
            os.symlink(target, os.path.join(self.folder("proc", str(pid)), "exe"))
        self.folder("proc", "2")  # The kernel's own have none.
        sensors = self.start(arguments=["--proc", self.folder("proc")])
        self.assertEqual(sensors.wait("programs", known)["programs"], [])
        sensors.configure(exclusive=["blender", "/opt/game/bin/game", "game2", "/bin/blender", ""])
        line = sensors.next("programs", lambda line: line["programs"])
        self.assertEqual(line["programs"], ["blender", "/opt/game/bin/game"])

    def test_network_by_routes(self):
        head = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\n"
        proc = ["--proc", self.folder("proc")]
        self.start(arguments=proc).wait("network", unknown)
        default = "eth0\t00000000\t0102A8C0\t0003\t0\t0\t0\t00000000\n"
        near = "eth0\t0002A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\n"
        for routes, online in (("", False), ("lo\t0000007F\t00000000\t0001\t0\t0\t0\t000000FF\n",
                                             False),
                               ("eth0\t0000FEA9\t00000000\t0001\t0\t0\t0\t0000FFFF\n", False),
                               (default, True), (near, True), ("wlan0\tsoon\n", False)):
            self.write("proc/net/route", head + routes)
            sensors = self.start(arguments=proc)
            line = sensors.wait("network", known)
            self.assertEqual((line["online"], line["backend"]), (online, "routes"), routes)
            self.assertNotIn("metered", line)
            sensors.end()
        self.write("proc/net/route", head)
        address = "2001" + "0" * 28
        for flags, online in (("00000001", True), ("00000201", False)):
            self.write("proc/net/ipv6_route",
                       f"{address} 40 {'0' * 32} 00 {'0' * 32} 00000400 1 0 {flags} eth0\n")
            sensors = self.start(arguments=proc)
            self.assertIs(sensors.wait("network", known)["online"], online)
            sensors.end()

    def supply(self, name, **files):
        for file, text in files.items():
            self.write(f"sys/class/power_supply/{name}/{file}", f"{text}\n")

    def test_power_by_files(self):
        def read():
            sensors = self.start()
            line = sensors.wait("power", known)
            sensors.end()
            self.assertEqual(line["backend"], "sysfs")
            return line["on_battery"], line.get("battery_percent")

        self.assertEqual(read(), (False, None))  # A computer without a battery.
        self.supply("hidpp_battery_0", type="Battery", scope="Device", capacity=5,
                    status="Discharging")
        self.assertEqual(read(), (False, None))  # A mouse's is not the computer's.
        self.supply("BAT0", type="Battery", capacity=60, status="Discharging", present=1)
        self.assertEqual(read(), (True, 60))
        self.supply("AC", type="Mains", online=1)
        self.assertEqual(read(), (False, 60))
        self.supply("AC", online=0)
        self.supply("ucsi", type="USB", online=0)
        self.supply("BAT1", type="Battery", capacity=80, status="Unknown")
        self.assertEqual(read(), (True, 70))
        self.supply("ucsi", online=1)
        self.assertEqual(read(), (False, 70))

    def monitor(self, number, name, **files):
        self.write(f"sys/class/hwmon/hwmon{number}/name", name)
        for file, text in files.items():
            self.write(f"sys/class/hwmon/hwmon{number}/{file}", f"{text}\n")

    def test_processor(self):
        sensors = self.start()
        sensors.wait("cpu", unknown)
        self.monitor(0, "nvme", temp1_input=99_000)
        self.monitor(1, "coretemp", temp1_input=61_000, temp1_label="Package id 0")
        self.monitor(2, "coretemp", temp1_input=64_500, temp1_label="Package id 1")
        zone = "sys/class/powercap/intel-rapl:0"
        self.write(f"{zone}/name", "package-0\n")
        self.write(f"{zone}/energy_uj", "9000000\n")
        self.write(f"{zone}/max_energy_range_uj", "10000000\n")
        self.write("sys/class/powercap/intel-rapl:0:0/name", "core\n")
        self.write("sys/class/powercap/intel-rapl:0:0/energy_uj", "5\n")
        line = sensors.test("cpu", 1)
        self.assertEqual((line["cpu_temperature_c"], line["cpu_joules"]), (64.5, 0))
        self.write(f"{zone}/energy_uj", "9500000\n")
        self.assertAlmostEqual(sensors.test("cpu", 2)["cpu_joules"], 0.5)
        self.write(f"{zone}/energy_uj", "1000000\n")  # It began anew.
        self.assertAlmostEqual(sensors.test("cpu", 3)["cpu_joules"], 2.0)
        self.monitor(2, "coretemp", temp1_input=9_000_000)
        self.assertEqual(sensors.test("cpu", 4)["cpu_temperature_c"], 61)


class Cards(SensorsTest):
    def card(self, number, address, **files):
        device = self.folder("sys", "devices", address)
        link = os.path.join(self.folder("sys", "class", "drm", f"card{number}"), "device")
        if not os.path.islink(link):
            os.symlink(device, link)
        for file, text in files.items():
            self.write(f"sys/devices/{address}/{file}".replace("__", "/"), f"{text}\n")

    def nvml(self, **plan):
        return self.write("nvml.json", json.dumps(plan))

    def start_with_nvml(self):
        return self.start(LD_LIBRARY_PATH=f"{TESTS}/fake_nvml",
                          SHOAL_FAKE_NVML=os.path.join(self.root, "nvml.json"))

    def one(self, **changes):
        return {"domain": 0, "bus": 1, "device": 0, "name": "RTX",
                "uuid": "GPU-0A1B2C3D-0000-1111-2222-333344445555", "temperature": 61,
                "milliwatts": 120_500, "millijoules": 5_250, "load": 40, "total": 8 << 30,
                "used": 1 << 30, "display": 1, **changes}

    def test_cards_by_files(self):
        self.card(0, "0000:03:00.0", vendor="0x1002", device="0x744c", gpu_busy_percent=37,
                  mem_info_vram_total=1000, mem_info_vram_used=200,
                  hwmon__hwmon4__temp1_input=71_000, hwmon__hwmon4__power1_average=95_500_000)
        self.card(1, "0000:00:02.0", vendor="0x8086", device="0x4680",
                  hwmon__hwmon5__energy1_input=7_500_000)
        # Switched off to save power: not to be woken by being looked at.
        self.card(2, "0000:04:00.0", vendor="0x1002", device="0x73ff", gpu_busy_percent=1,
                  power__runtime_status="suspended")
        self.card(3, "0000:05:00.0", vendor="soon")
        line = self.start().wait("gpu", known)
        self.assertEqual(line["backend"], "sysfs")
        amd, intel, asleep = line["gpus"]
        self.assertEqual(
            amd, {"pci": "0000:03:00.0", "uuid": "", "name": "AMD 0x744c", "load": 0.37,
                  "memory_total": 1000, "memory_used": 200, "temperature_c": 71.0, "watts": 95.5})
        self.assertEqual((intel["pci"], intel["joules"]), ("0000:00:02.0", 7.5))
        self.assertEqual(asleep["pci"], "0000:04:00.0")
        self.assertNotIn("load", asleep)

    def test_no_library(self):
        line = self.start().wait("gpu", known)
        self.assertEqual(line["gpus"], [])

    def test_library(self):
        self.nvml(devices=[self.one(), {"domain": 0x10001, "bus": 1, "device": 0,
                                        "uuid": "rubbish", "load": 101, "used": 5, "total": 4}])
        line = self.start_with_nvml().wait("gpu", lambda line: line.get("gpus"))
        first, second = line["gpus"]
        self.assertEqual(
            first, {"pci": "0000:01:00.0", "uuid": "0a1b2c3d000011112222333344445555",
                    "name": "RTX", "temperature_c": 61, "watts": 120.5, "joules": 5.25,
                    "load": 0.4, "memory_total": 8 << 30, "memory_used": 1 << 30})
        # F3: the same bus in another domain is another card. What makes no sense is left out.
        self.assertEqual(second, {"pci": "10001:01:00.0", "uuid": "", "name": ""})

    def test_card_that_comes_late(self):
        """F1: the driver first fails, then has no card, then two."""
        self.nvml(init=9)
        sensors = self.start_with_nvml()
        line = sensors.wait("gpu", known)
        self.assertIn("Driver Not Loaded", line["problem"])
        self.assertEqual(line["gpus"], [])
        self.nvml(devices=[])
        self.assertEqual(sensors.test("gpu", 1)["gpus"], [])
        self.nvml(devices=[self.one(), self.one(bus=2)])
        line = sensors.test("gpu", 2)
        self.assertEqual([gpu["pci"] for gpu in line["gpus"]], ["0000:01:00.0", "0000:02:00.0"])
        self.assertNotIn("problem", line)

    def test_card_lost_in_sleep(self):
        """F4: after a sleep the driver has lost the card, and finds it again later."""
        self.nvml(devices=[self.one()])
        sensors = self.start_with_nvml()
        sensors.wait("gpu", lambda line: line.get("gpus"))
        self.nvml(devices=[self.one(status=15)], init=0)
        line = sensors.test("gpu", 1)
        self.assertIn("GPU is lost", line["problem"])
        self.assertEqual(line["gpus"], [])
        self.nvml(devices=[self.one()])
        self.assertEqual(len(sensors.test("gpu", 2)["gpus"]), 1)

    def test_card_that_fails_hides_no_other(self):
        self.nvml(devices=[self.one(), self.one(bus=2)])
        sensors = self.start_with_nvml()
        sensors.wait("gpu", lambda line: len(line.get("gpus", [])) == 2)
        self.nvml(devices=[self.one(status=15), self.one(bus=2)])
        line = sensors.test("gpu", 1)
        self.assertEqual([gpu["pci"] for gpu in line["gpus"]], ["0000:02:00.0"])
        self.nvml(devices=[self.one(), self.one(bus=2)])
        self.assertEqual(len(sensors.test("gpu", 2)["gpus"]), 2)

    def test_driver_that_hangs(self):
        """It is named; others go on; it is heard again when it is back; and the end waits for
        nobody."""
        self.nvml(devices=[self.one()])
        sensors = self.start_with_nvml()
        sensors.wait("gpu", lambda line: line.get("gpus"))
        self.nvml(devices=[self.one()], hang=True)
        sensors.send({"test": "gpu", "id": 3})
        line = sensors.next("gpu", lambda line: 3 in line.get("tests", []))
        self.assertFalse(line["known"])
        self.assertIn("the NVIDIA driver has not answered for", line["problem"])
        sensors.next("load", known)
        self.nvml(devices=[self.one()])
        sensors.next("gpu", known)
        self.nvml(devices=[self.one()], hang=True)
        sensors.send({"test": "gpu", "id": 4})
        sensors.next("gpu", unknown)
        sensors.end()
        self.assertEqual(sensors.process.returncode, 0)  # Not killed for taking too long.

    def test_sleeping_card_is_not_woken(self):
        self.write("sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n")
        self.write("sys/bus/pci/devices/0000:01:00.0/class", "0x030000\n")
        status = "sys/bus/pci/devices/0000:01:00.0/power/runtime_status"
        self.write(status, "suspended\n")
        self.nvml(hang=True, devices=[self.one()])  # To be asked at all would be seen.
        sensors = self.start_with_nvml()
        line = sensors.wait("gpu", known)
        self.assertEqual(line["gpus"], [])
        self.assertIn("save power", sensors.backends["gpu"]["nvml"]["problem"])
        self.nvml(devices=[self.one()])
        self.write(status, "active\n")
        self.assertEqual(sensors.test("gpu", 1)["gpus"][0]["temperature_c"], 61)
        self.write(status, "suspended\n")
        asleep = sensors.test("gpu", 2)["gpus"][0]
        self.assertEqual((asleep["name"], asleep.get("temperature_c")), ("RTX", None))


class Program(SensorsTest):
    def test_strange_wishes(self):
        sensors = self.start()
        sensors.wait("memory", known)
        for wish in ('rubbish', '[]', '{"configure": 7}', '{"test": "mood"}', '{"test": 9}', ''):
            sensors.process.stdin.write(wish + "\n")
        self.assertTrue(sensors.test("memory")["known"])

    def test_ends_with_its_client(self):
        sensors = self.start()
        sensors.wait("memory", known)
        sensors.process.stdin.close()
        self.assertEqual(sensors.process.wait(LIMIT), 0)

    def test_takes_little(self):
        sensors = self.start()
        for sensor in ("idle", "gpu", "power", "load"):
            sensors.wait(sensor, lambda line: True)
        self.assertLess(sensors.memory(), 20 << 20)

    def test_help(self):
        text = subprocess.run([f"{BIN}/shoal-sensors", "--help"], check=True, text=True,
                              capture_output=True).stdout
        self.assertIn("shoal-client", text)


if __name__ == "__main__":
    run_all(__name__)
