#include "coordinator/rpc/generation.h"

#include "coordinator/rpc/accounts.h"
#include "coordinator/rpc/model_upload.h"
#include "coordinator/session/session.h"
#include "coordinator/session/session_plan.h"
#include "schema/limits.h"
#include "schema/require.h"

namespace shoal {
namespace {

using Context = capnp::CallContext<rpc::Admin::GenerateParams, rpc::Admin::GenerateResults>;

void write_stage(rpc::StageInfo::Builder out, const StageWho& who) {
  out.setHostId(static_cast<uint64_t>(who.host.value));
  out.setHostName(who.host_name);
  out.setTrusted(who.trusted);
  out.setDeviceId(who.device);
  out.setDeviceName(who.device_name);
  out.setPlane(who.plane);
  out.setFirstFragment(static_cast<uint32_t>(who.first_fragment));
  out.setLastFragment(static_cast<uint32_t>(who.last_fragment));
}

void write_failover(rpc::Failover::Builder out, const FailoverNote& note) {
  out.setStage(static_cast<uint32_t>(note.stage));
  out.setAtToken(static_cast<uint32_t>(note.at_token));
  out.setGapMs(static_cast<uint32_t>(note.gap.count));
  out.setCause(note.cause);
  write_stage(out.initReplacement(), note.replacement);
}

std::vector<ChatMessage> chat_of(capnp::List<rpc::ChatMessage>::Reader in) {
  rpc::require_at_most(in.size(), limits::kChatMessagesMax, "chat");
  std::vector<ChatMessage> chat;
  size_t left = limits::kPromptBytesMax;
  for (const auto message : in) {
    chat.push_back({rpc::text_of(message.getRole(), limits::kNameBytesMax, "chat: role"),
                    rpc::text_of(message.getContent(), left, "chat: content")});
    left -= chat.back().content.size();
  }
  return chat;
}

SessionRequest request_of(rpc::GenerateRequest::Reader in) {
  SessionRequest request;
  request.prompt = rpc::text_of(in.getPrompt(), limits::kPromptBytesMax, "prompt");
  request.chat = chat_of(in.getChat());
  if (!request.chat.empty() && !request.prompt.empty())
    rpc::throw_error(
        {ErrorCode::kInvalid, "a prompt and a chat: only one of them can be answered"});
  if (in.getMaxTokens() == 0 || in.getMaxTokens() > limits::kTokensMax) {
    rpc::throw_error({ErrorCode::kInvalid,
                      "maxTokens is not between 1 and " + std::to_string(limits::kTokensMax)});
  }
  request.tokens_max = in.getMaxTokens();
  const auto sampling = in.getSampling();
  SamplingChoice& choice = request.sampling;
  choice.temperature = sampling.getTemperature();
  choice.top_k = sampling.getTopK();
  choice.top_p = sampling.getTopP();
  choice.min_p = sampling.getMinP();
  choice.repetition_penalty = sampling.getRepetitionPenalty();
  choice.seed = sampling.getSeed();
  if (const auto bad = out_of_bounds(choice))
    rpc::throw_error({ErrorCode::kInvalid, std::string(bad->field) + ": " + bad->what});
  request.group = membership_name(in.getGroup(), "group", /*may_be_empty=*/true);
  switch (in.getPrivacy()) {
    case rpc::Privacy::PUBLIC: break;
    case rpc::Privacy::ANCHORED: request.anchored = true; break;
    case rpc::Privacy::GROUP:
      if (request.group.empty()) {
        rpc::throw_error({ErrorCode::kInvalid, "the level of privacy group needs a group's name"});
      }
      break;
    default:  // What is newer than we are is not public.
      rpc::throw_error(
          {ErrorCode::kUnsupported, "privacy: a level that this coordinator does not know"});
  }
  if (!request.group.empty() && in.getPrivacy() != rpc::Privacy::GROUP) {
    rpc::throw_error({ErrorCode::kInvalid, "a group goes with the level of privacy group"});
  }
  if (in.getStagesMin() > limits::kFragmentsMax) {
    rpc::throw_error({ErrorCode::kInvalid, "stagesMin is more than a model can have"});
  }
  request.stages_min = in.getStagesMin();
  rpc::require_at_most(in.getCuts().size(), limits::kFragmentsMax, "cuts");
  for (const uint32_t cut : in.getCuts()) request.cuts.push_back(cut);
  request.ignore_eos = in.getIgnoreEos();
  return request;
}

// Carries tokens to the caller. What it only tells is sent and not waited for; a caller that is
// gone is noticed by its tokens, and by the call being dropped.
class SinkReceiver final : public TokenReceiver {
 public:
  explicit SinkReceiver(rpc::TokenSink::Client sink) : sink_(kj::mv(sink)) {}

  kj::Promise<void> token(int32_t id, const std::string& text) override {
    auto request = sink_.tokenRequest();
    request.setId(id);
    request.setText(text);
    return request.send();
  }
  void stages(std::span<const StageWho> stages) override {
    auto request = sink_.stagesRequest();
    write_stages(request.initStages(static_cast<uint>(stages.size())), stages);
    request.send().ignoreResult().detach([](kj::Exception&&) {});
  }
  void failover(const FailoverNote& note) override {
    auto request = sink_.failoverRequest();
    write_failover(request.initEvent(), note);
    request.send().ignoreResult().detach([](kj::Exception&&) {});
  }

 private:
  rpc::TokenSink::Client sink_;
};

// What a running call owns; the session goes before what it uses.
struct Generation {
  Parts& parts;
  SinkReceiver receiver;
  std::unique_ptr<Session> session;

  Generation(Parts& parts, rpc::TokenSink::Client sink) : parts(parts), receiver(kj::mv(sink)) {}
  ~Generation() noexcept(false) {
    if (session != nullptr) parts.relayed_bytes += session->relayed_bytes();
  }
};

void write_summary(rpc::GenerateSummary::Builder out, const SessionSummary& summary) {
  out.setSessionId(static_cast<uint64_t>(summary.id.value));
  out.setText(summary.text);
  auto ids = out.initIds(static_cast<uint>(summary.ids.size()));
  for (uint i = 0; i < ids.size(); ++i) ids.set(i, summary.ids[i]);
  auto prompt_ids = out.initPromptIds(static_cast<uint>(summary.prompt_ids.size()));
  for (uint i = 0; i < prompt_ids.size(); ++i) prompt_ids.set(i, summary.prompt_ids[i]);
  out.setFinishReason(summary.finish_reason);
  out.setPrefillMs(static_cast<uint32_t>(summary.prefill.count));
  out.setTokensPerSecond(summary.tokens_per_second);
  out.setRelayedBytes(static_cast<uint64_t>(summary.relayed_bytes));
  write_stages(out.initStages(static_cast<uint>(summary.stages.size())), summary.stages);
  auto failovers = out.initFailovers(static_cast<uint>(summary.failovers.size()));
  for (uint i = 0; i < failovers.size(); ++i) write_failover(failovers[i], summary.failovers[i]);
  write_figures(out.initFigures(), summary.figures);
}

void write_times(rpc::SessionFigures::Times::Builder out, const SessionTimes& times) {
  out.setPrefillMs(times.prefill_seconds * 1000);
  out.setTokensPerSecond(times.tokens_per_second);
  auto stages = out.initStages(static_cast<uint>(times.stages.size()));
  for (uint i = 0; i < stages.size(); ++i) {
    const StageTimes& stage = times.stages[i];
    stages[i].setRowSeconds(stage.row_seconds);
    stages[i].setRowSteps(static_cast<uint32_t>(stage.row_steps));
    stages[i].setBlockSeconds(stage.block_seconds);
    stages[i].setBlockSteps(static_cast<uint32_t>(stage.block_steps));
    stages[i].setHopSeconds(stage.hop_seconds);
  }
}

void write_reasons(capnp::List<rpc::LivePlan::Reason>::Builder out,
                   const std::vector<PlanReason>& reasons) {
  for (uint i = 0; i < out.size(); ++i) {
    out[i].setCode(reasons[i].code);
    out[i].setText(reasons[i].text);
    out[i].setFactor(reasons[i].factor);
  }
}

// A model that is for hosts of one group is for no others.
void keep_to_group(const LiveModel& model, SessionRequest& request) {
  if (model.group.empty()) return;
  if (request.anchored || (!request.group.empty() && request.group != model.group)) {
    rpc::throw_error({ErrorCode::kDenied, "the model " + model.name +
                                              " is for hosts of the group " + model.group +
                                              " alone: name that group, or no level"});
  }
  request.group = model.group;
}

}  // namespace

void write_stages(capnp::List<rpc::StageInfo>::Builder out, std::span<const StageWho> stages) {
  for (uint i = 0; i < out.size(); ++i) write_stage(out[i], stages[i]);
}

kj::Promise<void> run_generation(Parts& parts, Context context) {
  if (parts.needs.stopping) {
    rpc::throw_error(
        {ErrorCode::kUnavailable, "the coordinator is stopping; try again when it is back"});
  }
  if (static_cast<int64_t>(parts.live.size()) >= parts.needs.options.live_max) {
    rpc::throw_error({ErrorCode::kUnavailable,
                      "there are " + std::to_string(parts.live.size()) +
                          " live sessions already (session.live_max); try again later"});
  }
  const auto params = context.getParams();
  if (!params.hasSink()) rpc::throw_error({ErrorCode::kInvalid, "sink is missing"});
  SessionRequest request = request_of(params.getRequest());
  const std::string name =
      rpc::text_of(params.getRequest().getModel(), limits::kNameBytesMax, "model");
  auto generation = kj::heap<Generation>(parts, params.getSink());
  context.releaseParams();
  auto model = rpc::require(use_model(parts, name));
  keep_to_group(*model, request);
  generation->session = rpc::require(Session::start(parts.needs, parts.live, std::move(model),
                                                    std::move(request), generation->receiver));
  context.allowCancellation();
  kj::Promise<SessionSummary> running = generation->session->run();
  return running
      .then([context](SessionSummary&& summary) mutable {
        write_summary(context.getResults().initSummary(), summary);
      })
      .attach(kj::mv(generation));
}

void write_figures(rpc::SessionFigures::Builder out, const SessionFigures& figures) {
  out.setBlockRows(static_cast<uint32_t>(figures.block_rows));
  write_times(out.initPredicted(), figures.predicted);
  write_times(out.initMeasured(), figures.measured);
}

void plan_generation(
    Parts& parts,
    capnp::CallContext<rpc::Admin::PlanSessionParams, rpc::Admin::PlanSessionResults> context) {
  const auto params = context.getParams();
  SessionRequest request = request_of(params.getRequest());
  const int64_t prompt = params.getPromptTokens();
  if (prompt == 0) rpc::throw_error({ErrorCode::kInvalid, "promptTokens is not positive"});
  const auto model = rpc::require(use_model(
      parts, rpc::text_of(params.getRequest().getModel(), limits::kNameBytesMax, "model")));
  keep_to_group(*model, request);
  const SessionSizes sizes =
      rpc::require(session_sizes(*model, parts.needs.options, prompt, request.tokens_max));
  const SessionPlan made = rpc::require(plan_now(parts.needs, *model, request, sizes, prompt));
  std::vector<StageWho> all;
  std::vector<std::string> names;
  for (const Pool::Offer& offer : made.offers) {
    const DevicePlace& place = offer.place;
    const Pool::Host* const host = parts.pool.find(place.host, place.login);
    const PoolDevice* const device = parts.pool.find(place);
    SHOAL_CHECK(host != nullptr && device != nullptr);
    all.push_back(
        {place.host, host->name, host->trusted, place.device, device->row.name, device->row.plane});
    names.push_back(host->name + " " + place.device);
  }
  std::vector<StageWho> stages;
  for (const PlanStage& stage : made.plan.stages) {
    stages.push_back(all[stage.device]);
    stages.back().first_fragment = stage.first_fragment;
    stages.back().last_fragment = stage.last_fragment;
  }
  const PlanExplanation why = explain_plan(made.request, made.devices, made.plan, names);
  auto out = context.getResults().initPlan();
  write_stages(out.initStages(static_cast<uint>(stages.size())), stages);
  write_figures(out.initFigures(), predict_session(made.request, made.devices, made.plan));
  write_reasons(out.initWhy(static_cast<uint>(why.why.size())), why.why);
  write_reasons(out.initWhyNotSplit(static_cast<uint>(why.why_not_split.size())),
                why.why_not_split);
  write_reasons(out.initWhatWouldHelp(static_cast<uint>(why.what_would_help.size())),
                why.what_would_help);
}

}  // namespace shoal
