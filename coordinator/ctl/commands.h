#pragma once
// What shoalctl's commands share: where the data folder is, the line to the running coordinator,
// and how answers are shown. Each command is one function; main.cpp gives them their options.

#include <kj/async-io.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "schema/admin.capnp.h"

namespace shoal::ctl {

using Json = nlohmann::ordered_json;

struct Context {
  std::filesystem::path data;
  bool json = false;
};

struct Link {
  kj::AsyncIoContext& io;
  rpc::Admin::Client admin;
};
// Connects to the coordinator of the data folder and runs `body`; exceptions of either become the
// error.
Result<void> with_coordinator(const Context& context,
                              const std::function<Result<void>(Link&)>& body);

// A table for people: columns as wide as their widest cell.
void print_table(const std::vector<std::string>& titles,
                 const std::vector<std::vector<std::string>>& rows);
void print_json(const Json& json);       // One line.
std::string show_time(int64_t wall_ms);  // "-" for 0.
std::string show_bytes(uint64_t bytes);
std::string show_credit(double credit);
std::string text_or_dash(capnp::Text::Reader text);
std::string csv_line(const std::vector<std::string>& cells);  // RFC 4180, with its line's end.

// What credit is worth here.
struct Worth {
  double rate = 0;
  std::string unit;  // Empty: nothing is shown.
};
Worth ask_worth(Link& link);
std::string show_worth(double credit, const Worth& worth);  // "12.34 EUR".
Json stage_json(rpc::StageInfo::Reader stage);
std::string stage_text(rpc::StageInfo::Reader stage);
// What a session was predicted to take beside what it took: null, or rows of "what, predicted,
// measured, how many times as long".
Json figures_json(rpc::SessionFigures::Reader figures);
std::vector<std::vector<std::string>> figures_rows(rpc::SessionFigures::Reader figures);

Result<void> init(const Context& context, int64_t hours, uint32_t uses);
struct InviteOptions {
  int64_t hours = 24;
  uint32_t uses = 100;
  std::string account, group;
};
Result<void> invite(const Context& context, const InviteOptions& options);
Result<void> status(const Context& context);
Result<void> host_list(const Context& context);
Result<void> host_standing(const Context& context, uint64_t id, rpc::HostInfo::Standing standing);
Result<void> host_account(const Context& context, uint64_t id, const std::string& account);
Result<void> host_group(const Context& context, uint64_t id, const std::string& group);

Result<void> account_create(const Context& context, const std::string& name);
Result<void> account_list(const Context& context);
Result<void> account_ban(const Context& context, const std::string& name, bool banned);
Result<void> team_create(const Context& context, const std::string& name);
Result<void> team_list(const Context& context);
Result<void> team_join(const Context& context, const std::string& account, const std::string& team);

Result<void> session_list(const Context& context, uint32_t ended_max);
Result<void> session_show(const Context& context, uint64_t id);
Result<void> event_list(const Context& context, uint64_t after, uint32_t count);

struct PublishOptions {
  std::string path, name, purpose, group;
  std::string quantize;  // As `shoal-run cut` takes it; empty: weights stay as they are.
};
Result<void> model_publish(const Context& context, const PublishOptions& options);
Result<void> model_list(const Context& context);
Result<void> model_remove(const Context& context, const std::string& name);

Result<void> ledger_list(const Context& context, bool csv);
Result<void> ledger_show(const Context& context, uint64_t host, uint64_t after, uint32_t count,
                         bool csv);
// The signed root of a day ("2026-11-30"); of all days when it is empty.
Result<void> ledger_root(const Context& context, const std::string& day);
Result<void> ledger_reconcile(const Context& context);

Result<void> job_submit(const Context& context, const std::string& path);
Result<void> job_list(const Context& context, uint32_t ended_max);
Result<void> job_show(const Context& context, uint64_t id);
Result<void> job_watch(const Context& context, uint64_t id);  // Until it ends.
Result<void> job_change(const Context& context, uint64_t id, rpc::Admin::JobChange change);
// Of an empty `task` the last one; to the standard output when `out` is empty.
Result<void> job_results(const Context& context, uint64_t id, const std::string& task,
                         const std::string& out);

struct GenerateOptions {
  std::string model, prompt, privacy = "public", group;
  std::optional<std::string> chat, system;  // Instead of a prompt.
  uint32_t max_tokens = 128;
  float temperature = 0.8f, top_p = 0.95f, min_p = 0.05f, repetition_penalty = 1.0f;
  uint32_t top_k = 40;
  uint64_t seed = 0;
  bool stream = true, ignore_eos = false;
  uint32_t stages = 0;
  std::vector<uint32_t> cuts;
};
Result<void> generate(const Context& context, const GenerateOptions& options);

struct PlanOptions {
  std::string model, fleet, link = "1Gbps", job = "forward", weights = "fp16", cuts = "fp16";
  int64_t sequence = 0, prompt = 512, output = 256, update_tokens = 1 << 20;
  double compute_part = 0.5, memory_part = 0.7, usd_per_kwh = 0.30, years = 3;
  bool int8 = false, sparse_sync = false, headline = false, cards = false, models = false;
};
struct LivePlanOptions {
  std::string model, privacy = "public", group;
  int64_t prompt = 512, output = 256;
  uint32_t stages = 0;
};
// What a session would be now, and why.
Result<void> plan_live(const Context& context, const LivePlanOptions& options);
// Asks no coordinator.
Result<void> plan(bool json, const PlanOptions& options);

}  // namespace shoal::ctl
