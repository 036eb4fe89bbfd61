#pragma once
// What a coordinator signs about all receipts of a day, and how a host proves that its own are
// among them: so that nobody's can be left out or changed later without everybody seeing it.

#include <cstdint>
#include <vector>

#include "base/digest.h"
#include "base/secrets.h"
#include "base/units.h"
#include "schema/receipt.h"

namespace shoal {

struct LedgerDay {
  int64_t day = 0;     // Since 1970-01-01, UTC.
  uint64_t count = 0;  // Of receipts; 0: there is no such day.
  Digest root;
  Digest previous_root;  // Of the day before that has one; all zeros: none has.
  ByteVector signature;

  friend bool operator==(const LedgerDay&, const LedgerDay&) = default;
};

// That a receipt is among those of a day.
struct ReceiptProof {
  uint64_t number = 0;  // The receipt's.
  uint64_t place = 0;   // Among the day's, from 0.
  std::vector<Digest> path;
};

int64_t day_of(Millis wall);        // The day in which this time lies.
std::string day_text(int64_t day);  // "2026-11-30".

// "shoal-ledger-day-1" and every field but the signature.
ByteVector ledger_day_bytes(const LedgerDay& day);
void sign_ledger_day(LedgerDay& day, const SigningKey& key);
bool ledger_day_is_genuine(const LedgerDay& day, const SigningPublicKey& key);

// A receipt, its signature included, as a leaf of the day's tree (schema/merkle.h).
Digest receipt_leaf(const Receipt& receipt);
bool receipt_is_in(const LedgerDay& day, const Receipt& receipt, const ReceiptProof& proof);

// A path as one row of bytes, for stores and wires.
ByteVector path_bytes(const std::vector<Digest>& path);
Result<std::vector<Digest>> path_of_bytes(ByteSpan bytes);  // kInvalid when it is none.

void write_ledger_day(const LedgerDay& day, rpc::LedgerDay::Builder to);
LedgerDay read_ledger_day(rpc::LedgerDay::Reader from);  // Throws what is wrong with it.
void write_receipt_proof(const ReceiptProof& proof, rpc::ReceiptProof::Builder to);
ReceiptProof read_receipt_proof(rpc::ReceiptProof::Reader from);  // Likewise.

}  // namespace shoal
