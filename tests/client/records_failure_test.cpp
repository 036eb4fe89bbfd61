// Goal: a full disk, a lock held by another program, a damaged file and a death at any write cost
// at most what was not written yet: nothing is doubled, halved or believed that was never so.

#include <sqlite3.h>

#include <QTest>
#include <fstream>

#include "base/host.h"
#include "base/log.h"
#include "base/random.h"
#include "tests/client/records_fixture.h"
#include "tests/coordinator/faulty_vfs.h"

using namespace shoal;
using namespace shoal::test;
using namespace shoal::client;

namespace {

using Database = std::unique_ptr<sqlite3, decltype(&sqlite3_close)>;

Database open_beside(const std::filesystem::path& folder) {
  sqlite3* database = nullptr;
  sqlite3_open((folder / "records.db").c_str(), &database);
  return {database, sqlite3_close};
}
bool run(const Database& database, const char* sql) {
  return sqlite3_exec(database.get(), sql, nullptr, nullptr, nullptr) == SQLITE_OK;
}

// Whether all levels, and what is kept in memory, say the same.
bool agree_with_each_other(Records& records) {
  const Sums ever = records.ever();
  return ever == by_step(records, {kMinuteMs}) && ever == by_step(records, {kDayMs});
}

void work_a_minute(Records& records, ManualClock& clock, int round) {
  clock.advance({kMinuteMs});
  records.add("cpu", {.worked_ms = 1000, .rows = 3, .joules = 5});
  records.note_verdict(Resource::kCpu, {.activity = Activity::kWorking,
                                        .why = {"working.now", {std::to_string(round)}}});
  records.note_work({.lease = static_cast<uint64_t>(round), .device = "cpu"});
  records.flush();
}

std::vector<std::filesystem::path> set_aside_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("records.db.damaged-2026-03-20") && !name.ends_with("-wal") &&
        !name.ends_with("-shm"))
      found.push_back(entry.path());
  }
  return found;
}

}  // namespace

class RecordsFailureTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() {
    live_in_berlin();
    set_log_level(LogLevel::kOff);
  }
  void cleanup() { fail_writes_after(-1); }
  void a_full_disk_costs_nothing_once_there_is_room();
  void a_disk_full_from_the_start_costs_nothing();
  void another_programs_lock_costs_nothing();
  void a_lock_from_the_start_costs_nothing();
  void a_damaged_file_is_set_aside_data();
  void a_damaged_file_is_set_aside();
  void damage_while_it_runs_is_found();
  void damage_is_found_by_reading_too();
  void a_file_of_a_newer_version_is_left_alone();
  void a_folder_that_cannot_be_written_is_said();
  void a_death_at_any_write_leaves_what_was_said();
  void a_power_cut_leaves_a_whole_past();
};

// Method: the n-th write fails and all after it, for every n; then there is room again.
void RecordsFailureTest::a_full_disk_costs_nothing_once_there_is_room() {
  int n = 0;
  for (bool reached = true; reached; ++n) {
    const TempDir folder;
    ManualClock clock(kSpring);
    Records records(folder.path(), clock, {.vfs = faulty_vfs()});
    QVERIFY(records.problem().empty());
    const Signer signer;
    QVERIFY(records.know_coordinator(signer.pin, "it", signer.key.public_key(), signer.host).ok());
    fail_writes_after(n);
    work_a_minute(records, clock, 1);
    const Receipt receipt = signer.receipt(1, kSpring);
    const bool stored = records.append_receipts(signer.pin, std::span(&receipt, 1)).ok();
    work_a_minute(records, clock, 2);
    reached = writes_so_far() > n;
    QCOMPARE(records.problem().empty(), !reached);
    if (reached) {
      QVERIFY(records.problem().code == "attention.disk_full" ||
              records.problem().code == "records.failed");
      QCOMPARE(records.disk_is_full(), records.problem().code == "attention.disk_full");
      QCOMPARE(records.ever().worked_ms, int64_t{2000});  // It is remembered all the same.
      QVERIFY(records.trace({0}, {INT64_MAX}, 10).ok());  // And what is there can be read.
    }
    fail_writes_after(-1);
    work_a_minute(records, clock, 3);
    QVERIFY2(records.problem().empty(), english(records.problem()).c_str());
    QVERIFY(records.notices().empty());
    QCOMPARE(records.ever().worked_ms, int64_t{3000});
    QVERIFY(agree_with_each_other(records));
    QCOMPARE(records.trace({0}, {INT64_MAX}, 10).value().size(), size_t{3});
    QCOMPARE(records.history(10).value().size(), size_t{3});
    // A receipt is there if that was said, and otherwise may be asked for again.
    const size_t receipts = records.receipts(0, 10).value().size();
    QVERIFY(receipts == (stored ? 1 : 0) || receipts == 1);
    QCOMPARE(records.receipt_progress(signer.pin).stored, uint64_t{receipts});
    QVERIFY(records.append_receipts(signer.pin, std::span(&receipt, 1)).ok());
    QCOMPARE(records.ever().credit_confirmed(), 2.5);
    QVERIFY(agree_with_each_other(records));
  }
  QVERIFY(n > 10);
}

void RecordsFailureTest::a_disk_full_from_the_start_costs_nothing() {
  int n = 0;
  for (bool reached = true; reached; ++n) {
    const TempDir folder;
    ManualClock clock(kSpring);
    fail_writes_after(n);
    Records records(folder.path(), clock, {.vfs = faulty_vfs()});
    work_a_minute(records, clock, 1);
    reached = writes_so_far() > n;
    QCOMPARE(records.today().worked_ms, int64_t{1000});
    fail_writes_after(-1);
    work_a_minute(records, clock, 2);
    QVERIFY2(records.problem().empty(), english(records.problem()).c_str());
    QVERIFY(records.notices().empty());
    QCOMPARE(records.today().worked_ms, int64_t{2000});
    QVERIFY(agree_with_each_other(records));
    QCOMPARE(records.trace({0}, {INT64_MAX}, 10).value().size(), size_t{2});
  }
  QVERIFY(n > 10);
}

void RecordsFailureTest::another_programs_lock_costs_nothing() {
  for (const char* lock : {"BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"}) {
    const TempDir folder;
    ManualClock clock(kSpring);
    Records records(folder.path(), clock);
    const Signer signer;
    QVERIFY(records.know_coordinator(signer.pin, "it", signer.key.public_key(), signer.host).ok());
    {
      const Database other = open_beside(folder.path());
      QVERIFY(run(other, lock));
      for (int second = 1; second <= 60; ++second) work_a_minute(records, clock, second);
      QCOMPARE(records.problem().code, std::string("records.locked"));
      QCOMPARE(records.today().worked_ms, int64_t{60'000});
      QCOMPARE(records.trace({0}, {INT64_MAX}, 9).error().code, ErrorCode::kUnavailable);
      QCOMPARE(records.statistics({0}, {1}, {1}).error().code, ErrorCode::kUnavailable);
      const Receipt receipt = signer.receipt(1, kSpring);
      QCOMPARE(records.append_receipts(signer.pin, std::span(&receipt, 1)).error().code,
               ErrorCode::kUnavailable);
      QCOMPARE(records.receipt_progress(signer.pin).newest, uint64_t{0});
    }
    records.flush();
    QVERIFY(records.problem().empty());
    QVERIFY(agree_with_each_other(records));
    QCOMPARE(records.ever().worked_ms, int64_t{60'000});
    QCOMPARE(records.trace({0}, {INT64_MAX}, 100).value().size(), size_t{60});
    QCOMPARE(records.history(100).value().size(), size_t{60});
  }
}

void RecordsFailureTest::a_lock_from_the_start_costs_nothing() {
  const TempDir folder;
  ManualClock clock(kSpring);
  {
    Records records(folder.path(), clock);
    work_a_minute(records, clock, 1);
    records.note_yield({{1}, "cpu", {2}, {3}});
  }
  Database other = open_beside(folder.path());
  QVERIFY(run(other, "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT"));
  Records records(folder.path(), clock);
  // A backup takes a moment, and nobody need hear of it.
  clock.advance({4'999});
  records.flush();
  QVERIFY(records.problem().empty());
  clock.advance({1});
  records.flush();
  QCOMPARE(records.problem().code, std::string("records.locked"));
  QVERIFY(!records.disk_is_full());
  work_a_minute(records, clock, 2);
  QCOMPARE(records.problem().code, std::string("records.locked"));
  QCOMPARE(records.today().worked_ms, int64_t{1000});  // Of what this process knows.
  other.reset();
  work_a_minute(records, clock, 3);
  QVERIFY(records.problem().empty());
  QCOMPARE(records.today().worked_ms, int64_t{3000});
  QVERIFY(agree_with_each_other(records));
  QCOMPARE(records.history(9).value().size(), size_t{3});
  QCOMPARE(records.yields().size(), size_t{1});
}

void RecordsFailureTest::a_damaged_file_is_set_aside_data() {
  QTest::addColumn<int>("kind");
  QTest::newRow("noise") << 0;
  QTest::newRow("zeros") << 1;
  QTest::newRow("half of it") << 2;
  QTest::newRow("a database of another program") << 3;
  QTest::newRow("a page of noise in the middle") << 4;
}

void RecordsFailureTest::a_damaged_file_is_set_aside() {
  QFETCH(int, kind);
  const TempDir folder;
  ManualClock clock(kSpring);
  const std::filesystem::path path = folder / "records.db";
  const JobClass job_class{"generate", "m", false};
  {
    Records records(folder.path(), clock);
    for (int i = 0; i < 50; ++i) work_a_minute(records, clock, i);
    QVERIFY(records.set_consent("pin", job_class, false).ok());
  }
  Random random(17);
  const auto size = static_cast<size_t>(std::filesystem::file_size(path));
  ByteVector noise(kind == 4 ? 4096 : size);
  if (kind != 1) random.fill(noise);
  if (kind == 2) {
    std::filesystem::resize_file(path, size / 2);
  } else if (kind == 3) {
    std::filesystem::remove(path);
    const Database other = open_beside(folder.path());
    QVERIFY(run(other, "PRAGMA application_id = 5; PRAGMA user_version = 3; CREATE TABLE a (b)"));
  } else {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    // The fourth page is one of the tables'.
    file.seekp(kind == 4 ? 3 * 4096 : 0);
    file.write(reinterpret_cast<const char*>(noise.data()),
               static_cast<std::streamsize>(noise.size()));
  }
  for (int time = 1; time <= 2; ++time) {
    Records records(folder.path(), clock);
    QVERIFY(records.problem().empty());
    QCOMPARE(records.notices().size(), size_t{time == 1 ? 1u : 0u});
    if (time == 1) QCOMPARE(records.notices()[0].code, std::string("records.damaged"));
    QCOMPARE(set_aside_in(folder.path()).size(), size_t{1});
    QCOMPARE(records.consent("pin", job_class), std::optional(false));
    QCOMPARE(records.ever().worked_ms, int64_t{1000 * (time - 1)});
    work_a_minute(records, clock, 1);
    QVERIFY(agree_with_each_other(records));
  }
  // A second one of the same day has another name.
  QVERIFY(write_file_durably(path, noise).ok());
  const Records records(folder.path(), clock);
  QCOMPARE(set_aside_in(folder.path()).size(), size_t{2});
}

void RecordsFailureTest::damage_while_it_runs_is_found() {
  const TempDir folder;
  ManualClock clock(kSpring);
  Records records(folder.path(), clock);
  const Signer signer;
  QVERIFY(records.know_coordinator(signer.pin, "it", signer.key.public_key(), signer.host).ok());
  const Receipt receipt = signer.receipt(1, kSpring);
  QVERIFY(records.append_receipts(signer.pin, std::span(&receipt, 1)).ok());
  for (int i = 1; i <= 50; ++i) work_a_minute(records, clock, i);
  records.add("cpu", {.worked_ms = 5});
  {
    const Database other = open_beside(folder.path());
    QVERIFY(run(other,
                "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET rootpage = 999999 "
                "WHERE name IN ('span', 'statistics')"));
    QVERIFY(run(other, "PRAGMA writable_schema = RESET; PRAGMA schema_version = 77"));
  }
  work_a_minute(records, clock, 51);
  QCOMPARE(records.notices().size(), size_t{1});
  QCOMPARE(set_aside_in(folder.path()).size(), size_t{1});
  QVERIFY(records.problem().empty());
  // What waited, and what lasts, is in the new file.
  QCOMPARE(records.ever().worked_ms, int64_t{1005});
  QVERIFY(agree_with_each_other(records));
  const auto spans = records.trace({0}, {INT64_MAX}, 10).value();
  QVERIFY(!spans.empty() && !spans.back().end);
  // Receipts can be asked for again, and are checked by the key that was known.
  QCOMPARE(records.receipt_progress(signer.pin).newest, uint64_t{0});
  QVERIFY(records.append_receipts(signer.pin, std::span(&receipt, 1)).ok());
  QCOMPARE(records.ever().credit_confirmed(), 2.5);
}

// Method: noise over all pages but the first, in a file that is only read from then on.
void RecordsFailureTest::damage_is_found_by_reading_too() {
  const TempDir folder;
  ManualClock clock(kSpring);
  {
    Records records(folder.path(), clock);
    // More than SQLite keeps in memory.
    const PastWork work{.coordinator = std::string(1'000, 'x')};
    for (int i = 1; i <= 4'000; ++i) records.note_work(work);
    records.flush();
  }
  Records records(folder.path(), clock);
  QVERIFY(records.notices().empty());
  {
    const std::filesystem::path path = folder / "records.db";
    ByteVector noise(std::filesystem::file_size(path) - 4096);
    Random(3).fill(noise);
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(4096);
    file.write(reinterpret_cast<const char*>(noise.data()),
               static_cast<std::streamsize>(noise.size()));
  }
  QCOMPARE(records.history(SIZE_MAX).error().code, ErrorCode::kCorrupt);
  QCOMPARE(records.notices().size(), size_t{1});
  QVERIFY(records.history(10).value().empty());
  work_a_minute(records, clock, 1);
  QVERIFY(records.problem().empty());
  QVERIFY(agree_with_each_other(records));
}

void RecordsFailureTest::a_file_of_a_newer_version_is_left_alone() {
  const TempDir folder;
  ManualClock clock(kSpring);
  {
    Records records(folder.path(), clock);
    work_a_minute(records, clock, 1);
  }
  QVERIFY(run(open_beside(folder.path()), "PRAGMA user_version = 1000"));
  {
    Records records(folder.path(), clock);
    work_a_minute(records, clock, 2);
    QCOMPARE(records.problem().code, std::string("records.newer"));
    QCOMPARE(records.today().worked_ms, int64_t{1000});
    QVERIFY(set_aside_in(folder.path()).empty());
  }
  QVERIFY(run(open_beside(folder.path()), "PRAGMA user_version = 4"));  // As it was.
  const Records records(folder.path(), clock);
  QVERIFY(records.problem().empty());
  QCOMPARE(records.ever().worked_ms, int64_t{1000});
}

void RecordsFailureTest::a_folder_that_cannot_be_written_is_said() {
  const TempDir folder;
  ManualClock clock(kSpring);
  Records records(folder / "absent", clock);
  work_a_minute(records, clock, 1);
  QCOMPARE(records.problem().code, std::string("records.failed"));
  QVERIFY(!records.set_consent("pin", {"generate", "m", false}, false).ok());
  QVERIFY(!records.consent("pin", {"generate", "m", false}));
  QVERIFY(!records.know_coordinator("pin", "it", {}, HostId{1}).ok());
  // It may come later, as a disk that is mounted.
  std::filesystem::create_directory(folder / "absent");
  records.flush();
  QVERIFY(records.problem().empty());
  QCOMPARE(by_step(records, {kDayMs}).worked_ms, int64_t{1000});
}

// Method: a child does eight rounds of work and is killed at its n-th write or sync, for random n.
void RecordsFailureTest::a_death_at_any_write_leaves_what_was_said() {
  const uint64_t seed = seed_from_system();
  Random random(seed);
  const QByteArray replay = "replay with the seed " + QByteArray::number(qulonglong(seed));
  const TempDir keys;
  const SigningKey key = SigningKey::generate();
  const SecretBytes key_seed = key.seed();
  QVERIFY(write_file_durably(keys / "seed", key_seed.view()).ok());
  int finished = 0, killed = 0;
  uint64_t writes_max = 200;
  for (int run = 0; run < 60; ++run) {
    const uint64_t n = random.below(writes_max);
    const TempDir folder;
    ChildOptions options;
    options.argv = {RECORDS_CHILD, folder.path().string(), (keys / "seed").string(),
                    std::to_string(n)};
    Result<ChildProcess> child = ChildProcess::spawn(std::move(options));
    QVERIFY(child.ok());
    const std::optional<ChildExit> exit = child.value().wait({20'000});
    QVERIFY2(exit && (exit->clean() || exit->signal == 9), exit ? exit->text().c_str() : "hangs");
    (exit->clean() ? finished : killed) += 1;
    if (exit->clean()) writes_max = n;  // Later ones are never reached.
    const ByteVector acks = read_file(folder / "acks", kMebibyte).value();
    const auto said = [&acks](char what) {
      return std::count(acks.begin(), acks.end(), std::byte(what));
    };

    ManualClock clock(Millis{kSpring.count + kHourMs});
    Records records(folder.path(), clock);
    QVERIFY2(records.problem().empty() && records.notices().empty(), replay);
    const auto receipts = records.receipts(0, 100).value();
    QVERIFY2(static_cast<int>(receipts.size()) >= said('r'), replay);
    QVERIFY2(static_cast<int>(receipts.size()) <= said('r') + 1, replay);
    for (const StoredReceipt& receipt : receipts) QVERIFY2(receipt.genuine, replay);
    QCOMPARE(records.receipt_progress("pin-of-it").through, uint64_t{receipts.size()});
    const Sums ever = records.ever();
    QCOMPARE(ever.credit_confirmed(), 2.5 * static_cast<double>(receipts.size()));
    const int64_t rounds = ever.worked_ms / 1000;
    QVERIFY2(rounds >= said('f') && rounds <= said('f') + 1, replay);
    QCOMPARE(ever.rows, 3 * rounds);
    QCOMPARE(ever.bytes_down, 7 * rounds);
    QVERIFY2(agree_with_each_other(records), replay);
    const auto spans = records.trace({0}, {INT64_MAX}, 100).value();
    for (const TraceSpan& span : spans) {
      QVERIFY2(span.end && *span.end >= span.start && *span.end <= clock.now_wall(), replay);
    }
    if (!spans.empty()) QVERIFY2(spans.back().verdict.why.code == "trace.not_running", replay);
  }
  QVERIFY(killed > 10);
}

// Method: the end of the log of changes is lost or is noise, as a disk may leave it that had not
// written it yet.
void RecordsFailureTest::a_power_cut_leaves_a_whole_past() {
  const TempDir folder;
  ManualClock clock(kSpring);
  Records records(folder.path(), clock);
  for (int i = 1; i <= 8; ++i) work_a_minute(records, clock, i);
  const std::filesystem::path wal = folder / "records.db-wal";
  const auto size = static_cast<uint64_t>(std::filesystem::file_size(wal));
  Random random(23);
  for (int run = 0; run < 24; ++run) {
    const TempDir copy;
    std::filesystem::copy_file(folder / "records.db", copy / "records.db");
    std::filesystem::copy_file(wal, copy / "records.db-wal");
    const uint64_t cut = random.below(size);
    if (run % 2 == 0) {
      std::filesystem::resize_file(copy / "records.db-wal", cut);
    } else {
      ByteVector noise(static_cast<size_t>(size - cut));
      if (run % 4 == 1) random.fill(noise);
      std::fstream file(copy / "records.db-wal", std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(static_cast<std::streamoff>(cut));
      file.write(reinterpret_cast<const char*>(noise.data()),
                 static_cast<std::streamsize>(noise.size()));
    }
    Records after(copy.path(), clock);
    QVERIFY(after.problem().empty());
    QVERIFY(after.notices().empty());
    QCOMPARE(after.ever().worked_ms % 1000, int64_t{0});
    QVERIFY(after.ever().worked_ms <= 8000);
    QVERIFY(agree_with_each_other(after));
    work_a_minute(after, clock, 9);
    QVERIFY(after.problem().empty());
    QVERIFY(agree_with_each_other(after));
  }
}

QTEST_GUILESS_MAIN(RecordsFailureTest)
#include "records_failure_test.moc"
