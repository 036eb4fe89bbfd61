// shoalctl: the administrators' command line. Reads the options; commands.h does the work.

#include <CLI/CLI.hpp>

#include "base/cli.h"
#include "coordinator/ctl/commands.h"
#include "coordinator/data_folder.h"

int main(int argc, char** argv) {
  using namespace shoal;
  CommandLine line("shoalctl", "Administers a Shoal coordinator on this machine.");
  std::string data;
  line.app().add_option("--data", data, "The coordinator's data folder");

  // Every command gets the context once the options are read.
  const auto with = [&](auto command) -> CommandLine::Body {
    return [&line, &data, command]() -> Result<void> {
      ctl::Context context;
      context.json = line.json();
      context.data = data;
      if (data.empty()) {
        SHOAL_TRY_ASSIGN(usual, default_data_folder());
        context.data = usual;
      }
      return command(context);
    };
  };

  int64_t hours = 24;
  uint32_t uses = 100;
  const auto add_invite_options = [&](CLI::App& app) {
    app.add_option("--hours", hours, "How long the invite is good")->check(CLI::Range(1, 8784));
    app.add_option("--uses", uses, "How many machines may use it")->check(CLI::Range(1, 1'000'000));
  };
  add_invite_options(
      line.command("init", "Make a coordinator in the data folder",
                   with([&](const ctl::Context& c) { return ctl::init(c, hours, uses); })));
  ctl::InviteOptions inviting;
  CLI::App& invite =
      line.command("invite", "Make an attach URL for volunteers", with([&](const ctl::Context& c) {
                     inviting.hours = hours;
                     inviting.uses = uses;
                     return ctl::invite(c, inviting);
                   }));
  add_invite_options(invite);
  invite.add_option("--account", inviting.account, "Hosts that come by it belong to this account");
  invite.add_option("--group", inviting.group, "Hosts that come by it belong to this group");
  line.command("status", "Show how the coordinator is", with(ctl::status));

  CLI::App& model = line.group("model", "Publish, list and remove models");
  std::string name;
  ctl::PublishOptions publishing;
  CLI::App& publish =
      line.command(model, "publish", "Cut a model into sealed shards and publish it",
                   with([&](const ctl::Context& c) { return ctl::model_publish(c, publishing); }));
  publish
      .add_option("path", publishing.path,
                  "A GGUF file, or a folder with safetensors and config.json")
      ->required();
  publish.add_option("--name", publishing.name,
                     "What to publish it as, instead of the model's own name");
  publish.add_option("--purpose", publishing.purpose,
                     "What it is for: volunteers read it before they allow it");
  publish.add_option("--group", publishing.group,
                     "Only hosts of this group may ever hold it: those invited with --group");
  publish.add_option(
      "--quantize", publishing.quantize,
      "Round matrices of 16 and 32 bits to q8_0, q4_0 or q4_k_m, and say what it cost");
  line.command(model, "list", "Show the published models", with(ctl::model_list));
  line.command(model, "remove", "Remove a published model and its shards",
               with([&](const ctl::Context& c) { return ctl::model_remove(c, name); }))
      .add_option("name", name, "As model list shows it")
      ->required();

  CLI::App& host = line.group("host", "Show hosts and say what they may do");
  line.command(host, "list", "Show the hosts and their devices", with(ctl::host_list));
  uint64_t host_id = 0;
  const auto add_standing = [&](const char* word, const char* help,
                                rpc::HostInfo::Standing standing) {
    line.command(host, word, help, with([&host_id, standing](const ctl::Context& c) {
                   return ctl::host_standing(c, host_id, standing);
                 }))
        .add_option("id", host_id, "As host list shows it")
        ->required();
  };
  add_standing("trust", "Let a host hold the ends of anchored sessions",
               rpc::HostInfo::Standing::TRUSTED);
  add_standing("untrust", "Make a host an ordinary volunteer (also lifts a ban)",
               rpc::HostInfo::Standing::VOLUNTEER);
  add_standing("ban", "Drop a host and let it in no more", rpc::HostInfo::Standing::BANNED);

  std::string account_name, team_name, group_name;
  // Without a name nothing is changed by mistake: who wants to take a host out says so.
  bool to_none = false;
  const auto add_belonging = [&](const char* word, const char* help, std::string& target,
                                 const char* target_help, auto command) {
    CLI::App& of = line.command(
        host, word, help, with([&, word, command](const ctl::Context& c) -> Result<void> {
          if (target.empty() != to_none) {
            return Error{ErrorCode::kInvalid, std::string("say which ") + word + ", or --none"};
          }
          return command(c, host_id, target);
        }));
    of.add_option("id", host_id, "As host list shows it")->required();
    of.add_option(word, target, target_help);
    of.add_flag("--none", to_none, std::string("To no ") + word);
  };
  add_belonging("account", "Say to which account a host belongs", account_name,
                "As account list shows it", ctl::host_account);
  add_belonging("group", "Say to which group a host belongs", group_name,
                "Any name: a group is made by naming it", ctl::host_group);

  CLI::App& account = line.group("account", "Say who answers for hosts");
  const auto add_named = [&](CLI::App& group, const char* word, const char* help,
                             std::string& target, auto command) {
    line.command(group, word, help,
                 with([&target, command](const ctl::Context& c) { return command(c, target); }))
        .add_option("name", target, "Any text without control characters")
        ->required();
  };
  add_named(account, "create", "Make an account", account_name, ctl::account_create);
  line.command(account, "list", "Show the accounts, their teams and their credit",
               with(ctl::account_list));
  add_named(
      account, "ban", "Drop all hosts of an account and let them in no more", account_name,
      [](const ctl::Context& c, const std::string& of) { return ctl::account_ban(c, of, true); });
  add_named(
      account, "unban", "Let an account's hosts in again", account_name,
      [](const ctl::Context& c, const std::string& of) { return ctl::account_ban(c, of, false); });
  CLI::App& team = line.group("team", "Put accounts into teams");
  add_named(team, "create", "Make a team", team_name, ctl::team_create);
  line.command(team, "list", "Show the teams, their members and their credit",
               with(ctl::team_list));
  CLI::App& join = line.command(
      team, "join", "Put an account into a team, out of the one that it was in",
      with([&](const ctl::Context& c) { return ctl::team_join(c, account_name, team_name); }));
  join.add_option("account", account_name, "As account list shows it")->required();
  join.add_option("team", team_name, "As team list shows it")->required();
  line.command(team, "leave", "Put an account out of its team",
               with([&](const ctl::Context& c) { return ctl::team_join(c, account_name, ""); }))
      .add_option("account", account_name, "As account list shows it")
      ->required();

  CLI::App& ledger = line.group("ledger", "Show what the hosts' work was worth");
  bool csv = false;
  line.command(ledger, "list", "Show each host's credit",
               with([&](const ctl::Context& c) { return ctl::ledger_list(c, csv); }))
      .add_flag("--csv", csv, "As a table for spreadsheets");
  uint64_t ledger_host = 0, after_number = 0;
  uint32_t receipts = 1000;
  CLI::App& show = line.command(
      ledger, "show", "Show one host's receipts, oldest first", with([&](const ctl::Context& c) {
        return ctl::ledger_show(c, ledger_host, after_number, receipts, csv);
      }));
  show.add_flag("--csv", csv, "As a table for spreadsheets");
  show.add_option("id", ledger_host, "As host list shows it")->required();
  show.add_option("--after", after_number, "Only those after this number");
  show.add_option("--count", receipts, "At most so many");
  std::string root_day;
  line.command(ledger, "root", "Show the signed root over all receipts of each day",
               with([&](const ctl::Context& c) { return ctl::ledger_root(c, root_day); }))
      .add_option("--day", root_day, "Of this day alone (UTC), as 2026-11-30");
  line.command(ledger, "reconcile", "Check that all sums, numbers, signatures and roots agree",
               with(ctl::ledger_reconcile));

  CLI::App& job = line.group("job", "Submit jobs, watch them, and get what came out");
  std::string job_file, task, out;
  uint64_t job_id = 0;
  uint32_t jobs_ended = 20;
  line.command(job, "submit", "Submit a job file (docs/JOBS.md) with its inputs",
               with([&](const ctl::Context& c) { return ctl::job_submit(c, job_file); }))
      .add_option("file", job_file, "A job file, TOML or JSON")
      ->required();
  line.command(job, "list", "Show live jobs and the last that ended",
               with([&](const ctl::Context& c) { return ctl::job_list(c, jobs_ended); }))
      .add_option("--ended", jobs_ended, "How many that ended");
  const auto add_job_id = [&](CLI::App& app) -> CLI::App& {
    app.add_option("id", job_id, "As job list shows it")->required();
    return app;
  };
  add_job_id(line.command(job, "show", "Show a job, its tasks and what happened",
                          with([&](const ctl::Context& c) { return ctl::job_show(c, job_id); })));
  add_job_id(line.command(job, "watch", "Show a job's progress until it ends",
                          with([&](const ctl::Context& c) { return ctl::job_watch(c, job_id); })));
  const auto add_job_change = [&](const char* word, const char* help,
                                  rpc::Admin::JobChange change) {
    add_job_id(line.command(job, word, help, with([&job_id, change](const ctl::Context& c) {
                              return ctl::job_change(c, job_id, change);
                            })));
  };
  add_job_change("cancel", "End a job; what is done of it stays", rpc::Admin::JobChange::CANCEL);
  add_job_change("pause", "Hand out nothing of a job until it is resumed",
                 rpc::Admin::JobChange::PAUSE);
  add_job_change("resume", "Go on with a job that was paused", rpc::Admin::JobChange::RESUME);
  add_job_change("retry", "Try again what was put aside of a job, because it failed everywhere",
                 rpc::Admin::JobChange::RETRY);
  CLI::App& results = add_job_id(line.command(
      job, "results", "Get the output of a task, a JSON line for each item",
      with([&](const ctl::Context& c) { return ctl::job_results(c, job_id, task, out); })));
  results.add_option("--task", task, "Which task's; the last one's unless it is given");
  results.add_option("--out", out, "A file to write, instead of the standard output");

  uint32_t ended = 20;
  CLI::App& session = line.group("session", "Show generations");
  line.command(session, "list", "Show live sessions and the last that ended",
               with([&](const ctl::Context& c) { return ctl::session_list(c, ended); }))
      .add_option("--ended", ended, "How many that ended");
  uint64_t session_id = 0;
  line.command(session, "show",
               "Show a session, and what its plan predicted beside what was measured",
               with([&](const ctl::Context& c) { return ctl::session_show(c, session_id); }))
      .add_option("id", session_id, "As session list shows it")
      ->required();
  uint64_t after = 0;
  uint32_t count = 1000;
  CLI::App& events =
      line.command(line.group("event", "Show what happened"), "list", "Show events, oldest first",
                   with([&](const ctl::Context& c) { return ctl::event_list(c, after, count); }));
  events.add_option("--after", after, "Only those after this id");
  events.add_option("--count", count, "At most so many");

  ctl::GenerateOptions options;
  CLI::App& generate =
      line.command("generate", "Generate text over the attached machines",
                   with([&](const ctl::Context& c) { return ctl::generate(c, options); }));
  generate.add_option("--model", options.model, "As model list shows it")->required();
  CLI::Option_group* const begin = generate.add_option_group("what to answer");
  begin->require_option(1);
  begin->add_option("--prompt", options.prompt, "What the text begins with");
  CLI::Option* const chat = begin->add_option(
      "--chat", options.chat, "What a user says, put as the model's chat template puts it");
  generate.add_option("--system", options.system, "With --chat: what the model is told before it")
      ->needs(chat);
  generate.add_option("--max-tokens", options.max_tokens, "Stop after so many")
      ->check(CLI::Range(1, 1 << 20));
  generate.add_option("--temperature", options.temperature, "0 takes the likeliest token always");
  generate.add_option("--top-k", options.top_k, "Draw among so many of the likeliest; 0: all");
  generate.add_option("--top-p", options.top_p,
                      "Draw among the likeliest that together reach this; 1: all");
  generate.add_option("--min-p", options.min_p,
                      "Draw among those at least so likely beside the likeliest; 0: all");
  generate.add_option("--repetition-penalty", options.repetition_penalty,
                      "More than 1 makes repetition rarer");
  generate.add_option("--seed", options.seed, "The same seed gives the same text");
  generate.add_flag("--stream,!--no-stream", options.stream,
                    "Print the text as it comes (default)");
  generate
      .add_option("--privacy", options.privacy,
                  "public; anchored: ends on trusted hosts only; group: only hosts of --group")
      ->check(CLI::IsMember({"public", "anchored", "group"}));
  generate.add_option("--group", options.group, "Only hosts of this group");
  generate.add_option("--stages", options.stages, "Split over at least so many devices");
  generate.add_option("--cut", options.cuts, "Exactly these stage starts, as 1,3,5")
      ->delimiter(',');
  generate.add_flag("--ignore-eos", options.ignore_eos, "Go on after the model's end of text");

  ctl::PlanOptions planning;
  ctl::LivePlanOptions living;
  bool live_plan = false;
  CLI::App& plan = line.command(
      "plan",
      "Predict what a fleet of cards would do with a model, or with --live what the "
      "attached machines would do now",
      [&]() -> Result<void> {
        if (!live_plan) return ctl::plan(line.json(), planning);
        living.model = planning.model;
        living.prompt = planning.prompt;
        living.output = planning.output;
        return with([&](const ctl::Context& c) { return ctl::plan_live(c, living); })();
      });
  CLI::Option* const live =
      plan.add_flag("--live", live_plan,
                    "Ask the coordinator what a session would be now, why, and what would help");
  plan.add_option("--privacy", living.privacy, "With --live: as generate takes it")
      ->check(CLI::IsMember({"public", "anchored", "group"}))
      ->needs(live);
  plan.add_option("--group", living.group, "With --live: only hosts of this group")->needs(live);
  plan.add_option("--stages", living.stages, "With --live: over at least so many devices")
      ->needs(live);
  plan.add_option(
      "--model", planning.model,
      "A well-known model: --models lists them; with --live one as model list shows it");
  plan.add_option("--fleet", planning.fleet, "As 50xRTX3080,4xH100-PCIe: --cards lists them");
  plan.add_option("--link", planning.link,
                  "Each host's rate and round trip, as 1Gbps or 100Mbps,rtt=20ms");
  plan.add_option("--job", planning.job, "forward, train, or batch: many texts at once");
  plan.add_option("--sequence", planning.sequence,
                  "Tokens of a sequence (forward, train); 0: the model's own, at most 4096")
      ->check(CLI::Range(0, 1 << 24));
  plan.add_option("--prompt", planning.prompt, "Tokens of a prompt (batch)")
      ->check(CLI::Range(1, 1 << 24));
  plan.add_option("--output", planning.output, "Tokens of a text (batch)")
      ->check(CLI::Range(1, 1 << 24));
  plan.add_option("--update-tokens", planning.update_tokens, "Tokens between two updates (train)")
      ->check(CLI::Range(1, 1 << 30));
  plan.add_option("--weights", planning.weights, "Kept as fp16, int8 or int4");
  plan.add_option("--cuts", planning.cuts, "Activations sent as fp16 or int8");
  plan.add_flag("--int8", planning.int8, "Compute at the cards' int8 rates (not for training)");
  plan.add_flag("--sparse-sync", planning.sparse_sync,
                "Replicas exchange sparse gradients every 30 updates (train)");
  plan.add_option("--compute-part", planning.compute_part,
                  "The part of a card's peak that is reached")
      ->check(CLI::Range(0.001, 1.0));
  plan.add_option("--memory-part", planning.memory_part, "Likewise, of its memory's bandwidth")
      ->check(CLI::Range(0.001, 1.0));
  plan.add_option("--kwh-price", planning.usd_per_kwh, "Dollars for a kilowatt-hour")
      ->check(CLI::Range(0.0, 100.0));
  plan.add_option("--years", planning.years, "In which cards are written off, at full use")
      ->check(CLI::Range(0.1, 100.0));
  plan.add_flag("--headline", planning.headline,
                "Show when 50 RTX 3080 are as fast as 4 H100, and what links do to that");
  plan.add_flag("--cards", planning.cards, "List the cards that are known, with sources");
  plan.add_flag("--models", planning.models, "List the models that are known, with sources");
  return line.run(argc, argv);
}
