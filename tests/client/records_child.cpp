// What records_failure_test starts: uses the records of FOLDER as a client does, and is killed at
// the write with the given number. What is durable is told by a byte in the file "acks".

#include <cstdlib>

#include "tests/client/records_fixture.h"
#include "tests/coordinator/faulty_vfs.h"

using namespace shoal;
using namespace shoal::test;
using namespace shoal::client;

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const std::filesystem::path folder = argv[1];
  live_in_berlin();
  Signer signer;
  // The same key in every child and in the test, which made it.
  signer.key = SigningKey::from_seed(read_file(argv[2], kMebibyte).value()).value();
  const char* vfs = faulty_vfs();
  AppendFile acks = AppendFile::open(folder / "acks").value();
  die_at_write(std::atoi(argv[3]));
  ManualClock clock(kSpring);
  Records records(folder, clock, {.vfs = vfs});
  for (uint64_t round = 1; round <= 8; ++round) {
    clock.advance({kMinuteMs});
    records.add("cpu", {.worked_ms = 1000, .rows = 3, .joules = 5, .bytes_down = 7});
    records.note_verdict(Resource::kCpu, {.activity = Activity::kWorking,
                                          .why = {"working.now", {std::to_string(round)}}});
    records.note_conditions({.idle = Millis{0}, .on_battery = round % 2 == 0});
    if (!records.know_coordinator(signer.pin, "it", signer.key.public_key(), signer.host).ok())
      return 3;
    const Receipt receipt = signer.receipt(round, clock.now_wall());
    if (!records.append_receipts(signer.pin, std::span(&receipt, 1)).ok()) return 4;
    if (!acks.append(as_bytes("r")).ok()) return 5;
    records.flush();
    if (!records.problem().empty()) return 6;
    if (!acks.append(as_bytes("f")).ok()) return 5;
  }
  die_at_write(-1);
  return 0;
}
