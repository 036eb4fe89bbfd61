// The client's small decisions: waits, device choice, what is remembered, who we are.

#include <QTest>
#include <filesystem>
#include <fstream>
#include <set>

#include "client/back_off.h"
#include "client/client_state.h"
#include "client/identity.h"
#include "client/settings.h"

using namespace shoal;
using namespace shoal::client;

namespace {

const std::vector<DeviceFacts> kCpuAndSoftware = {
    {"cpu", "cpu", "cpu", "a processor"},
    {"vulkan:aa", "vulkan:0", "vulkan", "llvmpipe", "mesa", 1, /*software=*/true}};

std::vector<DeviceFacts> with_gpus() {
  std::vector<DeviceFacts> all = kCpuAndSoftware;
  all.push_back({"vulkan:bb", "vulkan:1", "vulkan", "a card"});
  all.push_back({"vulkan:cc", "vulkan:2", "vulkan", "another"});
  return all;
}

std::string ids(const Result<std::vector<DeviceFacts>>& devices) {
  std::string text;
  for (const DeviceFacts& device : devices.value()) text += device.id + " ";
  return text;
}

}  // namespace

class ClientPartsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void waits_double_within_bounds_and_differ() {
    Random random(7);
    BackOff back_off(Millis{100}, Millis{1'000}, random);
    int64_t length = 100;
    std::set<int64_t> seen;
    for (int i = 0; i < 200; ++i) {
      const Millis wait = back_off.next();
      QVERIFY(wait.count >= length / 2 && wait.count <= length);
      seen.insert(wait.count);
      length = std::min<int64_t>(length * 2, 1'000);
    }
    QVERIFY(seen.size() > 50);  // Jittered.
    QCOMPARE(back_off.failures(), 200);
    back_off.reset();
    QVERIFY(back_off.next() <= Millis{100});
  }

  void lends_real_gpus_or_the_cpu() {
    QCOMPARE(ids(choose_devices(kCpuAndSoftware, {})), std::string("cpu "));
    QCOMPARE(ids(choose_devices(with_gpus(), {})), std::string("vulkan:bb vulkan:cc "));
    QCOMPARE(ids(choose_devices({}, {})), std::string(""));
  }

  void lends_what_is_named_once() {
    QCOMPARE(ids(choose_devices(kCpuAndSoftware, {"vulkan"})), std::string("vulkan:aa "));
    QCOMPARE(ids(choose_devices(with_gpus(), {"vulkan:2", "cpu", "vulkan:cc"})),
             std::string("vulkan:cc cpu "));
    const auto none = choose_devices(kCpuAndSoftware, {"cpu", "cuda"});
    QVERIFY(!none.ok());
    QCOMPARE(none.error().code, ErrorCode::kNotFound);
    QVERIFY(none.error().message.find("cuda") != std::string::npos);
    QVERIFY(none.error().message.find("vulkan:0") != std::string::npos);  // What there is instead.
  }

  void an_identity_is_made_once_and_kept_private() {
    const TempDir dir;
    const auto path = dir / "state/identity";
    const SigningPublicKey made = load_or_make_identity(path, false).value().public_key();
    QCOMPARE(load_or_make_identity(path, true).value().public_key() == made, true);
    const auto mode = std::filesystem::status(dir / "state/identity").permissions();
    QCOMPARE(static_cast<int>(mode), 0600);
    // A damaged one is no reason to become somebody else.
    std::ofstream(path) << "damaged";
    QCOMPARE(load_or_make_identity(path, true).value().public_key() == made, true);
    std::ofstream(path.string() + ".good") << "damaged too";
    const auto damaged = load_or_make_identity(path, false);
    QVERIFY(!damaged.ok());
    QVERIFY2(damaged.error().message.find("identity") != std::string::npos,
             damaged.error().message.c_str());
    // Nor is an absent one, for a host that coordinators know.
    std::filesystem::remove(path);
    std::filesystem::remove(path.string() + ".good");
    const auto absent = load_or_make_identity(path, true);
    QVERIFY(!absent.ok() && absent.error().message.find("detach") != std::string::npos);
    QVERIFY(!std::filesystem::exists(path));
  }

  void attachments_are_remembered() {
    const TempDir dir;
    const std::string one = "shoal://a:1/?pin=x", other = "shoal://b:2/?pin=y";
    {
      ClientState state = ClientState::load(dir / "client").value();
      QVERIFY(state.attachments().empty());
      QVERIFY(state.attach({one, "first", 3}).ok());
      QVERIFY(state.attach({other, "second", 4}).ok());
      QVERIFY(state.attach({one, "renamed", 5}).ok());
    }
    ClientState state = ClientState::load(dir / "client").value();
    QCOMPARE(state.attachments().size(), size_t(2));
    QCOMPARE(state.attachments()[0].name, std::string("renamed"));
    QCOMPARE(state.attachments()[0].host_id, uint64_t(5));
    QCOMPARE(state.detach("shoal://c:3").value(), 0);
    QCOMPARE(state.detach("shoal://b:2/").value(), 1);  // Without its pin.
    QCOMPARE(ClientState::load(dir / "client").value().attachments().size(), size_t(1));
    QCOMPARE(state.detach("").value(), 1);
    QVERIFY(ClientState::load(dir / "client").value().attachments().empty());
  }

  void measurements_belong_to_a_driver() {
    const TempDir dir;
    DeviceFacts device = with_gpus()[2];
    device.driver = "1.0";
    Measurement measurement;
    measurement.self_test = {true, 10, 0, 1, ""};
    measurement.benchmark.decode_rows_per_second = 12.5;
    measurement.benchmark.measured_at = Millis{99};
    {
      ClientState state = ClientState::load(dir / "client").value();
      QVERIFY(state.measurement(device) == nullptr);
      QVERIFY(state.remember(device, measurement).ok());
    }
    ClientState state = ClientState::load(dir / "client").value();
    const Measurement* const known = state.measurement(device);
    QVERIFY(known != nullptr);
    QVERIFY(known->self_test.exact);
    QCOMPARE(known->benchmark.decode_rows_per_second, 12.5);
    QCOMPARE(known->benchmark.measured_at.count, int64_t(99));
    device.driver = "1.1";
    QVERIFY(state.measurement(device) == nullptr);  // To be measured again.
  }

  void a_mode_for_a_time_passes_in_an_older_state_too() {
    const TempDir dir;
    QVERIFY(ClientState::load(dir / "client").value().attach({"shoal://a:1/?pin=x", "a", 1}).ok());
    StateFile file(dir / "client");
    std::string text(as_text(file.load().value().bytes));
    const auto replace = [&text](std::string_view what, std::string_view with) {
      const size_t at = text.find(what);
      if (at != std::string::npos) text.replace(at, what.size(), with);
      return at != std::string::npos;
    };
    QVERIFY(replace(R"("passing":{},)", ""));
    QVERIFY(replace(R"("modes":{})", R"("modes":{"gpu":{"mode":"always","until_ms":9},)"
                                     R"("cpu":{"mode":"paused","until_ms":0},)"
                                     R"("network":{"mode":"always","until_ms":0}})"));
    QVERIFY(file.save(as_bytes(text)).ok());
    const ClientState state = ClientState::load(dir / "client").value();
    const ClientMemory& memory = state.memory();
    QVERIFY(!memory.modes[0] && memory.passing[0]->until == Millis{9});
    QVERIFY(!memory.modes[1] && memory.passing[1]->mode == Mode::kPaused);
    QVERIFY(memory.modes[2]->mode == Mode::kAlways && !memory.passing[2]);
  }

  void a_damaged_state_falls_back_to_its_copy() {
    const TempDir dir;
    ClientState state = ClientState::load(dir / "client").value();
    QVERIFY(state.attach({"shoal://a:1/?pin=x", "a", 1}).ok());
    QVERIFY(state.attach({"shoal://b:1/?pin=x", "b", 2}).ok());
    std::ofstream(dir / "client") << "torn";
    QCOMPARE(ClientState::load(dir / "client").value().attachments().size(), size_t(2));
  }

  void every_setting_is_documented_and_bounded() {
    const Settings settings(settings_table());
    for (const SettingSpec& spec : settings_table()) QVERIFY(!spec.help.empty());
    QVERIFY(Settings::parse(settings_table(), settings.document(), "client.toml").ok());
    const auto wrong =
        Settings::parse(settings_table(), "[compute]\nthreads = -1\n", "client.toml");
    QVERIFY(!wrong.ok());
    QVERIFY(wrong.error().message.find("compute.threads") != std::string::npos);
  }
};

QTEST_GUILESS_MAIN(ClientPartsTest)
#include "client_parts_test.moc"
