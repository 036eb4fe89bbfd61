#include "coordinator/session/session_plan.h"

#include <algorithm>

#include "coordinator/session/auditor.h"
#include "schema/limits.h"

namespace shoal {

Result<SessionSizes> session_sizes(const LiveModel& model, const SessionOptions& options,
                                   int64_t prompt_tokens, int64_t tokens_max) {
  const int64_t context = std::min<int64_t>(model.manifest.context, limits::kContextMax);
  if (prompt_tokens > context) {
    return Error{ErrorCode::kInvalid, "the prompt has " + std::to_string(prompt_tokens) +
                                          " tokens, but the model's context holds " +
                                          std::to_string(context)};
  }
  SessionSizes sizes;
  // The last token drawn is never run, so one position fewer than tokens is needed.
  sizes.context = std::min(context, prompt_tokens + tokens_max);
  const auto row_bytes = model.manifest.width * static_cast<int64_t>(sizeof(float));
  sizes.rows_max = std::clamp<int64_t>(
      std::min<int64_t>({options.rows_max, prompt_tokens,
                         static_cast<int64_t>(limits::kHiddenBytesMax) / row_bytes}),
      1, limits::kRowsMax);
  return sizes;
}

JobClass class_of(const LiveModel& model, const SessionRequest& request) {
  return {"generate", model.name, request.anchored, !request.group.empty()};
}

Result<SessionPlan> plan_now(const SessionNeeds& needs, const LiveModel& model,
                             const SessionRequest& request, const SessionSizes& sizes,
                             int64_t prompt_tokens) {
  SessionPlan made;
  made.offers = needs.pool.offers(needs.timer.now(), class_of(model, request), request.group);
  if (!request.group.empty() && made.offers.empty()) {
    return Error{ErrorCode::kUnavailable,
                 "no device of the group " + request.group +
                     " is ready: attach some of its hosts, or wait for them"};
  }
  std::erase_if(made.offers, [&](const Pool::Offer& offer) {
    return needs.auditor.mistrusts(offer.place.host);
  });
  for (const Pool::Offer& offer : made.offers) made.devices.push_back(offer.plan);
  made.request.fragments = model.costs;
  made.request.width = model.manifest.width;
  made.request.context = sizes.context;
  made.request.rows_max = sizes.rows_max;
  made.request.prompt_rows = prompt_tokens;
  made.request.tokens = std::min(request.tokens_max, sizes.context - prompt_tokens + 1);
  made.request.stages_min = request.stages_min;
  made.request.cuts = request.cuts;
  made.request.anchored = request.anchored;
  SHOAL_TRY_ASSIGN(plan, plan_session(made.request, made.devices));
  made.plan = std::move(plan);
  return made;
}

}  // namespace shoal
