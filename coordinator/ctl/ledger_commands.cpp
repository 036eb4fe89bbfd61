// shoalctl: ledger list, show, root and reconcile.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>

#include "base/text.h"
#include "coordinator/ctl/commands.h"
#include "schema/ledger_day.h"
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

// So that it can be read back to the last bit.
std::string exact_text(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

Result<int64_t> day_of_text(const std::string& text) {
  int year = 0;
  unsigned month = 0, day = 0;
  int end = 0;
  const bool read = std::sscanf(text.c_str(), "%4d-%2u-%2u%n", &year, &month, &day, &end) == 3 &&
                    static_cast<size_t>(end) == text.size();
  const std::chrono::year_month_day date{std::chrono::year{year}, std::chrono::month{month},
                                         std::chrono::day{day}};
  if (!read || !date.ok()) {
    return Error{ErrorCode::kInvalid, "--day " + text + " is no day such as 2026-11-30"};
  }
  return int64_t{std::chrono::sys_days{date}.time_since_epoch().count()};
}

Json receipt_json(const Receipt& receipt, bool genuine) {
  return {{"number", receipt.number},
          {"lease_id", receipt.lease.value},
          {"device", receipt.device},
          {"kind", receipt.job_class.kind},
          {"model", receipt.job_class.model},
          {"privacy", privacy_name(receipt.job_class)},
          {"rows", receipt.rows},
          {"credit", receipt.credit},
          {"verdict", word_of(receipt.verdict)},
          {"reason", receipt.reason},
          {"at_ms", receipt.at.count},
          {"signature", hex_encode(receipt.signature)},
          {"genuine", genuine}};
}

}  // namespace

Result<void> ledger_list(const Context& context, bool csv) {
  return with_coordinator(context, [&](Link& link) -> Result<void> {
    const Worth worth = ask_worth(link);
    const auto response = link.admin.listHostsRequest().send().wait(link.io.waitScope);
    Json all = Json::array();
    std::vector<std::vector<std::string>> rows;
    std::string lines = csv_line({"host_id", "host", "account", "receipts", "credit_confirmed",
                                  "credit_pending", "credit_rejected", "worth", "unit"});
    for (const auto host : response.getHosts()) {
      const double earned = host.getCreditConfirmed() * worth.rate;
      all.push_back({{"host_id", host.getId()},
                     {"host", host.getName().cStr()},
                     {"account", host.getAccount().cStr()},
                     {"receipts", host.getNewestReceipt()},
                     {"credit_confirmed", host.getCreditConfirmed()},
                     {"credit_pending", host.getCreditPending()},
                     {"credit_rejected", host.getCreditRejected()}});
      rows.push_back({std::to_string(host.getId()), host.getName().cStr(),
                      text_or_dash(host.getAccount()), std::to_string(host.getNewestReceipt()),
                      show_credit(host.getCreditConfirmed()), show_credit(host.getCreditPending()),
                      show_credit(host.getCreditRejected())});
      if (!worth.unit.empty()) {
        all.back()["worth"] = earned;
        rows.back().push_back(show_worth(host.getCreditConfirmed(), worth));
      }
      lines +=
          csv_line({std::to_string(host.getId()), host.getName().cStr(), host.getAccount().cStr(),
                    std::to_string(host.getNewestReceipt()), exact_text(host.getCreditConfirmed()),
                    exact_text(host.getCreditPending()), exact_text(host.getCreditRejected()),
                    worth.unit.empty() ? "" : exact_text(earned), worth.unit});
    }
    if (context.json) {
      print_json({{"hosts", std::move(all)}, {"unit", worth.unit}});
    } else if (csv) {
      std::printf("%s", lines.c_str());
    } else if (rows.empty()) {
      std::printf("No hosts yet: shoalctl invite makes the URL by which they attach.\n");
    } else {
      std::vector<std::string> titles = {"ID",        "HOST",    "ACCOUNT", "RECEIPTS",
                                         "CONFIRMED", "PENDING", "REJECTED"};
      if (!worth.unit.empty()) titles.push_back("WORTH");
      print_table(titles, rows);
    }
    return {};
  });
}

Result<void> ledger_show(const Context& context, uint64_t host, uint64_t after, uint32_t count,
                         bool csv) {
  return with_coordinator(context, [&](Link& link) -> Result<void> {
    const Worth worth = ask_worth(link);
    Json all = Json::array();
    std::vector<std::vector<std::string>> rows;
    std::string key_text;
    std::string lines =
        csv_line({"number", "at_ms", "lease_id", "device", "kind", "model", "privacy", "rows",
                  "credit", "verdict", "reason", "genuine", "signature"});
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
                        show_credit(receipt.credit)});
        if (!worth.unit.empty()) {
          all.back()["worth"] = receipt.credit * worth.rate;
          rows.back().push_back(show_worth(receipt.credit, worth));
        }
        for (const char* const cell : {word_of(receipt.verdict), genuine ? "yes" : "NO"}) {
          rows.back().emplace_back(cell);
        }
        rows.back().push_back(english(Message{receipt.reason, {}}));
        lines += csv_line({std::to_string(receipt.number), std::to_string(receipt.at.count),
                           std::to_string(receipt.lease.value), receipt.device,
                           receipt.job_class.kind, receipt.job_class.model,
                           privacy_name(receipt.job_class), std::to_string(receipt.rows),
                           exact_text(receipt.credit), word_of(receipt.verdict), receipt.reason,
                           genuine ? "true" : "false", hex_encode(receipt.signature)});
        after = receipt.number;
      }
      if (response.getReceipts().size() < wanted || rows.size() >= count) break;
    }
    if (context.json) {
      print_json({{"host_id", host},
                  {"receipt_key", key_text},
                  {"receipts", std::move(all)},
                  {"unit", worth.unit}});
    } else if (csv) {
      std::printf("%s", lines.c_str());
    } else if (rows.empty()) {
      std::printf("Host %llu has no receipts yet.\n", static_cast<unsigned long long>(host));
    } else {
      std::vector<std::string> titles = {"NUMBER", "AT",   "LEASE", "DEVICE",
                                         "MODEL",  "ROWS", "CREDIT"};
      if (!worth.unit.empty()) titles.push_back("WORTH");
      for (const char* const title : {"VERDICT", "SIGNED", "REASON"}) titles.emplace_back(title);
      print_table(titles, rows);
    }
    return {};
  });
}

Result<void> ledger_root(const Context& context, const std::string& wanted) {
  return with_coordinator(context, [&](Link& link) -> Result<void> {
    std::optional<int64_t> only;
    if (!wanted.empty()) {
      SHOAL_TRY_ASSIGN(day, day_of_text(wanted));
      only = day;
    }
    auto request = link.admin.listLedgerDaysRequest();
    request.setFromDay(only.value_or(0));
    request.setCountMax(only ? 1 : limits::kListRowsMax);
    const auto response = request.send().wait(link.io.waitScope);
    SHOAL_TRY_ASSIGN(key, SigningPublicKey::from_bytes(rpc::bytes_of(response.getReceiptKey())));
    Json all = Json::array();
    std::vector<std::vector<std::string>> rows;
    for (const auto from : response.getDays()) {
      const LedgerDay day = read_ledger_day(from);
      if (only && day.day != *only) continue;
      const bool genuine = ledger_day_is_genuine(day, key);
      all.push_back({{"day", day_text(day.day)},
                     {"receipts", day.count},
                     {"root", day.root.hex()},
                     {"previous_root", day.previous_root.hex()},
                     {"signature", hex_encode(day.signature)},
                     {"genuine", genuine}});
      rows.push_back(
          {day_text(day.day), std::to_string(day.count), day.root.hex(), genuine ? "yes" : "NO"});
    }
    if (only && rows.empty()) {
      return Error{ErrorCode::kNotFound,
                   "the day " + wanted +
                       " has no root: it is not over yet (UTC), or there were no receipts"};
    }
    if (context.json) {
      print_json({{"receipt_key", hex_encode(key.bytes)}, {"days", std::move(all)}});
    } else if (rows.empty()) {
      std::printf("No day that is over has receipts yet.\n");
    } else {
      print_table({"DAY", "RECEIPTS", "ROOT", "SIGNED"}, rows);
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
                  {"days", report.getDays()},
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
    if (!context.json) {
      std::printf("All sums, numbers and signatures agree, and so do the daily roots (%llu).\n",
                  static_cast<unsigned long long>(report.getDays()));
    }
    return {};
  });
}

}  // namespace shoal::ctl
