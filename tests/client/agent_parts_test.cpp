// The small decisions that the agent is made of: settings that change, what the tray shows, pairing
// codes, rates, the log's ring, what a bug report may say, devices that come and go.

#include <kj/async-io.h>

#include <QTest>
#include <filesystem>
#include <fstream>

#include "client/bundle.h"
#include "client/client_state.h"
#include "client/device_finder.h"
#include "client/lent_device.h"
#include "client/live_settings.h"
#include "client/log_ring.h"
#include "client/loop.h"
#include "client/overall.h"
#include "client/pairing_codes.h"
#include "client/rate_limit.h"
#include "client/rules/validate_rules.h"
#include "client/settings.h"
#include "client/verdicts.h"
#include "client/work_list.h"

using namespace shoal;
using namespace shoal::client;

namespace {

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

Verdict says(Activity activity, std::string code) {
  Verdict verdict;
  verdict.activity = activity;
  verdict.why.code = std::move(code);
  return verdict;
}

// One device that could work, one coordinator that is connected.
OverallInput fine() {
  OverallInput input;
  input.lent.push_back({"a card", says(Activity::kWorking, "working.idle"), false});
  input.links.push_back({"ocean", OverallInput::Link::State::kConnected, "", Millis{0}, {}});
  input.network = says(Activity::kWorking, "working.idle");
  return input;
}

}  // namespace

class AgentPartsTest : public QObject {
  Q_OBJECT

 public:
  ~AgentPartsTest() noexcept override {}  // kj's own may throw, Qt's may not.

 private Q_SLOTS:
  void settings_change_all_or_none_and_last() {
    const TempDir dir;
    const std::filesystem::path file = dir / "config/client.toml";
    LiveSettings settings(Settings(settings_table()), file, validate_rules);
    QVERIFY(settings.change({{"rules.idle_seconds", int64_t{60}}, {"rules.metered", true}}).ok());
    QCOMPARE(settings.now().integer("rules.idle_seconds"), int64_t{60});
    const auto refused = [&](std::vector<SettingChange> changes, const char* key) {
      changes.push_back({"rules.metered", false});
      const Result<void> changed = settings.change(changes);
      QVERIFY(!changed.ok());
      QVERIFY2(has(changed.error().message, key), changed.error().message.c_str());
      QVERIFY(settings.now().flag("rules.metered"));
    };
    refused({{"rules.idle_seconds", int64_t{4}}}, "rules.idle_seconds");
    refused({{"rules.idle_seconds", std::string("soon")}}, "rules.idle_seconds");
    refused({{"rules.nothing", true}}, "rules.nothing");
    refused({{"rules.compute_hours", std::vector<std::string>{"someday 8-9"}}},
            "rules.compute_hours");
    QVERIFY(settings.with({{"rules.metered", false}}).ok());
    QVERIFY(settings.now().flag("rules.metered"));  // Only asked.
    const Settings stored = Settings::load(settings_table(), file).value();
    QVERIFY(stored.flag("rules.metered"));
    QCOMPARE(stored.integer("rules.idle_seconds"), int64_t{60});
  }

  void the_command_line_holds_until_the_owner_changes_it() {
    const TempDir dir;
    LiveSettings settings(Settings(settings_table()), dir / "client.toml", validate_rules);
    QVERIFY(settings.override_with({"compute.devices", std::vector<std::string>{"cpu"}}).ok());
    QVERIFY(!settings.override_with({"compute.devices", true}).ok());
    QVERIFY(settings.change({{"rules.metered", true}}).ok());
    QCOMPARE(settings.now().list("compute.devices"), std::vector<std::string>{"cpu"});
    // It is not stored with the rest.
    QVERIFY(Settings::load(settings_table(), dir / "client.toml")
                .value()
                .list("compute.devices")
                .empty());
    QVERIFY(settings.change({{"compute.devices", std::vector<std::string>{"none"}}}).ok());
    QCOMPARE(settings.now().list("compute.devices"), std::vector<std::string>{"none"});
  }

  void what_was_written_by_hand_stays() {
    const TempDir dir;
    LiveSettings settings(Settings(settings_table()), dir / "client.toml", validate_rules);
    std::ofstream(dir / "client.toml") << "[rules]\nidle_seconds = 77\n";
    QVERIFY(settings.change({{"rules.metered", true}}).ok());
    QCOMPARE(settings.now().integer("rules.idle_seconds"), int64_t{77});
    std::ofstream(dir / "client.toml") << "[rules\n";
    QVERIFY(!settings.change({{"rules.metered", false}}).ok());
    QVERIFY(settings.now().flag("rules.metered"));
  }

  void a_path_that_cannot_work_is_refused_with_the_reason() {
    const TempDir dir;
    std::ofstream(dir / "file") << "no program";
    LiveSettings settings(Settings(settings_table()), dir / "client.toml", validate_rules);
    const auto why = [&](const char* key, const std::string& path) -> std::string {
      const Result<void> changed = settings.change({{key, path}});
      return changed.ok() ? "" : changed.error().message;
    };
    const std::string inside = (dir / "file/shards").string();
    QVERIFY(has(why("cache.folder", "shards"), "must begin with '/'"));
    QVERIFY(has(why("cache.folder", inside), "is no folder"));
    QVERIFY(has(why("cache.folder", (dir / "file").string()), "is no folder"));
    QVERIFY(has(why("worker.program", "shoal-worker"), "must begin with '/'"));
    QVERIFY(has(why("worker.program", (dir / "nothing").string()), "is no file"));
    QVERIFY(has(why("sensors.program", (dir / "file").string()), "may start"));
    QVERIFY(settings.now().text("cache.folder").empty());
    QVERIFY(!std::filesystem::exists(dir / "client.toml"));
    // What works, also one that has to be made first; and empty means the usual one.
    QCOMPARE(why("cache.folder", (dir / "a/b").string()), std::string());
    QCOMPARE(why("cache.folder", ""), std::string());
    QCOMPARE(why("worker.program", "/bin/sh"), std::string());
  }

  void only_what_needs_it_asks_for_a_restart() {
    for (const SettingSpec& spec : settings_table()) {
      const bool at_start_only = spec.key == "cache.folder" || spec.key == "coordinators" ||
                                 spec.key == "sensors.program" || spec.key == "worker.program";
      QCOMPARE(LiveSettings::needs_restart(spec.key), at_start_only);
    }
  }

  void what_is_regular_happens_on_whole_seconds() {
    QCOMPARE(until_whole(Millis{10'000}, Millis{5'000}), Millis{5'000});
    QCOMPARE(until_whole(Millis{10'001}, Millis{5'000}), Millis{4'999});
    QCOMPARE(until_whole(Millis{13'749}, Millis{5'000}), Millis{1'251});
    // So near to the next one it is the one after.
    QCOMPARE(until_whole(Millis{13'750}, Millis{5'000}), Millis{6'250});
    QCOMPARE(until_whole(Millis{1'999}, Millis{2'000}), Millis{2'001});
    QCOMPARE(until_whole(Millis{77}, Millis{2'500}), Millis{1'923});
    QCOMPARE(until_whole(Millis{77}, Millis{999}), Millis{999});
    QCOMPARE(until_whole(Millis{77}, Millis{0}), Millis{0});
  }

  void a_folder_that_cannot_be_written_changes_nothing() {
    const TempDir dir;
    std::ofstream(dir / "config") << "a file where the folder should be";
    LiveSettings settings(Settings(settings_table()), dir / "config/client.toml", validate_rules);
    QVERIFY(!settings.change({{"rules.metered", true}}).ok());
    QVERIFY(!settings.now().flag("rules.metered"));
  }

  void choices_are_remembered() {
    const TempDir dir;
    {
      ClientState state = ClientState::load(dir / "client").value();
      QVERIFY(state
                  .change([](ClientMemory& memory) {
                    memory.passing[0] = ModeChoice{Mode::kPaused, Millis{12'345}, Millis{77}};
                    memory.modes[2] = ModeChoice{Mode::kAlways, {}};
                    memory.leave_by = Millis{99};
                    memory.last_work["pin"] = Millis{7};
                    memory.pairings.push_back({3, "laptop", "ab", Millis{1}, Millis{2}});
                    memory.devices["cpu"] = {{"cpu", "cpu", "cpu", "a processor"}, Millis{5}};
                  })
                  .ok());
    }
    const ClientState state = ClientState::load(dir / "client").value();
    const ClientMemory& memory = state.memory();
    QCOMPARE(memory.passing[0]->mode, Mode::kPaused);
    QCOMPARE(memory.passing[0]->until->count, int64_t{12'345});
    QCOMPARE(memory.passing[0]->length.count, int64_t{77});
    QVERIFY(!memory.modes[0]);
    QVERIFY(!memory.modes[1]);
    QCOMPARE(memory.modes[2]->mode, Mode::kAlways);
    QVERIFY(!memory.modes[2]->until);
    QCOMPARE(memory.leave_by->count, int64_t{99});
    QCOMPARE(memory.last_work.at("pin").count, int64_t{7});
    QCOMPARE(memory.pairings.at(0).name, std::string("laptop"));
    QCOMPARE(memory.devices.at("cpu").facts.name, std::string("a processor"));
  }

  void a_choice_that_cannot_be_stored_is_none() {
    const TempDir dir;
    ClientState state = ClientState::load(dir / "client").value();
    QVERIFY(state.change([](ClientMemory& memory) { memory.leave_by = Millis{1}; }).ok());
    std::filesystem::remove_all(dir.path());
    QVERIFY(!state.change([](ClientMemory& memory) { memory.leave_by = Millis{2}; }).ok());
    QCOMPARE(state.memory().leave_by->count, int64_t{1});
    std::filesystem::create_directory(dir.path());
  }

  void the_tray_shows_the_worst_first() {
    QCOMPARE(overall(fine()).why.code, std::string("working.idle"));
    OverallInput input = fine();
    input.lent[0].works = true;
    QCOMPARE(overall(input).why.code, std::string("working.now"));

    input.lent[0].verdict = says(Activity::kWaiting, "rule.owner_active");
    QCOMPARE(overall(input).why.code, std::string("rule.owner_active"));
    QCOMPARE(overall(input).activity, Activity::kWaiting);

    input.links[0].state = OverallInput::Link::State::kWaiting;
    input.links[0].reason = "no route";
    QCOMPARE(overall(input).why.code, std::string("offline.unreachable"));
    QVERIFY(has(english(overall(input).why), "no route"));

    input.lent[0].verdict = says(Activity::kPaused, "mode.paused");
    QCOMPARE(overall(input).why.code, std::string("mode.paused"));
    input.lent.push_back({"cpu", says(Activity::kWorking, "mode.always"), false});
    QCOMPARE(overall(input).activity, Activity::kOffline);  // The other one could work.

    input.lent.push_back({"bad", says(Activity::kAttention, "attention.device_failed"), false});
    QCOMPARE(overall(input).why.code, std::string("attention.device_failed"));
    input.links[0].state = OverallInput::Link::State::kRefused;
    QCOMPARE(overall(input).why.code, std::string("attention.refused"));
    input.disk_problem = Message{"attention.disk_full", {std::string("/x")}};
    QCOMPARE(overall(input).why.code, std::string("attention.disk_full"));
  }

  void the_tray_says_what_is_missing() {
    OverallInput input = fine();
    input.links.clear();
    QCOMPARE(overall(input).why.code, std::string("offline.not_attached"));
    input = fine();
    input.lent.clear();
    QCOMPARE(overall(input).why.code, std::string("attention.no_device"));
    input.looking = true;
    QCOMPARE(overall(input).why.code, std::string("device.looking"));
    input.list_problem = "it was ended";
    QCOMPARE(overall(input).why.code, std::string("device.not_listed"));
    input = fine();
    input.links[0].no_work = {"standing.no_session", {}};
    QCOMPARE(overall(input).remedy.code, std::string("standing.no_session"));
    // One coordinator of two is enough.
    input = fine();
    input.links.push_back({"other", OverallInput::Link::State::kWaiting, "down", Millis{9}, {}});
    QCOMPARE(overall(input).activity, Activity::kWorking);
  }

  void a_verdict_lasts_while_it_says_the_same() {
    StandingVerdict standing;
    Verdict verdict = says(Activity::kWaiting, "rule.owner_active");
    QVERIFY(update(standing, verdict, Millis{10}));
    verdict.why.parameters = {Millis{5'000}};  // Only its figure.
    QVERIFY(!update(standing, verdict, Millis{20}));
    QCOMPARE(standing.since.count, int64_t{10});
    QCOMPARE(standing.verdict.why.parameters.size(), size_t(1));
    verdict.rule = "rules.idle_seconds";
    QVERIFY(update(standing, verdict, Millis{30}));
    QCOMPARE(standing.since.count, int64_t{30});
  }

  void each_card_is_judged_by_its_own_sensor() {
    const Settings settings(settings_table());
    Readings readings;
    GpuReading hot, cool;
    hot.temperature_c = 90;
    cool.temperature_c = 50;
    PolicyInput input{.settings = settings, .readings = readings};
    for (ModeChoice& mode : input.modes) mode.mode = Mode::kAlways;
    input.now = Millis{1'000};
    Verdicts verdicts;
    QVERIFY(verdicts.judge(input, {{"a", Resource::kGpu, &hot}, {"b", Resource::kGpu, &cool}}));
    QVERIFY(!verdicts.of_device("a").allowed());
    QVERIFY(verdicts.of_device("b").allowed());
    QVERIFY(verdicts.of(Resource::kGpu).verdict.allowed());  // One of them may.
    QVERIFY(!verdicts.of_device("c").allowed());             // Not judged.
    // A step below the limit is not enough for the one that was too hot.
    hot.temperature_c = cool.temperature_c = 80;
    (void)verdicts.judge(input, {{"a", Resource::kGpu, &hot}, {"b", Resource::kGpu, &cool}});
    QVERIFY(!verdicts.of_device("a").allowed());
    QVERIFY(verdicts.of_device("b").allowed());
    hot.temperature_c = 74;
    (void)verdicts.judge(input, {{"a", Resource::kGpu, &hot}, {"b", Resource::kGpu, &cool}});
    QVERIFY(verdicts.of_device("a").allowed());
  }

  void devices_come_and_go() {
    const DeviceFacts cpu{"cpu", "cpu", "cpu", "a processor"};
    const DeviceFacts card{"vulkan:aa", "vulkan:0", "vulkan", "a card"};
    const DeviceFacts other{"vulkan:bb", "vulkan:0", "vulkan", "another"};
    const auto ids = [](const std::vector<DeviceFacts>& devices) {
      std::string text;
      for (const DeviceFacts& device : devices) text += device.id + " ";
      return text;
    };
    QCOMPARE(ids(devices_to_lend({cpu}, {}, {})), std::string("cpu "));
    QCOMPARE(ids(devices_to_lend({cpu}, {card}, {})), std::string("vulkan:aa "));
    QCOMPARE(ids(devices_to_lend({cpu, card}, {}, {"none"})), std::string(""));
    QCOMPARE(ids(devices_to_lend({cpu, other}, {card}, {"vulkan:0"})), std::string("vulkan:bb "));
    QCOMPARE(ids(devices_to_lend({cpu}, {card}, {"vulkan:aa", "cuda", "cpu"})),
             std::string("vulkan:aa cpu "));
  }

  void the_finder_asks_until_it_is_told_and_then_rests() {
    struct Computer final : DeviceFinder::Needs {
      kj::Promise<std::vector<DeviceFacts>> list_devices() override {
        ++lists;
        if (failures-- > 0) return KJ_EXCEPTION(DISCONNECTED, "it was ended");
        return std::vector<DeviceFacts>{{"cpu", "cpu", "cpu", "a processor"}};
      }
      void devices_found(std::vector<DeviceFacts> devices) override { found = devices.size(); }
      void devices_not_found() override {}
      bool device_missing() const override { return missing; }
      std::string device_nodes() const override {
        ++looks;
        return nodes;
      }
      void wait_until(kj::AsyncIoContext& io, const std::function<bool()>& done) {
        while (!done()) io.provider->getTimer().afterDelay(1 * kj::MILLISECONDS).wait(io.waitScope);
      }
      int lists = 0, failures = 2;
      mutable int looks = 0;
      size_t found = 0;
      bool missing = false;
      std::string nodes;
    } computer;
    kj::AsyncIoContext io = kj::setupAsyncIo();
    const ManualClock clock;
    Random random(1);
    DeviceFinder::Waits waits;
    waits.early = waits.later = Millis{1};
    waits.failed_first = waits.failed_most = Millis{1};
    DeviceFinder finder(io.provider->getTimer(), clock, random,
                        static_cast<DeviceFinder::Needs&>(computer), waits);
    QVERIFY(finder.looking());
    computer.wait_until(io, [&] { return computer.lists == 1; });
    QVERIFY(!finder.problem().empty());
    computer.wait_until(io, [&] { return computer.found == 1; });
    QVERIFY(finder.problem().empty() && !finder.looking());
    QCOMPARE(computer.lists, 3);
    // Nothing is missing and nothing has changed: it looks, and lists nothing.
    const int looks = computer.looks;
    computer.wait_until(io, [&] { return computer.looks > looks + 5; });
    QCOMPARE(computer.lists, 3);
    computer.nodes = "renderD129";  // A driver came late.
    computer.wait_until(io, [&] { return computer.lists == 4; });
    finder.look_now();
    computer.wait_until(io, [&] { return computer.lists == 5; });
    computer.missing = true;
    computer.wait_until(io, [&] { return computer.lists > 8; });
  }

  void duty_is_of_the_last_minute() {
    DutyMeter meter;
    QCOMPARE(meter.duty(Millis{0}), 0.0);
    meter.add(Millis{100'500}, 30'000'000);  // A step of half a minute.
    QVERIFY(std::abs(meter.duty(Millis{100'500}) - 0.5) < 0.01);
    QVERIFY(std::abs(meter.duty(Millis{145'500}) - 0.25) < 0.02);
    QCOMPARE(meter.duty(Millis{161'500}), 0.0);
    for (int i = 0; i < 3; ++i) meter.add(Millis{200'000}, 500'000'000);
    QVERIFY(meter.duty(Millis{200'000}) <= 1.0);
  }

  // A sensor's figure is of a moment: what of ours ran in that moment is taken off it, not a mean.
  void own_load_is_of_moments() {
    using What = OwnLoad::What;
    OwnLoad load;
    QCOMPARE(load.load(Millis{100'000}), 0.0);
    load.begin(What::kStep, Millis{100'000});
    QVERIFY(load.load(Millis{100'050}) <= 0.5);
    QVERIFY(load.load(Millis{100'200}) >= 0.99);  // On its way still.
    load.end(What::kStep, Millis{100'300});
    // A figure of then may come some seconds later; what comes after that is of others.
    QVERIFY(load.load(Millis{103'000}) >= 0.99);
    QCOMPARE(load.load(Millis{106'000}), 0.0);
    QCOMPARE(load.take_busy(Millis{106'000}), Millis{300});
    QCOMPARE(load.take_busy(Millis{107'000}), Millis{0});

    // Small steps with rests between them: their part.
    for (int64_t at = 200'000; at < 203'000; at += 100) {
      load.begin(What::kStep, Millis{at});
      load.end(What::kStep, Millis{at + 30});
    }
    QVERIFY(std::abs(load.load(Millis{203'000}) - 0.3) < 0.01);

    // The pace slows steps, not loading or measuring. Two at once are one.
    load.set_pace(0.5, Millis{300'000});
    load.begin(What::kStep, Millis{300'000});
    load.begin(What::kStep, Millis{300'000});
    QVERIFY(std::abs(load.load(Millis{301'000}) - 0.5) < 0.01);
    load.begin(What::kWhole, Millis{301'000});
    QCOMPARE(load.load(Millis{302'000}), 1.0);
    load.end(What::kWhole, Millis{302'000});
    load.end(What::kStep, Millis{302'000});
    load.end(What::kStep, Millis{302'000});
    load.begin(What::kWhole, Millis{400'000});  // Longer than all that is remembered.
    QCOMPARE(load.load(Millis{500'000}), 1.0);
  }

  void a_reading_is_of_the_device_it_names_or_of_the_only_one() {
    const DeviceFacts radeon{"vulkan:00-aa", "", "vulkan", "AMD Radeon RX 6700 (RADV NAVI22)"};
    const DeviceFacts arc{"vulkan:00-bb", "", "vulkan", "Intel(R) Arc(tm) A770 Graphics"};
    const DeviceFacts unnamed{"vulkan:00-cc", "", "vulkan", "a card"};
    GpuReading amd, intel, nvidia;
    amd.name = "AMD 0x73df";
    intel.name = "Intel 0x56a0";
    nvidia.name = "NVIDIA GeForce";
    nvidia.uuid = "00cc";
    const std::vector<GpuReading> gpus = {intel, amd, nvidia};
    QCOMPARE(reading_of(radeon, {radeon, arc}, gpus), &gpus[1]);
    QCOMPARE(reading_of(arc, {radeon, arc}, gpus), &gpus[0]);
    QCOMPARE(reading_of(unnamed, {radeon, arc, unnamed}, gpus), &gpus[2]);
    // It may be of another: two devices, or two cards, of that maker, or a device of none.
    DeviceFacts second = radeon;
    second.id = "vulkan:00-dd";
    QVERIFY(reading_of(radeon, {radeon, second}, gpus) == nullptr);
    QVERIFY(reading_of(radeon, {radeon, unnamed}, gpus) == nullptr);
    QVERIFY(reading_of(radeon, {radeon}, {amd, amd}) == nullptr);
    QVERIFY(reading_of(radeon, {radeon}, {intel}) == nullptr);
    // One that names another device is of that one.
    amd.uuid = "00ee";
    QVERIFY(reading_of(radeon, {radeon}, {amd}) == nullptr);
  }

  void a_rate_is_kept() {
    RateLimit limit;
    QCOMPARE(limit.take(Bytes{1'000'000}, Millis{0}).count, int64_t{0});  // None.
    limit.set(BytesPerSecond{1'000});
    QCOMPARE(limit.take(Bytes{1'000}, Millis{1'000}).count, int64_t{0});
    const Millis wait = limit.take(Bytes{500}, Millis{1'000});
    QVERIFY(wait >= Millis{500} && wait <= Millis{502});
    // More than the bucket holds passes at last.
    RateLimit large;
    large.set(BytesPerSecond{1'000});
    int64_t waited = 0, now = 1'000;
    for (int i = 0; i < 10; ++i) {
      const int64_t each = large.take(Bytes{5'000}, Millis{now}).count;
      waited += each;
      now += each;
    }
    QVERIFY(waited >= 48'000 && waited <= 50'000);
    QVERIFY(large.take(Bytes{1}, Millis{0}).count >= 0);  // A clock that went back.
  }

  void a_pairing_token_works_once_and_not_for_long() {
    PairingCodes codes;
    QVERIFY(!codes.use("", Millis{0}));  // Nothing is open.
    std::string token = codes.open(Millis{0});
    QCOMPARE(token.size(), size_t(32));  // 128 bits.
    QVERIFY(!codes.use(token + "0", Millis{1}));
    QVERIFY(codes.use(token, Millis{2}));
    QVERIFY(!codes.use(token, Millis{3}));

    token = codes.open(Millis{0});
    QVERIFY(!codes.use(token, PairingCodes::kOpenFor));
    token = codes.open(Millis{0});
    QVERIFY(codes.use(token, PairingCodes::kOpenFor - Millis{1}));

    // Strangers cannot end what the owner opened.
    token = codes.open(Millis{0});
    for (int i = 0; i < 1'000; ++i) QVERIFY(!codes.use("x", Millis{1}));
    QVERIFY(codes.use(token, Millis{1}));

    const std::string first = codes.open(Millis{0});
    const std::string second = codes.open(Millis{0});
    QVERIFY(first != second);
    QVERIFY(!codes.use(first, Millis{1}));
    QVERIFY(codes.use(second, Millis{1}));
  }

  void a_paired_one_is_known_by_its_token() {
    const std::string token = make_token();
    const std::vector<Pairing> pairings = {{1, "a", token_digest(make_token())},
                                           {2, "b", token_digest(token)}};
    const Pairing* const found = find_pairing(pairings, token);
    QVERIFY(found != nullptr);
    QCOMPARE(found->id, uint64_t(2));
    QVERIFY(find_pairing(pairings, token_digest(token)) == nullptr);
    QVERIFY(find_pairing({}, token) == nullptr);
  }

  void the_ring_holds_the_newest_and_the_file_is_bounded() {
    const TempDir dir;
    const ManualClock clock;
    LogRing ring(clock, dir.path());
    ring.add(LogLevel::kWarning, "2026-01-01T00:00:00.000Z warning link lost cause=\"x y\"");
    const std::vector<LogLine> lines = ring.after(0, 10);
    QCOMPARE(lines.size(), size_t(1));
    QCOMPARE(lines[0].id, uint64_t(1));
    QCOMPARE(lines[0].module, std::string("link"));
    QCOMPARE(lines[0].event, std::string("lost"));
    QCOMPARE(lines[0].fields, std::string("cause=\"x y\""));
    const std::string filler(1'000, 'x');
    for (size_t i = 0; i < LogRing::kLinesMax; ++i)
      ring.add(LogLevel::kInfo, "t info m e " + filler);
    QCOMPARE(ring.after(0, 100'000).size(), LogRing::kLinesMax);
    QCOMPARE(ring.after(0, 100'000).front().id, uint64_t(2));
    QCOMPARE(ring.after(0, 3).front().id, LogRing::kLinesMax - 1);  // The newest.
    QCOMPARE(ring.after(ring.newest() - 2, 100).size(), size_t(2));
    QVERIFY(ring.after(ring.newest(), 100).empty());
    QVERIFY(std::filesystem::file_size(dir / "client.log") <= LogRing::kFileBytesMax);
    QVERIFY(std::filesystem::file_size(dir / "client.log.1") <= LogRing::kFileBytesMax);
    QVERIFY(!std::filesystem::exists(dir / "client.log.2"));
  }

  void a_ring_without_a_folder_still_holds_lines() {
    const ManualClock clock;
    LogRing ring(clock, "/nonexistent/folder");
    ring.add(LogLevel::kInfo, "");
    ring.add(LogLevel::kInfo, "one");
    QCOMPARE(ring.after(0, 10).size(), size_t(2));
  }

  void a_bug_report_names_nobody() {
    const std::vector<std::string> words = {"ada", "/home/ada", "deepblue", "ocean.example"};
    const auto clean = [&](const char* text) { return redact(text, words); };
    QCOMPARE(clean("user ada on deepblue"), std::string("user <name> on <name>"));
    QCOMPARE(clean("an adapter"), std::string("an adapter"));  // Not within other words.
    QVERIFY(!has(clean("cannot open /home/ada/x/y"), "ada"));
    QVERIFY(!has(clean("cannot open /home/other/x/y: denied"), "other"));
    QVERIFY(has(clean("cannot open /home/other/x/y: denied"), "denied"));
    QVERIFY(!has(clean("join shoal://h.example:1/?pin=abc&invite=secret now"), "secret"));
    QVERIFY(has(clean("join shoal://h.example:1/?pin=abc&invite=secret now"), "now"));
    QCOMPARE(clean("peer 192.168.1.20:7411 lost"), std::string("peer <address> lost"));
    QVERIFY(!has(clean("peer [fe80::1:2:3:4]:7411 lost"), "fe80"));
    QVERIFY(!has(clean("at 2001:db8:0:1:2:3:4:5 lost"), "2001"));
    QVERIFY(!has(clean("token 0123456789abcdef0123456789abcdef"), "0123456789abcdef"));
    QVERIFY(!has(clean("pin=AbCdEfGhIjKlMnOpQrStUvWxYz0123456789_-AbCdE="), "AbCdEf"));
    QCOMPARE(clean("2026-07-01T12:30:00.250Z info link lost"),
             std::string("2026-07-01T12:30:00.250Z info link lost"));
    QVERIFY(!has(clean("coordinator=ocean.example:7410"), "ocean"));
  }

  void who_runs_a_stage_is_told_to_end() {
    std::vector<std::pair<uint64_t, std::string>> left;
    kj::EventLoop loop;
    kj::WaitScope scope(loop);
    WorkList list([&](const StageWork& work, const Message& why) {
      left.emplace_back(work.lease, why.code);
    });
    const auto work_on = [](const char* device, uint64_t lease) {
      StageWork work;
      work.device = device;
      work.lease = lease;
      return work;
    };
    auto one = kj::heap<WorkList::Entry>(list, work_on("a", 1));
    auto other = kj::heap<WorkList::Entry>(list, work_on("b", 2));
    QCOMPARE(list.count("a"), 1);
    QCOMPARE(list.end([](const StageWork& work) { return work.device == "a"; },
                      {"rule.owner_active", {}}, {"work.owner_needs_device", {}}),
             1);
    const kj::Exception told =
        one->must_end()
            .then([]() -> kj::Exception { return KJ_EXCEPTION(FAILED, "it was not told"); },
                  [](kj::Exception&& exception) { return kj::mv(exception); })
            .wait(scope);
    QVERIFY(told.getType() == kj::Exception::Type::DISCONNECTED);
    QVERIFY(has(told.getDescription().cStr(), "The owner needs this device"));
    QVERIFY(!other->must_end().poll(scope));
    one = nullptr;
    other = nullptr;
    QCOMPARE(left.size(), size_t(2));
    QCOMPARE(left[0].second, std::string("rule.owner_active"));
    QCOMPARE(left[1].second, std::string("work.given_back"));
    QVERIFY(list.all().empty());
  }
};

QTEST_GUILESS_MAIN(AgentPartsTest)
#include "agent_parts_test.moc"
