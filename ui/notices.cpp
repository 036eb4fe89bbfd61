#include "ui/notices.h"

#include <QDBusConnection>
#include <QDBusMessage>
#include <QDBusPendingCallWatcher>
#include <QDBusPendingReply>
#include <QSettings>
#include <QVariantMap>

#include "ui/contribute.h"
#include "ui/messages.h"

namespace shoal::ui {
namespace {

constexpr char kService[] = "org.freedesktop.Notifications";
constexpr char kPath[] = "/org/freedesktop/Notifications";
constexpr char kEnabled[] = "notices/enabled";
constexpr char kFirstCredit[] = "notices/first_credit_told";
constexpr int64_t kLongPauseMs = 45 * 60'000;

}  // namespace

Notices::Notices(const Clock& clock, QSettings& settings, QObject* parent)
    : QObject(parent), clock_(clock), settings_(settings) {
  QDBusConnection::sessionBus().connect(kService, kPath, kService, "ActionInvoked", this,
                                        SLOT(action_invoked(uint, QString)));
}

bool Notices::enabled() const { return settings_.value(kEnabled, true).toBool(); }
void Notices::set_enabled(bool enabled) { settings_.setValue(kEnabled, enabled); }

bool Notices::night() const {
  const int hour = local_time(clock_.now_wall()).minute_of_day / 60;
  return hour < 7 || hour >= 22;
}

void Notices::show_snapshot(rpc::Snapshot::Reader snapshot) {
  const auto attend = [this](rpc::Verdict::Reader verdict, const QString& what) {
    if (verdict.getActivity() != rpc::Activity::ATTENTION) return told_.remove(what), void();
    if (told_.contains(what)) return;
    told_.insert(what);
    tell(tr("Shoal needs your attention"), sentence(verdict.getWhy()), true);
  };
  bool any_device = false;
  for (const auto device : snapshot.getDevices()) {
    if (!device.getLent()) continue;
    any_device = any_device || device.getVerdict().getActivity() == rpc::Activity::ATTENTION;
    attend(device.getVerdict(), QString::fromUtf8(device.getReport().getInfo().getId().cStr()));
  }
  // A device's trouble was told by the device.
  if (!any_device) attend(snapshot.getOverall(), "overall");

  const bool has_credit = snapshot.getEver().getCreditConfirmed() > 0;
  if (has_credit && !settings_.value(kFirstCredit, false).toBool() && !night()) {
    // Who installs this window on a machine that worked before knows it already.
    if (!first_ && !knew_credit_) {
      tell(tr("Your first credit"),
           tr("Work of this computer was accepted for the first time. Thank you."));
    }
    settings_.setValue(kFirstCredit, true);
  }
  knew_credit_ = has_credit;

  const Millis now = clock_.now_wall();
  const Millis end = pause_end(snapshot);
  if (end.count != 0) {
    if (paused_until_.count == 0) paused_since_ = now;
    paused_until_ = end;
  } else {
    const bool over = paused_until_.count != 0 && is_contributing(snapshot) &&
                      now.count >= paused_until_.count - 2'000;
    if (over && now.count - paused_since_.count >= kLongPauseMs && !night()) {
      tell(tr("Your pause is over"), tr("Shoal goes by your rules again."));
    }
    paused_until_ = Millis{0};
  }
  first_ = false;
}

void Notices::tell(const QString& title, const QString& text, bool urgent) {
  if (!enabled()) return;
  QDBusConnection bus = QDBusConnection::sessionBus();
  if (!bus.isConnected()) return;
  QDBusMessage message = QDBusMessage::createMethodCall(kService, kPath, kService, "Notify");
  QVariantMap hints;
  hints["urgency"] = QVariant::fromValue<uchar>(urgent ? 1 : 0);
  hints["desktop-entry"] = "org.shoal.Shoal";
  // The body is markup on many desktops, and strangers wrote parts of it.
  message << "Shoal" << uint{0} << "org.shoal.Shoal" << title << text.toHtmlEscaped()
          << QStringList{"default", tr("Open Shoal")} << hints << int{-1};
  auto* answer = new QDBusPendingCallWatcher(bus.asyncCall(message, 5'000), this);
  connect(answer, &QDBusPendingCallWatcher::finished, this, [this](QDBusPendingCallWatcher* done) {
    const QDBusPendingReply<uint> reply = *done;
    done->deleteLater();
    if (!reply.isError()) last_id_ = reply.value();
  });
}

void Notices::action_invoked(uint id, const QString&) {
  if (id == last_id_ && id != 0) Q_EMIT clicked();
}

}  // namespace shoal::ui
