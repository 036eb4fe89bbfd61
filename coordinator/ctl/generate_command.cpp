// shoalctl generate: streams the text to stdout and failovers to stderr.

#include <kj/debug.h>

#include <cstdio>
#include <set>

#include "base/host.h"
#include "base/text.h"
#include "coordinator/ctl/commands.h"
#include "schema/transport.h"

namespace shoal::ctl {
namespace {

Json failover_json(rpc::Failover::Reader failover) {
  return {{"stage", failover.getStage()},
          {"at_token", failover.getAtToken()},
          {"gap_ms", failover.getGapMs()},
          {"cause", failover.getCause().cStr()},
          {"replacement", stage_json(failover.getReplacement())}};
}

// The text as it is; but a terminal obeys text, and who draws tokens is a stranger.
void print_text(std::string_view text) {
  static const bool terminal = stdout_is_terminal();
  const std::string shown = terminal ? printable(text, /*keep_lines=*/true) : std::string(text);
  std::fwrite(shown.data(), 1, shown.size(), stdout);
}

// For people the text; for scripts one JSON object a line.
class PrintingSink final : public rpc::TokenSink::Server {
 public:
  PrintingSink(bool stream, bool json, size_t& printed)
      : stream_(stream), json_(json), printed_(printed) {}

  kj::Promise<void> token(TokenContext context) override {
    const auto params = context.getParams();
    const auto text = params.getText();
    printed_ += text.size();
    if (!stream_) return kj::READY_NOW;
    if (json_) {
      print_json({{"id", params.getId()}, {"text", std::string(text.begin(), text.size())}});
    } else {
      print_text({text.begin(), text.size()});
      std::fflush(stdout);
    }
    return kj::READY_NOW;
  }

  kj::Promise<void> failover(FailoverContext context) override {
    const auto event = context.getParams().getEvent();
    if (json_ && stream_) {
      print_json({{"failover", failover_json(event)}});
      return kj::READY_NOW;
    }
    std::fprintf(stderr, "\n[stage %u lost at token %u: %s; now %s; gap %u ms]\n", event.getStage(),
                 event.getAtToken(), printable(event.getCause().cStr()).c_str(),
                 stage_text(event.getReplacement()).c_str(), event.getGapMs());
    return kj::READY_NOW;
  }

  kj::Promise<void> stages(StagesContext context) override {
    if (!json_ || !stream_) return kj::READY_NOW;
    Json stages = Json::array();
    for (const auto stage : context.getParams().getStages()) stages.push_back(stage_json(stage));
    print_json({{"stages", std::move(stages)}});
    return kj::READY_NOW;
  }

 private:
  const bool stream_;
  const bool json_;
  size_t& printed_;
};

void write_message(rpc::ChatMessage::Builder out, const char* role, const std::string& content) {
  out.setRole(role);
  out.setContent(content);
}

Json summary_json(rpc::GenerateSummary::Reader summary) {
  Json ids = Json::array(), prompt_ids = Json::array(), stages = Json::array(),
       failovers = Json::array();
  for (const int32_t id : summary.getIds()) ids.push_back(id);
  for (const int32_t id : summary.getPromptIds()) prompt_ids.push_back(id);
  std::set<uint64_t> hosts;
  for (const auto stage : summary.getStages()) {
    stages.push_back(stage_json(stage));
    hosts.insert(stage.getHostId());
  }
  for (const auto failover : summary.getFailovers()) {
    failovers.push_back(failover_json(failover));
  }
  const size_t tokens = ids.size();
  return {{"session_id", summary.getSessionId()},
          {"text", std::string(summary.getText().begin(), summary.getText().size())},
          {"ids", std::move(ids)},
          {"prompt_ids", std::move(prompt_ids)},
          {"finish_reason", summary.getFinishReason().cStr()},
          {"tokens", tokens},
          {"tokens_per_second", summary.getTokensPerSecond()},
          {"prefill_ms", summary.getPrefillMs()},
          {"relayed_bytes", summary.getRelayedBytes()},
          {"hosts", hosts.size()},
          {"stages", std::move(stages)},
          {"figures", figures_json(summary.getFigures())},
          {"failovers", std::move(failovers)}};
}

}  // namespace

Result<void> generate(const Context& context, const GenerateOptions& options) {
  if (options.privacy == "group" && options.group.empty()) {
    return Error{ErrorCode::kInvalid, "--privacy group needs --group NAME"};
  }
  if (options.privacy == "anchored" && !options.group.empty()) {
    return Error{ErrorCode::kInvalid, "--group goes with --privacy group, not with anchored"};
  }
  return with_coordinator(context, [&](Link& link) -> Result<void> {
    size_t printed = 0;
    auto call = link.admin.generateRequest();
    auto request = call.initRequest();
    request.setModel(options.model);
    request.setPrompt(options.prompt);
    if (options.chat) {
      auto chat = request.initChat(options.system ? 2 : 1);
      if (options.system) write_message(chat[0], "system", *options.system);
      write_message(chat[chat.size() - 1], "user", *options.chat);
    }
    request.setMaxTokens(options.max_tokens);
    auto sampling = request.initSampling();
    sampling.setTemperature(options.temperature);
    sampling.setTopK(options.top_k);
    sampling.setTopP(options.top_p);
    sampling.setMinP(options.min_p);
    sampling.setRepetitionPenalty(options.repetition_penalty);
    sampling.setSeed(options.seed);
    request.setPrivacy(!options.group.empty()          ? rpc::Privacy::GROUP
                       : options.privacy == "anchored" ? rpc::Privacy::ANCHORED
                                                       : rpc::Privacy::PUBLIC);
    request.setGroup(options.group);
    request.setStagesMin(options.stages);
    auto cuts = request.initCuts(static_cast<uint>(options.cuts.size()));
    for (uint i = 0; i < cuts.size(); ++i) cuts.set(i, options.cuts[i]);
    request.setIgnoreEos(options.ignore_eos);
    call.setSink(kj::heap<PrintingSink>(options.stream, context.json, printed));
    const auto response = call.send().wait(link.io.waitScope);
    const auto summary = response.getSummary();
    const auto text = summary.getText();
    if (context.json) {
      print_json(summary_json(summary));
      return {};
    }
    // All of it, or what the last token left unfinished.
    const size_t from = options.stream ? std::min(printed, text.size()) : 0;
    print_text({text.begin() + from, text.size() - from});
    std::printf("\n");
    std::fflush(stdout);
    std::fprintf(stderr, "%u tokens, %.1f a second, prefill %u ms, %s relayed, ended by %s\n",
                 summary.getIds().size(), summary.getTokensPerSecond(), summary.getPrefillMs(),
                 show_bytes(summary.getRelayedBytes()).c_str(), summary.getFinishReason().cStr());
    for (const auto stage : summary.getStages())
      std::fprintf(stderr, "  %s\n", stage_text(stage).c_str());
    const auto predicted = summary.getFigures().getPredicted();
    std::fprintf(stderr,
                 "  predicted were %.1f tokens a second and a prefill of %.0f ms "
                 "(shoalctl session show %llu)\n",
                 predicted.getTokensPerSecond(), predicted.getPrefillMs(),
                 static_cast<unsigned long long>(summary.getSessionId()));
    return {};
  });
}

}  // namespace shoal::ctl
