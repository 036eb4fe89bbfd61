#include "coordinator/store/ledger_table.h"

#include "coordinator/store/columns.h"

namespace shoal {
namespace {

#define SHOAL_WORK_COLUMNS                                                                \
  "ledger.id, lease_id, session_id, ledger.host_id, device, kind, model, privacy, "       \
  "first_fragment, last_fragment, row_count, flops, credit_parts, ended_at_ms, unit_id, " \
  "group_name"
#define SHOAL_RECEIPT_COLUMNS                                                           \
  "receipt.id, receipt.host_id, number, ledger_id, verdict, reason, at_ms, signature, " \
  "confirmed_parts_sum, pending_parts_sum, rejected_parts_sum"
constexpr int kWorkColumns = 16;

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
  work.group = query.text(15);
  if (!work.group.empty()) work.privacy = "group";
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

Result<LedgerDayRow> day_of_row(const Query& query) {
  LedgerDayRow row;
  row.day = query.integer(0);
  row.last_receipt_id = query.integer(1);
  row.receipts = query.integer(2);
  SHOAL_TRY_ASSIGN(root, Digest::from_bytes(query.blob(3)));
  row.root = root;
  SHOAL_TRY_ASSIGN(previous, Digest::from_bytes(query.blob(4)));
  row.previous_root = previous;
  row.signature = query.blob(5);
  return row;
}

Result<std::optional<LedgerDayRow>> one_day(Query query) {
  SHOAL_TRY_ASSIGN(some, query.row());
  if (!some) return std::optional<LedgerDayRow>();
  SHOAL_TRY_ASSIGN(day, day_of_row(query));
  day.chunks = query.blob(6);
  return std::optional<LedgerDayRow>(std::move(day));
}

}  // namespace

Result<bool> LedgerTable::has(LeaseId lease) {
  Query query = store_.query("SELECT 1 FROM ledger WHERE lease_id = ?");
  return query.bind(lease.value).row();
}

Result<std::optional<LedgerRow>> LedgerTable::find(LeaseId lease) {
  Query query = store_.query("SELECT " SHOAL_WORK_COLUMNS " FROM ledger WHERE lease_id = ?");
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
      "first_fragment, last_fragment, row_count, flops, credit_parts, ended_at_ms, unit_id, "
      "group_name) "
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  SHOAL_TRY(query.bind(work.lease.value)
                .bind(work.session.value)
                .bind(work.host.value)
                .bind(work.device)
                .bind(work.kind)
                .bind(work.model)
                // A group says the level of privacy by itself (0004_accounts.sql).
                .bind(work.group.empty() ? work.privacy : std::string("public"))
                .bind(work.first_fragment)
                .bind(work.last_fragment)
                .bind(work.rows)
                .bind(work.flops.count)
                .bind(work.credit_parts)
                .bind(work.ended_at.count)
                .bind(work.unit.value)
                .bind(work.group)
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
      "SELECT " SHOAL_WORK_COLUMNS
      " FROM ledger WHERE session_id = ? AND session_id <> 0 AND NOT EXISTS (SELECT 1 FROM "
      "receipt WHERE ledger_id = ledger.id AND verdict <> 'pending') ORDER BY ledger.id");
  query.bind(session.value);
  return all_of(std::move(query), work_of);
}

Result<std::vector<SessionId>> LedgerTable::unsettled_sessions() {
  Query query = store_.query(
      "SELECT id FROM session WHERE ended_at_ms = 0 UNION SELECT session_id FROM ledger WHERE "
      "session_id <> 0 AND NOT EXISTS (SELECT 1 FROM receipt WHERE ledger_id = ledger.id AND "
      "verdict <> 'pending')");
  return all_of<SessionId>(std::move(query),
                           [](const Query& row) { return SessionId{row.integer(0)}; });
}

Result<std::vector<UnendedLease>> LedgerTable::unended_leases() {
  Query query = store_.query(
      "SELECT lease.id, session_id, host_id, device, model, privacy, first_fragment, "
      "last_fragment, "
      "group_name FROM lease JOIN session ON session.id = session_id WHERE lease.ended_at_ms = 0");
  return all_of<UnendedLease>(std::move(query), [](const Query& row) {
    return UnendedLease{LeaseId{row.integer(0)},
                        SessionId{row.integer(1)},
                        HostId{row.integer(2)},
                        row.text(3),
                        row.text(4),
                        row.text(8).empty() ? row.text(5) : "group",
                        row.text(8),
                        row.integer(6),
                        row.integer(7)};
  });
}

Result<std::vector<JudgedWork>> LedgerTable::receipts(HostId host, int64_t after_number,
                                                      int64_t count_max) {
  Query query =
      store_.query("SELECT " SHOAL_WORK_COLUMNS ", " SHOAL_RECEIPT_COLUMNS
                   " FROM receipt JOIN ledger ON ledger.id = "
                   "ledger_id WHERE receipt.host_id = ? AND number > ? ORDER BY number LIMIT ?");
  query.bind(host.value).bind(after_number).bind(count_max);
  return all_of(std::move(query), judged_of);
}

Result<std::vector<JudgedWork>> LedgerTable::all_receipts(int64_t after_id, int64_t count_max) {
  Query query = store_.query("SELECT " SHOAL_WORK_COLUMNS ", " SHOAL_RECEIPT_COLUMNS
                             " FROM receipt JOIN ledger ON ledger.id = "
                             "ledger_id WHERE receipt.id > ? ORDER BY receipt.id LIMIT ?");
  query.bind(after_id).bind(count_max);
  return all_of(std::move(query), judged_of);
}

Result<std::vector<ReceiptPlace>> LedgerTable::places(HostId host, int64_t after_number,
                                                      int64_t last_id, int64_t count_max) {
  Query query = store_.query(
      "SELECT id, number FROM receipt WHERE host_id = ? AND number > ? AND id <= ? ORDER BY number "
      "LIMIT ?");
  query.bind(host.value).bind(after_number).bind(last_id).bind(count_max);
  return all_of<ReceiptPlace>(std::move(query), [](const Query& row) {
    return ReceiptPlace{row.integer(0), row.integer(1)};
  });
}

Result<std::optional<int64_t>> LedgerTable::receipt_id(HostId host, int64_t number) {
  Query query = store_.query("SELECT id FROM receipt WHERE host_id = ? AND number = ?");
  SHOAL_TRY_ASSIGN(some, query.bind(host.value).bind(number).row());
  if (!some) return std::optional<int64_t>();
  return std::optional<int64_t>(query.integer(0));
}

Result<bool> LedgerTable::is_banned(HostId host) {
  Query query = store_.query(
      "SELECT 1 FROM host LEFT JOIN account ON account.id = account_id "
      "WHERE host.id = ? AND (standing = 'banned' OR banned = 1)");
  return query.bind(host.value).row();
}

Result<void> LedgerTable::add_day(const LedgerDayRow& day) {
  Query query = store_.query(
      "INSERT INTO ledger_day (day, last_receipt_id, receipt_count, chunks, root, previous_root, "
      "signature) VALUES (?, ?, ?, ?, ?, ?, ?)");
  return query.bind(day.day)
      .bind(day.last_receipt_id)
      .bind(day.receipts)
      .bind(ByteSpan(day.chunks))
      .bind(ByteSpan(day.root.bytes))
      .bind(ByteSpan(day.previous_root.bytes))
      .bind(ByteSpan(day.signature))
      .run();
}

Result<std::vector<LedgerDayRow>> LedgerTable::days(int64_t from_day, int64_t count_max) {
  std::vector<LedgerDayRow> days;
  Query query = store_.query(
      "SELECT day, last_receipt_id, receipt_count, root, previous_root, signature FROM ledger_day "
      "WHERE day >= ? ORDER BY day LIMIT ?");
  query.bind(from_day).bind(count_max);
  while (true) {
    SHOAL_TRY_ASSIGN(some, query.row());
    if (!some) return days;
    SHOAL_TRY_ASSIGN(day, day_of_row(query));
    days.push_back(std::move(day));
  }
}

Result<std::optional<LedgerDayRow>> LedgerTable::day_from(int64_t day) {
  Query query = store_.query(
      "SELECT day, last_receipt_id, receipt_count, root, previous_root, signature, chunks "
      "FROM ledger_day WHERE day >= ? ORDER BY day LIMIT 1");
  query.bind(day);
  return one_day(std::move(query));
}

Result<std::optional<LedgerDayRow>> LedgerTable::day_before(int64_t day) {
  Query query = store_.query(
      "SELECT day, last_receipt_id, receipt_count, root, previous_root, signature, chunks "
      "FROM ledger_day WHERE day < ? ORDER BY day DESC LIMIT 1");
  query.bind(day);
  return one_day(std::move(query));
}

Result<int64_t> LedgerTable::count() {
  return one_number(store_.query("SELECT count(*) FROM ledger"));
}

}  // namespace shoal
