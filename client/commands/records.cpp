// trace, stats, history, receipts: what the client did, why, and what it is owed.

#include <cmath>

#include "base/clock.h"
#include "base/text.h"
#include "client/commands/commands.h"
#include "client/commands/wire_json.h"
#include "client/commands/words.h"
#include "client/records/levels.h"
#include "schema/ledger_day.h"
#include "schema/limits.h"

namespace shoal::client {
namespace {

constexpr int kDaysMax = 3'660;

// In the form that was asked for.
void show(const CommandOptions& options, const Table& table, bool csv, const char* json_name,
          const char* nothing) {
  if (csv) {
    print_text(table.csv());
  } else if (options.json) {
    print_json(Json{{json_name, table.json()}});
  } else {
    print_text(table.empty() ? nothing : table.text());
  }
}

Cell time_cell(int64_t wall_ms) { return {time_text(wall_ms), wall_ms}; }
Cell count_cell(uint64_t count) { return {std::to_string(count), count}; }
Cell real_cell(double value, int digits) {
  return {rounded(value, digits), std::isfinite(value) ? Json(value) : Json()};
}
Cell duration_cell(uint64_t ms) { return {text_of(Millis{static_cast<int64_t>(ms)}), ms}; }
Cell bytes_cell(uint64_t bytes) { return {text_of(Bytes{static_cast<int64_t>(bytes)}), bytes}; }

void add_csv_flag(CLI::App& command, bool& csv) {
  command.add_flag("--csv", csv, "As comma-separated values, with every column");
}

// --- trace

struct TraceQuestion {
  int days = 7;
  bool csv = false;
};

Result<void> show_trace(const CommandOptions& options, const TraceQuestion& question) {
  return ask_agent(options, [&](AgentSession& session) -> Result<void> {
    const int64_t now = SystemClock().now_wall().count;
    auto request = session.agent.traceRequest();
    request.setFromMs(now - question.days * kDay.count);
    request.setToMs(now);
    const auto answer = session.ask(kj::mv(request));
    Table table({{"start_ms", "FROM"},
                 {"end_ms", "TO"},
                 {"resource", "RESOURCE"},
                 {"activity", "STATE"},
                 {"rule", ""},
                 {"why", "WHY"},
                 {"remedy", "WHAT WOULD CHANGE IT"}});
    for (const auto span : answer.getSpans()) {
      const auto verdict = span.getVerdict();
      table.add({time_cell(verdict.getSinceMs()),
                 {span.getEndMs() == 0 ? "now" : time_text(span.getEndMs()),
                  span.getEndMs() == 0 ? Json() : Json(span.getEndMs())},
                 word_of(span.getResource()),
                 word_of(verdict.getActivity()),
                 verdict.getRule().cStr(),
                 sentence(verdict.getWhy()),
                 remedy_text(read_message(verdict.getRemedy()))});
    }
    show(options, table, question.csv, "spans", "Nothing is known of these days.");
    return {};
  });
}

// --- stats

struct StatsQuestion {
  int days = 7;
  std::string from, to;  // Dates; instead of days.
  std::string step = "day";
  bool csv = false;
};

Result<void> show_statistics(const CommandOptions& options, const StatsQuestion& question) {
  Millis to = SystemClock().now_wall();
  if (!question.to.empty()) {
    SHOAL_TRY_ASSIGN(parsed, parse_date(question.to));
    to = parsed;
    if (question.to.size() == 10) to += kDay;  // The day itself counts.
  }
  // Without a beginning: as many days before the end as there would be before now.
  Millis from = to - Millis{question.days * kDay.count};
  if (!question.from.empty()) {
    SHOAL_TRY_ASSIGN(parsed, parse_date(question.from));
    from = parsed;
  }
  if (from >= to) return Error{ErrorCode::kInvalid, "--from must be before --to"};
  const int64_t step = question.step == "minute" ? 60'000
                       : question.step == "hour" ? 3'600'000
                                                 : kDay.count;
  return ask_agent(options, [&](AgentSession& session) -> Result<void> {
    auto request = session.agent.statisticsRequest();
    request.setFromMs(from.count);
    request.setToMs(to.count);
    request.setStepMs(step);
    const auto answer = session.ask(kj::mv(request));
    const DeviceNames names(session);
    // Not what it is worth, which each coordinator says of its own credit: the statistics do not
    // know whose it is, and some may be of one that was left.
    Table table({{"start_ms", "FROM"},
                 {"device", "DEVICE"},
                 {"credit_confirmed", "CREDIT"},
                 {"credit_pending", "PENDING"},
                 {"credit_rejected", "REJECTED"},
                 {"rows", "ROWS"},
                 {"worked_ms", "WORKED"},
                 {"allowed_ms", "ALLOWED"},
                 {"kilowatt_hours", "KWH"},
                 {"cost", "COST"},
                 {"bytes_down", "DOWN"},
                 {"bytes_up", "UP"},
                 {"temperature_max", "HOTTEST"},
                 {"watts_mean", "WATTS"}});
    for (const auto row : answer.getRows()) {
      const auto totals = row.getTotals();
      table.add({time_cell(row.getStartMs()),
                 {row.getDeviceId().size() == 0 ? "-" : names.of(row.getDeviceId().cStr()),
                  row.getDeviceId().cStr()},
                 real_cell(totals.getCreditConfirmed(), kCreditDigits),
                 real_cell(totals.getCreditPending(), kCreditDigits),
                 real_cell(totals.getCreditRejected(), kCreditDigits),
                 count_cell(totals.getRows()),
                 duration_cell(totals.getWorkedMs()),
                 duration_cell(totals.getAllowedMs()),
                 real_cell(totals.getKilowattHours(), 3),
                 real_cell(totals.getCost(), 2),
                 bytes_cell(totals.getBytesDown()),
                 bytes_cell(totals.getBytesUp()),
                 real_cell(row.getTemperatureMax(), 0),
                 real_cell(row.getWattsMean(), 0)});
    }
    show(options, table, question.csv, "rows", "Nothing was done in this time.");
    return {};
  });
}

// --- history

struct HistoryQuestion {
  uint32_t count = 50;
  bool csv = false;
};

Result<void> show_history(const CommandOptions& options, const HistoryQuestion& question) {
  return ask_agent(options, [&](AgentSession& session) -> Result<void> {
    auto request = session.agent.historyRequest();
    request.setCountMax(question.count);
    const auto answer = session.ask(kj::mv(request));
    const DeviceNames names(session);
    Table table({{"started_ms", "STARTED"},
                 {"ended_ms", "ENDED"},
                 {"device", "DEVICE"},
                 {"model", "MODEL"},
                 {"privacy", "PRIVACY"},
                 {"first_fragment", ""},
                 {"last_fragment", ""},
                 {"steps", "STEPS"},
                 {"rows", "ROWS"},
                 {"coordinator", "COORDINATOR"},
                 {"lease_id", ""},
                 {"session_id", ""},
                 {"unit_id", "UNIT"},
                 {"ended", "WHY IT ENDED"}});
    for (const auto work : answer.getWork()) {
      table.add({time_cell(work.getStartedMs()),
                 time_cell(work.getEndedMs()),
                 {names.of(work.getDeviceId().cStr()), work.getDeviceId().cStr()},
                 work.getJobClass().getModel().cStr(),
                 word_of(work.getJobClass().getPrivacy()),
                 count_cell(work.getFirstFragment()),
                 count_cell(work.getLastFragment()),
                 count_cell(work.getSteps()),
                 count_cell(work.getRows()),
                 work.getCoordinator().cStr(),
                 count_cell(work.getLeaseId()),
                 count_cell(work.getSessionId()),
                 {work.getUnitId() == 0 ? "" : std::to_string(work.getUnitId()), work.getUnitId()},
                 sentence(work.getEnded())});
    }
    show(options, table, question.csv, "work", "No work has ended yet.");
    return {};
  });
}

// --- receipts

struct ReceiptQuestion {
  bool verify = false, csv = false;
};

// A receipt's reason is a code without parameters; of a newer coordinator it reads as the code.
std::string reason_text(const std::string& code) { return english(Message{code, {}}); }

Result<void> list_receipts(const CommandOptions& options, bool csv) {
  return ask_agent(options, [&](AgentSession& session) -> Result<void> {
    const DeviceNames names(session);
    Table table(
        {{"number", "NUMBER"},
         {"at_ms", "AT"},
         {"coordinator", "COORDINATOR"},
         {"lease_id", "LEASE"},
         {"device", "DEVICE"},
         {"kind", ""},
         {"model", "MODEL"},
         {"privacy", ""},
         {"rows", "ROWS"},
         {"credit", "CREDIT"},
         {"verdict", "VERDICT"},
         {"reason", "REASON"},
         {"genuine", ""},  // What is stored was checked when it came; --verify checks it again.
         {"signature", ""}});
    uint64_t after_row = 0;
    while (true) {
      auto request = session.agent.receiptsRequest();
      request.setAfterRow(after_row);
      request.setCountMax(limits::kReceiptsPerCallMax);
      const auto answer = session.ask(kj::mv(request));
      const auto page = answer.getReceipts();
      for (const auto stored : page) {
        const auto receipt = stored.getReceipt();
        const JobClass job_class = read_job_class(receipt.getJobClass());
        table.add({count_cell(receipt.getNumber()),
                   time_cell(receipt.getAtMs()),
                   stored.getCoordinator().cStr(),
                   count_cell(receipt.getLeaseId()),
                   {names.of(receipt.getDeviceId().cStr()), receipt.getDeviceId().cStr()},
                   {"", job_class.kind},
                   job_class.model,
                   {"", privacy_name(job_class)},
                   count_cell(receipt.getRows()),
                   real_cell(receipt.getCredit(), kCreditDigits),
                   word_of(receipt.getVerdict()),
                   {reason_text(receipt.getReason().cStr()), receipt.getReason().cStr()},
                   {stored.getGenuine() ? "yes" : "NO", stored.getGenuine()},
                   {"", hex_encode(rpc::bytes_of(receipt.getSignature()))}});
      }
      // Rows only grow; one that does not would ask for ever.
      if (page.size() == 0 || page[page.size() - 1].getRow() <= after_row) break;
      after_row = page[page.size() - 1].getRow();
    }
    show(options, table, csv, "receipts", "No receipts yet.");
    return {};
  });
}

// Null where nothing of a day is told.
Json newest_root(const Message& why) {
  const bool is_told = why.code == "receipts.agree_days" || why.code == "receipts.unstated_days";
  const std::string* const root = is_told && why.parameters.size() == 3
                                      ? std::get_if<std::string>(&why.parameters[2])
                                      : nullptr;
  return root == nullptr ? Json() : Json(*root);
}

Result<void> verify_receipts(const CommandOptions& options, bool csv) {
  return ask_agent(options, [&](AgentSession& session) -> Result<void> {
    const auto answer = session.ask_patiently(session.agent.verifyReceiptsRequest());
    Table table({{"coordinator", "COORDINATOR"},
                 {"agrees", "RIGHT"},
                 {"count", "RECEIPTS"},
                 {"genuine", "GENUINE"},
                 {"missing", "MISSING"},
                 {"days", "DAYS CHECKED"},
                 {"newest_day", ""},
                 {"newest_root", ""},
                 {"in_days", "IN THEIR DAYS"},
                 {"credit_confirmed", "CREDIT PROVED"},
                 {"credit_stated", "CREDIT STATED"},
                 {"why", "WHY"}});
    uint32_t wrong = 0;
    for (const auto report : answer.getReport()) {
      if (!report.getAgrees()) ++wrong;
      const Message why = read_message(report.getWhy());
      const bool is_stated = !why.code.starts_with("receipts.unstated");
      table.add({report.getCoordinator().cStr(),
                 {report.getAgrees() ? "yes" : "NO", report.getAgrees()},
                 count_cell(report.getCount()),
                 count_cell(report.getGenuine()),
                 count_cell(report.getMissing()),
                 count_cell(report.getDays()),
                 {"", report.getDays() == 0 ? Json() : Json(day_text(report.getNewestDay()))},
                 {"", newest_root(why)},
                 count_cell(report.getInDays()),
                 real_cell(report.getCreditConfirmed(), kCreditDigits),
                 is_stated ? real_cell(report.getCreditStated(), kCreditDigits) : Cell("-", Json()),
                 sentence(report.getWhy())});
    }
    show(options, table, csv, "reports", "No receipts yet.");
    if (wrong == 0) return {};
    return Error{ErrorCode::kCorrupt, "the receipts of " + std::to_string(wrong) +
                                          (wrong == 1 ? " coordinator do" : " coordinators do") +
                                          " not agree with what it says"};
  });
}

}  // namespace

void add_record_commands(Commands& commands) {
  TraceQuestion& trace = commands.keep<TraceQuestion>();
  CLI::App& trace_command =
      commands.add("trace", "When each resource worked or waited, and by which rule",
                   [&trace](const CommandOptions& options) { return show_trace(options, trace); });
  trace_command.add_option("--days", trace.days, "How many days back")
      ->check(CLI::Range(1, kDaysMax));
  add_csv_flag(trace_command, trace.csv);

  StatsQuestion& stats = commands.keep<StatsQuestion>();
  CLI::App& stats_command = commands.add(
      "stats", "Credit, work, energy and bytes over time, for each device",
      [&stats](const CommandOptions& options) { return show_statistics(options, stats); });
  CLI::Option* const days = stats_command.add_option("--days", stats.days, "How many days back")
                                ->check(CLI::Range(1, kDaysMax));
  stats_command.add_option("--from", stats.from, "From this date, such as 2026-07-01")
      ->excludes(days);
  stats_command.add_option("--to", stats.to, "To the end of this date, or \"2026-07-01 14:30\"");
  stats_command.add_option("--step", stats.step, "day, hour or minute")
      ->check(CLI::IsMember({"day", "hour", "minute"}));
  add_csv_flag(stats_command, stats.csv);

  HistoryQuestion& history = commands.keep<HistoryQuestion>();
  CLI::App& history_command = commands.add(
      "history", "Work that ended, newest first",
      [&history](const CommandOptions& options) { return show_history(options, history); });
  history_command.add_option("--count", history.count, "How many")->check(CLI::Range(1, 5'000));
  add_csv_flag(history_command, history.csv);

  ReceiptQuestion& receipts = commands.keep<ReceiptQuestion>();
  CLI::App& receipts_command =
      commands.add("receipts", "What coordinators signed that they owe this machine",
                   [&receipts](const CommandOptions& options) {
                     return receipts.verify ? verify_receipts(options, receipts.csv)
                                            : list_receipts(options, receipts.csv);
                   });
  receipts_command.add_flag("--verify", receipts.verify,
                            "Check every signature, day and total; fails when one is wrong");
  add_csv_flag(receipts_command, receipts.csv);
}

}  // namespace shoal::client
