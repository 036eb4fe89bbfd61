@0xb4d2f0a6c1e93706;
# Jobs, as a requester states them, and units: what a host leases of them ahead, computes whole on
# one of its devices, and hands in.
#
# A job is a DAG of tasks; a task is a range of items of one kind on one model; a unit is a part of
# that range, cut to what a device does in some minutes.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("shoal::rpc");

using Common = import "common.capnp";

interface UnitDesk {
  # One connected host's access to units. Every call may be repeated: it answers as before, and
  # nothing is counted twice.

  lease @0 (deviceId :Text, seconds :UInt32, countMax :UInt32)
      -> (units :List(Unit), why :Common.Message, askAgainMs :UInt32);
  # Units that the device is predicted to compute in about so many seconds together. Empty: `why`
  # says it in one sentence, and asking earlier than `askAgainMs` changes nothing.

  renew @1 (progress :List(Progress)) -> (ended :List(UInt64), untilMs :List(UInt64));
  # Of leases that the host still works on or keeps ahead. Those that are over, and for each of
  # `progress` how long it holds from now on (0: over).

  giveBack @2 (leaseId :UInt64, reason :GiveBack, text :Text) -> ();

  submit @3 (leaseId :UInt64, output :UnitOutput) -> (outcome :Outcome, why :Common.Message);
  # A result that came late is still taken when it is needed.

  enum GiveBack {
    owner @0;       # The owner's rules, a shutdown, a sleep: nobody's failure.
    tooSlow @1;     # It cannot end in time.
    failed @2;      # The device failed.
    refused @3;     # The unit's input is refused: `text` says why.
    denied @4;      # The owner denies such work.
  }

  enum Outcome {
    accepted @0;
    repeated @1;    # As accepted before.
    notNeeded @2;   # Too late: another host's result was confirmed. Credited if it agrees.
    rejected @3;    # `why` says why.
  }
}

struct Progress {
  leaseId @0 :UInt64;
  itemsDone @1 :UInt32;
  running @2 :Bool;        # Else it is kept ahead.
}

struct Unit {
  id @0 :UInt64;
  leaseId @1 :UInt64;
  jobId @2 :UInt64;
  untilMs @3 :UInt64;      # The lease holds so long from now.
  estimateMs @4 :UInt64;
  jobClass @5 :Common.JobClass;
  spec @6 :Common.StageSpec;  # The whole model.
  flops @7 :Float64;
  kind :union {
    generate @8 :Void;
    score @9 :Void;
    embed @10 :Void;
  }
  items @11 :List(Item);
}

struct Item {
  tokens @0 :List(Int32);     # generate: the prompt. score, embed: the text.
  tokensMax @1 :UInt32;       # generate: to draw at most.
  sampling @2 :Common.Sampling;
  stop @3 :List(Int32);       # generate: any of these ends it, and is its last token.
  scoreFrom @4 :UInt32;       # score: log-likelihoods of tokens[scoreFrom] and those after it; >= 1.
}

struct UnitOutput {
  items @0 :List(ItemOutput);   # One for each of the unit's, in order.
}

struct ItemOutput {
  union {
    tokens @0 :List(Int32);     # generate
    logLikelihoods @1 :List(Float32);  # score: natural logarithms.
    vector @2 :List(Float32);   # embed: the mean over positions of the final hidden rows.
  }
}

# What administrators see.

struct JobInfo {
  id @0 :UInt64;
  name @1 :Text;
  state @2 :State;
  reason @3 :Text;             # Why it is paused or failed, for people.
  priority @4 :Int32;
  submittedAtMs @5 :Int64;
  endedAtMs @6 :Int64;         # 0 while it lives.
  deadlineMs @7 :Int64;        # Wall time; 0: none.
  tasks @8 :List(TaskInfo);
  etaMs @9 :UInt64;            # At the rate of the last minutes; 0: not known.
  credit @10 :Float64;         # Confirmed.

  enum State {
    queued @0;
    running @1;
    paused @2;
    done @3;
    failed @4;
    cancelled @5;
  }
}

struct TaskInfo {
  name @0 :Text;
  kind @1 :Text;               # generate, score, embed
  model @2 :Text;
  state @3 :Text;              # waiting, ready, done, failed
  after @4 :List(Text);        # Tasks whose results it needs.
  items @5 :UInt64;
  itemsDone @6 :UInt64;        # Confirmed.
  itemsPending @7 :UInt64;     # A result is in, and not confirmed yet.
  itemsLeased @8 :UInt64;
  itemsQuarantined @9 :UInt64; # They broke every host that tried.
  digest @10 :Text;            # BLAKE2b-256 of its output file, in hex; empty until it is done.
}

interface JobUpload {
  # The input files of a job's tasks, in the order in which the job names them.

  write @0 (input :UInt32, bytes :Data) -> stream;
  finish @1 () -> (job :JobInfo);
  # The job exists only from here on; an upload that is dropped leaves nothing.
}

interface ByteSink {
  write @0 (bytes :Data) -> stream;
}
