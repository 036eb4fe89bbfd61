#include "schema/receipt.h"

#include <bit>

#include "schema/limits.h"
#include "schema/require.h"

namespace shoal {
namespace {

constexpr std::string_view kPurpose = "shoal-receipt-1";

void put_text(ByteWriter& to, std::string_view text) {
  to.u64(text.size());
  to.text(text);
}

}  // namespace

const char* privacy_name(const JobClass& job_class) {
  if (job_class.group) return "group";
  return job_class.anchored ? "anchored" : "public";
}

rpc::Privacy privacy_of(const JobClass& job_class) {
  if (job_class.group) return rpc::Privacy::GROUP;
  return job_class.anchored ? rpc::Privacy::ANCHORED : rpc::Privacy::PUBLIC;
}

ByteVector receipt_bytes(const Receipt& receipt) {
  ByteWriter to;
  put_text(to, kPurpose);
  to.u64(receipt.number);
  to.u64(static_cast<uint64_t>(receipt.host.value));
  to.u64(static_cast<uint64_t>(receipt.lease.value));
  put_text(to, receipt.device);
  put_text(to, receipt.job_class.kind);
  put_text(to, receipt.job_class.model);
  to.u64(static_cast<uint64_t>(privacy_of(receipt.job_class)));
  to.u64(receipt.rows);
  to.u64(std::bit_cast<uint64_t>(receipt.credit));
  to.u64(static_cast<uint64_t>(receipt.verdict));
  put_text(to, receipt.reason);
  to.u64(static_cast<uint64_t>(receipt.at.count));
  return to.take();
}

void sign_receipt(Receipt& receipt, const SigningKey& key) {
  const Signature signature = key.sign(receipt_bytes(receipt));
  receipt.signature.assign(signature.begin(), signature.end());
}

bool receipt_is_genuine(const Receipt& receipt, const SigningPublicKey& key) {
  return verify(key, receipt_bytes(receipt), receipt.signature);
}

void write_job_class(const JobClass& job_class, rpc::JobClass::Builder to) {
  to.setKind(job_class.kind);
  to.setModel(job_class.model);
  to.setPrivacy(privacy_of(job_class));
}

JobClass read_job_class(rpc::JobClass::Reader from) {
  return {rpc::text_of(from.getKind(), limits::kNameBytesMax, "jobClass.kind"),
          rpc::text_of(from.getModel(), limits::kNameBytesMax, "jobClass.model"),
          // What is newer than we are is not public.
          from.getPrivacy() != rpc::Privacy::PUBLIC && from.getPrivacy() != rpc::Privacy::GROUP,
          from.getPrivacy() == rpc::Privacy::GROUP};
}

void write_receipt(const Receipt& receipt, rpc::Receipt::Builder to) {
  to.setNumber(receipt.number);
  to.setHostId(static_cast<uint64_t>(receipt.host.value));
  to.setLeaseId(static_cast<uint64_t>(receipt.lease.value));
  to.setDeviceId(receipt.device);
  write_job_class(receipt.job_class, to.initJobClass());
  to.setRows(receipt.rows);
  to.setCredit(receipt.credit);
  to.setVerdict(static_cast<rpc::Receipt::Verdict>(receipt.verdict));
  to.setReason(receipt.reason);
  to.setAtMs(receipt.at.count);
  to.setSignature(rpc::kj_bytes(receipt.signature));
}

Receipt read_receipt(rpc::Receipt::Reader from) {
  Receipt receipt;
  receipt.number = from.getNumber();
  receipt.host = HostId{static_cast<int64_t>(from.getHostId())};
  receipt.lease = LeaseId{static_cast<int64_t>(from.getLeaseId())};
  receipt.device = rpc::text_of(from.getDeviceId(), limits::kNameBytesMax, "receipt.deviceId");
  receipt.job_class = read_job_class(from.getJobClass());
  receipt.rows = from.getRows();
  receipt.credit = from.getCredit();
  switch (from.getVerdict()) {
    case rpc::Receipt::Verdict::PENDING: receipt.verdict = ReceiptVerdict::kPending; break;
    case rpc::Receipt::Verdict::CONFIRMED: receipt.verdict = ReceiptVerdict::kConfirmed; break;
    case rpc::Receipt::Verdict::REJECTED: receipt.verdict = ReceiptVerdict::kRejected; break;
    default: rpc::throw_error({ErrorCode::kInvalid, "receipt.verdict is unknown"});
  }
  receipt.reason = rpc::text_of(from.getReason(), limits::kNameBytesMax, "receipt.reason");
  receipt.at = Millis{from.getAtMs()};
  rpc::require_at_most(from.getSignature().size(), limits::kKeyBytesMax, "receipt.signature");
  receipt.signature = to_vector(rpc::bytes_of(from.getSignature()));
  return receipt;
}

}  // namespace shoal
