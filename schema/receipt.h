#pragma once
// What a coordinator signs when it says what a lease was worth, and how anybody checks that.

#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/secrets.h"
#include "base/units.h"
#include "schema/coordinator.capnp.h"

namespace shoal {

struct JobClass {
  std::string kind;  // "generate"
  std::string model;
  bool anchored = false;
  bool group = false;  // For hosts of one group alone. Never together with `anchored`.

  friend auto operator<=>(const JobClass&, const JobClass&) = default;
};

enum class ReceiptVerdict { kPending, kConfirmed, kRejected };

struct Receipt {
  uint64_t number = 0;  // Counts one host's receipts from 1, without gaps.
  HostId host;
  LeaseId lease;
  std::string device;
  JobClass job_class;
  uint64_t rows = 0;
  double credit = 0;  // 1 credit = 10^12 FLOP.
  ReceiptVerdict verdict = ReceiptVerdict::kPending;
  std::string reason;  // A code of schema/message.h; empty when confirmed.
  Millis at{0};        // Wall clock of the coordinator.
  ByteVector signature;
};

// A level of privacy as tables and command lines name it: "public", "anchored" or "group".
const char* privacy_name(const JobClass& job_class);
rpc::Privacy privacy_of(const JobClass& job_class);

// "shoal-receipt-1" and every field but the signature, each text with its length before it: two
// different receipts never have the same bytes.
ByteVector receipt_bytes(const Receipt& receipt);

void sign_receipt(Receipt& receipt, const SigningKey& key);
bool receipt_is_genuine(const Receipt& receipt, const SigningPublicKey& key);

void write_job_class(const JobClass& job_class, rpc::JobClass::Builder to);
JobClass read_job_class(rpc::JobClass::Reader from);  // Throws when a field is over its limit.
void write_receipt(const Receipt& receipt, rpc::Receipt::Builder to);
Receipt read_receipt(rpc::Receipt::Reader from);  // Likewise.

}  // namespace shoal
