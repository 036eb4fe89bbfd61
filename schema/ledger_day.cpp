#include "schema/ledger_day.h"

#include <chrono>
#include <cstdio>

#include "schema/limits.h"
#include "schema/merkle.h"
#include "schema/require.h"

namespace shoal {
namespace {

constexpr int64_t kDayMs = 86'400'000;
constexpr std::string_view kPurpose = "shoal-ledger-day-1";
constexpr size_t kDigestBytes = sizeof(Digest::bytes);

}  // namespace

int64_t day_of(Millis wall) {
  const int64_t day = wall.count / kDayMs;
  return wall.count % kDayMs < 0 ? day - 1 : day;
}

std::string day_text(int64_t day) {
  constexpr int64_t kMost = 10'000'000;  // A peer's day may be any number.
  if (day < -kMost || day > kMost) return std::to_string(day);
  const std::chrono::year_month_day date{
      std::chrono::sys_days{std::chrono::days{static_cast<int>(day)}}};
  char text[48];
  std::snprintf(text, sizeof text, "%04d-%02u-%02u", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
  return text;
}

ByteVector ledger_day_bytes(const LedgerDay& day) {
  ByteWriter to;
  to.u64(kPurpose.size());
  to.text(kPurpose);
  to.u64(static_cast<uint64_t>(day.day));
  to.u64(day.count);
  to.bytes(day.root.bytes);
  to.bytes(day.previous_root.bytes);
  return to.take();
}

void sign_ledger_day(LedgerDay& day, const SigningKey& key) {
  const Signature signature = key.sign(ledger_day_bytes(day));
  day.signature.assign(signature.begin(), signature.end());
}

bool ledger_day_is_genuine(const LedgerDay& day, const SigningPublicKey& key) {
  return verify(key, ledger_day_bytes(day), day.signature);
}

Digest receipt_leaf(const Receipt& receipt) {
  ByteVector entry = receipt_bytes(receipt);
  entry.insert(entry.end(), receipt.signature.begin(), receipt.signature.end());
  return merkle_leaf(entry);
}

bool receipt_is_in(const LedgerDay& day, const Receipt& receipt, const ReceiptProof& proof) {
  return receipt.number == proof.number &&
         merkle_path_fits(day.root, day.count, proof.place, receipt_leaf(receipt), proof.path);
}

ByteVector path_bytes(const std::vector<Digest>& path) {
  ByteVector bytes;
  bytes.reserve(path.size() * kDigestBytes);
  for (const Digest& digest : path) {
    bytes.insert(bytes.end(), digest.bytes.begin(), digest.bytes.end());
  }
  return bytes;
}

Result<std::vector<Digest>> path_of_bytes(ByteSpan bytes) {
  if (bytes.size() > limits::kProofBytesMax || bytes.size() % kDigestBytes != 0) {
    return Error{ErrorCode::kInvalid, "a proof's path is no row of digests"};
  }
  std::vector<Digest> path;
  for (size_t i = 0; i < bytes.size(); i += kDigestBytes) {
    path.push_back(Digest::from_bytes(bytes.subspan(i, kDigestBytes)).value());
  }
  return path;
}

void write_ledger_day(const LedgerDay& day, rpc::LedgerDay::Builder to) {
  to.setDay(day.day);
  to.setCount(day.count);
  to.setRoot(rpc::kj_bytes(day.root.bytes));
  to.setPreviousRoot(rpc::kj_bytes(day.previous_root.bytes));
  to.setSignature(rpc::kj_bytes(day.signature));
}

LedgerDay read_ledger_day(rpc::LedgerDay::Reader from) {
  LedgerDay day;
  day.day = from.getDay();
  day.count = from.getCount();
  if (day.count == 0) return day;
  day.root = rpc::require(Digest::from_bytes(rpc::bytes_of(from.getRoot())));
  day.previous_root = rpc::require(Digest::from_bytes(rpc::bytes_of(from.getPreviousRoot())));
  rpc::require_at_most(from.getSignature().size(), limits::kKeyBytesMax, "day.signature");
  day.signature = to_vector(rpc::bytes_of(from.getSignature()));
  return day;
}

void write_receipt_proof(const ReceiptProof& proof, rpc::ReceiptProof::Builder to) {
  to.setNumber(proof.number);
  to.setPlace(proof.place);
  to.setPath(rpc::kj_bytes(path_bytes(proof.path)));
}

ReceiptProof read_receipt_proof(rpc::ReceiptProof::Reader from) {
  return {from.getNumber(), from.getPlace(),
          rpc::require(path_of_bytes(rpc::bytes_of(from.getPath())))};
}

}  // namespace shoal
