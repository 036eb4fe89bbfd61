// Goal: a coordinator's receipts are kept as it gave them, count once, and can be checked years
// later without it; what was changed, left out or never signed is found.

#include <QTest>

#include "client/records/levels.h"
#include "client/records/receipts.h"
#include "tests/client/records_fixture.h"

using namespace shoal;
using namespace shoal::test;
using namespace shoal::client;

namespace {

constexpr auto kPending = ReceiptVerdict::kPending;
constexpr auto kConfirmed = ReceiptVerdict::kConfirmed;
constexpr auto kRejected = ReceiptVerdict::kRejected;

Result<ReceiptReport> check(Records& records, std::map<std::string, StatedCredit> stated) {
  ReceiptCheck check(records, std::move(stated));
  while (true) {
    SHOAL_TRY_ASSIGN(done, check.step());
    if (done) break;
  }
  if (check.reports().size() != 1) return Error{ErrorCode::kInvalid, "not one report"};
  return check.reports()[0];
}

Result<void> append(Records& records, const Signer& signer, const Receipt& receipt) {
  return records.append_receipts(signer.pin, std::span(&receipt, 1));
}

Result<void> know(Records& records, const Signer& signer) {
  return records.know_coordinator(signer.pin, "it", signer.key.public_key(), signer.host);
}

}  // namespace

class ReceiptsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() { live_in_berlin(); }
  void come_back_as_they_were();
  void are_refused_when_they_make_no_sense();
  void come_once_and_in_any_order();
  void count_by_their_last_word();
  void count_on_the_day_they_name();
  void count_for_devices_of_this_computer();
  void only_genuine_ones_count();
  void of_a_peer_only_the_next_genuine_ones_are_accepted();
  void another_key_is_refused();
  void another_host_number_begins_anew();
  void old_ones_are_folded_and_stay_provable();
  void too_many_are_folded();
  void checks_say_what_is_wrong_data();
  void checks_say_what_is_wrong();
  void changed_rows_are_found_data();
  void changed_rows_are_found();
  void checks_go_through_many_and_several();
};

void ReceiptsTest::come_back_as_they_were() {
  const TempDir folder;
  const ManualClock clock(kSpring);
  const Signer signer;
  const Receipt one = signer.receipt(1, kSpring, kRejected, 44);
  {
    Records records(folder.path(), clock);
    QCOMPARE(append(records, signer, one).error().code, ErrorCode::kNotFound);
    QVERIFY(know(records, signer).ok());
    QVERIFY(append(records, signer, one).ok());
    // On the disk already: no flush, as kill -9 has it.
    const TempDir copy;
    std::filesystem::copy(folder.path(), copy.path(), std::filesystem::copy_options::recursive);
    Records killed(copy.path(), clock);
    QCOMPARE(killed.receipts(0, 10).value().size(), size_t{1});
  }
  Records records(folder.path(), clock);
  const auto stored = records.receipts(0, 10).value();
  QCOMPARE(stored.size(), size_t{1});
  QCOMPARE(stored[0].coordinator, std::string("it"));
  QVERIFY(stored[0].genuine);
  QVERIFY(receipt_is_genuine(stored[0].receipt, signer.key.public_key()));
  QCOMPARE(stored[0].receipt.lease, LeaseId{44});
  QVERIFY(records.receipts(stored[0].row, 10).value().empty());
  QVERIFY(records.receipts(UINT64_MAX, SIZE_MAX).value().empty());
}

void ReceiptsTest::are_refused_when_they_make_no_sense() {
  const TempDir folder;
  const ManualClock clock(kSpring);
  const Signer signer;
  Records records(folder.path(), clock);
  QVERIFY(know(records, signer).ok());
  const auto refused = [&](const auto& change) {
    Receipt receipt = signer.receipt(1, kSpring);
    change(receipt);
    sign_receipt(receipt, signer.key);
    const Result<void> done = append(records, signer, receipt);
    return !done.ok() && done.error().code == ErrorCode::kInvalid;
  };
  QVERIFY(refused([](Receipt& r) { r.number = 0; }));
  QVERIFY(refused([](Receipt& r) { r.number = uint64_t{1} << 63; }));
  QVERIFY(refused([](Receipt& r) { r.rows = UINT64_MAX; }));
  QVERIFY(refused([](Receipt& r) { r.credit = -0.5; }));
  QVERIFY(refused([](Receipt& r) { r.credit = std::numeric_limits<double>::infinity(); }));
  QVERIFY(refused([](Receipt& r) { r.credit = std::numeric_limits<double>::quiet_NaN(); }));
  const std::vector<Receipt> many(kReceiptsPerAppendMax + 1, signer.receipt(1, kSpring));
  QCOMPARE(records.append_receipts(signer.pin, many).error().code, ErrorCode::kInvalid);
  // One that is refused takes those beside it with it.
  const Receipt pair[] = {signer.receipt(1, kSpring), signer.receipt(0, kSpring)};
  QVERIFY(!records.append_receipts(signer.pin, pair).ok());
  QVERIFY(records.receipts(0, 10).value().empty());
  QCOMPARE(records.receipt_progress(signer.pin).stored, uint64_t{0});
  QCOMPARE(records.ever(), Sums());
  QVERIFY(records.problem().empty());
  // What is only strange is kept: a time of long ago or far ahead, and a fortune.
  Receipt strange = signer.receipt(1, Millis{INT64_MAX});
  strange.credit = 1e300;
  sign_receipt(strange, signer.key);
  QVERIFY(append(records, signer, strange).ok());
  QVERIFY(append(records, signer, signer.receipt(2, Millis{INT64_MIN})).ok());
  QCOMPARE(records.receipts(0, 10).value()[0].receipt.credit, 1e300);
  QVERIFY(records.today().credit_confirmed() <= 1e9);
}

void ReceiptsTest::come_once_and_in_any_order() {
  const TempDir folder;
  const ManualClock clock(kSpring);
  const Signer signer;
  auto records = std::make_unique<Records>(folder.path(), clock);
  QVERIFY(know(*records, signer).ok());
  const auto progress = [&] { return records->receipt_progress(signer.pin); };
  for (const uint64_t number : {1, 2, 5, 4}) {
    QVERIFY(append(*records, signer, signer.receipt(number, kSpring)).ok());
  }
  QVERIFY(append(*records, signer, signer.receipt(2, kSpring)).ok());  // Again: passed over.
  QCOMPARE(append(*records, signer, signer.receipt(2, kSpring, kRejected)).error().code,
           ErrorCode::kExists);
  QVERIFY(records->problem().empty());
  QVERIFY(records->notices().empty());  // The file is in order, the coordinator is not.
  QCOMPARE(progress().through, uint64_t{2});
  QCOMPARE(progress().newest, uint64_t{5});
  QCOMPARE(progress().stored, uint64_t{4});
  records.reset();
  records = std::make_unique<Records>(folder.path(), clock);
  QCOMPARE(progress().through, uint64_t{2});
  QVERIFY(append(*records, signer, signer.receipt(3, kSpring)).ok());
  QCOMPARE(progress().through, uint64_t{5});
  QCOMPARE(records->ever().credit_confirmed(), 12.5);
  QCOMPARE(records->receipt_progress("unknown").stored, uint64_t{0});
  uint64_t expected = 1;
  const auto receipts = records->receipts_of(signer.pin, 0, 10).value();
  for (const Receipt& receipt : receipts) {
    QCOMPARE(receipt.number, expected++);
  }
  QCOMPARE(expected, uint64_t{6});
}

void ReceiptsTest::count_by_their_last_word() {
  const TempDir folder;
  ManualClock clock(kSpring);
  const Signer signer;
  Records records(folder.path(), clock);
  QVERIFY(know(records, signer).ok());
  const auto figures = [&] {
    const Sums ever = records.ever();
    const Sums stored = by_step(records, {kMinuteMs});
    if (ever != stored) return std::vector<double>{-1};
    return std::vector<double>{ever.credit_pending(), ever.credit_confirmed(),
                               ever.credit_rejected()};
  };
  using Figures = std::vector<double>;
  const Millis yesterday{kSpring.count - kDayMs};
  QVERIFY(append(records, signer, signer.receipt(1, yesterday, kPending, 1)).ok());
  QVERIFY(append(records, signer, signer.receipt(2, yesterday, kPending, 2)).ok());
  QVERIFY(append(records, signer, signer.receipt(3, yesterday, kPending, 3)).ok());
  QCOMPARE(figures(), (Figures{7.5, 0, 0}));
  QVERIFY(append(records, signer, signer.receipt(4, kSpring, kConfirmed, 1)).ok());
  QCOMPARE(figures(), (Figures{5, 2.5, 0}));
  QVERIFY(append(records, signer, signer.receipt(5, kSpring, kRejected, 2)).ok());
  QCOMPARE(figures(), (Figures{2.5, 2.5, 2.5}));
  // The first verdict stands, and nothing is pending after it.
  QVERIFY(append(records, signer, signer.receipt(6, kSpring, kConfirmed, 1)).ok());
  QVERIFY(append(records, signer, signer.receipt(7, kSpring, kConfirmed, 2)).ok());
  QVERIFY(append(records, signer, signer.receipt(8, kSpring, kPending, 2)).ok());
  QCOMPARE(figures(), (Figures{2.5, 2.5, 2.5}));
  // Within one call as well.
  const Receipt both[] = {signer.receipt(9, kSpring, kPending, 9),
                          signer.receipt(10, kSpring, kConfirmed, 9)};
  QVERIFY(records.append_receipts(signer.pin, both).ok());
  QCOMPARE(figures(), (Figures{2.5, 5, 2.5}));
  // Confirmed on the day of the verdict, pending on the day of the work.
  QCOMPARE(records.today().credit_confirmed(), 5.0);
  QCOMPARE(records.today().credit_pending(), 0.0);
}

void ReceiptsTest::count_on_the_day_they_name() {
  const TempDir folder;
  ManualClock clock(kSpring);
  const Signer signer;
  Records records(folder.path(), clock);
  QVERIFY(know(records, signer).ok());
  QVERIFY(append(records, signer, signer.receipt(1, {kSpring.count - 500 * kDayMs})).ok());
  QVERIFY(append(records, signer, signer.receipt(2, kSpring)).ok());
  QVERIFY(append(records, signer, signer.receipt(3, {kSpring.count + 500 * kDayMs})).ok());
  const auto rows = records.statistics({0}, {INT64_MAX}, {kDayMs}).value();
  QCOMPARE(rows.size(), size_t{2});
  QCOMPARE(rows[0].start, day_start({kSpring.count - 500 * kDayMs}));
  QCOMPARE(rows[1].sums.credit_confirmed(), 5.0);  // Nothing is earned in the future.
  QCOMPARE(records.today().credit_confirmed(), 5.0);
}

void ReceiptsTest::count_for_devices_of_this_computer() {
  const TempDir folder;
  ManualClock clock(kSpring);
  const Signer signer;
  Records records(folder.path(), clock);
  QVERIFY(know(records, signer).ok());
  QVERIFY(append(records, signer, signer.receipt(1, kSpring)).ok());
  QCOMPARE(records.today("cpu"), Sums());
  QCOMPARE(records.today("").credit_confirmed(), 2.5);
  records.add("cpu", {.worked_ms = 1});
  QVERIFY(append(records, signer, signer.receipt(2, kSpring)).ok());
  QCOMPARE(records.today("cpu").credit_confirmed(), 2.5);
}

void ReceiptsTest::only_genuine_ones_count() {
  const TempDir folder;
  ManualClock clock(kSpring);
  const Signer signer, stranger;
  Records records(folder.path(), clock);
  QVERIFY(know(records, signer).ok());
  QVERIFY(append(records, signer, stranger.receipt(1, kSpring)).ok());
  Receipt of_another_host = signer.receipt(2, kSpring);
  of_another_host.host = HostId{8};
  sign_receipt(of_another_host, signer.key);
  QVERIFY(append(records, signer, of_another_host).ok());
  const auto stored = records.receipts(0, 10).value();
  QCOMPARE(stored.size(), size_t{2});
  QVERIFY(!stored[0].genuine && !stored[1].genuine);
  QCOMPARE(records.ever(), Sums());
}

void ReceiptsTest::of_a_peer_only_the_next_genuine_ones_are_accepted() {
  const TempDir folder;
  const ManualClock clock(kSpring);
  const Signer signer, stranger;
  Records records(folder.path(), clock);
  const auto accept = [&](const std::vector<Receipt>& receipts) {
    const Result<void> done = records.accept_receipts(signer.pin, receipts);
    return done.ok() ? std::string("ok") : std::string(done.error().message);
  };
  QVERIFY(accept({signer.receipt(1, kSpring)}).find("not known") != std::string::npos);
  QVERIFY(know(records, signer).ok());
  QVERIFY(accept({signer.receipt(2, kSpring)}).find("where 1 belongs") != std::string::npos);
  QVERIFY(accept({stranger.receipt(1, kSpring)}).find("does not fit") != std::string::npos);
  QVERIFY(accept({signer.receipt(1, kSpring), signer.receipt(3, kSpring)}) != "ok");
  QVERIFY(records.receipts(0, 10).value().empty());
  QCOMPARE(accept({signer.receipt(1, kSpring), signer.receipt(2, kSpring)}), std::string("ok"));
  QVERIFY(accept({signer.receipt(2, kSpring)}) != "ok");
  QCOMPARE(records.receipt_progress(signer.pin).newest, uint64_t{2});
  QVERIFY(records.problem().empty());
}

void ReceiptsTest::another_key_is_refused() {
  const TempDir folder;
  ManualClock clock(kSpring);
  const Signer signer, stranger;
  Records records(folder.path(), clock);
  QVERIFY(know(records, signer).ok());
  QVERIFY(know(records, signer).ok());
  QCOMPARE(know(records, stranger).error().code, ErrorCode::kDenied);
  QVERIFY(records.know_coordinator(signer.pin, "its new name", signer.key.public_key(), signer.host)
              .ok());
  QCOMPARE(records.known_coordinators().value()[0].name, std::string("its new name"));
}

void ReceiptsTest::another_host_number_begins_anew() {
  const TempDir folder;
  ManualClock clock(kSpring);
  Signer signer;
  Records records(folder.path(), clock);
  QVERIFY(know(records, signer).ok());
  QVERIFY(append(records, signer, signer.receipt(1, kSpring)).ok());
  signer.host = HostId{70};
  QVERIFY(know(records, signer).ok());
  QCOMPARE(records.receipt_progress(signer.pin).stored, uint64_t{0});
  QVERIFY(append(records, signer, signer.receipt(1, kSpring)).ok());
  QCOMPARE(records.receipts(0, 10).value().size(), size_t{2});
  QCOMPARE(records.known_coordinators().value().size(), size_t{2});
  QCOMPARE(records.ever().credit_confirmed(), 5.0);
  ReceiptCheck check(records, {{signer.pin, {.newest_receipt = 1, .confirmed = 2.5}}});
  while (!check.step().value()) {
  }
  for (const ReceiptReport& report : check.reports()) QVERIFY(report.agrees);
  // Back to the earlier number, and away from it again: every time has a name of its own.
  for (const int64_t host : {7, 70, 7, 70}) {
    signer.host = HostId{host};
    const Result<void> known = know(records, signer);
    QVERIFY2(known.ok(), known.ok() ? "" : known.error().message.c_str());
  }
  QCOMPARE(records.receipts(0, 10).value().size(), size_t{2});
}

void ReceiptsTest::old_ones_are_folded_and_stay_provable() {
  const TempDir folder;
  ManualClock clock(kSpring);
  const Signer signer;
  auto records = std::make_unique<Records>(folder.path(), clock);
  QVERIFY(know(*records, signer).ok());
  Digest chain;
  std::vector<Receipt> all;
  for (uint64_t i = 1; i <= 70; ++i) {
    const auto verdict = i % 10 == 0 ? kRejected : i == 33 ? kPending : kConfirmed;
    all.push_back(signer.receipt(i, {kSpring.count + static_cast<int64_t>(i) * kHourMs}, verdict));
    clock.set_wall(all.back().at);
    QVERIFY(append(*records, signer, all.back()).ok());
  }
  const Sums before = records->ever();
  QCOMPARE(before.credit_pending(), 2.5);
  const int64_t last = all[59].at.count + kReceiptDays * kDayMs;
  clock.set_wall({last});
  for (int i = 0; i < 5; ++i) records->flush();
  QCOMPARE(records->receipts(0, 100).value().size(), size_t{11});  // The 60th is not old yet.
  clock.set_wall({last + 1});
  records->flush();
  QCOMPARE(records->receipts(0, 100).value().size(), size_t{10});

  for (size_t i = 0; i < 60; ++i) chain = fold_receipt(chain, all[i]);
  records.reset();
  records = std::make_unique<Records>(folder.path(), clock);
  const FoldedReceipts folded = records->known_coordinators().value()[0].folded;
  QCOMPARE(folded.through, uint64_t{60});
  QCOMPARE(folded.count, uint64_t{60});
  QCOMPARE(folded.genuine, uint64_t{60});
  QCOMPARE(folded.confirmed, 53 * 2.5);
  QCOMPARE(folded.rejected, 6 * 2.5);
  QVERIFY(folded.chain == chain);
  // No verdict came for the 33rd in two years; all else is as it was.
  Sums after = before;
  after.pending_micro = 0;
  QCOMPARE(records->ever(), after);
  QCOMPARE(by_step(*records, {kDayMs}), after);
  // Those that were folded are known.
  QVERIFY(append(*records, signer, all[3]).ok());
  QCOMPARE(records->receipt_progress(signer.pin).stored, uint64_t{70});
  const auto report =
      check(*records, {{signer.pin, {.newest_receipt = 70, .confirmed = 62 * 2.5}}}).value();
  QVERIFY2(report.agrees, english(report.why).c_str());
  QCOMPARE(report.count, uint64_t{70});
  QCOMPARE(report.missing, uint64_t{0});
}

void ReceiptsTest::too_many_are_folded() {
  const TempDir folder;
  ManualClock clock(kSpring);
  const Signer signer;
  Records records(folder.path(), clock);
  QVERIFY(know(records, signer).ok());
  for (uint64_t i = 1; i <= 32; ++i) {
    QVERIFY(append(records, signer, signer.receipt(i, kSpring)).ok());
  }
  records.flush();
  QCOMPARE(records.receipts(0, 100).value().size(), size_t{32});
  // As if there had been as many as are kept, and one.
  QVERIFY(change_file(
      folder.path(),
      ("UPDATE coordinator SET stored = " + std::to_string(kReceiptsKept + 1)).c_str()));
  Records again(folder.path(), clock);
  again.flush();
  QCOMPARE(again.receipts(0, 100).value().size(), size_t{31});
  again.flush();
  QCOMPARE(again.receipts(0, 100).value().size(), size_t{31});
}

void ReceiptsTest::checks_say_what_is_wrong_data() {
  using Receipts = std::vector<std::tuple<uint64_t, ReceiptVerdict, int64_t>>;
  QTest::addColumn<Receipts>("receipts");  // Number, verdict, lease.
  QTest::addColumn<bool>("stated");
  QTest::addColumn<quint64>("newest");
  QTest::addColumn<double>("confirmed");
  QTest::addColumn<QString>("code");
  QTest::addColumn<quint64>("missing");
  const Receipts three = {{1, kPending, 1}, {2, kConfirmed, 1}, {3, kRejected, 2}};
  QTest::newRow("agrees") << three << true << quint64(3) << 2.5 << "receipts.agree" << quint64(0);
  QTest::newRow("nothing at all") << Receipts{} << true << quint64(0) << 0.0 << "receipts.agree"
                                  << quint64(0);
  QTest::newRow("a rounding error is none")
      << three << true << quint64(3) << 2.5 + 1e-10 << "receipts.agree" << quint64(0);
  QTest::newRow("owes the newest")
      << three << true << quint64(5) << 2.5 << "receipts.missing" << quint64(2);
  QTest::newRow("owes all") << Receipts{} << true << quint64(4) << 10.0 << "receipts.missing"
                            << quint64(4);
  QTest::newRow("a gap") << Receipts{{1, kConfirmed, 1}, {3, kConfirmed, 2}} << true << quint64(3)
                         << 5.0 << "receipts.missing" << quint64(1);
  QTest::newRow("a gap while it cannot be reached")
      << Receipts{{1, kConfirmed, 1}, {3, kConfirmed, 2}} << false << quint64(0) << 0.0
      << "receipts.missing" << quint64(1);
  QTest::newRow("states less") << three << true << quint64(3) << 2.4 << "receipts.differ"
                               << quint64(0);
  QTest::newRow("states more") << three << true << quint64(3) << 2.6 << "receipts.differ"
                               << quint64(0);
  QTest::newRow("judged twice") << Receipts{{1, kConfirmed, 1}, {2, kRejected, 1}} << true
                                << quint64(2) << 2.5 << "receipts.twice" << quint64(0);
  QTest::newRow("not reached") << three << false << quint64(0) << 0.0 << "receipts.unstated"
                               << quint64(0);
}

void ReceiptsTest::checks_say_what_is_wrong() {
  using Receipts = std::vector<std::tuple<uint64_t, ReceiptVerdict, int64_t>>;
  QFETCH(Receipts, receipts);
  QFETCH(bool, stated);
  QFETCH(quint64, newest);
  QFETCH(double, confirmed);
  QFETCH(QString, code);
  QFETCH(quint64, missing);
  const TempDir folder;
  const ManualClock clock(kSpring);
  const Signer signer;
  Records records(folder.path(), clock);
  QVERIFY(know(records, signer).ok());
  for (const auto& [number, verdict, lease] : receipts) {
    QVERIFY(append(records, signer, signer.receipt(number, kSpring, verdict, lease)).ok());
  }
  std::map<std::string, StatedCredit> says;
  if (stated) says[signer.pin] = {.newest_receipt = newest, .confirmed = confirmed};
  const ReceiptReport report = check(records, says).value();
  QCOMPARE(QString::fromStdString(report.why.code), code);
  QCOMPARE(report.agrees, code == "receipts.agree" || code == "receipts.unstated");
  QCOMPARE(quint64(report.missing), missing);
  QCOMPARE(report.count, uint64_t{receipts.size()});
  QCOMPARE(report.genuine, report.count);
  QVERIFY(!english(report.why).empty());
}

void ReceiptsTest::changed_rows_are_found_data() {
  QTest::addColumn<QString>("sql");
  QTest::addColumn<QString>("code");
  for (const char* change :
       {"credit = credit + 1", "verdict = 1 - verdict", "rows_done = 11", "lease_id = 99",
        "at_ms = at_ms + 1", "device = 'gpu'", "model = 'b'", "job_kind = ''", "anchored = 1",
        "host_id = 8", "reason = 'x'", "number = 77", "signature = x''",
        "signature = CAST(x'00' || signature AS BLOB)"}) {
    QTest::newRow(change) << "UPDATE receipt SET " + QString(change) + " WHERE number = 2"
                          << "receipts.false";
  }
  // What is only a note of ours about it is not believed.
  QTest::newRow("the mark of a false one")
      << "UPDATE receipt SET genuine = 1, credit = 5 WHERE number = 2"
      << "receipts.false";
  QTest::newRow("a row away") << "DELETE FROM receipt WHERE number = 2"
                              << "receipts.missing";
  QTest::newRow("the key") << "UPDATE coordinator SET receipt_key = zeroblob(32)"
                           << "receipts.false";
  QTest::newRow("no key") << "UPDATE coordinator SET receipt_key = x'00'"
                          << "receipts.false";
  for (const char* change : {"folded_confirmed = 1e6", "folded_rejected = 1", "folded_count = 2",
                             "folded_chain = zeroblob(32)", "folded_seal = x''",
                             "folded_through = 2, folded_count = 2, folded_genuine = 2"}) {
    QTest::newRow(change) << "UPDATE coordinator SET " + QString(change) << "receipts.changed";
  }
}

void ReceiptsTest::changed_rows_are_found() {
  QFETCH(QString, sql);
  QFETCH(QString, code);
  const TempDir folder;
  ManualClock clock(kSpring);
  const Signer signer;
  {
    Records records(folder.path(), clock);
    QVERIFY(know(records, signer).ok());
    QVERIFY(append(records, signer, signer.receipt(1, kSpring)).ok());
    clock.advance({(kReceiptDays + 1) * kDayMs});
    records.flush();  // The first is folded.
    for (uint64_t i = 2; i <= 4; ++i) {
      QVERIFY(append(records, signer, signer.receipt(i, clock.now_wall())).ok());
    }
  }
  QVERIFY(change_file(folder.path(), sql.toStdString().c_str()));
  Records records(folder.path(), clock);
  const ReceiptReport report =
      check(records, {{signer.pin, {.newest_receipt = 4, .confirmed = 10}}}).value();
  QVERIFY(!report.agrees);
  if (sql.contains("folded_count = 2") && !sql.contains("genuine")) code = "receipts.false";
  QCOMPARE(QString::fromStdString(report.why.code), code);
}

void ReceiptsTest::checks_go_through_many_and_several() {
  const TempDir folder;
  const ManualClock clock(kSpring);
  Signer one, other;
  other.pin = "pin-of-another";
  Records records(folder.path(), clock);
  {
    ReceiptCheck nothing(records, {});
    QVERIFY(nothing.step().value());
    QVERIFY(nothing.reports().empty());
  }
  QVERIFY(know(records, one).ok());
  QVERIFY(know(records, other).ok());
  for (uint64_t i = 1; i <= 100; i += 10) {
    std::vector<Receipt> ten;
    for (uint64_t j = i; j < i + 10; ++j) ten.push_back(one.receipt(j, kSpring));
    QVERIFY(records.append_receipts(one.pin, ten).ok());
  }
  QVERIFY(append(records, other, other.receipt(1, kSpring)).ok());
  ReceiptCheck check(records, {{one.pin, {.newest_receipt = 100, .confirmed = 250}},
                               {other.pin, {.newest_receipt = 1, .confirmed = 2.5}}});
  int steps = 1;
  while (!check.step().value()) ++steps;
  QVERIFY(steps >= 3);  // In pieces.
  QVERIFY(check.step().value());
  QCOMPARE(check.reports().size(), size_t{2});
  for (const ReceiptReport& report : check.reports()) QVERIFY(report.agrees);
}

QTEST_GUILESS_MAIN(ReceiptsTest)
#include "receipts_test.moc"
