#include "tests/coordinator/unit_host.h"

#include <kj/debug.h>

namespace shoal::test {
namespace {

void write_output(const std::vector<ToyResult>& results, const std::string& kind,
                  rpc::UnitOutput::Builder out) {
  auto items = out.initItems(static_cast<uint>(results.size()));
  for (uint i = 0; i < items.size(); ++i) {
    const ToyResult& result = results[i];
    if (kind == "generate") {
      auto tokens = items[i].initTokens(static_cast<uint>(result.tokens.size()));
      for (uint k = 0; k < tokens.size(); ++k) tokens.set(k, result.tokens[k]);
      continue;
    }
    const auto count = static_cast<uint>(result.numbers.size());
    auto numbers =
        kind == "score" ? items[i].initLogLikelihoods(count) : items[i].initVector(count);
    for (uint k = 0; k < numbers.size(); ++k) numbers.set(k, result.numbers[k]);
  }
}

}  // namespace

ToyResult toy_result(const GotUnit& unit, size_t index) {
  const GotUnit::Item& item = unit.items[index];
  ToyResult result;
  if (unit.kind == "generate") {
    result.tokens = toy_tokens(item.tokens, item.tokens_max, item.seed, item.stop.empty());
  } else if (unit.kind == "score") {
    for (size_t i = item.score_from; i < item.tokens.size(); ++i)
      result.numbers.push_back(-0.5f - static_cast<float>(item.tokens[i] % 7));
  } else {
    for (int k = 0; k < kToyWidth; ++k)
      result.numbers.push_back(static_cast<float>(item.tokens.size()) +
                               0.25f * static_cast<float>(k));
  }
  return result;
}

rpc::UnitDesk::Client UnitHost::desk() {
  KJ_IF_MAYBE (kept, desk_) {
    return *kept;
  }
  return KJ_ASSERT_NONNULL(host.session).unitsRequest().send().getDesk();
}

GotUnits UnitHost::lease(uint32_t seconds, uint32_t count, const std::string& device) {
  auto request = desk().leaseRequest();
  request.setDeviceId(device);
  request.setSeconds(seconds);
  request.setCountMax(count);
  const auto response =
      host.world.run(kj::Promise<capnp::Response<rpc::UnitDesk::LeaseResults>>(request.send()));
  GotUnits got;
  got.why = response.getWhy().getCode().cStr();
  got.ask_again_ms = response.getAskAgainMs();
  for (const auto in : response.getUnits()) {
    GotUnit unit;
    unit.id = in.getId();
    unit.lease = in.getLeaseId();
    unit.kind = in.getKind().isGenerate() ? "generate" : in.getKind().isScore() ? "score" : "embed";
    unit.model = in.getJobClass().getModel().cStr();
    unit.context = in.getSpec().getContext();
    unit.sequences = in.getSpec().getSequences();
    unit.shards = in.getSpec().getShards().size();
    unit.until_ms = in.getUntilMs();
    for (const auto from : in.getItems()) {
      GotUnit::Item item;
      for (const int32_t token : from.getTokens()) item.tokens.push_back(token);
      for (const int32_t token : from.getStop()) item.stop.push_back(token);
      item.tokens_max = from.getTokensMax();
      item.score_from = from.getScoreFrom();
      item.seed = from.getSampling().getSeed();
      unit.items.push_back(std::move(item));
    }
    got.units.push_back(std::move(unit));
  }
  return got;
}

std::string UnitHost::submit(const GotUnit& unit,
                             const std::function<void(std::vector<ToyResult>&)>& spoil) {
  std::vector<ToyResult> results;
  for (size_t i = 0; i < unit.items.size(); ++i) {
    results.push_back(toy_result(unit, i));
    if (lies && !results.back().tokens.empty()) {
      int32_t& token = results.back().tokens.front();
      token = token == 40 ? 41 : 40;
    }
  }
  if (spoil) spoil(results);
  auto request = desk().submitRequest();
  request.setLeaseId(unit.lease);
  write_output(results, unit.kind, request.initOutput());
  const auto response =
      host.world.run(kj::Promise<capnp::Response<rpc::UnitDesk::SubmitResults>>(request.send()));
  last_why = response.getWhy().getCode().cStr();
  switch (response.getOutcome()) {
    case rpc::UnitDesk::Outcome::ACCEPTED: return "accepted";
    case rpc::UnitDesk::Outcome::REPEATED: return "repeated";
    case rpc::UnitDesk::Outcome::NOT_NEEDED: return "notNeeded";
    case rpc::UnitDesk::Outcome::REJECTED: return "rejected";
  }
  return "unknown";
}

void UnitHost::give_back(uint64_t lease, rpc::UnitDesk::GiveBack reason) {
  auto request = desk().giveBackRequest();
  request.setLeaseId(lease);
  request.setReason(reason);
  request.setText("for the test");
  host.world.run(request.send().ignoreResult());
}

std::vector<uint64_t> UnitHost::renew(const std::vector<uint64_t>& leases) {
  auto request = desk().renewRequest();
  auto progress = request.initProgress(static_cast<uint>(leases.size()));
  for (uint i = 0; i < progress.size(); ++i) progress[i].setLeaseId(leases[i]);
  const auto response =
      host.world.run(kj::Promise<capnp::Response<rpc::UnitDesk::RenewResults>>(request.send()));
  std::vector<uint64_t> until;
  for (const uint64_t ms : response.getUntilMs()) until.push_back(ms);
  return until;
}

int UnitHost::work(int units_max) {
  int done = 0;
  while (done < units_max) {
    const GotUnits got = lease(600, 1);
    if (got.units.empty()) break;
    for (const GotUnit& unit : got.units) {
      submit(unit);
      ++done;
    }
  }
  return done;
}

}  // namespace shoal::test
