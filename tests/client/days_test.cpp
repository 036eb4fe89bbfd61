// Goal: a client keeps what its coordinator signed about each day, has every receipt of its own
// proved to be in one, and says so years later without the coordinator; a coordinator that leaves
// receipts out, changes its mind or signs nonsense is found out.

#include <QTest>
#include <algorithm>

#include "client/records/receipts.h"
#include "schema/merkle.h"
#include "tests/client/records_fixture.h"

using namespace shoal;
using namespace shoal::test;
using namespace shoal::client;

namespace {

constexpr int64_t kFirstDay = 20'532;  // That of kSpring.

// A coordinator with other hosts besides, which gives this one so many receipts a day.
class Days {
 public:
  Days(Records& records, const Signer& signer) : records_(&records), signer_(signer) {
    if (!records.know_coordinator(signer.pin, "it", signer.key.public_key(), signer.host).ok()) {
      qFatal("not known");
    }
  }

  // The day's receipts, given to the client.
  void work(int64_t day, int count) {
    for (int i = 0; i < count; ++i) {
      const Receipt receipt = signer_.receipt(own_.size() + 1, Millis{day * kDayMs + i});
      own_.push_back(receipt);
      leaves_.push_back({merkle_leaf(as_bytes("of another host " + std::to_string(day + i))), 0});
      leaves_.push_back({receipt_leaf(receipt), receipt.number});
    }
    if (!records_->accept_receipts(signer_.pin, std::span(own_).last(static_cast<size_t>(count)))
             .ok()) {
      qFatal("receipts refused");
    }
  }
  // Closes the day. Leaves of own receipts from `left_out` on are not in it.
  void close(int64_t number) {
    std::vector<Digest> digests;
    for (const auto& [digest, receipt] : leaves_) digests.push_back(digest);
    const MerkleTree tree(digests);
    day = {number, tree.count(), tree.root(), previous_, {}};
    proofs.clear();
    for (size_t i = 0; i < leaves_.size(); ++i) {
      if (leaves_[i].second != 0) proofs.push_back({leaves_[i].second, i, tree.path(i)});
    }
    sign_ledger_day(day, signer_.key);
    previous_ = day.root;
    leaves_.clear();
  }
  Result<void> tell(bool more = false) {
    return records_->accept_day(signer_.pin, day, proofs, more);
  }
  // One day, from its work to its root in the client.
  void pass(int64_t number, int count) {
    work(number, count);
    close(number);
    if (!tell().ok()) qFatal("day refused");
  }
  void leave_out_last() { leaves_.pop_back(); }
  void move_to(Records& records) { records_ = &records; }  // Of the same file.
  void sign_again() { sign_ledger_day(day, signer_.key); }

  LedgerDay day;  // As close() made it; tests change it.
  std::vector<ReceiptProof> proofs;

 private:
  Records* records_;  // Never null.
  const Signer& signer_;
  std::vector<Receipt> own_;
  std::vector<std::pair<Digest, uint64_t>> leaves_;  // With the number of an own receipt, or 0.
  Digest previous_;
};

ReceiptReport check(Records& records) {
  ReceiptCheck check(records, {});
  while (!check.step().value()) {
  }
  return check.reports().at(0);
}

}  // namespace

class DaysTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() { live_in_berlin(); }
  void days_are_kept_and_checked();
  void a_long_day_comes_in_pieces();
  void a_day_that_is_wrong_is_refused_and_told();
  void proofs_wait_for_their_receipts();
  void folded_receipts_need_no_proof();
  void a_receipt_that_is_left_out_is_missed_by_the_next_proof();
  void a_clock_that_was_set_back_is_no_lie();
  void what_comes_during_a_check_is_the_next_ones();
  void changed_files_are_found();
};

void DaysTest::days_are_kept_and_checked() {
  const TempDir folder;
  const ManualClock clock(kSpring);
  const Signer signer;
  {
    Records records(folder.path(), clock);
    QCOMPARE(records.day_wanted("nobody").from_day, int64_t{0});
    Days days(records, signer);
    QCOMPARE(records.day_wanted(signer.pin).from_day, int64_t{0});
    days.pass(kFirstDay, 3);
    QCOMPARE(records.day_wanted(signer.pin).from_day, kFirstDay + 1);
    QCOMPARE(records.day_wanted(signer.pin).after_number, uint64_t{3});
    days.work(kFirstDay + 3, 5);  // Days without any have no root.
    days.close(kFirstDay + 3);
    QVERIFY(days.tell().ok());
    days.work(kFirstDay + 4, 2);  // Not over yet: nothing is said of these.
    const ReceiptReport report = check(records);
    QVERIFY(report.agrees);
    QCOMPARE(report.days, uint64_t{2});
    QCOMPARE(report.in_days, uint64_t{8});
    QCOMPARE(report.newest_day, kFirstDay + 3);
    QCOMPARE(report.count, uint64_t{10});
    // Others can be asked whether they were told the same.
    QCOMPARE(report.why.code, std::string("receipts.unstated_days"));
    QVERIFY(english(report.why).find(days.day.root.hex()) != std::string::npos);
    QVERIFY(english(report.why).find(day_text(kFirstDay + 3)) != std::string::npos);
  }
  // On another start, without the coordinator.
  Records records(folder.path(), clock);
  QCOMPARE(records.day_wanted(signer.pin).from_day, kFirstDay + 4);
  QCOMPARE(records.day_wanted(signer.pin).after_number, uint64_t{8});
  QCOMPARE(check(records).in_days, uint64_t{8});
  QVERIFY(check(records).agrees);
}

void DaysTest::a_long_day_comes_in_pieces() {
  const TempDir folder;
  const ManualClock clock(kSpring);
  const Signer signer;
  Records records(folder.path(), clock);
  Days days(records, signer);
  days.work(kFirstDay, 9);
  days.close(kFirstDay);
  const std::vector<ReceiptProof> all = days.proofs;
  days.proofs = {all.begin(), all.begin() + 4};
  QVERIFY(days.tell(/*more=*/true).ok());
  QCOMPARE(check(records).why.code, std::string("receipts.unstated"));  // It is not whole.
  QCOMPARE(records.day_wanted(signer.pin).from_day, kFirstDay);
  QCOMPARE(records.day_wanted(signer.pin).after_number, uint64_t{4});
  QVERIFY(check(records).agrees);
  // The same piece again is one that does not follow; nothing is stored twice.
  QVERIFY(!days.tell(true).ok());
  days.proofs.clear();
  QVERIFY(!days.tell(true).ok());  // This would go on for ever.
  days.proofs = {all.begin() + 4, all.end()};
  QVERIFY(days.tell().ok());
  QCOMPARE(records.day_wanted(signer.pin).from_day, kFirstDay + 1);
  QCOMPARE(check(records).in_days, uint64_t{9});
}

void DaysTest::a_day_that_is_wrong_is_refused_and_told() {
  const TempDir folder;
  const ManualClock clock(kSpring);
  const Signer signer;
  Records records(folder.path(), clock);
  Days days(records, signer);
  days.pass(kFirstDay, 2);
  const LedgerDay first = days.day;
  days.work(kFirstDay + 1, 2);
  days.close(kFirstDay + 1);
  const LedgerDay day = days.day;
  const std::vector<ReceiptProof> proofs = days.proofs;
  const auto refused = [&](const std::function<void()>& change, bool sign = true) {
    days.day = day;
    days.proofs = proofs;
    change();
    if (sign) days.sign_again();
    const Result<void> told = days.tell();
    const ReceiptReport report = check(records);
    // It is said whenever somebody asks, and nothing of it is stored.
    return !told.ok() && told.error().code == ErrorCode::kInvalid && !report.agrees &&
           report.why.code == "receipts.day_false" &&
           records.day_wanted(signer.pin).from_day == kFirstDay + 1;
  };
  QVERIFY(refused([&] { days.day.root.bytes[0] ^= std::byte{1}; }, /*sign=*/false));
  QVERIFY(refused([&] { days.day.root.bytes[0] ^= std::byte{1}; }));
  QVERIFY(refused([&] { days.day.previous_root = Digest(); }));
  QVERIFY(refused([&] { days.day.count = 0; }));
  QVERIFY(refused([&] { days.day.day = kFirstDay - 1; }));
  QVERIFY(refused([&] { days.day.day = 0; }));
  QVERIFY(refused([&] { days.day.day = INT64_MAX; }));
  QVERIFY(refused([&] { days.day.day = kFirstDay; }));  // It said otherwise of that one.
  QVERIFY(refused([&] { days.proofs.erase(days.proofs.begin()); }));
  QVERIFY(refused([&] { days.proofs[1].place += 1; }));
  QVERIFY(refused([&] { days.proofs[1].path[0].bytes[31] ^= std::byte{1}; }));
  QVERIFY(refused([&] { std::swap(days.proofs[0], days.proofs[1]); }));
  QCOMPARE(records.accept_day("nobody", day, proofs, false).error().code, ErrorCode::kNotFound);
  // The right one mends it.
  days.day = day;
  days.proofs = proofs;
  QVERIFY(days.tell().ok());
  QVERIFY(check(records).agrees);
  QCOMPARE(check(records).in_days, uint64_t{4});
}

void DaysTest::proofs_wait_for_their_receipts() {
  const TempDir folder;
  const ManualClock clock(kSpring);
  const Signer signer;
  Records records(folder.path(), clock);
  Days days(records, signer);
  days.work(kFirstDay, 1);
  days.close(kFirstDay);
  days.proofs.push_back({2, 0, {}});  // Of a receipt that has not come.
  QCOMPARE(days.tell().error().code, ErrorCode::kUnavailable);
  QVERIFY(check(records).agrees);  // That is nobody's lie.
  QCOMPARE(records.day_wanted(signer.pin).after_number, uint64_t{0});
}

// After years every receipt of a day may be folded, and its proofs with it.
void DaysTest::folded_receipts_need_no_proof() {
  const TempDir folder;
  ManualClock clock(kSpring);
  const Signer signer;
  auto records = std::make_unique<Records>(folder.path(), clock);
  Days days(*records, signer);
  days.pass(kFirstDay, 3);
  clock.advance(Millis{(kReceiptDays + 2) * kDayMs});
  records->flush();
  QCOMPARE(records->known_coordinators().value()[0].folded.through, uint64_t{3});
  records.reset();
  records = std::make_unique<Records>(folder.path(), clock);
  QCOMPARE(records->day_wanted(signer.pin).from_day, kFirstDay + 1);
  QCOMPARE(records->day_wanted(signer.pin).after_number, uint64_t{3});
  days.move_to(*records);
  days.pass(kFirstDay + kReceiptDays, 2);
  QVERIFY(check(*records).agrees);
  QCOMPARE(check(*records).in_days, uint64_t{2});
}

void DaysTest::a_receipt_that_is_left_out_is_missed_by_the_next_proof() {
  const TempDir folder;
  const ManualClock clock(kSpring);
  const Signer signer;
  Records records(folder.path(), clock);
  Days days(records, signer);
  days.work(kFirstDay, 3);
  days.leave_out_last();
  days.close(kFirstDay);
  QVERIFY(days.tell().ok());
  // It may be in the next one, where the coordinator's clock was wrong.
  QVERIFY(check(records).agrees);
  days.work(kFirstDay + 1, 1);
  days.close(kFirstDay + 1);
  QCOMPARE(days.tell().error().code, ErrorCode::kInvalid);
  const ReceiptReport report = check(records);
  QVERIFY(!report.agrees);
  QCOMPARE(report.why.code, std::string("receipts.day_false"));
  QCOMPARE(report.in_days, uint64_t{2});
}

void DaysTest::a_clock_that_was_set_back_is_no_lie() {
  const TempDir folder;
  const ManualClock clock(kSpring);
  const Signer signer;
  Records records(folder.path(), clock);
  Days days(records, signer);
  days.pass(kFirstDay + 9, 2);  // The coordinator's clock was ahead.
  days.work(kFirstDay, 2);      // These are in a day that is not over.
  QVERIFY(check(records).agrees);
  QCOMPARE(check(records).in_days, uint64_t{2});
  days.close(kFirstDay + 10);
  QVERIFY(days.tell().ok());
  QVERIFY(check(records).agrees);
  QCOMPARE(check(records).in_days, uint64_t{4});
}

// A check takes seconds, and the coordinator does not wait for it.
void DaysTest::what_comes_during_a_check_is_the_next_ones() {
  const TempDir folder;
  const ManualClock clock(kSpring);
  const Signer signer;
  Records records(folder.path(), clock);
  Days days(records, signer);
  for (int i = 0; i < 2; ++i) days.work(kFirstDay, 20);
  days.close(kFirstDay);
  const std::vector<ReceiptProof> all = days.proofs;
  days.proofs = {all.begin(), all.begin() + 30};
  QVERIFY(days.tell(/*more=*/true).ok());
  ReceiptCheck check(records, {});
  QVERIFY(!check.step().value());
  days.proofs = {all.begin() + 30, all.end()};
  QVERIFY(days.tell().ok());
  days.pass(kFirstDay + 1, 20);
  while (!check.step().value()) {
  }
  const ReceiptReport& report = check.reports().at(0);
  QCOMPARE(report.why.code, std::string("receipts.unstated"));
  QVERIFY(report.agrees);
  QCOMPARE(report.count, uint64_t{60});
  QCOMPARE(report.in_days, uint64_t{30});
  QCOMPARE(::check(records).in_days, uint64_t{60});
}

void DaysTest::changed_files_are_found() {
  const std::pair<const char*, const char*> kChanges[] = {
      {"UPDATE ledger_day SET root = zeroblob(32) WHERE day = 20532", "receipts.day_false"},
      {"UPDATE ledger_day SET root = x'00' WHERE day = 20532", "receipts.day_false"},
      {"UPDATE ledger_day SET signature = zeroblob(64) WHERE day = 20533", "receipts.day_false"},
      {"UPDATE ledger_day SET receipts = 9", "receipts.day_false"},
      {"DELETE FROM ledger_day WHERE day = 20533", "receipts.day_false"},
      {"UPDATE receipt_proof SET path = zeroblob(length(path)) WHERE number = 2",
       "receipts.not_in_day"},
      {"UPDATE receipt_proof SET path = x'00'", "receipts.not_in_day"},
      {"UPDATE receipt_proof SET place = -1", "receipts.not_in_day"},
      {"UPDATE receipt_proof SET day = 1", "receipts.not_in_day"},
      {"DELETE FROM receipt_proof WHERE number = 1", "receipts.not_in_day"},
      {"DELETE FROM receipt_proof WHERE number = 5", "receipts.not_in_day"},  // Of the newest day.
  };
  for (const auto& [sql, code] : kChanges) {
    const TempDir folder;
    const ManualClock clock(kSpring);
    const Signer signer;
    {
      Records records(folder.path(), clock);
      Days days(records, signer);
      for (int64_t day = kFirstDay; day < kFirstDay + 3; ++day) days.pass(day, 2);
      QVERIFY(check(records).agrees);
    }
    QVERIFY(change_file(folder.path(), sql));
    Records records(folder.path(), clock);
    const ReceiptReport report = check(records);
    QVERIFY2(!report.agrees && report.why.code == code, sql);
  }
}

QTEST_GUILESS_MAIN(DaysTest)
#include "days_test.moc"
