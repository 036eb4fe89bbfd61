@0xb4d2f0a6c1e93701;
# Words that all programs share: devices, shards, stages and steps.
#
# Every list, text and blob has a bound in limits.h, checked where written and where read.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("shoal::rpc");

struct DeviceInfo {
  # One GPU, or the CPU, of a host, as its driver describes it.

  id @0 :Text;         # Stable over restarts: "cpu", "vulkan:<uuid>".
  selector @1 :Text;   # What a person types: "cpu", "vulkan:0".
  plane @2 :Text;      # "cpu", "vulkan", "cuda".
  name @3 :Text;
  driver @4 :Text;
  memoryBytes @5 :UInt64;
  software @6 :Bool;   # A GPU driver that computes on the CPU.
}

struct Benchmark {
  # What a device measured on itself with one block of fixed shape (compute/compute.h, BenchReport).

  decodeRowsPerSecond @0 :Float64;
  prefillRowsPerSecond @1 :Float64;
  weightBytesPerSecond @2 :Float64;
  flopsPerSecond @3 :Float64;
  copyBytesPerSecond @4 :Float64;
  measuredAtMs @5 :Int64;      # Wall clock of the host.
}

struct SelfTest {
  # Whether the device's results are bit-identical to the reference (docs/EXACT.md).

  exact @0 :Bool;
  samples @1 :UInt32;
  failed @2 :UInt32;
  unsupported @3 :UInt32;
  firstFailure @4 :Text;
}

struct SealedShard {
  # A shard of a stage, and its key for one worker.

  digest @0 :Data;       # BLAKE2b-256 of the ciphertext: its address.
  sealedBytes @1 :UInt64;
  sealedKey @2 :Data;    # crypto_box_seal to the worker's public key. Empty when only fetching.
}

struct StageSpec {
  # What to open on a device: fragments in order, and how large its caches are.

  shards @0 :List(SealedShard);
  context @1 :UInt32;    # Positions per sequence.
  sequences @2 :UInt32;
  rowsMax @3 :UInt32;    # The largest step.
}

struct Sampling {
  # How a token is drawn (compute/sampling/sampler.h). A temperature of 0 is greedy.

  temperature @0 :Float32;
  topK @1 :UInt32;              # 0: off.
  topP @2 :Float32 = 1.0;
  minP @3 :Float32;
  repetitionPenalty @4 :Float32 = 1.0;
  seed @5 :UInt64;
}

struct Draw {
  # A token wanted from the row `row` of a step.

  row @0 :UInt32;
  sampling @1 :Sampling;
  history @2 :List(Int32);      # The last tokens, for the repetition penalty. Bounded.
  position @3 :UInt64;          # With the seed, decides the draw.
}

struct Score {
  # The log-likelihood of `token` after the row `row` of a step is wanted; at temperature 1.

  row @0 :UInt32;
  token @1 :Int32;
}

struct StepInput {
  # One step of a stage. Row i belongs to sequence sequences[i], at positions[i].

  sequences @0 :List(UInt32);
  positions @1 :List(UInt32);
  union {
    tokens @2 :List(Int32);     # When the stage begins with the embedding.
    hidden @3 :Data;            # f32 little-endian, rows x width.
  }
  draws @4 :List(Draw);         # When it ends with the head; rows ascending. May be empty: then
                                # the step only fills the caches.
  scores @5 :List(Score);       # Likewise.
  wantsFeatures @6 :Bool;       # Instead of draws and scores, when it ends with the head: the rows
                                # after the final norm, as hidden.
}

struct StepOutput {
  union {
    hidden @0 :Data;            # f32 little-endian, rows x width.
    tokens @1 :List(Int32);     # One for each draw.
  }
  computeMicros @2 :UInt64;     # Time on the device, as the worker saw it.
  logLikelihoods @3 :List(Float32);  # One for each score: natural logarithms.
}

interface Stage {
  # A stage that is loaded and ready. Dropping the capability frees its memory.

  step @0 (input :StepInput) -> (output :StepOutput);
  # Fails as "failed" for input that the stage refuses, and as "disconnected" when the device, its
  # process or its host is gone. Steps of one stage run one after another.

  shape @1 () -> (beginsWithTokens :Bool, endsWithLogits :Bool, width :UInt32, vocabulary :UInt32,
                  deviceBytes :UInt64);
}

struct Message {
  # A sentence for a person, as a code of schema/message.h and what fills its places: so that every
  # program can say it in its reader's language.

  code @0 :Text;
  parameters @1 :List(Parameter);

  struct Parameter {
    union {
      text @0 :Text;         # Shown as it is: a program's name, a coordinator's name.
      milliseconds @1 :Int64;
      bytes @2 :UInt64;
      celsius @3 :Float64;
      watts @4 :Float64;
      percent @5 :Float64;   # 25.0 is a quarter.
      count @6 :Int64;
      wallTime @7 :Int64;    # Milliseconds since 1970 UTC.
      kilowattHours @8 :Float64;
    }
  }
}

enum Privacy {
  public @0;     # Anyone; the text must be assumed readable by the stages' owners.
  anchored @1;   # Embedding, head, tokens and sampling only on trusted hosts.
  group @2;      # Only hosts of one group, who were invited to it.
}

struct JobClass {
  # What an owner allows or denies: a kind of work, on a model, at a level of privacy.

  kind @0 :Text;             # "generate", until there are jobs of other kinds.
  model @1 :Text;
  privacy @2 :Privacy;
}

struct Receipt {
  # What a coordinator owes for one lease, signed so that the owner can prove it. The signature is
  # Ed25519 by the coordinator's receipt key over the canonical bytes of schema/receipt.h.

  number @0 :UInt64;         # Counts the receipts of one host from 1, without gaps.
  hostId @1 :UInt64;
  leaseId @2 :UInt64;
  deviceId @3 :Text;
  jobClass @4 :JobClass;
  rows @5 :UInt64;           # Rows that went through the stage.
  credit @6 :Float64;        # 1 credit = 10^12 FLOP, computed from the graph by the coordinator.
  verdict @7 :Verdict;
  reason @8 :Text;           # A code of schema/message.h; empty when confirmed.
  atMs @9 :Int64;            # Wall clock of the coordinator.
  signature @10 :Data;

  enum Verdict {
    pending @0;              # Followed by another receipt for the same lease.
    confirmed @1;
    rejected @2;
  }
}

struct LedgerDay {
  # A coordinator's word for all receipts that it gave up to the end of a day (UTC) and after those
  # of the day before: the root of a Merkle tree over them (schema/merkle.h), signed with its
  # receipt key over the bytes of schema/ledger_day.h. Days without receipts have none.

  day @0 :Int64;             # Since 1970-01-01.
  count @1 :UInt64;          # Of receipts.
  root @2 :Data;
  previousRoot @3 :Data;     # Of the day before that has one; all zeros: none has.
  signature @4 :Data;
}

struct ReceiptProof {
  # That a receipt is among those of a day.

  number @0 :UInt64;         # The receipt's.
  place @1 :UInt64;          # Among the day's, from 0.
  path @2 :Data;             # Digests of 32 bytes each, from the leaf's neighbour up.
}
