#include "client/overall.h"

#include <algorithm>

namespace shoal::client {
namespace {

Message message(std::string code, std::vector<MessageParameter> parameters = {}) {
  return {std::move(code), std::move(parameters)};
}

Verdict verdict(Activity activity, Message why, Message remedy = {}) {
  Verdict verdict;
  verdict.activity = activity;
  verdict.why = std::move(why);
  verdict.remedy = std::move(remedy);
  return verdict;
}

using State = OverallInput::Link::State;

std::optional<Verdict> attention(const OverallInput& input) {
  if (input.disk_problem) {
    return verdict(Activity::kAttention, *input.disk_problem);
  }
  if (input.consents_lost) {
    return verdict(Activity::kAttention, *input.consents_lost,
                   message("records.consents_lost.remedy"));
  }
  for (const OverallInput::Link& link : input.links) {
    if (link.state != State::kRefused) continue;
    return verdict(Activity::kAttention, message("attention.refused", {link.name, link.reason}));
  }
  if (input.lent.empty() && !input.looking) {
    return verdict(Activity::kAttention, message("attention.no_device"),
                   message("attention.no_device.remedy"));
  }
  for (const OverallInput::Device& device : input.lent) {
    if (device.verdict.activity == Activity::kAttention) return device.verdict;
  }
  return {};
}

std::optional<Verdict> offline(const OverallInput& input) {
  if (input.links.empty()) {
    return verdict(Activity::kOffline, message("offline.not_attached"),
                   message("offline.not_attached.remedy"));
  }
  const OverallInput::Link* soonest = nullptr;
  for (const OverallInput::Link& link : input.links) {
    if (link.state == State::kConnected) return {};
    if (soonest == nullptr || link.retry_in < soonest->retry_in) soonest = &link;
  }
  if (soonest->state == State::kConnecting && soonest->reason.empty()) {
    return verdict(Activity::kOffline, message("offline.connecting", {soonest->name}));
  }
  return verdict(Activity::kOffline,
                 message("offline.unreachable", {soonest->name, soonest->reason}),
                 message("offline.unreachable.remedy", {soonest->retry_in}));
}

// The first with this activity; null when there is none.
const Verdict* first_with(const OverallInput& input, Activity activity) {
  for (const OverallInput::Device& device : input.lent) {
    if (device.verdict.activity == activity) return &device.verdict;
  }
  return nullptr;
}

}  // namespace

Verdict overall(const OverallInput& input) {
  if (std::optional<Verdict> found = attention(input)) return *found;

  const bool any_allowed =
      std::ranges::any_of(input.lent, [](const auto& device) { return device.verdict.allowed(); });
  if (!any_allowed) {
    if (input.network.activity == Activity::kPaused) return input.network;
    if (const Verdict* paused = first_with(input, Activity::kPaused)) return *paused;
  }
  if (std::optional<Verdict> found = offline(input)) return *found;
  if (!any_allowed) {
    if (const Verdict* waiting = first_with(input, Activity::kWaiting)) return *waiting;
    return input.list_problem.empty()
               ? verdict(Activity::kWaiting, message("device.looking"))
               : verdict(Activity::kWaiting, message("device.not_listed", {input.list_problem}));
  }

  std::string names;
  for (const OverallInput::Device& device : input.lent) {
    if (device.works) names += (names.empty() ? "" : ", ") + device.name;
  }
  if (!names.empty()) return verdict(Activity::kWorking, message("working.now", {names}));
  // What allows it, such as the mode: the first that works. Healthy without work is explained, too.
  Verdict ready = *first_with(input, Activity::kWorking);
  for (const OverallInput::Link& link : input.links) {
    if (!link.no_work.empty() && ready.remedy.empty()) ready.remedy = link.no_work;
  }
  return ready;
}

}  // namespace shoal::client
