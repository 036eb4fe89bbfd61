// Goal: the command line understands what people type, asks the client for exactly that, and shows
// the answer as text, CSV and JSON. Method: the real program as a child, against a client that is
// not one at a real Unix socket.

#include <sys/stat.h>

#include <QProcess>
#include <QTest>
#include <condition_variable>
#include <fstream>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/clock.h"
#include "base/files.h"
#include "client/commands/table.h"
#include "client/commands/words.h"
#include "client/settings.h"
#include "schema/pairing_url.h"
#include "tests/support/fake_agent.h"

using namespace shoal;
using namespace shoal::client;

namespace {

struct Said {
  int code = -1;
  std::string out, err;

  Json json() const { return Json::parse(out, nullptr, /*allow_exceptions=*/false); }
};

// A data folder, with or without a client that runs on it.
class Home {
 public:
  explicit Home(std::optional<FakeAgent::Story> story = FakeAgent::Story::kFull)
      : folders_(user_folders(folder_.path()).value()) {
    if (!story) return;
    make(folders_.state);
    make(folders_.runtime);
    lock_.emplace(FileLock::acquire(folders_.state / "client.lock").value());
    agent_ = std::make_unique<FakeAgent>((folders_.runtime / "agent.sock").string(), *story);
  }

  FakeAgent& agent() { return *agent_; }
  std::filesystem::path settings_file() const { return folders_.config / "client.toml"; }
  std::filesystem::path path(const char* name) const { return folder_ / name; }

  // `reader`, if any, gets what it prints.
  std::unique_ptr<QProcess> spawn(const QStringList& arguments, QProcess* reader = nullptr) const {
    auto process = std::make_unique<QProcess>();
    if (reader != nullptr) process->setStandardOutputProcess(reader);
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    environment.insert("TZ", "UTC");
    process->setProcessEnvironment(environment);
    process->start(
        QString(SHOAL_BIN_DIR) + "/shoal-client",
        QStringList{"--data", QString::fromStdString(folder_.path().string())} + arguments);
    return process;
  }
  Said say(const QStringList& arguments) const {
    const auto process = spawn(arguments);
    if (!process->waitForFinished(60'000)) return {};
    return {process->exitCode(), process->readAllStandardOutput().toStdString(),
            process->readAllStandardError().toStdString()};
  }
  // What the client was asked for by this command.
  std::vector<std::string> asked(const QStringList& arguments) {
    const size_t before = agent_->calls().size();
    const Said said = say(arguments);
    if (said.code != 0) return {"failed: " + said.err};
    std::vector<std::string> calls = agent_->calls();
    calls.erase(calls.begin(), calls.begin() + static_cast<ptrdiff_t>(before));
    return calls;
  }

 private:
  static void make(const std::filesystem::path& folder) {
    if (!make_folder(folder).ok()) qFatal("no folder for the test");
  }

  TempDir folder_;
  UserFolders folders_;
  std::optional<FileLock> lock_;
  std::unique_ptr<FakeAgent> agent_;
};

using Calls = std::vector<std::string>;

bool has(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return true;
  qWarning("said: \"%s\"", text.c_str());
  return false;
}

size_t lines_of(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

// Another machine's client behind TLS: lets in who has its token, once, and then the new one.
class FarClient {
 public:
  FarClient() : thread_([this] { run(); }) {
    std::unique_lock<std::mutex> lock(mutex_);
    condition_.wait(lock, [this] { return !url_.empty(); });
  }
  ~FarClient() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stop_->fulfill();
    }
    thread_.join();
  }
  const std::string& url() const { return url_; }

 private:
  class Host final : public rpc::Agent::Server {
    kj::Promise<void> snapshot(SnapshotContext context) override {
      auto snapshot = context.getResults().initSnapshot();
      snapshot.setHostName("far away");
      snapshot.setRevision(1);
      return kj::READY_NOW;
    }
  };
  class Door final : public rpc::RemoteAgent::Server {
   public:
    explicit Door(FarClient& client) : client_(client) {}
    kj::Promise<void> open(OpenContext context) override {
      const std::string token = context.getParams().getToken().cStr();
      if (token != client_.token_) rpc::throw_error({ErrorCode::kDenied, "this token is not mine"});
      client_.token_ = "second";
      context.getResults().setToken("second");
      context.getResults().setAgent(kj::heap<Host>());
      return kj::READY_NOW;
    }

   private:
    FarClient& client_;
  };

  void run() {
    kj::AsyncIoContext io = kj::setupAsyncIo();
    const rpc::Certificate certificate = rpc::make_certificate().value();
    kj::Own<rpc::Listener> door =
        rpc::listen_tls(
            io.provider->getNetwork(), io.provider->getTimer(), "127.0.0.1", 0, certificate,
            [this](rpc::Peer) -> capnp::Capability::Client { return kj::heap<Door>(*this); })
            .wait(io.waitScope);
    auto pair = kj::newPromiseAndCrossThreadFulfiller<void>();
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stop_ = kj::mv(pair.fulfiller);
      url_ = rpc::format_pairing_url(
          {"127.0.0.1", door->port(), rpc::pin_of(certificate.der), token_});
      condition_.notify_all();
    }
    pair.promise.wait(io.waitScope);
  }

  std::string token_ = "first";  // The loop's thread alone.
  std::mutex mutex_;             // The test waits for the url.
  std::condition_variable condition_;
  std::string url_;                                      // GUARDED_BY(mutex_)
  kj::Own<kj::CrossThreadPromiseFulfiller<void>> stop_;  // GUARDED_BY(mutex_)
  std::thread thread_;
};

}  // namespace

class CommandsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() {
    qputenv("TZ", "UTC");
    tzset();
  }

  void durations_are_a_number_and_a_unit() {
    QCOMPARE(parse_duration("90s").value(), Millis{90'000});
    QCOMPARE(parse_duration("15m").value(), Millis{900'000});
    QCOMPARE(parse_duration("1h").value(), Millis{3'600'000});
    QCOMPARE(parse_duration("366d").value(), Millis{366LL * 86'400'000});
    for (const char* wrong : {"", "m", "15", "15 m", "1.5h", "-1h", "+1h", "0s", "367d", "1h30m",
                              "1H", "9999999999s", "1w", "h1"}) {
      const Result<Millis> duration = parse_duration(wrong);
      QVERIFY2(!duration.ok(), wrong);
      QCOMPARE(duration.error().code, ErrorCode::kInvalid);
    }
  }

  void times_are_the_next_and_dates_are_local() {
    const Millis noon{1'783'512'000'000};  // 2026-07-08 12:00 UTC.
    QCOMPARE(parse_next_time("18:00", noon).value(), noon + Millis{6 * 3'600'000});
    QCOMPARE(parse_next_time("11:59", noon).value(), noon + Millis{86'340'000});
    QCOMPARE(parse_next_time("12:00", noon).value(), noon + Millis{86'400'000});  // Not now.
    for (const char* wrong : {"24:00", "18", "18:60", "18:0", "six", "-1:00", "18:00x"}) {
      QVERIFY2(!parse_next_time(wrong, noon).ok(), wrong);
    }
    QCOMPARE(parse_date("2026-07-08").value(), noon - Millis{12 * 3'600'000});
    QCOMPARE(parse_date("2026-07-08 12:00").value(), noon);
    for (const char* wrong : {"2026-7-8", "2026-02-30", "2026-13-01", "08.07.2026",
                              "2026-07-08T12:00", "2026-07-08 24:00", "yesterday!"}) {
      QVERIFY2(!parse_date(wrong).ok(), wrong);
    }
    qputenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3");  // Berlin.
    tzset();
    QCOMPARE(parse_date("2026-07-08 14:00").value(), noon);
    QCOMPARE(parse_date("2026-12-08 13:00").value(),
             parse_date("2026-12-08 12:00").value() + Millis{3'600'000});
    qputenv("TZ", "UTC");
    tzset();
  }

  void a_table_is_text_csv_and_json() {
    Table table({{"name", "NAME"}, {"count", "COUNT"}, {"secret", ""}});
    QCOMPARE(table.text(), std::string("NAME  COUNT\n"));
    table.add({"größer", {"1.5 k", 1500}, "a,b"});
    table.add({"\x1b[2Jx", {"-", Json()}, "say \"no\""});
    table.add({"=SUM(A1)", {"2", 2}, ""});
    QCOMPARE(table.text(),
             std::string("NAME      COUNT\ngrößer    1.5 k\n?[2Jx     -\n=SUM(A1)  2\n"));
    QCOMPARE(table.csv(), std::string("name,count,secret\r\ngrößer,1500,\"a,b\"\r\n"
                                      "?[2Jx,,\"say \"\"no\"\"\"\r\n'=SUM(A1),2,\r\n"));
    QCOMPARE(table.json()[0].dump(),
             std::string("{\"name\":\"größer\",\"count\":1500,\"secret\":\"a,b\"}"));
    QVERIFY(table.json()[1]["count"].is_null());
  }

  void status_says_why_and_what_would_change_it() {
    Home home;
    home.agent().change([](rpc::Snapshot::Builder snapshot) {
      write_message({"rule.owner_active", {Millis{60'000}}}, snapshot.getOverall().initWhy());
      write_message({"rule.owner_active.remedy", {Millis{180'000}}},
                    snapshot.getOverall().initRemedy());
      snapshot.getOverall().setActivity(rpc::Activity::WAITING);
      snapshot.getConnections()[1].setReason("no\x1b[31m way");
      write_message({"records.newer", {}}, snapshot.initNotices(1)[0]);
    });
    const Said said = home.say({"status"});
    QCOMPARE(said.code, 0);
    QVERIFY(has(said.out, "waiting: You used this computer 1 min ago.\n"));
    QVERIFY(has(said.out, "  Work starts after 3 min without input."));
    QVERIFY(has(said.out, "note: Shoal's records were written by a newer version of Shoal"));
    QVERIFY(has(said.out, "\n  Install the newer version again.\n"));
    QVERIFY(has(said.out, "cpu       paused until "));
    QVERIFY(has(said.out, "matmul q8_0 gave other bits"));
    QVERIFY(has(said.out, "today: 41.2500 credit confirmed"));
    QVERIFY(has(said.out, "99 %: 310"));
    QVERIFY(has(said.out, "no?[31m way"));
    QVERIFY(said.out.find('\x1b') == std::string::npos);

    const Json json = home.say({"--json", "status"}).json();
    QCOMPARE(json["overall"]["activity"].get<std::string>(), std::string("waiting"));
    QCOMPARE(json["overall"]["why"]["code"].get<std::string>(), std::string("rule.owner_active"));
    QVERIFY(has(json["overall"]["why"]["text"].get<std::string>(), "1 min ago"));
    const Json& device = json["devices"][0];
    QCOMPARE(device["id"].get<std::string>(), std::string("vulkan:gpu0"));
    QCOMPARE(device["state"].get<std::string>(), std::string("ready"));
    QCOMPARE(device["self_test"]["exact"].get<bool>(), true);
    QCOMPARE(device["watts_measured"].get<bool>(), true);
    QVERIFY(json["devices"][2]["temperature_c"].is_null());  // Not known is no number.
    QCOMPARE(json["resources"].size(), size_t{3});
    QCOMPARE(json["pid"].get<int>(), 4242);
  }

  void status_is_shown_again_when_something_changes() {
    Home home(FakeAgent::Story::kEmpty);
    const auto watching = home.spawn({"status", "--watch", "--json"});
    const auto next_line = [&watching] {
      while (!watching->canReadLine() && watching->waitForReadyRead(30'000)) continue;
      return Json::parse(watching->readLine().toStdString(), nullptr, false);
    };
    QCOMPARE(next_line()["host_name"].get<std::string>(), std::string("willow"));
    home.agent().change([](rpc::Snapshot::Builder snapshot) { snapshot.setHostName("oak"); });
    QCOMPARE(next_line()["host_name"].get<std::string>(), std::string("oak"));
    home.agent().kill();  // A client that is gone ends it, with a reason.
    QVERIFY(watching->waitForFinished(30'000));
    QCOMPARE(watching->exitCode(), 5);
  }

  void nothing_is_asked_of_a_client_that_does_not_run() {
    const Home home(std::nullopt);
    for (const QStringList& words : {QStringList{"status"},
                                     {"pause"},
                                     {"trace"},
                                     {"stats"},
                                     {"log"},
                                     {"receipts"},
                                     {"what-if", "rules.idle_seconds=60"},
                                     {"consent", "list"},
                                     {"sensors"},
                                     {"pair"}}) {
      const Said said = home.say(words);
      QVERIFY2(said.code == 5, qPrintable(words.join(' ')));
      QVERIFY(has(said.err, "start one with shoal-client run"));
    }
  }

  void what_makes_no_sense_is_refused_before_it_is_asked_data() {
    QTest::addColumn<QStringList>("words");
    const QList<QStringList> all = {{"pause", "15x"},
                                    {"pause", "1h", "2h"},
                                    {"mode", "sometimes"},
                                    {"mode"},
                                    {"mode", "always", "--for", "soon"},
                                    {"leave-by", "25:00"},
                                    {"leave-by"},
                                    {"rules", "set", "rules.nothing", "1"},
                                    {"rules", "set", "rules.idle_seconds", "1"},
                                    {"rules", "set", "rules.idle_seconds", "60", "70"},
                                    {"rules", "set", "rules.inhibitors"},
                                    {"rules", "set", "rules.compute_hours", "mon 8-9"},
                                    {"rules", "get", "rules.nothing"},
                                    {"rules", "reset", "rules.nothing"},
                                    {"rules"},
                                    {"what-if"},
                                    {"what-if", "rules.idle_seconds"},
                                    {"what-if", "rules.idle_seconds=no"},
                                    {"what-if", "rules.idle_seconds=60", "--days", "9"},
                                    {"history", "--count", "5001"},
                                    {"log", "--count", "5001"},
                                    {"frobnicate"},
                                    {"stats", "--step", "year"},
                                    {"stats", "--from", "yesterday"},
                                    {"stats", "--from", "2026-07-08", "--to", "2026-07-07"},
                                    {"stats", "--days", "3", "--from", "2026-07-08"},
                                    {"log", "--level", "loud"},
                                    {"lend", "cpu", "perhaps"},
                                    {"consent", "allow"},
                                    {"consent", "deny", "m", "--privacy", "secret"},
                                    {"unpair", "x"},
                                    {"run", "--mode", "fast"},
                                    {"attach", "http://example"},
                                    {"--remote", "shoal://host:1/?pin=x", "status"},
                                    {"dance"}};
    for (const QStringList& words : all) QTest::newRow(qPrintable(words.join(' '))) << words;
  }
  void what_makes_no_sense_is_refused_before_it_is_asked() {
    QFETCH(QStringList, words);
    static Home home;
    const Said said = home.say(words);
    QVERIFY2(said.code == 2, said.err.c_str());
    QVERIFY(has(said.err, "shoal-client: "));
    for (const std::string& call : home.agent().calls()) QVERIFY2(call == "settings", call.c_str());
  }

  void pause_and_resume_ask_for_what_was_typed() {
    Home home;
    QCOMPARE(home.asked({"pause"}),
             (Calls{"setMode gpu paused 0", "setMode cpu paused 0", "setMode network paused 0"}));
    QCOMPARE(home.asked({"pause", "15m", "--gpu"}), Calls{"setMode gpu paused 900000"});
    QCOMPARE(home.asked({"pause", "until-resumed", "--cpu", "--network"}),
             (Calls{"setMode cpu paused 0", "setMode network paused 0"}));
    QCOMPARE(home.asked({"resume", "--gpu"}), Calls{"resume gpu"});
    QCOMPARE(home.asked({"mode", "always", "--for", "2d", "--cpu"}),
             Calls{"setMode cpu always 172800000"});
    QCOMPARE(home.asked({"mode", "rules"}).size(), size_t{3});
    QVERIFY(has(home.say({"pause", "1h"}).out, "gpu, cpu, network: paused, until 20"));
    const Json json = home.say({"pause", "1h", "--gpu", "--json"}).json();
    QCOMPARE(json.dump(),
             std::string("{\"mode\":\"paused\",\"resources\":[\"gpu\"],\"for_ms\":3600000}"));
    // The client's own refusal is shown as it is.
    home.agent().fail("resume", "not today");
    const Said refused = home.say({"resume"});
    QCOMPARE(refused.code, 4);
    QVERIFY(has(refused.err, "not today"));
    const Json told = home.say({"resume", "--json"}).json();
    QCOMPARE(told["error"]["code"].get<std::string>(), std::string("denied"));
  }

  void leave_by_is_the_next_such_time() {
    Home home;
    QCOMPARE(home.asked({"leave-by", "off"}), Calls{"setLeaveBy 0"});
    const Calls calls = home.asked({"leave-by", "18:00"});
    QCOMPARE(calls.size(), size_t{1});
    const Millis at{std::stoll(calls[0].substr(calls[0].find(' ') + 1))};
    const Millis now = SystemClock().now_wall();
    QVERIFY(at > now && at - now <= Millis{86'400'000});
    QCOMPARE(local_time(at).minute_of_day, 18 * 60);
  }

  void rules_are_changed_in_the_client_that_runs() {
    Home home;
    QCOMPARE(home.asked({"rules", "set", "rules.idle_seconds", "60"}),
             Calls{"changeSettings rules.idle_seconds"});
    QVERIFY(!std::filesystem::exists(home.settings_file()));  // That is the client's to write.
    QCOMPARE(home.say({"rules", "get", "rules.idle_seconds"}).out, std::string("60\n"));
    QCOMPARE(home.asked({"rules", "set", "rules.compute_hours", "mon-fri 22:00-06:00",
                         "sat-sun 00:00-24:00"}),
             Calls{"changeSettings rules.compute_hours"});
    const Json json = home.say({"rules", "list", "--changed", "--json"}).json();
    QCOMPARE(json["settings"].size(), size_t{2});
    QCOMPARE(json["running"].get<bool>(), true);
    QCOMPARE(json["settings"][1]["value"].dump(),
             std::string("[\"mon-fri 22:00-06:00\",\"sat-sun 00:00-24:00\"]"));
    QCOMPARE(home.asked({"rules", "set", "rules.compute_hours"}).size(), size_t{1});  // Empty.
    QCOMPARE(home.say({"rules", "get", "rules.compute_hours"}).out, std::string("\n"));
    QCOMPARE(home.asked({"rules", "reset", "rules.idle_seconds"}).size(), size_t{1});
    QVERIFY(has(home.say({"rules", "list", "--changed"}).out, "at its default"));
    QCOMPARE(lines_of(home.say({"rules", "list"}).out), settings_table().size());
  }

  void a_command_that_there_is_not_is_named() {
    const Home home(std::nullopt);
    QVERIFY(has(home.say({"frobnicate"}).err, "there is no command 'frobnicate'"));
    QVERIFY(
        has(home.say({"rules", "frob", "rules.metered"}).err, "there is no command 'rules frob'"));
    // What stands behind an option is no command, and what is missing has no name.
    QVERIFY(has(home.say({"--remote", "frob"}).err, "ubcommand"));
    QVERIFY(has(home.say({"rules"}).err, "ubcommand"));
  }

  void remedies_name_commands_and_no_pages() {
    for (const MessageSpec& message : message_table()) {
      if (!message.code.ends_with(".remedy")) continue;
      const Message remedy{std::string(message.code), {std::string("#0")}};
      const std::string text = remedy_text(remedy);
      for (const char* const page :
           {" under ", "Choose Resume", "'always'", "while a program keeps the screen on'"}) {
        QVERIFY2(text.find(page) == std::string::npos, text.c_str());
      }
      // What the catalogue names, this names too.
      QVERIFY2(has(text, "#0") == has(english(remedy), "#0"), text.c_str());
      // Every setting that it names there is.
      for (const char* const group : {"rules.", "cache.", "energy.", "consent."}) {
        for (size_t at = 0; (at = text.find(group, at)) != std::string::npos; ++at) {
          std::string key =
              text.substr(at, text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_.", at) - at);
          while (key.ends_with('.')) key.pop_back();
          const auto settings = settings_table();
          QVERIFY2(
              std::ranges::any_of(settings, [&key](const auto& spec) { return spec.key == key; }),
              key.c_str());
        }
      }
    }
    QCOMPARE(remedy_text({"rule.compute_hours.remedy", {}}),
             std::string("Change the hours with 'shoal-client rules set rules.compute_hours', or "
                         "choose 'shoal-client mode always'."));
    // What names no page is said as everywhere, and what is not known as it is.
    QCOMPARE(remedy_text({"rule.program.remedy", {std::string("blender")}}),
             std::string("Work starts when blender ends."));
    QCOMPARE(remedy_text({"rule.moon.remedy", {}}), std::string("rule.moon.remedy"));
  }

  void rules_are_changed_in_the_file_when_no_client_runs() {
    const Home home(std::nullopt);
    QCOMPARE(home.say({"rules", "set", "rules.inhibitors", "false"}).code, 0);
    QCOMPARE(home.say({"rules", "set", "energy.price_per_kwh", "1"}).code, 0);
    const Result<Settings> written = Settings::load(settings_table(), home.settings_file());
    QVERIFY(written.ok());
    QCOMPARE(written.value().flag("rules.inhibitors"), false);
    struct stat status {};
    QCOMPARE(stat(home.settings_file().c_str(), &status), 0);
    QCOMPARE(int(status.st_mode & 0777), 0600);  // It names what the owner uses and where.
    const Said nowhere = home.say({"rules", "set", "cache.folder", "shards"});
    QCOMPARE(nowhere.code, 2);
    QVERIFY(has(nowhere.err, "must begin with '/'"));
    QCOMPARE(written.value().real("energy.price_per_kwh"), 1.0);
    QCOMPARE(home.say({"rules", "get", "rules.inhibitors"}).out, std::string("false\n"));
    const Said mistyped = home.say({"rules", "set", "rules.inhibitor", "true"});
    QCOMPARE(mistyped.code, 2);
    QVERIFY(has(mistyped.err, "did you mean 'rules.inhibitors'?"));
    // A file that makes no sense is not made worse.
    std::ofstream(home.settings_file()) << "[rules]\ncompute_hours = [\"noon\"]\n";
    const Said broken = home.say({"rules", "set", "rules.metered", "true"});
    QCOMPARE(broken.code, 2);
    QVERIFY(has(broken.err, "rules.compute_hours: 'noon'"));
    const Result<ByteVector> left = read_file(home.settings_file(), kMebibyte);
    QVERIFY(as_text(left.value()).ends_with("compute_hours = [\"noon\"]\n"));
  }

  void what_if_shows_both_times() {
    Home home;
    QCOMPARE(
        home.asked({"what-if", "rules.idle_seconds=60", "rules.compute_hours=mon 08:00-09:00"}),
        Calls{"whatIf rules.idle_seconds rules.compute_hours"});
    const Said said = home.say({"what-if", "rules.idle_seconds=60"});
    QVERIFY(has(said.out, "gpu       6 days   2 days"));
    QVERIFY(has(said.out, "+11 h"));
    const Json json = home.say({"what-if", "rules.idle_seconds=60", "--json"}).json();
    QCOMPARE(json["days"].get<int>(), 7);
    QCOMPARE(json["resources"][0]["difference_ms"].get<int64_t>(), int64_t{11} * 3'600'000);
  }

  void records_come_as_text_csv_and_json() {
    Home home;
    QVERIFY(has(home.say({"trace"}).out, "You paused this until you resume it."));
    QCOMPARE(home.say({"trace", "--json"}).json()["spans"].size(), size_t{63});
    const Said trace = home.say({"trace", "--csv"});
    QCOMPARE(lines_of(trace.out), size_t{64});
    QVERIFY(trace.out.starts_with("start_ms,end_ms,resource,activity,rule,why,remedy\r\n"));

    // To the end of a day, from as many days before as asked for.
    QCOMPARE(home.say({"stats", "--to", "2026-07-08"}).code, 0);
    QCOMPARE(home.say({"stats", "--to", "2020-01-01", "--days", "2"}).code, 0);
    const Said stats = home.say({"stats", "--days", "2", "--step", "hour", "--csv"});
    QCOMPARE(lines_of(stats.out), size_t{1 + 2 * 48});  // An hour and a device each.
    QVERIFY(stats.out.starts_with("start_ms,device,credit_confirmed,"));
    QVERIFY(has(home.say({"stats"}).out, "vulkan:0"));  // As people call it, and not by its id.
    QCOMPARE(home.say({"stats", "--json"}).json()["rows"][0]["device"].get<std::string>(),
             std::string("vulkan:gpu0"));
    const Json rows = home.say({"stats", "--json"}).json()["rows"];
    QVERIFY(rows[1]["temperature_max"].is_null());  // The CPU's is not known.

    QCOMPARE(home.say({"history", "--count", "10", "--json"}).json()["work"].size(), size_t{10});
    QVERIFY(has(home.say({"history"}).out, "University lab"));
    const std::string open = home.say({"work"}).out;
    QVERIFY(has(open, "vulkan:0") && !has(open, "vulkan:gpu0"));
    const Json receipts = home.say({"receipts", "--json"}).json()["receipts"];
    QCOMPARE(receipts.size(), size_t{40});  // In pages, to the end.
    QCOMPARE(receipts[6]["genuine"].get<bool>(), false);
    QCOMPARE(lines_of(home.say({"receipts", "--csv"}).out), size_t{41});

    const Home nothing(FakeAgent::Story::kEmpty);
    for (const char* command : {"trace", "stats", "history", "receipts"}) {
      const Said said = nothing.say({command});
      QCOMPARE(said.code, 0);
      QVERIFY2(said.out.ends_with(".\n") && lines_of(said.out) == 1, said.out.c_str());
    }
  }

  void receipts_that_do_not_agree_are_a_failure() {
    Home home;
    const Said said = home.say({"receipts", "--verify"});
    QCOMPARE(said.code, 7);
    QVERIFY(has(said.err, "the receipts of 1 coordinator do not agree"));
    QVERIFY(has(said.out, "University lab"));
    const Home nothing(FakeAgent::Story::kEmpty);
    QCOMPARE(nothing.say({"receipts", "--verify"}).code, 0);
  }

  void consent_is_asked_for_each_class_that_fits() {
    Home home;
    const Json classes = home.say({"consent", "list", "--json"}).json()["classes"];
    QCOMPARE(classes.size(), size_t{6});  // Three of each of two coordinators.
    QCOMPARE(classes[2]["allowed"].get<bool>(), false);
    QCOMPARE(home.asked({"consent", "deny", "qwen3-0.6b"}),
             (Calls{"setConsent qwen3-0.6b deny", "setConsent qwen3-0.6b deny"}));
    QCOMPARE(home.asked({"consent", "allow", "gemma-2-9b", "--coordinator", "Public library"}),
             Calls{"setConsent gemma-2-9b allow"});
    QCOMPARE(home.say({"consent", "deny", "qwen3-0.6b", "--privacy", "anchored"}).code, 3);
    const Said unknown = home.say({"consent", "deny", "gpt"});
    QCOMPARE(unknown.code, 3);
    QVERIFY(has(unknown.err, "'gpt'"));
  }

  void a_coordinator_is_looked_at_joined_and_left() {
    Home home(FakeAgent::Story::kEmpty);
    const QString url = "shoal://library.example:7410/?pin=" + QString(43, 'a') + "&invite=abc";
    QCOMPARE(home.asked({"attach", "--preview", url}), Calls{"previewAttach " + url.toStdString()});
    const Said card = home.say({"attach", url, "--preview"});
    QVERIFY(has(card.out, "The reading group of the public library."));
    QVERIFY(has(card.out, "Summaries of council minutes"));
    QVERIFY(has(home.say({"attach", url}).out, "Attached to Public library (shoal://library"));
    const Json json = home.say({"attach", url, "--json"}).json();
    QCOMPARE(json["running"].get<bool>(), true);
    QCOMPARE(home.say({"detach", "--json"}).out, std::string("{\"detached\":2}\n"));
    QCOMPARE(home.say({"detach", "shoal://elsewhere:1"}).code, 3);
  }

  void a_client_that_is_told_to_stop_is_asked_once() {
    Home home;
    QCOMPARE(home.asked({"stop"}), Calls{"stop"});
    QCOMPARE(Home(std::nullopt).say({"stop"}).code, 5);
  }

  // Goal: a closed pipe, as of `status --watch | head`, ends the command.
  void who_stops_listening_ends_the_watch() {
    Home home;
    QProcess head;
    const auto watching = home.spawn({"status", "--watch", "--json"}, &head);
    head.start("head", {"-n", "1"});
    QVERIFY(head.waitForFinished(30'000));
    home.agent().set_busy(true);
    QVERIFY(watching->waitForFinished(30'000));
    QCOMPARE(watching->exitCode(), 0);
  }

  void devices_are_lent_by_id_or_selector() {
    Home home;
    QCOMPARE(home.asked({"lend", "cpu", "off"}), Calls{"setDeviceLent cpu false"});
    QCOMPARE(home.asked({"lend", "vulkan:gpu1", "on"}), Calls{"setDeviceLent vulkan:gpu1 true"});
    const Said unknown = home.say({"lend", "cuda:7", "on"});
    QCOMPARE(unknown.code, 3);
    QVERIFY(has(unknown.err, "vulkan:0"));
  }

  void sensors_are_listed_and_tested() {
    Home home;
    QVERIFY(has(home.say({"sensors"}).out, "no file system answers"));
    const Said test = home.say({"sensors", "--test", "idle"});
    QVERIFY(has(test.out, "ext-idle-notify"));
    QVERIFY(has(test.out, "the compositor does not offer it"));
    QCOMPARE(home.say({"sensors", "--json"}).json()["sensors"].size(), size_t{10});
    QCOMPARE(home.say({"sensors", "--test", "weather"}).code, 3);
  }

  void the_log_is_sifted() {
    Home home;
    QCOMPARE(lines_of(home.say({"log"}).out), size_t{200});
    QCOMPARE(lines_of(home.say({"log", "--level", "error"}).out), size_t{40});
    QCOMPARE(lines_of(home.say({"log", "--level", "warning", "--count", "10"}).out), size_t{4});
    const Said link = home.say({"log", "--module", "link", "--count", "5"});
    QVERIFY(link.out.ends_with(
        "warning link lost coordinator=\"University lab\" why=\"connection refused\"\n"));
    QCOMPARE(lines_of(home.say({"log", "--text", "digest=5b0f", "--count", "5"}).out), size_t{1});
    QCOMPARE(home.say({"log", "--text", "nowhere"}).out, std::string());
    const Json line = home.say({"log", "--count", "1", "--json"}).json();
    QCOMPARE(line["id"].get<int>(), 240);
  }

  void a_bundle_is_shown_or_written() {
    Home home;
    QVERIFY(has(home.say({"bundle"}).out, "[devices]\nvulkan:gpu0\n"));
    const std::string file = home.path("bundle.txt").string();
    QCOMPARE(home.say({"bundle", "--output", QString::fromStdString(file)}).code, 0);
    QVERIFY(as_text(read_file(file, kMebibyte).value()).starts_with("Shoal 0.1.0\n"));
  }

  void pairing_is_offered_listed_and_ended() {
    Home home;
    QVERIFY(has(home.say({"pair"}).out, "shoal+pair://willow:7411/?pin=abc&token=def"));
    QVERIFY(has(home.say({"pairings"}).out, "Ada's laptop"));
    QCOMPARE(home.asked({"unpair", "1"}), Calls{"unpair 1"});
  }

  // Goal: a URL that works once pairs for good, and its token is nobody else's to read.
  void another_machines_client_is_asked_after_pairing() {
    const FarClient far;
    const Home home(std::nullopt);
    const QString url = QString::fromStdString(far.url());
    const QString address = url.left(url.indexOf("/?"));
    QCOMPARE(home.say({"--remote", address, "status"}).code, 3);
    QVERIFY(has(home.say({"--remote", url, "status"}).out, "on far away"));
    QVERIFY(has(home.say({"--remote", address, "status"}).out, "on far away"));
    QVERIFY(has(home.say({"--remote", address.mid(13), "status", "--json"}).out, "far away"));
    const Said again = home.say({"--remote", url, "status"});  // Used up.
    QCOMPARE(again.code, 4);
    QVERIFY(has(again.err, "this token is not mine"));
    const auto file = home.path("state") / "remotes";
    QVERIFY(std::filesystem::exists(file));
    QCOMPARE(int(std::filesystem::status(file).permissions() & std::filesystem::perms(0077)), 0);
    // What works on this machine's files alone says so.
    QCOMPARE(home.say({"--remote", address, "devices"}).code, 2);
    QCOMPARE(home.say({"--remote", address, "run"}).code, 2);
  }
};

QTEST_GUILESS_MAIN(CommandsTest)
#include "commands_test.moc"
