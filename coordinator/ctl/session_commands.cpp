// shoalctl session, and plan --live: what a session is, and what one would be.

#include <cstdio>

#include "base/text.h"
#include "coordinator/ctl/commands.h"
#include "coordinator/work/figures.h"

namespace shoal::ctl {
namespace {

std::string word_of(rpc::Privacy privacy) {
  switch (privacy) {
    case rpc::Privacy::PUBLIC: return "public";
    case rpc::Privacy::GROUP: return "group";
    case rpc::Privacy::ANCHORED: return "anchored";
  }
  return "unknown";
}

Json session_json(rpc::SessionInfo::Reader session) {
  Json stages = Json::array();
  for (const auto stage : session.getStages()) stages.push_back(stage_json(stage));
  return {{"id", session.getId()},
          {"model", session.getModel().cStr()},
          {"privacy", word_of(session.getPrivacy())},
          {"group", session.getGroup().cStr()},
          {"state", session.getState().cStr()},
          {"reason", session.getReason().cStr()},
          {"prompt_tokens", session.getPromptTokens()},
          {"tokens", session.getTokens()},
          {"started_at_ms", session.getStartedAtMs()},
          {"ended_at_ms", session.getEndedAtMs()},
          {"failovers", session.getFailovers()},
          {"stages", std::move(stages)}};
}

std::string privacy_text(rpc::SessionInfo::Reader session) {
  return word_of(session.getPrivacy()) +
         (session.getGroup().size() == 0 ? "" : " " + std::string(session.getGroup().cStr()));
}

Json times_json(rpc::SessionFigures::Times::Reader times) {
  Json stages = Json::array();
  for (const auto stage : times.getStages()) {
    stages.push_back({{"row_seconds", stage.getRowSeconds()},
                      {"row_steps", stage.getRowSteps()},
                      {"block_seconds", stage.getBlockSeconds()},
                      {"block_steps", stage.getBlockSteps()},
                      {"hop_seconds", stage.getHopSeconds()}});
  }
  return {{"prefill_ms", times.getPrefillMs()},
          {"tokens_per_second", times.getTokensPerSecond()},
          {"stages", std::move(stages)}};
}

Json reasons_json(capnp::List<rpc::LivePlan::Reason>::Reader reasons) {
  Json json = Json::array();
  for (const auto reason : reasons) {
    Json one = {{"code", reason.getCode().cStr()}, {"text", reason.getText().cStr()}};
    if (reason.getFactor() != 0) one["factor"] = reason.getFactor();
    json.push_back(std::move(one));
  }
  return json;
}

void print_reasons(const char* title, capnp::List<rpc::LivePlan::Reason>::Reader reasons) {
  if (reasons.size() == 0) return;
  std::printf("\n%s\n", title);
  for (const auto reason : reasons) {
    std::printf("  %s.\n", printable(reason.getText().cStr()).c_str());
  }
}

// "120 ms", or a dash for what was not seen.
std::string shown(double seconds) { return seconds > 0 ? seconds_text(seconds) : "-"; }

// How much longer it took than was predicted.
std::string ratio(double measured, double predicted) {
  return measured > 0 && predicted > 0 ? figure_text(measured / predicted) : "-";
}

}  // namespace

Json figures_json(rpc::SessionFigures::Reader figures) {
  if (figures.getBlockRows() == 0) return nullptr;
  return {{"block_rows", figures.getBlockRows()},
          {"predicted", times_json(figures.getPredicted())},
          {"measured", times_json(figures.getMeasured())}};
}

std::vector<std::vector<std::string>> figures_rows(rpc::SessionFigures::Reader figures) {
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](const std::string& what, double was, double is) {
    rows.push_back({what, shown(was), shown(is), ratio(is, was)});
  };
  const auto was = figures.getPredicted(), is = figures.getMeasured();
  add("prompt", was.getPrefillMs() / 1000, is.getPrefillMs() / 1000);
  const auto seconds = [](double rate) { return rate > 0 ? 1 / rate : 0; };
  add("token", seconds(was.getTokensPerSecond()), seconds(is.getTokensPerSecond()));
  const auto stages = std::min(was.getStages().size(), is.getStages().size());
  for (uint i = 0; i < stages; ++i) {
    const auto predicted = was.getStages()[i], measured = is.getStages()[i];
    const std::string stage = "stage " + std::to_string(i) + ": ";
    add(stage + "one row", predicted.getRowSeconds(), measured.getRowSeconds());
    if (figures.getBlockRows() > 1) {
      add(stage + std::to_string(figures.getBlockRows()) + " rows of the prompt",
          predicted.getBlockSeconds(), measured.getBlockSeconds());
    }
    add(stage + "the way there and back", predicted.getHopSeconds(), measured.getHopSeconds());
  }
  return rows;
}

Result<void> session_list(const Context& context, uint32_t ended_max) {
  return with_coordinator(context, [&](Link& link) -> Result<void> {
    auto request = link.admin.listSessionsRequest();
    request.setEndedMax(ended_max);
    const auto response = request.send().wait(link.io.waitScope);
    Json all = Json::array();
    std::vector<std::vector<std::string>> rows;
    for (const auto session : response.getSessions()) {
      std::string hosts;
      for (const auto stage : session.getStages()) {
        hosts += (hosts.empty() ? "" : ", ") + std::string(stage.getHostName().cStr()) + ":" +
                 std::to_string(stage.getFirstFragment()) + "-" +
                 std::to_string(stage.getLastFragment());
      }
      rows.push_back({std::to_string(session.getId()), session.getModel().cStr(),
                      privacy_text(session), session.getState().cStr(),
                      std::to_string(session.getPromptTokens()),
                      std::to_string(session.getTokens()), std::to_string(session.getFailovers()),
                      show_time(session.getStartedAtMs()), hosts, session.getReason().cStr()});
      all.push_back(session_json(session));
    }
    if (context.json) {
      print_json({{"sessions", std::move(all)}});
    } else if (rows.empty()) {
      std::printf("No sessions yet.\n");
    } else {
      print_table({"ID", "MODEL", "PRIVACY", "STATE", "PROMPT", "TOKENS", "FAILOVERS", "STARTED",
                   "STAGES", "REASON"},
                  rows);
    }
    return {};
  });
}

Result<void> session_show(const Context& context, uint64_t id) {
  return with_coordinator(context, [&](Link& link) -> Result<void> {
    auto request = link.admin.showSessionRequest();
    request.setSessionId(id);
    const auto response = request.send().wait(link.io.waitScope);
    const auto session = response.getSession();
    const auto figures = response.getFigures();
    if (context.json) {
      Json json = session_json(session);
      json["figures"] = figures_json(figures);
      print_json(json);
      return {};
    }
    const std::string reason = session.getReason().cStr();
    print_table({"what", "is"},
                {{"session", std::to_string(session.getId())},
                 {"model", session.getModel().cStr()},
                 {"privacy", privacy_text(session)},
                 {"state", session.getState().cStr() + (reason.empty() ? "" : ": " + reason)},
                 {"tokens", std::to_string(session.getPromptTokens()) + " of the prompt, " +
                                std::to_string(session.getTokens()) + " drawn"},
                 {"failovers", std::to_string(session.getFailovers())},
                 {"started", show_time(session.getStartedAtMs())},
                 {"ended", show_time(session.getEndedAtMs())}});
    std::printf("\n");
    for (const auto stage : session.getStages()) std::printf("%s\n", stage_text(stage).c_str());
    if (figures.getBlockRows() == 0) {
      std::printf("\nNothing was predicted: it was not planned, or by an older coordinator.\n");
      return {};
    }
    std::printf("\n");
    print_table({"takes", "predicted", "measured", "ratio"}, figures_rows(figures));
    return {};
  });
}

Result<void> plan_live(const Context& context, const LivePlanOptions& options) {
  if (options.model.empty()) {
    return Error{ErrorCode::kInvalid, "name a model: --model, as shoalctl model list shows it"};
  }
  if (options.privacy == "group" && options.group.empty()) {
    return Error{ErrorCode::kInvalid, "--privacy group needs --group NAME"};
  }
  return with_coordinator(context, [&](Link& link) -> Result<void> {
    auto call = link.admin.planSessionRequest();
    auto request = call.initRequest();
    request.setModel(options.model);
    request.setMaxTokens(static_cast<uint32_t>(options.output));
    request.setPrivacy(!options.group.empty()          ? rpc::Privacy::GROUP
                       : options.privacy == "anchored" ? rpc::Privacy::ANCHORED
                                                       : rpc::Privacy::PUBLIC);
    request.setGroup(options.group);
    request.setStagesMin(options.stages);
    call.setPromptTokens(static_cast<uint32_t>(options.prompt));
    const auto response = call.send().wait(link.io.waitScope);
    const auto plan = response.getPlan();
    const auto predicted = plan.getFigures().getPredicted();
    if (context.json) {
      Json stages = Json::array();
      for (const auto stage : plan.getStages()) stages.push_back(stage_json(stage));
      print_json({{"model", options.model},
                  {"prompt_tokens", options.prompt},
                  {"block_rows", plan.getFigures().getBlockRows()},
                  {"predicted", times_json(predicted)},
                  {"stages", std::move(stages)},
                  {"why", reasons_json(plan.getWhy())},
                  {"why_not_split", reasons_json(plan.getWhyNotSplit())},
                  {"what_would_help", reasons_json(plan.getWhatWouldHelp())}});
      return {};
    }
    std::printf("A session of %s with a prompt of %lld tokens would begin now on\n",
                printable(options.model).c_str(), static_cast<long long>(options.prompt));
    for (const auto stage : plan.getStages()) std::printf("  %s\n", stage_text(stage).c_str());
    std::printf("and reach %s tokens/s, the first after %s (blocks of %u rows).\n",
                figure_text(predicted.getTokensPerSecond()).c_str(),
                seconds_text(predicted.getPrefillMs() / 1000).c_str(),
                plan.getFigures().getBlockRows());
    print_reasons("Why this:", plan.getWhy());
    print_reasons("Why not split:", plan.getWhyNotSplit());
    print_reasons("What would help:", plan.getWhatWouldHelp());
    std::printf("\nPredicted from what the devices measured; nothing was opened.\n");
    return {};
  });
}

}  // namespace shoal::ctl
