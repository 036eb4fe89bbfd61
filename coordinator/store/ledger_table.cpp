#include "coordinator/store/ledger_table.h"

namespace shoal {
namespace {

#define WORK_COLUMNS                                                                \
  "ledger.id, lease_id, session_id, ledger.host_id, device, kind, model, privacy, " \
  "first_fragment, last_fragment, row_count, flops, credit_parts, ended_at_ms, unit_id"
#define RECEIPT_COLUMNS                                                                 \
  "receipt.id, receipt.host_id, number, ledger_id, verdict, reason, at_ms, signature, " \
  "confirmed_parts_sum, pending_parts_sum, rejected_parts_sum"
constexpr int kWorkColumns = 15;

LedgerRow work_of(const Query& query) {
  LedgerRow work;
  work.id = query.integer(0);
  work.lease = LeaseId{query.integer(1)};
  work.session = SessionId{query.integer(2)};
  work.host = HostId{query.integer(3)};
  work.device = query.text(4);
  work.kind = query.text(5);
  work.model = query.text(6);
  work.privacy = query.text(7);
  work.first_fragment = query.integer(8);
  work.last_fragment = query.integer(9);
  work.rows = query.integer(10);
  work.flops = Flops{query.integer(11)};
  work.credit_parts = query.integer(12);
  work.ended_at = Millis{query.integer(13)};
  work.unit = UnitId{query.integer(14)};
  return work;
}

ReceiptRow receipt_of(const Query& query, int first) {
  ReceiptRow receipt;
  receipt.id = query.integer(first);
  receipt.host = HostId{query.integer(first + 1)};
  receipt.number = query.integer(first + 2);
  receipt.ledger_id = query.integer(first + 3);
  receipt.verdict = query.text(first + 4);
  receipt.reason = query.text(first + 5);
  receipt.at = Millis{query.integer(first + 6)};
  receipt.signature = query.blob(first + 7);
  receipt.sums = {query.integer(first + 8), query.integer(first + 9), query.integer(first + 10)};
  return receipt;
}

template <class Row>
Result<std::vector<Row>> all_of(Query query, Row (*read)(const Query&)) {
  std::vector<Row> rows;
  while (true) {
    SHOAL_TRY_ASSIGN(some, query.row());
    if (!some) return rows;
    rows.push_back(read(query));
  }
}

JudgedWork judged_of(const Query& query) {
  return {work_of(query), receipt_of(query, kWorkColumns)};
}

Result<int64_t> one_number(Query query) {
  SHOAL_TRY_ASSIGN(some, query.row());
  SHOAL_CHECK(some);
  return query.integer(0);
}

}  // namespace

Result<bool> LedgerTable::has(LeaseId lease) {
  Query query = store_.query("SELECT 1 FROM ledger WHERE lease_id = ?");
  return query.bind(lease.value).row();
}

Result<std::optional<LedgerRow>> LedgerTable::find(LeaseId lease) {
  Query query = store_.query("SELECT " WORK_COLUMNS " FROM ledger WHERE lease_id = ?");
  SHOAL_TRY_ASSIGN(some, query.bind(lease.value).row());
  if (!some) return std::optional<LedgerRow>();
  return std::optional<LedgerRow>(work_of(query));
}

Result<bool> LedgerTable::is_judged(int64_t ledger_id) {
  Query query = store_.query("SELECT 1 FROM receipt WHERE ledger_id = ? AND verdict <> 'pending'");
  return query.bind(ledger_id).row();
}

Result<int64_t> LedgerTable::add(const LedgerRow& work) {
  Query query = store_.query(
      "INSERT INTO ledger (lease_id, session_id, host_id, device, kind, model, privacy, "
      "first_fragment, last_fragment, row_count, flops, credit_parts, ended_at_ms, unit_id) "
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  SHOAL_TRY(query.bind(work.lease.value)
                .bind(work.session.value)
                .bind(work.host.value)
                .bind(work.device)
                .bind(work.kind)
                .bind(work.model)
                .bind(work.privacy)
                .bind(work.first_fragment)
                .bind(work.last_fragment)
                .bind(work.rows)
                .bind(work.flops.count)
                .bind(work.credit_parts)
                .bind(work.ended_at.count)
                .bind(work.unit.value)
                .run());
  return store_.last_id();
}

Result<void> LedgerTable::add_receipt(const ReceiptRow& receipt) {
  Query query = store_.query(
      "INSERT INTO receipt (host_id, number, ledger_id, verdict, reason, at_ms, signature, "
      "confirmed_parts_sum, pending_parts_sum, rejected_parts_sum) "
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  return query.bind(receipt.host.value)
      .bind(receipt.number)
      .bind(receipt.ledger_id)
      .bind(receipt.verdict)
      .bind(receipt.reason)
      .bind(receipt.at.count)
      .bind(ByteSpan(receipt.signature))
      .bind(receipt.sums.confirmed)
      .bind(receipt.sums.pending)
      .bind(receipt.sums.rejected)
      .run();
}

Result<LedgerTable::Newest> LedgerTable::newest(HostId host) {
  Query query = store_.query(
      "SELECT number, confirmed_parts_sum, pending_parts_sum, rejected_parts_sum FROM receipt "
      "WHERE host_id = ? ORDER BY number DESC LIMIT 1");
  SHOAL_TRY_ASSIGN(some, query.bind(host.value).row());
  if (!some) return Newest();
  return Newest{query.integer(0), {query.integer(1), query.integer(2), query.integer(3)}};
}

Result<std::vector<LedgerRow>> LedgerTable::pending(SessionId session) {
  Query query = store_.query(
      "SELECT " WORK_COLUMNS
      " FROM ledger WHERE session_id = ? AND session_id <> 0 AND NOT EXISTS (SELECT 1 FROM "
      "receipt WHERE ledger_id = ledger.id AND verdict <> 'pending') ORDER BY ledger.id");
  query.bind(session.value);
  return all_of(std::move(query), work_of);
}

Result<std::vector<SessionId>> LedgerTable::unended_sessions() {
  Query query = store_.query("SELECT id FROM session WHERE ended_at_ms = 0");
  return all_of<SessionId>(std::move(query),
                           [](const Query& row) { return SessionId{row.integer(0)}; });
}

Result<std::vector<UnendedLease>> LedgerTable::unended_leases() {
  Query query = store_.query(
      "SELECT lease.id, session_id, host_id, device, model, privacy, first_fragment, last_fragment "
      "FROM lease JOIN session ON session.id = session_id WHERE lease.ended_at_ms = 0");
  return all_of<UnendedLease>(std::move(query), [](const Query& row) {
    return UnendedLease{LeaseId{row.integer(0)},
                        SessionId{row.integer(1)},
                        HostId{row.integer(2)},
                        row.text(3),
                        row.text(4),
                        row.text(5),
                        row.integer(6),
                        row.integer(7)};
  });
}

Result<std::vector<JudgedWork>> LedgerTable::receipts(HostId host, int64_t after_number,
                                                      int64_t count_max) {
  Query query =
      store_.query("SELECT " WORK_COLUMNS ", " RECEIPT_COLUMNS
                   " FROM receipt JOIN ledger ON ledger.id = "
                   "ledger_id WHERE receipt.host_id = ? AND number > ? ORDER BY number LIMIT ?");
  query.bind(host.value).bind(after_number).bind(count_max);
  return all_of(std::move(query), judged_of);
}

Result<std::vector<JudgedWork>> LedgerTable::all_receipts(int64_t after_id, int64_t count_max) {
  Query query = store_.query("SELECT " WORK_COLUMNS ", " RECEIPT_COLUMNS
                             " FROM receipt JOIN ledger ON ledger.id = "
                             "ledger_id WHERE receipt.id > ? ORDER BY receipt.id LIMIT ?");
  query.bind(after_id).bind(count_max);
  return all_of(std::move(query), judged_of);
}

Result<int64_t> LedgerTable::count() {
  return one_number(store_.query("SELECT count(*) FROM ledger"));
}

}  // namespace shoal
