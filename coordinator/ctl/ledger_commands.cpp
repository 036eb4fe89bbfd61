// shoalctl: ledger list, show and reconcile.

#include <algorithm>
#include <cstdio>

#include "base/text.h"
#include "coordinator/ctl/commands.h"
#include "schema/limits.h"
#include "schema/message.h"
#include "schema/receipt.h"
#include "schema/transport.h"

namespace shoal::ctl {
namespace {

const char* word_of(ReceiptVerdict verdict) {
  switch (verdict) {
    case ReceiptVerdict::kPending: return "pending";
    case ReceiptVerdict::kConfirmed: return "confirmed";
    case ReceiptVerdict::kRejected: return "rejected";
  }
  return "unknown";
}

Json receipt_json(const Receipt& receipt, bool genuine) {
  return {{"number", receipt.number},
          {"lease_id", receipt.lease.value},
          {"device", receipt.device},
          {"kind", receipt.job_class.kind},
          {"model", receipt.job_class.model},
          {"privacy", receipt.job_class.anchored ? "anchored" : "public"},
          {"rows", receipt.rows},
          {"credit", receipt.credit},
          {"verdict", word_of(receipt.verdict)},
          {"reason", receipt.reason},
          {"at_ms", receipt.at.count},
          {"signature", hex_encode(receipt.signature)},
          {"genuine", genuine}};
}

}  // namespace

Result<void> ledger_list(const Context& context) {
  return with_coordinator(context, [&](Link& link) -> Result<void> {
    const auto response = link.admin.listHostsRequest().send().wait(link.io.waitScope);
    Json all = Json::array();
    std::vector<std::vector<std::string>> rows;
    for (const auto host : response.getHosts()) {
      all.push_back({{"host_id", host.getId()},
                     {"host", host.getName().cStr()},
                     {"receipts", host.getNewestReceipt()},
                     {"credit_confirmed", host.getCreditConfirmed()},
                     {"credit_pending", host.getCreditPending()},
                     {"credit_rejected", host.getCreditRejected()}});
      rows.push_back({std::to_string(host.getId()), host.getName().cStr(),
                      std::to_string(host.getNewestReceipt()),
                      show_credit(host.getCreditConfirmed()), show_credit(host.getCreditPending()),
                      show_credit(host.getCreditRejected())});
    }
    if (context.json) {
      print_json({{"hosts", std::move(all)}});
    } else if (rows.empty()) {
      std::printf("No hosts yet: shoalctl invite makes the URL by which they attach.\n");
    } else {
      print_table({"ID", "HOST", "RECEIPTS", "CONFIRMED", "PENDING", "REJECTED"}, rows);
    }
    return {};
  });
}

Result<void> ledger_show(const Context& context, uint64_t host, uint64_t after, uint32_t count) {
  return with_coordinator(context, [&](Link& link) -> Result<void> {
    Json all = Json::array();
    std::vector<std::vector<std::string>> rows;
    std::string key_text;
    while (true) {
      auto request = link.admin.listReceiptsRequest();
      request.setHostId(host);
      request.setAfterNumber(after);
      const auto wanted = std::min<size_t>(count - rows.size(), limits::kReceiptsPerCallMax);
      request.setCountMax(static_cast<uint32_t>(wanted));
      const auto response = request.send().wait(link.io.waitScope);
      SHOAL_TRY_ASSIGN(key, SigningPublicKey::from_bytes(rpc::bytes_of(response.getReceiptKey())));
      key_text = hex_encode(key.bytes);
      for (const auto from : response.getReceipts()) {
        const Receipt receipt = read_receipt(from);
        const bool genuine = receipt_is_genuine(receipt, key);
        all.push_back(receipt_json(receipt, genuine));
        rows.push_back({std::to_string(receipt.number), show_time(receipt.at.count),
                        std::to_string(receipt.lease.value), receipt.device,
                        receipt.job_class.model, std::to_string(receipt.rows),
                        show_credit(receipt.credit), word_of(receipt.verdict),
                        genuine ? "yes" : "NO", english(Message{receipt.reason, {}})});
        after = receipt.number;
      }
      if (response.getReceipts().size() < wanted || rows.size() >= count) break;
    }
    if (context.json) {
      print_json({{"host_id", host}, {"receipt_key", key_text}, {"receipts", std::move(all)}});
    } else if (rows.empty()) {
      std::printf("Host %llu has no receipts yet.\n", static_cast<unsigned long long>(host));
    } else {
      print_table({"NUMBER", "AT", "LEASE", "DEVICE", "MODEL", "ROWS", "CREDIT", "VERDICT",
                   "SIGNED", "REASON"},
                  rows);
    }
    return {};
  });
}

Result<void> ledger_reconcile(const Context& context) {
  return with_coordinator(context, [&](Link& link) -> Result<void> {
    const auto response = link.admin.reconcileLedgerRequest().send().wait(link.io.waitScope);
    const auto report = response.getReport();
    Json problems = Json::array();
    for (const auto problem : report.getProblems()) problems.push_back(problem.cStr());
    if (context.json) {
      print_json({{"leases", report.getLeases()},
                  {"receipts", report.getReceipts()},
                  {"hosts", report.getHosts()},
                  {"pending", report.getPending()},
                  {"credit_confirmed", report.getCreditConfirmed()},
                  {"credit_pending", report.getCreditPending()},
                  {"credit_rejected", report.getCreditRejected()},
                  {"problems", std::move(problems)},
                  {"problem_count", report.getProblemCount()}});
    } else {
      std::printf(
          "%llu leases of %u hosts, %llu receipts; credit: %s confirmed, %s pending, %s "
          "rejected\n",
          static_cast<unsigned long long>(report.getLeases()), report.getHosts(),
          static_cast<unsigned long long>(report.getReceipts()),
          show_credit(report.getCreditConfirmed()).c_str(),
          show_credit(report.getCreditPending()).c_str(),
          show_credit(report.getCreditRejected()).c_str());
      for (const auto problem : report.getProblems()) {
        std::printf("  %s\n", printable(problem.cStr()).c_str());
      }
    }
    if (report.getProblemCount() > 0) {
      return Error{ErrorCode::kCorrupt, "the ledger does not agree with itself in " +
                                            std::to_string(report.getProblemCount()) +
                                            " places: stop the coordinator and restore a backup"};
    }
    if (!context.json) std::printf("All sums, numbers and signatures agree.\n");
    return {};
  });
}

}  // namespace shoal::ctl
