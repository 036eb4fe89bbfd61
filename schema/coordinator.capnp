@0xb4d2f0a6c1e93703;
# What a volunteer's machine may ask of a coordinator, and what the coordinator asks back.
#
# The connection is TLS 1.3 with the coordinator's pinned certificate (schema/transport.h). All that a
# peer may do is a method of a capability it was handed.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("shoal::rpc");

using Common = import "common.capnp";
using Work = import "work.capnp";

const protocolVersion :UInt32 = 1;

interface Coordinator {
  # The bootstrap capability: all that an unknown peer has.

  hello @0 (protocolVersion :UInt32) -> (nonce :Data, protocolVersion :UInt32, name :Text);
  # A fresh nonce for this connection. Fails when the versions do not fit, saying which side is older.

  login @1 (login :Login, host :Host) -> (session :HostSession, hostId :UInt64, trusted :Bool);
  # Proves the host's identity. An unknown host needs an invite and is enrolled; a known one needs
  # none. Fails as "failed" with a sentence for the owner: no invite, expired invite, banned, wrong
  # signature.

  describe @2 () -> (card :CoordinatorCard);
  # What this coordinator asks of hosts, for an owner who has not joined yet.
}

struct CoordinatorCard {
  name @0 :Text;
  operator @1 :Text;         # Who runs it and what for, as its administrator wrote it. May be empty.
  offers @2 :List(Offer);

  struct Offer {
    # A class of work that may come, and what it costs a host.

    jobClass @0 :Common.JobClass;
    purpose @1 :Text;        # What the model is for, as its publisher wrote it. May be empty.
    sealedBytes @2 :UInt64;  # To fetch, if one device held the whole model.
    creditPerRow @3 :Float64;
  }
}

struct Login {
  publicKey @0 :Data;    # Ed25519: the host's identity.
  signature @1 :Data;    # Over "shoal-login-1" || nonce || pin of the coordinator's certificate.
  invite @2 :Text;       # From the attach URL; empty when there is none.
  hostName @3 :Text;
  system @4 :Text;       # "linux x86_64".
  version @5 :Text;      # Of the client.
}

struct DeviceReport {
  # A device that the owner enabled, with what it proved about itself.

  info @0 :Common.DeviceInfo;
  workerKey @1 :Data;             # X25519 public key of the running worker; empty: no worker now.
  selfTest @2 :Common.SelfTest;
  benchmark @3 :Common.Benchmark;
  state @4 :State;
  reason @5 :Text;                # Why it is not ready, for people.

  enum State {
    ready @0;       # May be given work.
    starting @1;    # Its worker is starting, testing or measuring.
    failed @2;      # Its worker does not stay up, or its self-test failed.
    draining @3;    # The owner wants it back: nothing new.
    paused @4;      # The owner's rules forbid it now; its loss is nobody's failure.
  }

  availableMs @6 :UInt64;
  # The owner wants the device back in so long; work that takes longer must not be given. 0: no end
  # is known.

  why @7 :Common.Message;         # The reason in a form that can be translated.
}

interface HostSession {
  # Held by a client while it is connected.

  report @0 (devices :List(DeviceReport)) -> ();
  # The whole list of enabled devices, whenever any of it changes.

  readShard @1 (digest :Data, offset :UInt64, length :UInt32) -> (bytes :Data);
  # Ciphertext of a shard that this host was given to open or to fetch. At most limits::kChunkBytesMax;
  # shorter only at the shard's end. Resume by offset.

  ping @2 () -> (intervalMs :UInt32, standing :HostStanding);
  # Tells that the host is alive; to be called each `intervalMs`.

  leave @3 (reason :Text) -> ();
  # An orderly goodbye: nothing that follows counts as a failure.

  setConsent @4 (denied :List(Common.JobClass)) -> ();
  # The whole list of classes that the owner denies: none of them is planned on this host.

  readReceipts @5 (afterNumber :UInt64, countMax :UInt32) -> (receipts :List(Common.Receipt));
  # This host's receipts in order. At most limits::kReceiptsPerCallMax.

  describe @6 () -> (card :CoordinatorCard, receiptKey :Data);
  # As of Coordinator, and the Ed25519 public key that signs receipts: it never changes.

  units @7 () -> (desk :Work.UnitDesk);

  ledgerDay @8 (fromDay :Int64, afterNumber :UInt64, countMax :UInt32)
      -> (day :Common.LedgerDay, proofs :List(Common.ReceiptProof), more :Bool);
  # The first day from `fromDay` on that has a root (a count of 0: there is none yet), and proofs
  # for those of this host's receipts with a number after `afterNumber` that are in it, in order. At
  # most limits::kProofsPerCallMax; `more` says that others follow.
}

struct HostStanding {
  # How this host stands with the coordinator. The credit figures are those of its ledger.

  newestReceipt @0 :UInt64;       # Its number; 0: none.
  creditConfirmed @1 :Float64;
  creditPending @2 :Float64;
  creditRejected @3 :Float64;
  devices @4 :List(Device);

  struct Device {
    deviceId @0 :Text;
    state @1 :Text;               # working, pooled (without work), sleeping (starting),
                                  # quarantined (failed), draining or paused.
    why @2 :Common.Message;       # Why it gets no work; no code when it works.
    sinceMs @3 :Int64;            # Wall clock of the coordinator.
  }

  creditRate @5 :Float64;         # What a credit is worth, in units of `creditUnit`.
  creditUnit @6 :Text;            # "EUR", "points"; empty: credit is worth nothing but itself.
  account @7 :Text;               # Whose this host is; may be empty, as those that follow.
  team @8 :Text;                  # Of the account.
  group @9 :Text;                 # Whose work at the level of privacy `group` it may do.
  newestLedgerDay @10 :Int64;     # The newest day with a root; 0: none.
}

interface Host {
  # Implemented by the client: what a coordinator may ask of it.

  openStage @0 (lease :StageLease) -> (stage :Common.Stage);
  # Fetches what shards it lacks, loads them into the device's worker, and answers when the stage
  # can step. Long; cancelled by dropping.

  fetchShards @1 (shards :List(Common.SealedShard)) -> ();
  # Standby: have these on disk and verified.

  ping @2 () -> ();
}

struct StageLease {
  # The right to run a stage until a time. Renewed by each step; over when the stage is dropped.

  leaseId @0 :UInt64;
  sessionId @1 :UInt64;
  deviceId @2 :Text;
  model @3 :Text;
  firstFragment @4 :UInt32;   # Of the model; the shards are this one and those that follow.
  spec @5 :Common.StageSpec;
  silenceMaxMs @6 :UInt32;    # Without a step for this long, the client may drop the stage.
  jobClass @7 :Common.JobClass;
}
