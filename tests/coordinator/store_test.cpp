// Goal: the store migrates from every version, keeps what it said it kept, and refuses what it
// must.

#include <QTest>

#include <fstream>

#include "base/files.h"
#include "base/host.h"
#include "base/random.h"
#include "coordinator/store/host_table.h"
#include "coordinator/store/job_table.h"
#include "coordinator/store/ledger_table.h"
#include "coordinator/store/model_table.h"
#include "coordinator/store/session_table.h"
#include "coordinator/store/setting_table.h"
#include "coordinator/store/shard_store.h"
#include "coordinator/store/store.h"
#include "coordinator/store/unit_table.h"
#include "tests/coordinator/faulty_vfs.h"

using namespace shoal;
using namespace shoal::test;

namespace {

const std::filesystem::path kHere =
    std::filesystem::path(SHOAL_SOURCE_DIR) / "tests" / "coordinator";

HostRow some_host(uint8_t number) {
  HostRow host;
  host.public_key.bytes.fill(std::byte{number});
  host.name = "host " + std::to_string(number);
  host.system = "linux";
  host.version = "1";
  host.enrolled_at = host.last_seen = Millis{1000};
  return host;
}

ModelRow some_model(const std::string& name) {
  ModelRow model;
  model.name = name;
  model.manifest = "{}";
  model.purpose = "for " + name;
  for (int i = 0; i < 3; ++i) {
    ShardRow shard;
    shard.digest = digest_of(as_bytes(name + std::to_string(i)));
    shard.sealed_bytes = 100 + i;
    shard.wrapped_key = to_vector(as_bytes("wrapped"));
    model.shards.push_back(shard);
  }
  return model;
}

}  // namespace

class StoreTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_new_store_has_the_schema_that_is_written_down();
  void every_former_version_migrates();
  void two_owners_refuse();
  void refuses_foreign_newer_and_damaged_files();
  void refuses_a_folder_that_cannot_be_written();
  void hosts_devices_and_benchmarks_come_back();
  void a_host_fills_no_store();
  void invites_have_an_end_and_a_count();
  void models_are_whole_or_absent();
  void sessions_stages_and_leases_come_back();
  void jobs_and_units_come_back();
  void what_runs_all_day_reads_no_table_whole();
  void a_start_reads_what_is_open_by_its_indexes();
  void events_are_append_only();
  void no_failing_write_loses_or_halves_anything();
  void shards_are_proved_and_bounded();
  void master_keys_want_their_passphrase();
};

void StoreTest::a_new_store_has_the_schema_that_is_written_down() {
  const TempDir folder;
  const auto store = Store::open(folder.path());
  QVERIFY(store.ok());
  const std::string schema = store.value()->schema().value();
  const std::filesystem::path stored = kHere / "schema.txt";
  if (qEnvironmentVariableIsSet("SHOAL_WRITE_SCHEMA")) std::ofstream(stored) << schema;
  const ByteVector expected = read_file(stored, kMebibyte).value();
  QVERIFY2(schema == as_text(expected),
           "the schema changed: add a migration, then run with SHOAL_WRITE_SCHEMA=1 and look at "
           "the difference");
  QCOMPARE(store.value()->version(), static_cast<int>(migrations().size()));
  QVERIFY(store.value()->check_integrity().ok());
}

void StoreTest::every_former_version_migrates() {
  const TempDir reference_folder;
  const std::string schema = Store::open(reference_folder.path()).value()->schema().value();
  for (size_t version = 1; version <= migrations().size(); ++version) {
    const TempDir folder;
    {
      Store::Options options;
      options.migrations = migrations().first(version);
      const auto old = Store::open(folder.path(), options);
      QVERIFY(old.ok());
      QCOMPARE(old.value()->version(), static_cast<int>(version));
      // Rows as that version's fixture holds them.
      const ByteVector fixture =
          read_file(kHere / "fixtures" / ("version_" + std::to_string(version) + ".sql"), kMebibyte)
              .value();
      QVERIFY(old.value()
                  ->transaction([&]() -> Result<void> {
                    std::string text(as_text(fixture));
                    static std::vector<std::string> kept;  // Statements are kept by their address.
                    kept.reserve(1000);
                    for (size_t end; (end = text.find(";\n")) != std::string::npos;
                         text.erase(0, end + 2)) {
                      kept.push_back(text.substr(0, end));
                      SHOAL_TRY(old.value()->query(kept.back().c_str()).run());
                    }
                    return {};
                  })
                  .ok());
    }
    const auto store = Store::open(folder.path());
    QVERIFY(store.ok());
    QCOMPARE(store.value()->schema().value(), schema);
    QVERIFY(store.value()->check_integrity().ok());
    QCOMPARE(HostTable(*store.value()).list(100).value().size(), size_t{2});
    QCOMPARE(ModelTable(*store.value()).list(100).value().size(), size_t{1});
    QCOMPARE(SessionTable(*store.value()).events(0, 100).value().size(), size_t{1});
    const auto newest = LedgerTable(*store.value()).newest(HostId{1}).value();
    QCOMPARE(newest.number, int64_t{version < 2 ? 0 : 2});
    QCOMPARE(newest.sums.confirmed, int64_t{version < 2 ? 0 : 2 << 20});
    QCOMPARE(ModelTable(*store.value()).list(1).value()[0].purpose,
             std::string(version < 2 ? "" : "to tell stories"));
  }
}

void StoreTest::two_owners_refuse() {
  const TempDir folder;
  auto first = Store::open(folder.path());
  QVERIFY(first.ok());
  const auto second = Store::open(folder.path());
  QVERIFY(!second.ok());
  QCOMPARE(second.error().code, ErrorCode::kUnavailable);
  QVERIFY2(second.error().message.find(std::to_string(own_pid())) != std::string::npos,
           second.error().message.c_str());
  first = Error{ErrorCode::kInvalid, "closed"};
  QVERIFY(Store::open(folder.path()).ok());
}

void StoreTest::refuses_foreign_newer_and_damaged_files() {
  QCOMPARE(Store::open("/nonexistent/folder").error().code, ErrorCode::kNotFound);
  {
    const TempDir folder;
    std::ofstream(folder / "store.sqlite") << std::string(5000, 'x');
    const auto store = Store::open(folder.path());
    QVERIFY(!store.ok());
    QCOMPARE(store.error().code, ErrorCode::kCorrupt);
    QVERIFY(store.error().message.find("restore a backup") != std::string::npos);
  }
  {
    const TempDir folder;
    { QVERIFY(Store::open(folder.path()).ok()); }
    Store::Options older;
    older.migrations = migrations().first(0);
    const auto store = Store::open(folder.path(), older);
    QVERIFY(!store.ok());
    QCOMPARE(store.error().code, ErrorCode::kUnsupported);
    QVERIFY(store.error().message.find("newer Shoal") != std::string::npos);
  }
  {
    const TempDir folder;
    {
      const auto store = Store::open(folder.path());
      SessionTable table(*store.value());
      for (int i = 0; i < 100; ++i) {
        QVERIFY(table.add_event({0, Millis{1}, "kind", {}, {}, std::string(100, 'y')}).ok());
      }
    }
    const std::filesystem::path path = folder / "store.sqlite";
    const auto size = std::filesystem::file_size(path);
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(4096));
    file << std::string(size - 4096, '\x5a');
    file.close();
    const auto store = Store::open(folder.path());
    QVERIFY(!store.ok());
    QCOMPARE(store.error().code, ErrorCode::kCorrupt);
  }
}

void StoreTest::refuses_a_folder_that_cannot_be_written() {
  const TempDir folder;
  // A folder where the file would be: nobody, root included, can write it.
  std::filesystem::create_directory(folder / "store.sqlite");
  const auto store = Store::open(folder.path());
  QVERIFY(!store.ok());
  QCOMPARE(store.error().code, ErrorCode::kDenied);
  QVERIFY(store.error().message.find("writable") != std::string::npos);
}

void StoreTest::hosts_devices_and_benchmarks_come_back() {
  const TempDir folder;
  const auto opened = Store::open(folder.path());
  HostTable table(*opened.value());
  const HostId id = table.enrol(some_host(1)).value();
  QVERIFY(!table.enrol(some_host(1)).ok());
  QVERIFY(!table.find(some_host(2).public_key).value().has_value());
  QCOMPARE(table.find(some_host(1).public_key).value()->id, id);
  QVERIFY(table.set_standing(id, Standing::kTrusted).ok());
  QCOMPARE(table.set_standing(HostId{99}, Standing::kBanned).error().code, ErrorCode::kNotFound);
  QCOMPARE(table.find(id).value()->standing, Standing::kTrusted);

  DeviceRow device;
  device.name_on_host = "cpu";
  device.name = "A processor";
  device.memory = Bytes{1 << 30};
  QVERIFY(table.save_device(id, device, Millis{5}).ok());
  QCOMPARE(table.devices(id).value().size(), size_t{1});
  QCOMPARE(table.devices(id).value()[0].measured_at, Millis{0});
  device.measured_at = Millis{7};
  device.flops_per_second = 1.5;
  device.exact = true;
  QVERIFY(table.save_device(id, device, Millis{6}).ok());
  QVERIFY(
      table.save_device(id, device, Millis{7}).ok());  // The same benchmark again is no new one.
  const auto devices = table.devices(id).value();
  QCOMPARE(devices.size(), size_t{1});
  QCOMPARE(devices[0].flops_per_second, 1.5);
  QVERIFY(devices[0].exact);
  Query count = opened.value()->query("SELECT count(*) FROM benchmark");
  QVERIFY(count.row().value());
  QCOMPARE(count.integer(0), int64_t{1});
  QVERIFY(!table.save_device(HostId{99}, device, Millis{8}).ok());  // Foreign keys are on.
  QCOMPARE(table.count().value(), int64_t{1});
  QVERIFY(table.enrol(some_host(2)).ok());
  QCOMPARE(table.list(1).value().size(), size_t{1});
  QCOMPARE(table.count().value(), int64_t{2});
}

// Goal: whatever a host says of itself, and however often, the store keeps so much of it.
void StoreTest::a_host_fills_no_store() {
  const TempDir folder;
  const auto store = Store::open(folder.path());
  HostTable table(*store.value());
  const HostId id = table.enrol(some_host(1)).value();
  const HostId other = table.enrol(some_host(2)).value();
  const auto rows = [&](const char* sql) {
    Query query = store.value()->query(sql);
    return query.row().value() ? query.integer(0) : -1;
  };
  DeviceRow device;
  device.name_on_host = "cpu";
  QVERIFY(table.save_device(other, device, Millis{1}).ok());
  QVERIFY(store.value()
              ->transaction([&]() -> Result<void> {
                for (int64_t i = 1; i <= 3 * kBenchmarksKept; ++i) {
                  device.measured_at = Millis{i};
                  SHOAL_TRY(table.save_device(id, device, Millis{i}));
                }
                return {};
              })
              .ok());
  QCOMPARE(rows("SELECT count(*) FROM benchmark"), kBenchmarksKept);
  QCOMPARE(table.devices(id).value()[0].measured_at, Millis{3 * kBenchmarksKept});

  QVERIFY(store.value()
              ->transaction([&]() -> Result<void> {
                for (int64_t i = 1; i <= 2 * kDevicesKept; ++i) {
                  device.name_on_host = "gpu" + std::to_string(i);
                  SHOAL_TRY(table.save_device(id, device, Millis{100 + i}));
                }
                return {};
              })
              .ok());
  // One of the oldest is there still.
  const std::vector<std::string> present = {"cpu", "gpu1"};
  QVERIFY(table.forget_devices(id, present, Millis{5000}).ok());
  const auto kept = table.devices(id).value();
  QCOMPARE(static_cast<int64_t>(kept.size()), kDevicesKept);
  const auto has = [&](const std::string& name) {
    return std::ranges::find(kept, name, &DeviceRow::name_on_host) != kept.end();
  };
  QVERIFY(has("cpu") && has("gpu1") && !has("gpu2"));
  QVERIFY(has("gpu" + std::to_string(2 * kDevicesKept)));
  QCOMPARE(table.devices(other).value().size(), size_t{1});
  QVERIFY(store.value()->check_integrity().ok());
}

void StoreTest::invites_have_an_end_and_a_count() {
  const TempDir folder;
  const auto store = Store::open(folder.path());
  HostTable table(*store.value());
  const Digest invite = digest_of(as_bytes("invite"));
  QVERIFY(table.add_invite(invite, Millis{0}, Millis{100}, 2).ok());
  QVERIFY(table.use_invite(digest_of(as_bytes("other")), Millis{1})
              .error()
              .message.find("not one of") != std::string::npos);
  QVERIFY(table.use_invite(invite, Millis{100}).error().message.find("expired") !=
          std::string::npos);
  QVERIFY(table.use_invite(invite, Millis{99}).ok());
  QVERIFY(table.use_invite(invite, Millis{50}).ok());
  QVERIFY(table.use_invite(invite, Millis{50}).error().message.find("as often") !=
          std::string::npos);
}

void StoreTest::models_are_whole_or_absent() {
  const TempDir folder;
  const auto store = Store::open(folder.path());
  ModelTable table(*store.value());
  const ModelId id = table.add(some_model("a")).value();
  QCOMPARE(table.add(some_model("a")).error().code, ErrorCode::kExists);
  QVERIFY(table.add(some_model("b")).ok());
  QCOMPARE(table.list(100).value().size(), size_t{2});
  const auto found = table.find("a").value();
  QCOMPARE(found->shards.size(), size_t{3});
  QCOMPARE(found->sealed_bytes, int64_t{303});
  QCOMPARE(found->purpose, std::string("for a"));
  QCOMPARE(table.list(100).value()[1].purpose, std::string("for b"));
  QCOMPARE(table.count().value(), int64_t{2});
  QCOMPARE(table.list(1).value().size(), size_t{1});
  QVERIFY(!table.find("c").value().has_value());
  QVERIFY(table.has_shard(found->shards[1].digest).value());
  QVERIFY(table.remove(id).ok());
  QVERIFY(!table.has_shard(found->shards[1].digest).value());
  QCOMPARE(table.list(100).value().size(), size_t{1});
}

void StoreTest::sessions_stages_and_leases_come_back() {
  const TempDir folder;
  const auto store = Store::open(folder.path());
  SessionTable table(*store.value());
  const HostId host = HostTable(*store.value()).enrol(some_host(1)).value();
  SessionRow session;
  session.model = "m";
  session.privacy = "public";
  session.state = "planning";
  session.started_at = Millis{10};
  session.id = table.start(session).value();
  SessionRow odd = session;
  odd.state = "dreaming";
  QVERIFY(!table.start(odd).ok());
  SessionStageRow stage;
  stage.host = host;
  stage.device = "cpu";
  stage.last_fragment = 3;
  QCOMPARE(table.figures(session.id).value().block_rows, int64_t{0});
  SessionFigures figures;
  figures.block_rows = 5;
  figures.predicted = {0.5, 10, {{1, 2, 3}, {4, 5, 6}}};
  figures.measured.stages.resize(2);
  QVERIFY(table.set_figures(session.id, figures).ok());
  figures.measured = {0.6, 9, {{1.5, 2.5, 3.5, 7, 8}, {4.5, 5.5, 6.5, 9, 10}}};
  QVERIFY(table.set_figures(session.id, figures).ok());  // In place of the former.
  const SessionFigures back = table.figures(session.id).value();
  QCOMPARE(back.block_rows, int64_t{5});
  QCOMPARE(back.predicted.prefill_seconds, 0.5);
  QCOMPARE(back.measured.tokens_per_second, 9.0);
  QCOMPARE(back.predicted.stages.size(), size_t{2});
  QCOMPARE(back.predicted.stages[1].hop_seconds, 6.0);
  QCOMPARE(back.measured.stages[1].row_seconds, 4.5);
  QCOMPARE(back.measured.stages[1].block_seconds, 5.5);
  QCOMPARE(back.measured.stages[1].row_steps, int64_t{9});
  QCOMPARE(back.measured.stages[1].block_steps, int64_t{10});
  QVERIFY(!table.set_figures(SessionId{999}, figures).ok());  // Of no session.
  QVERIFY(!table.find(SessionId{999}).value());
  QCOMPARE(table.find(session.id).value()->model, std::string("m"));
  const int64_t row = table.add_stage(session.id, stage).value();
  QVERIFY(table.grant_lease(session.id, stage, Millis{11}).ok());
  QVERIFY(table.lose_stage(row, Millis{12}, "gone").ok());
  QCOMPARE(table.stages(session.id).value()[0].cause, std::string("gone"));
  QCOMPARE(table.list(0).value().size(), size_t{1});  // It lives.
  QCOMPARE(table.fail_unfinished(Millis{13}, "coordinator restarted").value(), int64_t{1});
  QCOMPARE(table.list(0).value().size(), size_t{0});
  QCOMPARE(table.list(5).value()[0].reason, std::string("coordinator restarted"));
  QCOMPARE(table.fail_unfinished(Millis{14}, "again").value(), int64_t{0});
  Query open = store.value()->query("SELECT count(*) FROM lease WHERE ended_at_ms = 0");
  QVERIFY(open.row().value());
  QCOMPARE(open.integer(0), int64_t{0});
}

namespace {

StoredJob some_job() {
  StoredJob job;
  job.name = "stories";
  job.spec = "name = ...";
  job.priority = 3;
  job.submitted_at = Millis{1500};
  for (int i = 0; i < 2; ++i) {
    StoredTask task;
    task.position = i;
    task.name = i == 0 ? "write" : "grade";
    task.model = "a model";
    task.kind = i == 0 ? TaskKind::kGenerate : TaskKind::kScore;
    task.items = 20;
    task.flops_per_item = Flops{1000};
    task.context = 64;
    task.unit_items_max = 100;
    if (i == 0) task.items_digest = digest_of(as_bytes("items"));
    if (i == 1) task.after = {TaskId{0}};
    job.tasks.push_back(task);
  }
  return job;
}

// A unit of five items from the grant to the end, in one batch or in several.
std::vector<std::vector<Change>> unit_story(TaskId task, bool in_one_batch) {
  const UnitId unit{1}, other{2};
  const LeaseId lease{kUnitLeasesBegin + 1}, second{kUnitLeasesBegin + 2};
  const Digest digest = digest_of(as_bytes("result"));
  const std::vector<std::vector<Change>> steps = {
      {UnitCut{unit, task, 0, 5}, UnitCut{other, task, 5, 5},
       LeaseGranted{lease, unit, HostId{1}, DeviceId{1}, Purpose::kWork, Millis{10}, Millis{90}}},
      {LeaseExtended{lease, Millis{120}}},
      {LeaseEnded{lease, LeaseEndReason::kSubmitted, Millis{50}},
       ResultReceived{lease, unit, digest, 1, ResultState::kPending, Millis{50}},
       UnitWants{unit, UnitWant::kAudit}},
      {LeaseGranted{second, unit, HostId{2}, DeviceId{3}, Purpose::kAudit, Millis{60}, Millis{99}},
       ResultSuspected{lease}},
      {LeaseEnded{second, LeaseEndReason::kSubmitted, Millis{70}},
       ResultReceived{second, unit, digest, 1, ResultState::kPending, Millis{70}},
       ResultConfirmed{lease, unit, HostId{1}, Flops{5000}},
       ResultRejected{second, unit, HostId{2}, RejectReason::kWrong},
       UnitDone{unit, task, lease, digest}, UnitPoisoned{other, task},
       HostChanged{HostId{1}, 1, 0, Millis{0}}, HostChanged{HostId{2}, 0, 1, Millis{900}}},
  };
  if (!in_one_batch) return steps;
  std::vector<Change> all;
  for (const auto& step : steps) all.insert(all.end(), step.begin(), step.end());
  return {all};
}

}  // namespace

void StoreTest::jobs_and_units_come_back() {
  for (const bool in_one_batch : {false, true}) {
    const TempDir folder;
    const auto opened = Store::open(folder.path());
    Store& store = *opened.value();
    HostTable hosts(store);
    QVERIFY(hosts.enrol(some_host(1)).ok() && hosts.enrol(some_host(2)).ok());
    JobTable jobs(store);
    UnitTable units(store);
    StoredJob job = some_job();
    QVERIFY(jobs.add(job).ok());
    QVERIFY(job.id && job.tasks[1].id);
    QCOMPARE(job.tasks[1].after[0], job.tasks[0].id);
    const TaskId task = job.tasks[0].id;
    const Digest digest = digest_of(as_bytes("result")), other = digest_of(as_bytes("other"));
    int step = 0;
    for (const auto& changes : unit_story(task, in_one_batch)) {
      const std::pair<HostId, uint64_t> serials[] = {{HostId{1}, 4}, {HostId{2}, 9}};
      QVERIFY(store.transaction([&] { return units.write(changes, serials); }).ok());
      if (++step == 3) {
        BrokerRows rows;
        QVERIFY(units.load(rows).ok());
        QCOMPARE(rows.units.size(), size_t{2});
        QVERIFY(rows.units[0].want == UnitWant::kAudit);
        QCOMPARE(rows.leases.size(), size_t{1});
        QVERIFY(rows.leases[0].state == ResultState::kPending && !rows.leases[0].live);
        QCOMPARE(rows.leases[0].granted.until, Millis{120});
        QCOMPARE(units.figures(task).value().pending, int64_t{5});
      }
    }
    QVERIFY(units.add_result(UnitId{1}, digest, 3, as_bytes("abc")).ok());
    QVERIFY(units.add_result(UnitId{1}, digest, 3, as_bytes("abc")).ok());
    QVERIFY(units.add_result(UnitId{1}, other, 3, as_bytes("xyz")).ok());
    QVERIFY(units.remove_other_results(UnitId{1}, digest).ok());
    const auto ended = units.ended_units(task, 0, 10).value();
    QCOMPARE(ended.size(), size_t{2});
    QVERIFY(ended[0].done && ended[0].digest == digest);
    QCOMPARE(as_text(ended[0].bytes), std::string_view("abc"));
    QVERIFY(!ended[1].done);
    QCOMPARE(units.ended_units(task, 5, 10).value().size(), size_t{1});
    const TaskFigures figures = units.figures(task).value();
    QCOMPARE(figures.cut, int64_t{10});
    QCOMPARE(figures.done, int64_t{5});
    QCOMPARE(figures.poisoned, int64_t{5});
    const auto found = units.find_lease(LeaseId{kUnitLeasesBegin + 2}).value();
    QVERIFY(found && found->unit_done && found->row.state == ResultState::kRejected);
    QCOMPARE(found->row.granted.host, HostId{2});
    QVERIFY(!units.find_lease(LeaseId{5}).value());
    QVERIFY(units.job_of(UnitId{2}).value() == job.id);

    BrokerRows rows;
    QVERIFY(units.load(rows).ok());
    QVERIFY(rows.units.empty() && rows.leases.empty());
    QCOMPARE(rows.last_lease, LeaseId{kUnitLeasesBegin + 2});
    QCOMPARE(rows.hosts.size(), size_t{2});
    QCOMPARE(rows.hosts[1].record.quarantined_until, Millis{900});
    QCOMPARE(rows.hosts[1].serial, uint64_t{9});

    QVERIFY(jobs.add_credit(job.id, 7).ok() && jobs.add_credit(job.id, 5).ok());
    QVERIFY(jobs.set_task_state(task, TaskState::kDone).ok());
    QVERIFY(jobs.set_output(task, other).ok());
    QCOMPARE(jobs.live().value().size(), size_t{1});
    QVERIFY(jobs.set_state(job.id, JobState::kCancelled, "why not", Millis{2000}).ok());
    QVERIFY(jobs.live().value().empty());
    const auto stored = jobs.find(job.id).value();
    QVERIFY(stored && stored->state == JobState::kCancelled);
    QCOMPARE(stored->credit_parts, int64_t{12});
    QCOMPARE(stored->reason, std::string("why not"));
    QVERIFY(stored->tasks[0].output_digest == other && !stored->tasks[1].output_digest);
    QCOMPARE(jobs.list(0).value().size(), size_t{0});
    QCOMPARE(jobs.list(1).value().size(), size_t{1});
    QVERIFY(jobs.has_file(other).value() && !jobs.has_file(digest).value());
  }
}

// Goal: what is done for each unit stays as quick when there are millions of rows. Method: the plan
// of each statement that a unit needs.
void StoreTest::what_runs_all_day_reads_no_table_whole() {
  const TempDir folder;
  const auto opened = Store::open(folder.path());
  Store& store = *opened.value();
  HostTable hosts(store);
  const HostId host = hosts.enrol(some_host(1)).value();
  QVERIFY(hosts.enrol(some_host(2)).ok());
  JobTable jobs(store);
  UnitTable units(store);
  StoredJob job = some_job();
  QVERIFY(jobs.add(job).ok());
  const TaskId task = job.tasks[0].id;
  for (const auto& changes : unit_story(task, false)) {
    const std::pair<HostId, uint64_t> serials[] = {{HostId{1}, 4}};
    QVERIFY(store.transaction([&] { return units.write(changes, serials); }).ok());
  }
  const Digest digest = digest_of(as_bytes("result"));
  QVERIFY(units.add_result(UnitId{1}, digest, 3, as_bytes("abc")).ok());
  QVERIFY(units.remove_other_results(UnitId{1}, digest).ok());
  QVERIFY(units.find_lease(LeaseId{kUnitLeasesBegin + 1}).ok());
  QVERIFY(units.job_of(UnitId{1}).ok());
  QVERIFY(units.figures(task).ok() && units.items_of(UnitId{1}).ok());
  QVERIFY(units.ended_units(task, 0, 10).ok());
  QVERIFY(units.remove_results(UnitId{1}).ok() && units.remove_results(task).ok());
  QVERIFY(units.remove_undone_results(job.id).ok());
  QVERIFY(units.reopen_poisoned(task).ok() && units.reopen_changed(task, task).ok());
  QVERIFY(units.add_late_result(LeaseId{kUnitLeasesBegin + 1}, digest, true, Millis{1}).ok());
  QVERIFY(jobs.add_credit(job.id, 1).ok());
  QVERIFY(hosts.device_id(host, "cpu").ok() && hosts.device_name(DeviceId{1}).ok());
  LedgerTable ledger(store);
  QVERIFY(ledger.newest(host).ok() && ledger.has(LeaseId{1}).ok());
  QVERIFY(ledger.find(LeaseId{1}).ok() && ledger.is_judged(1).ok());
  const auto plans = store.plans().value();
  QVERIFY(plans.size() > 15);
  for (const auto& [sql, plan] : plans) {
    QVERIFY2(plan.find("SCAN") == std::string::npos, (sql + "\n" + plan).c_str());
  }
}

// Goal: a coordinator with millions of units starts as quickly as one with none.
void StoreTest::a_start_reads_what_is_open_by_its_indexes() {
  const TempDir folder;
  const auto opened = Store::open(folder.path());
  UnitTable units(*opened.value());
  BrokerRows rows;
  QVERIFY(units.load(rows).ok());
  bool seen = false;
  for (const auto& [sql, plan] : opened.value()->plans().value()) {
    for (const QByteArray& line : QByteArray::fromStdString(plan).split('\n')) {
      seen |= line.contains("unit_open");
      if (!line.startsWith("SCAN ")) continue;
      // Partial indexes of what is open, and a row for each host.
      const bool small = line == "SCAN job USING INDEX job_live" || line == "SCAN host_record" ||
                         line == "SCAN unit_lease USING INDEX unit_lease_open";
      QVERIFY2(small, (sql + "\n" + plan).c_str());
    }
  }
  QVERIFY(seen);
}

void StoreTest::events_are_append_only() {
  const TempDir folder;
  const auto store = Store::open(folder.path());
  SessionTable table(*store.value());
  for (int i = 0; i < 5; ++i) {
    QVERIFY(table.add_event({0, Millis{i}, "kind", HostId{7}, SessionId{8}, "text"}).ok());
  }
  const auto later = table.events(2, 2).value();
  QCOMPARE(later.size(), size_t{2});
  QCOMPARE(later[0].id, int64_t{3});
  QCOMPARE(later[0].session, SessionId{8});
  QVERIFY(store.value()
              ->query("UPDATE event SET text = 'x'")
              .run()
              .error()
              .message.find("append-only") != std::string::npos);
  QVERIFY(!store.value()->query("DELETE FROM event WHERE id = 1").run().ok());
  QCOMPARE(table.events(0, 100).value().size(), size_t{5});
}

void StoreTest::no_failing_write_loses_or_halves_anything() {
  // Each pass lets one write more succeed; after each, the store is opened again and looked at.
  int failures = 0;
  for (int allowed = 0; allowed < 200; ++allowed) {
    const TempDir folder;
    Store::Options options;
    options.vfs = faulty_vfs();
    int promised_models = 0, promised_events = 0;
    bool failed = false;
    fail_writes_after(-1);
    {
      const auto store = Store::open(folder.path(), options);
      QVERIFY(store.ok());
      ModelTable models(*store.value());
      SessionTable sessions(*store.value());
      fail_writes_after(allowed);
      for (int i = 0; i < 4; ++i) {
        const auto added = models.add(some_model("m" + std::to_string(i)));
        const auto noted = sessions.add_event({0, Millis{1}, "kind", {}, {}, "text"});
        promised_models += added.ok();
        promised_events += noted.ok();
        failed |= !added.ok() || !noted.ok();
        if (!added.ok()) {
          QVERIFY(added.error().code == ErrorCode::kNoSpace ||
                  added.error().code == ErrorCode::kIo);
        }
      }
    }
    fail_writes_after(-1);
    const auto store = Store::open(folder.path(), options);
    QVERIFY2(store.ok(), store.ok() ? "" : store.error().message.c_str());
    QVERIFY(store.value()->check_integrity().ok());
    const auto models = ModelTable(*store.value()).list(100).value();
    // What was promised is there; what was not may be, but then whole.
    QVERIFY(static_cast<int>(models.size()) >= promised_models);
    for (const ModelRow& model : models) QCOMPARE(model.fragments, int64_t{3});
    QVERIFY(static_cast<int>(SessionTable(*store.value()).events(0, 100).value().size()) >=
            promised_events);
    if (!failed) break;
    ++failures;
    QVERIFY2(allowed < 199, "writes never ended");
  }
  QVERIFY(failures > 10);
}

void StoreTest::shards_are_proved_and_bounded() {
  const TempDir folder;
  auto shards = ShardStore::open(folder / "shards", random_key());
  QVERIFY(shards.ok());
  ByteVector bytes(3000);
  Random(1).fill(bytes);
  const Digest digest = digest_of(bytes);
  const auto files = [&] {
    return std::distance(std::filesystem::directory_iterator(folder / "shards"),
                         std::filesystem::directory_iterator());
  };
  {
    auto upload = shards.value().upload(digest, bytes.size());
    QVERIFY(upload.value().write(ByteSpan(bytes).first(2000)).ok());
    QCOMPARE(files(), 1);
  }
  QCOMPARE(files(), 0);  // Dropped.
  {
    auto upload = shards.value().upload(digest, bytes.size());
    QVERIFY(upload.value().write(ByteSpan(bytes).first(2000)).ok());
    QVERIFY(upload.value().finish().error().message.find("2000 bytes where") != std::string::npos);
  }
  {
    auto upload = shards.value().upload(digest, bytes.size());
    QVERIFY(upload.value().write(bytes).ok());
    QCOMPARE(upload.value().write(ByteSpan(bytes).first(1)).error().code, ErrorCode::kCorrupt);
  }
  {
    ByteVector wrong = bytes;
    wrong[1234] ^= std::byte{1};
    auto upload = shards.value().upload(digest, bytes.size());
    QVERIFY(upload.value().write(wrong).ok());
    QVERIFY(upload.value().finish().error().message.find("digest") != std::string::npos);
  }
  QCOMPARE(files(), 0);
  {
    auto upload = shards.value().upload(digest, bytes.size());
    QVERIFY(upload.value().write(bytes).ok());
    QVERIFY(upload.value().finish().ok());
  }
  QCOMPARE(files(), 1);
  QVERIFY(std::ranges::equal(shards.value().read(digest, 0, 5000).value(), bytes));
  QVERIFY(std::ranges::equal(shards.value().read(digest, 2990, 100).value(),
                             std::span(bytes).subspan(2990)));
  QVERIFY(shards.value().read(digest, 3000, 100).value().empty());
  QCOMPARE(shards.value().read(digest, 3001, 1).error().code, ErrorCode::kInvalid);
  QCOMPARE(shards.value().read(Digest{}, 0, 1).error().code, ErrorCode::kNotFound);
  QCOMPARE(shards.value().upload(digest, uint64_t{1} << 60).error().code, ErrorCode::kNoSpace);
  QCOMPARE(shards.value().list().value(), std::vector<Digest>{digest});
  QVERIFY(shards.value().remove(digest).ok());
  QCOMPARE(files(), 0);
}

void StoreTest::master_keys_want_their_passphrase() {
  {
    const TempDir folder;
    QVERIFY(make_master_key(folder.path(), "").ok());
    QCOMPARE(make_master_key(folder.path(), "").error().code, ErrorCode::kExists);
    const auto status = std::filesystem::status(folder / "master.key");
    QCOMPARE(status.permissions(),
             std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    QVERIFY(load_master_key(folder.path(), "").ok());
  }
  const TempDir folder;
  QVERIFY(make_master_key(folder.path(), "open sesame").ok());
  QVERIFY(!std::filesystem::exists(folder / "master.key"));
  const auto key = load_master_key(folder.path(), "open sesame");
  QVERIFY(key.ok());
  QVERIFY(same_secret(key.value().view(),
                      load_master_key(folder.path(), "open sesame").value().view()));
  QVERIFY(load_master_key(folder.path(), "").error().message.find("SHOAL_PASSPHRASE") !=
          std::string::npos);
  QCOMPARE(load_master_key(folder.path(), "open").error().code, ErrorCode::kDenied);
}

QTEST_GUILESS_MAIN(StoreTest)
#include "store_test.moc"
