#pragma once
// A fake host that works on units: computes them with the toy model, or wrongly on purpose.

#include <functional>
#include <string>
#include <vector>

#include "schema/work.capnp.h"
#include "tests/coordinator/world.h"

namespace shoal::test {

struct GotUnit {
  uint64_t id = 0, lease = 0;
  std::string kind, model;
  struct Item {
    std::vector<int32_t> tokens, stop;
    uint32_t tokens_max = 0, score_from = 0;
    uint64_t seed = 0;
  };
  std::vector<Item> items;
  uint32_t context = 0, sequences = 0;
  size_t shards = 0;
  uint64_t until_ms = 0;
};

struct GotUnits {
  std::vector<GotUnit> units;
  std::string why;  // The code.
  uint32_t ask_again_ms = 0;
};

// What a unit's item gives: tokens, or numbers.
struct ToyResult {
  std::vector<int32_t> tokens;
  std::vector<float> numbers;
};
ToyResult toy_result(const GotUnit& unit, size_t item);

class UnitHost {
 public:
  explicit UnitHost(FakeHost& host) : host(host) {}

  GotUnits lease(uint32_t seconds = 600, uint32_t count = 4, const std::string& device = "cpu");
  // "accepted", "repeated", "notNeeded", "rejected"; `spoil` may change the results.
  std::string submit(const GotUnit& unit,
                     const std::function<void(std::vector<ToyResult>&)>& spoil = {});
  void give_back(uint64_t lease, rpc::UnitDesk::GiveBack reason);
  std::vector<uint64_t> renew(const std::vector<uint64_t>& leases);  // untilMs.
  std::string last_why;                                              // The code of the last submit.

  // Leases, and submits what it got, until it gets nothing. How many units it did.
  int work(int units_max = 1000);
  bool lies = false;  // Of generate: the first token is another one.
  // All calls go to one desk from then on, as a client's do; else each to one of its own.
  void keep_desk() { desk_ = desk(); }

  FakeHost& host;

 private:
  rpc::UnitDesk::Client desk();

  kj::Maybe<rpc::UnitDesk::Client> desk_;
};

}  // namespace shoal::test
