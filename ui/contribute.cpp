#include "ui/contribute.h"

#include <QCoreApplication>
#include <QDateTime>
#include <QMenu>
#include <iterator>
#include <optional>

#include "ui/format.h"

namespace shoal::ui {
namespace {

class Contribute {
  Q_DECLARE_TR_FUNCTIONS(Contribute)
};

constexpr rpc::Resource kResources[] = {rpc::Resource::GPU, rpc::Resource::CPU,
                                        rpc::Resource::NETWORK};
constexpr int kMorningHour = 6;

}  // namespace

std::vector<PauseChoice> pause_choices(Millis now) {
  const QDateTime here = QDateTime::fromMSecsSinceEpoch(now.count);
  const QDateTime morning(here.date().addDays(1), QTime(kMorningHour, 0));
  constexpr int64_t kMinute = 60'000;
  return {
      {Contribute::tr("15 minutes"), Millis{15 * kMinute}},
      {Contribute::tr("1 hour"), Millis{60 * kMinute}},
      {Contribute::tr("4 hours"), Millis{240 * kMinute}},
      {Contribute::tr("Until tomorrow %1").arg(format_time(Millis{morning.toMSecsSinceEpoch()})),
       Millis{here.msecsTo(morning)}},
      {Contribute::tr("Until I resume"), Millis{0}}};
}

bool is_contributing(rpc::Snapshot::Reader snapshot) {
  for (const auto resource : snapshot.getResources()) {
    if (resource.getResource() != rpc::Resource::NETWORK &&
        resource.getMode() != rpc::Mode::PAUSED) {
      return true;
    }
  }
  return false;
}

Millis pause_end(rpc::Snapshot::Reader snapshot) {
  if (is_contributing(snapshot)) return Millis{0};
  int64_t end = 0;
  for (const auto resource : snapshot.getResources()) {
    if (resource.getResource() == rpc::Resource::NETWORK) continue;
    // The first that ends makes this machine contribute again.
    const int64_t own = resource.getModeEndsMs();
    if (own != 0 && (end == 0 || own < end)) end = own;
  }
  return Millis{end};
}

bool is_any_paused(rpc::Snapshot::Reader snapshot) {
  for (const auto resource : snapshot.getResources()) {
    if (resource.getMode() == rpc::Mode::PAUSED) return true;
  }
  return false;
}

void fill_pause_menu(QMenu& menu, Millis now, const std::function<void(Millis)>& chosen) {
  menu.clear();
  for (const PauseChoice& choice : pause_choices(now)) {
    QObject::connect(menu.addAction(choice.text), &QAction::triggered, &menu,
                     [chosen, length = choice.length] { chosen(length); });
  }
}

void set_mode(AgentLink& link, QObject* receiver, rpc::Resource resource, rpc::Mode mode,
              Millis length, Answered answered) {
  link.call<&rpc::Agent::Client::setModeRequest>(
      receiver,
      [&](auto params) {
        params.setResource(resource);
        params.setMode(mode);
        params.setForMs(static_cast<uint64_t>(std::max<int64_t>(length.count, 0)));
      },
      [answered = std::move(answered)](AnswerOf<&rpc::Agent::Client::setModeRequest> answer) {
        answered(answer.ok() ? nullptr : &answer.error());
      });
}

namespace {

using Order = std::function<void(rpc::Resource resource, Answered answered)>;

// One after another, so that there is one answer. A failure holds up none of the others.
void order_each(size_t at, const Order& order, const std::optional<Error>& first,
                const Answered& answered) {
  if (at == std::size(kResources)) return answered(first.has_value() ? &*first : nullptr);
  order(kResources[at], [at, order, first, answered](const Error* error) {
    const bool is_first = error != nullptr && !first.has_value();
    order_each(at + 1, order, is_first ? std::optional<Error>(*error) : first, answered);
  });
}

}  // namespace

void pause_all(AgentLink& link, QObject* receiver, Millis length, Answered answered) {
  order_each(
      0,
      [&link, receiver, length](rpc::Resource resource, Answered one) {
        set_mode(link, receiver, resource, rpc::Mode::PAUSED, length, std::move(one));
      },
      {}, answered);
}

void resume_all(AgentLink& link, QObject* receiver, Answered answered) {
  order_each(
      0,
      [&link, receiver](rpc::Resource resource, Answered one) {
        link.call<&rpc::Agent::Client::resumeRequest>(
            receiver, [&](auto params) { params.setResource(resource); },
            [one = std::move(one)](AnswerOf<&rpc::Agent::Client::resumeRequest> answer) {
              one(answer.ok() ? nullptr : &answer.error());
            });
      },
      {}, answered);
}

QString activity_word(rpc::Activity activity) {
  switch (activity) {
    case rpc::Activity::WORKING: return Contribute::tr("Working");
    case rpc::Activity::WAITING: return Contribute::tr("Waiting");
    case rpc::Activity::PAUSED: return Contribute::tr("Paused");
    case rpc::Activity::ATTENTION: return Contribute::tr("Needs attention");
    case rpc::Activity::OFFLINE: return Contribute::tr("Offline");
  }
  return Contribute::tr("Offline");
}

QString activity_icon(rpc::Activity activity) {
  switch (activity) {
    case rpc::Activity::WORKING: return "state-working";
    case rpc::Activity::WAITING: return "state-waiting";
    case rpc::Activity::PAUSED: return "state-paused";
    case rpc::Activity::ATTENTION: return "state-attention";
    case rpc::Activity::OFFLINE: return "state-offline";
  }
  return "state-offline";
}

QString resource_word(rpc::Resource resource) {
  switch (resource) {
    case rpc::Resource::GPU: return Contribute::tr("Graphics cards");
    case rpc::Resource::CPU: return Contribute::tr("Processor");
    case rpc::Resource::NETWORK: return Contribute::tr("Network");
  }
  return {};
}

QString resource_icon(rpc::Resource resource) {
  switch (resource) {
    case rpc::Resource::GPU: return "gpu";
    case rpc::Resource::CPU: return "cpu";
    case rpc::Resource::NETWORK: return "network";
  }
  return "gpu";
}

}  // namespace shoal::ui
