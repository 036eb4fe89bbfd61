#pragma once
// What the tests of the records share: a time zone with two changes of the clocks a year, sums over
// rows, a file that is changed, and a coordinator that signs.

#include <sqlite3.h>

#include <cstdlib>
#include <ctime>

#include "base/files.h"
#include "client/records/records.h"

namespace shoal::test {

constexpr int64_t kMinuteMs = 60'000, kHourMs = 3'600'000, kDayMs = 86'400'000;
// 2026-03-20 12:00 UTC, before the clocks change in Berlin on the 29th.
constexpr Millis kSpring{1'774'008'000'000};

inline void live_in_berlin() {
  setenv("TZ", "Europe/Berlin", 1);
  tzset();
}

inline client::Sums total(const std::vector<client::StatisticsRow>& rows) {
  client::Sums sums;
  for (const client::StatisticsRow& row : rows) sums.add(row.sums);
  return sums;
}

// The sum of all that was ever counted, as rows of this step say it.
inline client::Sums by_step(client::Records& records, Millis step) {
  const auto rows = records.statistics({0}, {INT64_MAX}, step);
  return rows.ok() ? total(rows.value()) : client::Sums();
}

// As somebody with an editor for databases would.
inline bool change_file(const std::filesystem::path& folder, const char* sql) {
  sqlite3* database = nullptr;
  const bool done = sqlite3_open((folder / "records.db").c_str(), &database) == SQLITE_OK &&
                    sqlite3_exec(database, sql, nullptr, nullptr, nullptr) == SQLITE_OK &&
                    sqlite3_changes(database) > 0;
  sqlite3_close(database);
  return done;
}

// A coordinator that gives receipts of 2.5 credits.
class Signer {
 public:
  SigningKey key = SigningKey::generate();
  std::string pin = "pin-of-it";
  HostId host{7};

  Receipt receipt(uint64_t number, Millis at, ReceiptVerdict verdict = ReceiptVerdict::kConfirmed,
                  int64_t lease = 0) const {
    Receipt receipt{.number = number,
                    .host = host,
                    .lease = LeaseId{lease != 0 ? lease : static_cast<int64_t>(number)},
                    .device = "cpu",
                    .job_class = {"generate", "a-model", false},
                    .rows = 10,
                    .credit = 2.5,
                    .verdict = verdict,
                    .reason = verdict == ReceiptVerdict::kRejected ? "result.wrong" : "",
                    .at = at};
    sign_receipt(receipt, key);
    return receipt;
  }
};

}  // namespace shoal::test
