#include "coordinator/rpc/card.h"

#include <algorithm>

#include "base/log.h"
#include "base/text.h"
#include "coordinator/rpc/model_upload.h"
#include "schema/limits.h"
#include "schema/message.h"
#include "schema/require.h"

namespace shoal {
namespace {

constexpr size_t kOfferBytes = 128;  // Of an offer, besides its texts.

// The classes of work that may come to a host of the group, or of none.
std::vector<JobClass> classes_of(const OfferedModel& model, const std::string& group) {
  std::vector<JobClass> classes;
  if (model.group.empty()) {
    classes.push_back({"generate", model.name, false});
    classes.push_back({"generate", model.name, true});
  }
  if (!group.empty() && (model.group.empty() || model.group == group)) {
    classes.push_back({"generate", model.name, false, true});
  }
  return classes;
}

// What there is to do for a host.
struct Outlook {
  bool has_models = false, all_denied = true;
  Bytes smallest_need{INT64_MAX};
};

Outlook outlook_of(const Pool& pool, const Pool::Host& host,
                   const std::vector<OfferedModel>& models) {
  Outlook outlook;
  for (const OfferedModel& model : models) {
    const std::vector<JobClass> classes = classes_of(model, host.membership.group);
    if (classes.empty()) continue;
    outlook.has_models = true;
    outlook.smallest_need = std::min(outlook.smallest_need, model.facts.smallest_need);
    outlook.all_denied &= std::ranges::all_of(classes, [&](const JobClass& job_class) {
      return pool.denies(host.id, digest_of_class(job_class));
    });
  }
  return outlook;
}

Message message_of(std::string_view code, const DeviceSituation& device) {
  Message message{std::string(code), {}};
  if (code == "standing.leaving") message.parameters = {*device.available};
  if (code == "standing.model_too_large") message.parameters = {device.memory_free};
  return message;
}

}  // namespace

const std::vector<OfferedModel>& offered_models(Parts& parts) {
  if (parts.offered) return *parts.offered;
  std::vector<OfferedModel> models;
  for (ModelRow& row : rpc::require(parts.models.list(limits::kJobClassesMax / 2))) {
    const ModelFacts& facts = model_facts(parts, row);
    if (facts.damaged) continue;
    models.push_back({row.name, row.purpose, row.group, facts, row.sealed_bytes});
  }
  return parts.offered.emplace(std::move(models));
}

void forget_offered_models(Parts& parts) { parts.offered.reset(); }

void write_card(Parts& parts, rpc::CoordinatorCard::Builder out, size_t bytes_max,
                const std::string& group) {
  const CoordinatorSettings& settings = parts.folder.settings;
  out.setName(settings.name);
  out.setOperator(std::string(cut_utf8(settings.operator_text, limits::kCardTextBytesMax)));
  struct Line {
    const OfferedModel* model;
    JobClass job_class;
  };
  std::vector<Line> lines;
  size_t bytes = settings.name.size() + limits::kCardTextBytesMax;
  for (const OfferedModel& model : offered_models(parts)) {
    for (JobClass& job_class : classes_of(model, group)) {
      bytes += kOfferBytes + model.name.size() + model.purpose.size();
      if (bytes <= bytes_max) lines.push_back({&model, std::move(job_class)});
    }
  }
  auto offers = out.initOffers(static_cast<uint>(lines.size()));
  for (uint i = 0; i < offers.size(); ++i) {
    const OfferedModel& model = *lines[i].model;
    write_job_class(lines[i].job_class, offers[i].initJobClass());
    offers[i].setPurpose(model.purpose);
    offers[i].setSealedBytes(static_cast<uint64_t>(model.sealed_bytes));
    offers[i].setCreditPerRow(model.facts.credit_per_row);
  }
}

void write_standing(Parts& parts, const Pool::Host& host,
                    std::map<std::string, StandingSince>& since, rpc::HostStanding::Builder out) {
  const Ledger::Standing standing = rpc::require(parts.ledger.standing(host.id));
  out.setNewestReceipt(standing.newest_receipt);
  out.setCreditConfirmed(standing.confirmed);
  out.setCreditPending(standing.pending);
  out.setCreditRejected(standing.rejected);

  out.setCreditRate(parts.folder.settings.credit_rate);
  out.setCreditUnit(parts.folder.settings.credit_unit);
  if (host.membership.account.value != 0) {
    const auto account = rpc::require(parts.accounts.find(host.membership.account));
    if (account) {
      out.setAccount(account->name);
      out.setTeam(account->team);
    }
  }
  out.setGroup(host.membership.group);
  out.setNewestLedgerDay(rpc::require(parts.days.newest()));

  const Outlook outlook = outlook_of(parts.pool, host, offered_models(parts));
  const CoordinatorSituation coordinator{
      .stopping = parts.needs.stopping,
      .has_models = outlook.has_models,
      .smallest_need = outlook.smallest_need,
      .has_sessions = !parts.live.empty(),
  };
  const Millis now = parts.clock.now_wall();
  std::map<std::string, StandingSince> still;
  auto devices = out.initDevices(static_cast<uint>(host.devices.size()));
  for (uint i = 0; i < devices.size(); ++i) {
    const PoolDevice& device = host.devices[i];
    const Taken taken = host.taken_of(device.row.name_on_host);
    DeviceSituation situation;
    situation.state = device.state;
    situation.stages = taken.stages;
    situation.has_worker = device.worker_key.has_value();
    situation.exact = device.row.exact;
    situation.all_denied = outlook.all_denied;
    situation.memory_free = std::max(usable_memory(device.row.memory) - taken.bytes, Bytes{0});
    if (device.available_until) {
      const kj::Duration left = *device.available_until - parts.timer.now();
      situation.available = Millis{std::max<int64_t>(left / kj::MILLISECONDS, 0)};
    }
    const std::string state(state_word(device.state, taken.stages));
    const std::string code(why_no_work(situation, coordinator));
    const auto before = since.find(device.row.name_on_host);
    const bool as_before =
        before != since.end() && before->second.state == state && before->second.code == code;
    const Millis from = as_before ? before->second.since : now;
    devices[i].setDeviceId(device.row.name_on_host);
    devices[i].setState(state);
    write_message(message_of(code, situation), devices[i].initWhy());
    devices[i].setSinceMs(from.count);
    still[device.row.name_on_host] = {state, code, from};
  }
  since = std::move(still);
}

}  // namespace shoal
