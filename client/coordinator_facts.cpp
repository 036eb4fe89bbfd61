#include "client/coordinator_facts.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "schema/limits.h"

namespace shoal::client {
namespace {

std::string text_within(capnp::Text::Reader text, size_t bytes_max, bool keep_lines = false) {
  return printable(cut_utf8(std::string_view(text.cStr(), text.size()), bytes_max), keep_lines);
}

// All texts of a card that is kept: a snapshot carries it with every change.
constexpr size_t kCardBytesMax = size_t{256} << 10;
constexpr size_t kOfferBytes = 64;  // Beside its texts.
constexpr size_t kCreditUnitBytesMax = 32;

double credit_within(double value) { return std::isfinite(value) ? std::max(value, 0.0) : 0.0; }

// Throws for a class with a field over its limit, as the rest of the list is then not believed.
JobClass class_of(rpc::JobClass::Reader from) {
  JobClass job_class = read_job_class(from);
  job_class.kind = printable(job_class.kind);
  job_class.model = printable(job_class.model);
  return job_class;
}

}  // namespace

CoordinatorCard read_card(rpc::CoordinatorCard::Reader from) {
  CoordinatorCard card;
  card.name = text_within(from.getName(), limits::kNameBytesMax);
  card.description = text_within(from.getOperator(), limits::kCardTextBytesMax, true);
  size_t bytes = card.name.size() + card.description.size();
  for (const auto in : from.getOffers()) {
    if (card.offers.size() == limits::kJobClassesMax) break;
    CoordinatorCard::Offer offer{class_of(in.getJobClass()),
                                 text_within(in.getPurpose(), limits::kCardTextBytesMax, true),
                                 in.getSealedBytes(), credit_within(in.getCreditPerRow())};
    bytes += kOfferBytes + offer.job_class.kind.size() + offer.job_class.model.size() +
             offer.purpose.size();
    if (bytes > kCardBytesMax) break;
    card.offers.push_back(std::move(offer));
  }
  return card;
}

HostStanding read_standing(rpc::HostStanding::Reader from) {
  HostStanding standing;
  standing.newest_receipt = from.getNewestReceipt();
  standing.confirmed = credit_within(from.getCreditConfirmed());
  standing.pending = credit_within(from.getCreditPending());
  standing.rejected = credit_within(from.getCreditRejected());
  for (const auto in : from.getDevices()) {
    if (standing.devices.size() == limits::kDevicesPerHostMax) break;
    standing.devices.push_back({text_within(in.getDeviceId(), limits::kNameBytesMax),
                                text_within(in.getState(), limits::kNameBytesMax),
                                read_message(in.getWhy()), Millis{in.getSinceMs()}});
  }
  standing.credit_rate = credit_within(from.getCreditRate());
  standing.credit_unit = text_within(from.getCreditUnit(), kCreditUnitBytesMax);
  standing.account = text_within(from.getAccount(), limits::kNameBytesMax);
  standing.team = text_within(from.getTeam(), limits::kNameBytesMax);
  standing.group = text_within(from.getGroup(), limits::kNameBytesMax);
  standing.newest_day = std::max<int64_t>(from.getNewestLedgerDay(), 0);
  return standing;
}

void write_card(const CoordinatorCard& card, rpc::CoordinatorCard::Builder to) {
  to.setName(card.name);
  to.setOperator(card.description);
  auto offers = to.initOffers(static_cast<uint32_t>(card.offers.size()));
  for (uint32_t i = 0; i < offers.size(); ++i) {
    write_job_class(card.offers[i].job_class, offers[i].initJobClass());
    offers[i].setPurpose(card.offers[i].purpose);
    offers[i].setSealedBytes(card.offers[i].sealed_bytes);
    offers[i].setCreditPerRow(card.offers[i].credit_per_row);
  }
}

void write_standing(const HostStanding& standing, rpc::HostStanding::Builder to) {
  to.setNewestReceipt(standing.newest_receipt);
  to.setCreditConfirmed(standing.confirmed);
  to.setCreditPending(standing.pending);
  to.setCreditRejected(standing.rejected);
  to.setCreditRate(standing.credit_rate);
  to.setCreditUnit(standing.credit_unit);
  to.setAccount(standing.account);
  to.setTeam(standing.team);
  to.setGroup(standing.group);
  to.setNewestLedgerDay(standing.newest_day);
  auto devices = to.initDevices(static_cast<uint32_t>(standing.devices.size()));
  for (uint32_t i = 0; i < devices.size(); ++i) {
    devices[i].setDeviceId(standing.devices[i].id);
    devices[i].setState(standing.devices[i].state);
    write_message(standing.devices[i].why, devices[i].initWhy());
    devices[i].setSinceMs(standing.devices[i].since.count);
  }
}

}  // namespace shoal::client
