#!/usr/bin/python3
"""Goal: on each desktop the right backend is asked and believed, and what hangs or lies there is
named and holds nobody. Method: the real shoal-sensors on private buses of python-dbusmock, an Xvfb,
and a Wayland desktop without a screen; every test waits for what the program says."""

import os
import signal
import subprocess
import time

import dbus

from sensors_support import LIMIT, Mock, SensorsTest, TESTS, known, run_all, unknown, wait_until

MUTTER = ("org.gnome.Mutter.IdleMonitor", "/org/gnome/Mutter/IdleMonitor/Core",
          "org.gnome.Mutter.IdleMonitor")
SCREENSAVER = ("org.freedesktop.ScreenSaver", "/org/freedesktop/ScreenSaver",
               "org.freedesktop.ScreenSaver")
GNOME = ("org.gnome.SessionManager", "/org/gnome/SessionManager", "org.gnome.SessionManager")
POWER = ("org.freedesktop.PowerManagement.Inhibit", "/org/freedesktop/PowerManagement/Inhibit",
         "org.freedesktop.PowerManagement.Inhibit")
GAMES = ("com.feralinteractive.GameMode", "/com/feralinteractive/GameMode",
         "com.feralinteractive.GameMode")
LOGIN = "org.freedesktop.login1"
MANAGER = "org.freedesktop.login1.Manager"
SESSION = "org.freedesktop.login1.Session"


class DesktopTest(SensorsTest):
    def mock_mutter(self, bus, idle_ms):
        mock = Mock(self, bus, *MUTTER).ready()
        self.set_mutter(mock, idle_ms)
        return mock

    def set_mutter(self, mock, idle_ms):
        mock.at(MUTTER[1]).AddMethod(MUTTER[2], "GetIdletime", "", "t",
                                     f"ret = dbus.UInt64({idle_ms})")

    def mock_screensaver(self, bus, code):
        mock = Mock(self, bus, *SCREENSAVER).ready()
        mock.at(SCREENSAVER[1]).AddMethod(SCREENSAVER[2], "GetSessionIdleTime", "", "u", code)
        return mock

    def mock_logind(self, bus, **parameters):
        return Mock(self, bus, template="logind", parameters=parameters).ready(LOGIN)

    def set_logind(self, mock, path="/org/freedesktop/login1", interface=MANAGER, **values):
        mock.at(path).UpdateProperties(interface, dbus.Dictionary(values, signature="sv"))

    def start_x(self):
        reading, writing = os.pipe()
        server = subprocess.Popen(
            ["Xvfb", "-displayfd", str(writing), "-screen", "0", "64x64x8", "-nolisten", "tcp"],
            pass_fds=[writing], stderr=subprocess.DEVNULL)
        os.close(writing)

        def end():
            server.send_signal(signal.SIGCONT)
            server.terminate()
            server.wait()

        self.addCleanup(end)
        # It writes the number and the line's end one after the other, and dies of a closed pipe.
        with os.fdopen(reading) as numbers:
            display = numbers.readline().strip()
        self.assertTrue(display, "Xvfb did not start")
        return server, ":" + display

    def start_compositor(self, *arguments):
        desktop = subprocess.Popen(
            [f"{TESTS}/fake_compositor", "wayland-7", *arguments],
            env={**os.environ, "XDG_RUNTIME_DIR": self.folder("run")}, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, bufsize=1)

        def end():
            desktop.send_signal(signal.SIGCONT)
            desktop.stdin.close()
            desktop.wait()
            desktop.stdout.close()

        self.addCleanup(end)
        self.assertEqual(desktop.stdout.readline(), "ready\n")
        return desktop


class Idle(DesktopTest):
    def test_nothing_tells(self):
        """F9: no bus, no display: not known, with the cause and what would help."""
        sensors = self.start()
        idle = sensors.wait("idle", unknown)
        self.assertIn("no source on this computer", idle["problem"])
        self.assertIn('mode "always"', idle["problem"])
        self.assertNotIn("idle_ms", idle)
        self.assertEqual(list(sensors.backends["idle"]),
                         ["ext-idle-notify", "mutter", "screensaver", "xscreensaver", "logind",
                          "terminals"])
        for backend in sensors.backends["idle"].values():
            self.assertFalse(backend["usable"])
            self.assertTrue(backend["problem"])

    def test_gnome(self):
        """F10: Mutter is asked; the login service's coarse hint is not believed before it."""
        session, system = self.session_bus(), self.system_bus()
        mutter = self.mock_mutter(session, 400_000)
        self.mock_logind(system, IdleHint=False)
        sensors = self.start(session, system)
        idle = sensors.wait("idle", known)
        self.assertEqual((idle["backend"], idle["idle_ms"]), ("mutter", 400_000))
        self.assertTrue(sensors.backends["idle"]["logind"]["usable"])
        self.assertEqual(sensors.backends["idle"]["mutter"]["idle_ms"], 400_000)
        # Seen within two seconds: at the next question, but for one that is under way.
        self.assertLessEqual(idle["every_ms"], 2_000)
        self.set_mutter(mutter, 20)
        sensors.drain()
        sensors.next("idle")
        self.assertEqual(sensors.next("idle")["idle_ms"], 20)

    def test_gnome_tells_a_touch(self):
        """Nobody has to ask GNOME each second while the owner is away."""
        session = self.session_bus()
        mutter = self.mock_mutter(session, 400_000)
        mutter.at(MUTTER[1]).AddMethod(MUTTER[2], "AddUserActiveWatch", "", "u",
                                       "self.n = getattr(self, 'n', 0) + 1; ret = self.n")
        sensors = self.start(session)
        sensors.configure(idle_threshold_ms=180_000)
        sensors.wait("idle", lambda line: known(line) and line["every_ms"] == 5_000)
        self.set_mutter(mutter, 20)
        mutter.at(MUTTER[1]).EmitSignal(MUTTER[2], "WatchFired", "u", [dbus.UInt32(1)])
        line = sensors.next("idle", lambda line: line["idle_ms"] == 20)
        self.assertEqual(line["every_ms"], 2_000)
        # The threshold is not missed by a question that comes late.
        self.set_mutter(mutter, 179_500)
        sensors.next("idle", lambda line: line["every_ms"] == 500)

    def test_kde_on_x11(self):
        """F10: KDE leaves the login service's hint false and counts in milliseconds."""
        session, system = self.session_bus(), self.system_bus()
        self.mock_screensaver(session, "ret = dbus.UInt32(300000)")
        self.mock_logind(system, IdleHint=False)
        idle = self.start(session, system).wait("idle", known)
        self.assertEqual((idle["backend"], idle["idle_ms"]), ("screensaver", 300_000))

    def test_a_screen_saver_that_counts_seconds(self):
        """Taken for milliseconds, the careful way, until the figure's pace tells otherwise."""
        session = self.session_bus()
        self.mock_screensaver(
            session, f"import time; ret = dbus.UInt32(int(time.time()) - {int(time.time())} + 90)")
        sensors = self.start(session)
        self.assertLess(sensors.wait("idle", known)["idle_ms"], 1_000)
        idle = sensors.next("idle", lambda line: line["idle_ms"] > 10_000)
        self.assertGreaterEqual(idle["idle_ms"], 90_000)
        self.assertLess(idle["idle_ms"], 200_000)

    def test_milliseconds_of_somebody_who_works(self):
        """A figure that hardly grows because of touches is no figure in seconds."""
        session = self.session_bus()
        self.mock_screensaver(
            session, "self.n = getattr(self, 'n', 0) + 1; ret = dbus.UInt32(self.n % 3)")
        sensors = self.start(session)
        sensors.wait("idle", known)
        for _ in range(7):
            self.assertLess(sensors.next("idle")["idle_ms"], 1_000)

    def test_x11(self):
        _, display = self.start_x()
        sensors = self.start(DISPLAY=display)
        idle = sensors.wait("idle", lambda line: line.get("idle_ms", 0) >= 1_200)
        self.assertEqual(idle["backend"], "xscreensaver")
        subprocess.run(["xdotool", "mousemove", "5", "5"], check=True,
                       env={**os.environ, "DISPLAY": display})
        touched = sensors.next("idle", lambda line: line["idle_ms"] < 1_200)
        self.assertEqual(touched["backend"], "xscreensaver")

    def test_x11_that_hangs(self):
        """The thread is given up for as long as the server hangs; the others go on."""
        server, display = self.start_x()
        server.send_signal(signal.SIGSTOP)
        sensors = self.start(DISPLAY=display)
        idle = sensors.wait("idle", unknown)
        self.assertIn("the X server has not answered for", idle["problem"])
        sensors.next("load", known)
        server.send_signal(signal.SIGCONT)
        self.assertEqual(sensors.wait("idle", known)["backend"], "xscreensaver")
        # Once connected, it is a question of time limits, and costs nobody a thread.
        server.send_signal(signal.SIGSTOP)
        self.assertIn("the X server does not answer", sensors.next("idle", unknown)["problem"])

    def test_x11_inside_wayland_is_not_asked(self):
        _, display = self.start_x()
        self.start_compositor("without")
        sensors = self.start(DISPLAY=display, WAYLAND_DISPLAY="wayland-7")
        sensors.wait("idle", unknown)
        backends = sensors.backends["idle"]
        self.assertIn("Wayland", backends["xscreensaver"]["problem"])
        self.assertIn("ext-idle-notify", backends["ext-idle-notify"]["problem"])

    def test_x11_of_another_computer_is_not_asked(self):
        sensors = self.start(DISPLAY="elsewhere:10.0")
        sensors.wait("idle", unknown)
        self.assertIn("another computer", sensors.backends["idle"]["xscreensaver"]["problem"])

    def test_wayland(self):
        """KDE Plasma 6, Sway: first of all, also where the service knows no WAYLAND_DISPLAY."""
        session = self.session_bus()
        self.mock_mutter(session, 400_000)
        desktop = self.start_compositor()
        sensors = self.start(session)
        idle = sensors.wait("idle", lambda line: line.get("idle_ms", 0) >= 2_000)
        self.assertEqual(idle["backend"], "ext-idle-notify")
        desktop.stdin.write("touch\n")
        back = sensors.next("idle", lambda line: line["idle_ms"] < 1_000)
        self.assertEqual(back["backend"], "ext-idle-notify")

    def test_wayland_that_hangs(self):
        desktop = self.start_compositor()
        sensors = self.start(WAYLAND_DISPLAY="wayland-7")
        sensors.wait("idle", known)
        desktop.send_signal(signal.SIGSTOP)
        idle = sensors.next("idle", unknown)
        self.assertIn("the Wayland desktop does not answer", idle["problem"])
        desktop.send_signal(signal.SIGCONT)
        self.assertTrue(sensors.test("idle")["known"])

    def test_login_service(self):
        """The last resort of a desktop, and a server's first."""
        system = self.system_bus()
        since = int((time.monotonic() - 600) * 1e6)
        logind = self.mock_logind(system, IdleHint=True)
        self.set_logind(logind, IdleSinceHintMonotonic=dbus.UInt64(max(since, 1)))
        sensors = self.start(system)
        idle = sensors.wait("idle", known)
        self.assertEqual(idle["backend"], "logind")
        if since > 0:
            self.assertAlmostEqual(idle["idle_ms"], 600_000, delta=LIMIT * 1_000)
        self.set_logind(logind, IdleHint=False)
        self.assertEqual(sensors.next("idle", lambda line: line["idle_ms"] == 0)["backend"],
                         "logind")

    def test_terminals(self):
        """Alone they are believed where there can be no screen; with one they only shorten."""
        terminal = self.write("dev/pts/3", "")
        self.write("dev/pts/ptmx", "")
        os.utime(terminal, (time.time() - 900, time.time()))
        idle = self.start().wait("idle", known)
        self.assertEqual(idle["backend"], "terminals")
        self.assertAlmostEqual(idle["idle_ms"], 900_000, delta=LIMIT * 1_000)
        self.write("x11/X0", "")
        sensors = self.start()
        sensors.wait("idle", unknown)
        self.assertTrue(sensors.backends["idle"]["terminals"]["usable"])
        # Somebody who types from afar uses this computer as well.
        session = self.session_bus()
        self.mock_mutter(session, 3_600_000)
        sensors = self.start(session)
        idle = sensors.wait("idle", known)
        self.assertEqual(idle["backend"], "terminals")
        self.assertNotIn("locked", idle)
        self.assertLess(idle["idle_ms"], 1_000_000)
        os.utime(terminal, (time.time() - 7_200, time.time()))
        self.assertEqual(sensors.next("idle", lambda line: line["idle_ms"] == 3_600_000)["backend"],
                         "mutter")

    def test_owner_chooses_the_source(self):
        session, system = self.session_bus(), self.system_bus()
        self.mock_mutter(session, 5_000)
        self.mock_screensaver(session, "ret = dbus.UInt32(7000)")
        sensors = self.start(session, system)
        self.assertEqual(sensors.wait("idle", known)["backend"], "mutter")
        sensors.configure(idle_source="screensaver")
        idle = sensors.next("idle", lambda line: line.get("backend") == "screensaver")
        self.assertEqual(idle["idle_ms"], 7_000)
        sensors.configure(idle_source="logind")
        idle = sensors.next("idle", unknown)
        self.assertIn("the chosen source, logind, cannot be used", idle["problem"])

    def test_locked_and_other_users(self):
        session, system = self.session_bus(), self.system_bus()
        self.mock_mutter(session, 500_000)
        logind = self.mock_logind(system)
        mine = logind.at("/org/freedesktop/login1").AddSession(
            "1", "seat0", dbus.UInt32(os.getuid()), "me", True)
        self.set_logind(logind, mine, SESSION, Type="x11", LockedHint=False)
        sensors = self.start(session, system)
        self.assertIs(sensors.wait("idle", known)["locked"], False)
        self.set_logind(logind, mine, SESSION, LockedHint=True)
        self.assertEqual(sensors.test("idle")["locked"], True)
        # The desktop of this user is idle because another one's is in front.
        other = logind.at("/org/freedesktop/login1").AddSession(
            "2", "seat0", dbus.UInt32(os.getuid() + 1), "guest", True)
        self.set_logind(logind, other, SESSION, Type="wayland")
        idle = sensors.test("idle")
        self.assertEqual((idle["idle_ms"], idle["backend"]), (0, "logind"))
        self.assertNotIn("locked", idle)  # A locked screen behind it makes nobody away.
        self.set_logind(logind, other, SESSION, Class="greeter")
        self.assertEqual(sensors.test("idle")["idle_ms"], 500_000)

    def test_unlocking_is_seen_at_once(self):
        """Also where the owner's last touch was long enough ago to be no new one."""
        session, system = self.session_bus(), self.system_bus()
        self.mock_mutter(session, 5_000)
        logind = self.mock_logind(system)
        mine = logind.at("/org/freedesktop/login1").AddSession(
            "1", "seat0", dbus.UInt32(os.getuid()), "me", True)
        self.set_logind(logind, mine, SESSION, Type="x11", LockedHint=True)
        sensors = self.start(session, system)
        sensors.configure(idle_threshold_ms=180_000)
        sensors.wait("idle", lambda line: known(line) and line["every_ms"] == 1_000)
        self.assertIs(sensors.last["idle"]["locked"], True)
        self.set_logind(logind, mine, SESSION, LockedHint=False)
        line = sensors.wait("idle", lambda line: line.get("locked") is False, limit=6)
        self.assertEqual(line["every_ms"], 2_000)

    def test_peer_that_hangs(self):
        """It is named, costs the others nothing, and is used again when it is back."""
        session = self.session_bus()
        mutter = self.mock_mutter(session, 5_000)
        sensors = self.start(session)
        sensors.wait("idle", known)
        mutter.stop()
        idle = sensors.next("idle", unknown)
        self.assertIn("org.gnome.Mutter.IdleMonitor does not answer", idle["problem"])
        sensors.next("load", known)
        mutter.go_on()
        self.assertEqual(sensors.test("idle")["backend"], "mutter")

    def test_bus_that_hangs(self):
        session = self.session_bus()
        session.process.send_signal(signal.SIGSTOP)
        sensors = self.start(session)
        idle = sensors.wait("idle", unknown)
        self.assertIn("the session bus does not answer", idle["problem"])
        sensors.wait("power", known)

    def test_figures_that_make_no_sense(self):
        session = self.session_bus()
        mutter = Mock(self, session, *MUTTER).ready()
        for code, kind in (("ret = dbus.UInt64(2**63)", "t"), ("ret = 'soon'", "s"),
                           ("ret = dbus.Int64(-1)", "x")):
            mutter.at(MUTTER[1]).AddMethod(MUTTER[2], "GetIdletime", "", kind, code)
            sensors = self.start(session)
            sensors.wait("idle", unknown)
            self.assertIn("makes no sense", sensors.backends["idle"]["mutter"]["problem"])
            sensors.end()


class Inhibitors(DesktopTest):
    def test_films_calls_and_games(self):
        """F11: who watches a film touches nothing and is there."""
        session, system = self.session_bus(), self.system_bus()
        self.mock_logind(system)
        gnome = Mock(self, session, *GNOME)
        power = Mock(self, session, *POWER)
        games = Mock(self, session, *GAMES)
        for mock in (gnome, power, games):
            mock.ready()
        gnome.at(GNOME[1]).AddMethod(GNOME[2], "IsInhibited", "u", "b", "ret = False")
        power.at(POWER[1]).AddMethod(POWER[2], "HasInhibit", "", "b", "ret = False")
        games.at(GAMES[1]).AddProperty(GAMES[2], "ClientCount", dbus.Int32(0))
        sensors = self.start(session, system)
        line = sensors.wait("inhibitors", known)
        self.assertEqual((line["inhibitors"], line["game_mode"]), ([], False))
        self.assertEqual(line["backend"], "logind, gnome, power-management")

        login = dbus.Interface(system.connection.get_object(LOGIN, "/org/freedesktop/login1"),
                               MANAGER)
        asleep = login.Inhibit("sleep:shutdown", "updater", "packages", "delay")
        film = login.Inhibit("sleep:idle", "player\x1b[2J", "a film", "block")
        line = sensors.test("inhibitors")
        self.assertEqual(line["inhibitors"], [{"who": "player?[2J", "why": "a film"}])
        del film

        one = "/org/gnome/SessionManager/Inhibitor7"
        kind = "org.gnome.SessionManager.Inhibitor"
        gnome.at(GNOME[1]).AddObject(
            one, kind, dbus.Dictionary({}, signature="sv"),
            [("GetFlags", "", "u", "ret = 12"), ("GetAppId", "", "s", "ret = 'call'"),
             ("GetReason", "", "s", "ret = 'a call'")])
        gnome.at(GNOME[1]).AddMethod(GNOME[2], "IsInhibited", "u", "b", "ret = args[0] == 8")
        gnome.at(GNOME[1]).AddMethod(GNOME[2], "GetInhibitors", "", "ao", f"ret = ['{one}']")
        power.at(POWER[1]).AddMethod(POWER[2], "HasInhibit", "", "b", "ret = True")
        games.at(GAMES[1]).UpdateProperties(
            GAMES[2], dbus.Dictionary({"ClientCount": dbus.Int32(1)}, signature="sv"))

        def told(line):
            return line["inhibitors"] == [{"who": "call", "why": "a call"},
                                          {"who": "a program", "why": ""}]
        line = sensors.next("inhibitors", told)
        self.assertTrue(line["game_mode"])
        del asleep

    def test_nobody_tells(self):
        line = self.start().wait("inhibitors", unknown)
        self.assertNotIn("inhibitors", line)
        self.assertIs(line["game_mode"], False)  # Without a bus no game has asked for it.

    def test_one_that_hangs_is_not_taken_for_no_film(self):
        session, system = self.session_bus(), self.system_bus()
        self.mock_logind(system)
        gnome = Mock(self, session, *GNOME).ready()
        gnome.stop()
        line = self.start(session, system).wait("inhibitors", unknown)
        self.assertIn("org.gnome.SessionManager does not answer", line["problem"])
        self.assertNotIn("inhibitors", line)


class Power(DesktopTest):
    def test_upower_and_profiles(self):
        system = self.system_bus()
        upower = Mock(self, system, template="upower", parameters={"OnBattery": True})
        profiles = Mock(self, system, template="power_profiles_daemon",
                        parameters={"ActiveProfile": "power-saver"})
        upower.ready("org.freedesktop.UPower")
        profiles.ready("net.hadess.PowerProfiles")
        upower.at("/org/freedesktop/UPower").SetupDisplayDevice(
            dbus.UInt32(2), dbus.UInt32(2), 41.5, 41.5, 100.0, 10.0, dbus.Int64(1000),
            dbus.Int64(0), True, "battery", dbus.UInt32(1))
        sensors = self.start(system)
        line = sensors.wait("power", known)
        self.assertEqual((line["backend"], line["on_battery"], line["battery_percent"],
                          line["power_profile"]), ("upower", True, 41.5, "power-saver"))
        upower.at("/org/freedesktop/UPower").UpdateProperties(
            "org.freedesktop.UPower", dbus.Dictionary({"OnBattery": False}, signature="sv"))
        upower.at("/org/freedesktop/UPower").SetDeviceProperties(
            "/org/freedesktop/UPower/devices/DisplayDevice",
            dbus.Dictionary({"Percentage": 1e9}, signature="sv"))
        line = sensors.test("power")
        self.assertIs(line["on_battery"], False)
        self.assertNotIn("battery_percent", line)  # No battery is that full.

    def test_profiles_under_their_new_name(self):
        system = self.system_bus()
        name = "org.freedesktop.UPower.PowerProfiles"
        path = "/org/freedesktop/UPower/PowerProfiles"
        Mock(self, system, name, path, name).ready().at(path).AddProperty(
            name, "ActiveProfile", "performance")
        line = self.start(system).wait("power", known)
        self.assertEqual((line["power_profile"], line["backend"]), ("performance", "sysfs"))

    def test_a_bus_without_profiles(self):
        self.assertEqual(self.start(self.system_bus()).wait("power", known)["power_profile"],
                         "none")


class Sleep(DesktopTest):
    def prepare(self, logind, signal_name, coming):
        logind.at("/org/freedesktop/login1").EmitSignal(MANAGER, signal_name, "b", [coming])

    def inhibitors(self, system):
        login = dbus.Interface(system.connection.get_object(LOGIN, "/org/freedesktop/login1"),
                               MANAGER)
        return [tuple(map(str, entry[:4])) for entry in login.ListInhibitors()]

    def test_holds_and_lets_go(self):
        system = self.system_bus()
        logind = self.mock_logind(system)
        sensors = self.start(system)
        line = sensors.wait("sleep", known)
        self.assertEqual((line["sleeping"], line["holds"]), (False, True))
        [(what, who, why, mode)] = self.inhibitors(system)
        self.assertEqual((what, who, mode), ("sleep:shutdown", "Shoal", "delay"))
        self.assertTrue(why)
        self.assertEqual(sensors.test("inhibitors")["inhibitors"], [])

        asked = time.monotonic()
        self.prepare(logind, "PrepareForSleep", True)
        line = sensors.next("sleep", lambda line: line["sleeping"])
        self.assertTrue(line["holds"])
        self.assertLess(time.monotonic() - asked, 8)  # Not at the next question: that is in 10 s.
        sensors.send({"released": True})
        sensors.next("sleep", lambda line: not line["holds"])
        wait_until("no inhibitor", lambda: self.inhibitors(system) == [])
        self.prepare(logind, "PrepareForSleep", False)
        sensors.next("sleep", lambda line: not line["sleeping"] and line["holds"])
        self.assertEqual(len(self.inhibitors(system)), 1)

        # A client that hangs does not keep the computer awake.
        self.prepare(logind, "PrepareForShutdown", True)
        sensors.next("sleep", lambda line: line["sleeping"])
        told = time.monotonic()
        sensors.next("sleep", lambda line: not line["holds"])
        self.assertGreater(time.monotonic() - told, 1)
        wait_until("no inhibitor", lambda: self.inhibitors(system) == [])

    def test_sleep_that_comes_before_it_looks(self):
        system = self.system_bus()
        self.mock_logind(system, PreparingForSleep=True)
        self.assertTrue(self.start(system).wait("sleep", known)["sleeping"])

    def test_nobody_tells(self):
        line = self.start().wait("sleep", unknown)
        self.assertIs(line["sleeping"], False)
        self.assertIn("about to sleep", line["problem"])


class Network(DesktopTest):
    def test_network_manager(self):
        system = self.system_bus()
        path = "/org/freedesktop/NetworkManager"
        manager = Mock(self, system, template="networkmanager",
                       parameters={"NetworkingEnabled": True}).ready(
                           "org.freedesktop.NetworkManager")
        manager.at(path).AddProperty("org.freedesktop.NetworkManager", "Metered", dbus.UInt32(0))
        self.write("proc/net/route", "Iface\tDestination\n")
        sensors = self.start(system, arguments=["--proc", self.folder("proc")])
        sensors.wait("network", known)
        for state, metered, online, said in ((70, 1, True, True), (60, 2, True, False),
                                             (70, 3, True, True), (70, 4, True, False),
                                             (70, 0, True, None), (20, 0, False, None)):
            manager.at(path).UpdateProperties(
                "org.freedesktop.NetworkManager",
                dbus.Dictionary({"State": dbus.UInt32(state), "Metered": dbus.UInt32(metered)},
                                signature="sv"))
            line = sensors.test("network", id=state + metered)
            self.assertEqual((line["backend"], line["online"], line.get("metered")),
                             ("networkmanager", online, said))


if __name__ == "__main__":
    run_all(__name__)
