#include "coordinator/session/ledger_days.h"

#include <algorithm>

#include "base/check.h"
#include "coordinator/session/ledger.h"

namespace shoal {
namespace {

constexpr int64_t kTakenAtOnce = 500;  // Some 10 ms; then others have their turn.
// A proof is the way inside one chunk and then the way over the chunks' roots, which are kept: no
// proof reads more receipts than these. A power of two, so that both ways are one.
constexpr uint64_t kChunkReceipts = 64;
static_assert((kChunkReceipts & (kChunkReceipts - 1)) == 0);
constexpr size_t kChunkBytes = sizeof(int64_t) + sizeof(Digest::bytes);
constexpr int kChunksPerCallMax = 16;

Error damaged(int64_t day) {
  return {ErrorCode::kCorrupt, "the ledger's day " + day_text(day) +
                                   " does not fit its receipts; see shoalctl ledger "
                                   "reconcile"};
}

}  // namespace

LedgerDay ledger_day_from(const LedgerDayRow& row) {
  return {row.day, static_cast<uint64_t>(row.receipts), row.root, row.previous_root, row.signature};
}

Result<int64_t> LedgerDays::newest() {
  if (!newest_) {
    SHOAL_TRY_ASSIGN(last, table_.day_before(INT64_MAX));
    newest_ = last ? last->day : 0;
  }
  return *newest_;
}

Result<bool> LedgerDays::go_on() {
  if (!making_) {
    SHOAL_TRY(begin());
    if (!making_) return false;
  }
  Making& making = *making_;
  SHOAL_TRY_ASSIGN(rows, table_.all_receipts(making.row.last_receipt_id, kTakenAtOnce));
  for (const JudgedWork& row : rows) {
    const int64_t day = day_of(row.receipt.at);
    if (day > making.through && day <= making.today) {
      SHOAL_TRY(finish());
      return true;
    }
    if (making.chunk.count() == 0) making.chunk_first_id = row.receipt.id;
    const Digest leaf = receipt_leaf(receipt_from(row));
    making.root.add(leaf);
    making.chunk.add(leaf);
    making.row.receipts += 1;
    making.row.last_receipt_id = row.receipt.id;
    if (making.chunk.count() == kChunkReceipts) close_chunk();
  }
  if (rows.empty()) SHOAL_TRY(finish());
  return true;
}

// Nothing is begun while there is no receipt of a day that is over.
Result<void> LedgerDays::begin() {
  SHOAL_TRY_ASSIGN(last, table_.day_before(INT64_MAX));
  Making making;
  if (last) {
    making.row.last_receipt_id = last->last_receipt_id;
    making.row.previous_root = last->root;
  }
  SHOAL_TRY_ASSIGN(first, table_.all_receipts(making.row.last_receipt_id, 1));
  if (first.empty()) return {};
  making.today = day_of(clock_.now_wall());
  // What claims to be later than now is of a clock that ran ahead: it was given before now.
  const int64_t claimed = day_of(first.front().receipt.at);
  const int64_t given = claimed > making.today ? making.today - 1 : claimed;
  const int64_t after = last ? last->day : 0;
  making.row.day = std::max(given, after + 1);   // Days before 1 are none.
  const bool ran_ahead = after >= making.today;  // The clock, when the last root was made.
  if (given >= making.today || (making.row.day >= making.today && !ran_ahead)) return {};
  making.through = ran_ahead ? given : making.row.day;
  making_ = std::move(making);
  return {};
}

void LedgerDays::close_chunk() {
  Making& making = *making_;
  making.chunks.u64(static_cast<uint64_t>(making.chunk_first_id));
  making.chunks.bytes(making.chunk.root().bytes);
  making.chunk = MerkleRoot();
}

Result<void> LedgerDays::finish() {
  if (making_->chunk.count() > 0) close_chunk();
  Making making = *std::exchange(making_, std::nullopt);  // After an error it is made anew.
  making.row.root = making.root.root();
  making.row.chunks = making.chunks.take();
  LedgerDay day = ledger_day_from(making.row);
  sign_ledger_day(day, key_);
  making.row.signature = std::move(day.signature);
  SHOAL_TRY(table_.add_day(making.row));
  newest_ = making.row.day;
  return {};
}

Result<bool> LedgerDays::open(int64_t from_day) {
  SHOAL_TRY_ASSIGN(listed, table_.days(from_day, 1));
  if (listed.empty()) return false;
  if (open_ && open_->row.day == listed.front().day) return true;
  SHOAL_TRY_ASSIGN(row, table_.day_from(from_day));
  SHOAL_CHECK(row);
  SHOAL_TRY_ASSIGN(before, table_.day_before(row->day));
  if (row->chunks.empty() || row->chunks.size() % kChunkBytes != 0) return damaged(row->day);
  std::vector<int64_t> first_ids;
  std::vector<Digest> roots;
  for (size_t at = 0; at < row->chunks.size(); at += kChunkBytes) {
    const ByteSpan chunk = ByteSpan(row->chunks).subspan(at, kChunkBytes);
    first_ids.push_back(static_cast<int64_t>(load_le<uint64_t>(chunk.data())));
    roots.push_back(Digest::from_bytes(chunk.subspan(sizeof(int64_t))).value());
  }
  row->chunks.clear();
  const int64_t first_id = before ? before->last_receipt_id + 1 : 1;
  open_.emplace(
      Open{std::move(*row), first_id, std::move(first_ids), MerkleTree(std::move(roots))});
  return true;
}

Result<LedgerDays::Chunk> LedgerDays::read_chunk(size_t index) {
  SHOAL_TRY_ASSIGN(
      rows, table_.all_receipts(open_->first_ids[index] - 1, static_cast<int64_t>(kChunkReceipts)));
  std::vector<int64_t> ids;
  std::vector<Digest> leaves;
  for (const JudgedWork& row : rows) {
    if (row.receipt.id > open_->row.last_receipt_id) break;
    ids.push_back(row.receipt.id);
    leaves.push_back(receipt_leaf(receipt_from(row)));
  }
  return Chunk{index, std::move(ids), MerkleTree(std::move(leaves))};
}

Result<int64_t> LedgerDays::first_number(HostId host, int64_t first_id) {
  SHOAL_TRY_ASSIGN(newest, table_.newest(host));
  // Numbers and ids grow together.
  int64_t low = 1, high = newest.number + 1;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    SHOAL_TRY_ASSIGN(id, table_.receipt_id(host, middle));
    if (id && *id < first_id) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

Result<LedgerDays::Proofs> LedgerDays::proofs(HostId host, int64_t from_day, uint64_t after_number,
                                              uint32_t count_max) {
  Proofs out;
  SHOAL_TRY_ASSIGN(opened, open(from_day));
  if (!opened) return out;
  out.day = ledger_day_from(open_->row);
  SHOAL_TRY_ASSIGN(first, first_number(host, open_->first_id));
  const auto after = std::max<int64_t>(
      static_cast<int64_t>(std::min<uint64_t>(after_number, INT64_MAX)), first - 1);
  SHOAL_TRY_ASSIGN(places,
                   table_.places(host, after, open_->row.last_receipt_id, int64_t{count_max} + 1));
  std::optional<Chunk> chunk;
  int chunks = 0;
  for (const ReceiptPlace& place : places) {
    const auto next = std::ranges::upper_bound(open_->first_ids, place.id);
    if (next == open_->first_ids.begin()) return damaged(open_->row.day);
    const auto index = static_cast<size_t>(next - open_->first_ids.begin()) - 1;
    const bool is_read = chunk && chunk->index == index;
    if (out.proofs.size() == count_max || (!is_read && chunks == kChunksPerCallMax)) {
      out.more = true;
      return out;
    }
    if (!is_read) {
      SHOAL_TRY_ASSIGN(read, read_chunk(index));
      chunk = std::move(read);
      ++chunks;
    }
    const auto found = std::ranges::find(chunk->ids, place.id);
    if (found == chunk->ids.end()) return damaged(open_->row.day);
    const auto inside = static_cast<uint64_t>(found - chunk->ids.begin());
    ReceiptProof proof;
    proof.number = static_cast<uint64_t>(place.number);
    proof.place = index * kChunkReceipts + inside;
    proof.path = chunk->tree.path(inside);
    for (const Digest& digest : open_->tree.path(index)) proof.path.push_back(digest);
    out.proofs.push_back(std::move(proof));
  }
  return out;
}

}  // namespace shoal
