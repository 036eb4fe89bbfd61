@0xb4d2f0a6c1e93704;
# What shoalctl asks of the coordinator on the same machine, over a Unix socket (mode 0600) in the
# coordinator's data folder: who may open it is its administrator.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("shoal::rpc");

using Common = import "common.capnp";
using Work = import "work.capnp";

interface Admin {
  status @0 () -> (status :Status);

  publishModel @1 (manifest :Text, keys :List(Data), purpose :Text, group :Text)
      -> (upload :ModelUpload);
  # `manifest` is the JSON that `shoal-run cut` printed; one key for each of its shards, in order.
  # `purpose` tells volunteers what the model is for; it may be empty. With a `group`, only hosts of
  # it ever get the model's shards.

  listModels @2 () -> (models :List(ModelInfo));
  removeModel @3 (name :Text) -> ();

  listHosts @4 () -> (hosts :List(HostInfo));
  setHostStanding @5 (hostId :UInt64, standing :HostInfo.Standing) -> ();

  createInvite @6 (lifetimeMs :UInt64, usesMax :UInt32, account :Text, group :Text) -> (url :Text);
  # The whole attach URL, pin included. Hosts that are enrolled by it belong to the account and to
  # the group; both may be empty.

  listSessions @7 (endedMax :UInt32) -> (sessions :List(SessionInfo));
  # The live ones, and at most so many that ended, newest first.

  generate @8 (request :GenerateRequest, sink :TokenSink) -> (summary :GenerateSummary);
  # Streams tokens into `sink`; dropping the call ends the session.

  listEvents @9 (afterId :UInt64, countMax :UInt32) -> (events :List(Event));

  listReceipts @10 (hostId :UInt64, afterNumber :UInt64, countMax :UInt32)
      -> (receipts :List(Common.Receipt), receiptKey :Data);
  # What one host was told of its work, oldest first, and the key that signed it. At most
  # limits::kReceiptsPerCallMax: ask again after the last one's number.

  reconcileLedger @11 () -> (report :LedgerReport);
  # Adds up and checks all that the ledger ever said. Long; the coordinator works on meanwhile.

  submitJob @12 (spec :Text) -> (upload :Work.JobUpload, inputs :List(Text));
  # `spec` is a job file (docs/JOBS.md). `inputs` are the files to upload, as the job names them.

  listJobs @13 (endedMax :UInt32) -> (jobs :List(Work.JobInfo));
  # The live ones, and at most so many that ended, newest first.

  showJob @14 (jobId :UInt64) -> (job :Work.JobInfo, events :List(Event));
  changeJob @15 (jobId :UInt64, change :JobChange) -> (job :Work.JobInfo);
  jobResults @16 (jobId :UInt64, task :Text, sink :Work.ByteSink) -> (digest :Text, items :UInt64);
  # The output file of a task that is done; of one that is not, the confirmed items so far, with an
  # empty digest. An empty `task` is the last one.

  enum JobChange {
    pause @0;
    resume @1;
    cancel @2;
    retry @3;        # Items that were quarantined are tried again.
  }

  createAccount @17 (name :Text) -> ();
  # Who answers for hosts. Its hosts never check each other's results.

  listAccounts @18 () -> (accounts :List(AccountInfo));
  setAccountBanned @19 (name :Text, banned :Bool) -> (hostsDropped :UInt32);
  # A ban drops the account's hosts at once and lets them in no more; what of their work is not
  # confirmed counts nothing.

  createTeam @20 (name :Text) -> ();
  listTeams @21 () -> (teams :List(TeamInfo));
  joinTeam @22 (account :Text, team :Text) -> ();
  # An account is in one team at most: it leaves the one that it was in. An empty `team`: it leaves.

  setHostAccount @23 (hostId :UInt64, account :Text) -> ();
  setHostGroup @24 (hostId :UInt64, group :Text) -> ();
  # Empty: none.

  listLedgerDays @25 (fromDay :Int64, countMax :UInt32)
      -> (days :List(Common.LedgerDay), receiptKey :Data);
  # Those from `fromDay` on that have a root, in order.

  showSession @26 (sessionId :UInt64) -> (session :SessionInfo, figures :SessionFigures);
  # Live or ended.

  planSession @27 (request :GenerateRequest, promptTokens :UInt32) -> (plan :LivePlan);
  # What a session would be if it began now. Opens and stores nothing; the request holds no text.
}

struct AccountInfo {
  name @0 :Text;
  banned @1 :Bool;
  team @2 :Text;             # May be empty.
  hosts @3 :UInt32;
  hostsConnected @4 :UInt32;
  creditConfirmed @5 :Float64;   # The sums of the hosts that are its own now.
  creditPending @6 :Float64;
  creditRejected @7 :Float64;
  createdAtMs @8 :Int64;
}

struct TeamInfo {
  name @0 :Text;
  members @1 :List(Text);    # Accounts, by name.
  creditConfirmed @2 :Float64;   # The sums of the accounts that are members now.
  creditPending @3 :Float64;
  creditRejected @4 :Float64;
  createdAtMs @5 :Int64;
}

struct LedgerReport {
  leases @0 :UInt64;
  receipts @1 :UInt64;
  hosts @2 :UInt32;
  pending @3 :UInt64;          # Leases that wait for their session's end.
  creditConfirmed @4 :Float64;
  creditPending @5 :Float64;
  creditRejected @6 :Float64;
  problems @7 :List(Text);     # Sentences; empty when all of it agrees. The first 100.
  problemCount @8 :UInt64;
  days @9 :UInt64;             # Daily roots that were checked.
}

struct Status {
  name @0 :Text;
  version @1 :Text;
  uptimeMs @2 :UInt64;
  address @3 :Text;          # host:port of the hosts' door.
  pin @4 :Text;
  hostsKnown @5 :UInt32;
  hostsConnected @6 :UInt32;
  devicesReady @7 :UInt32;
  models @8 :UInt32;
  sessionsLive @9 :UInt32;
  tokensGenerated @10 :UInt64;   # Ever.
  relayedBytes @11 :UInt64;      # Since start.
  creditRate @12 :Float64;       # As in HostStanding.
  creditUnit @13 :Text;
}

interface ModelUpload {
  # The ciphertext of the manifest's shards, in order.

  write @0 (shard :UInt32, bytes :Data) -> stream;
  finish @1 () -> (model :ModelInfo);
  # The model exists only from here on; an upload that is dropped leaves nothing.
}

struct ModelInfo {
  name @0 :Text;
  digest @1 :Text;           # Of the manifest, in hex.
  architecture @2 :Text;     # "damaged" when its manifest cannot be read: publish it again.
  fragments @3 :UInt32;      # Embedding, blocks and head.
  sealedBytes @4 :UInt64;
  context @5 :UInt32;
  publishedAtMs @6 :Int64;
  purpose @7 :Text;          # What it is for, as its publisher wrote it.
  group @8 :Text;            # Whose hosts alone may hold it; empty: all may.
}

struct HostInfo {
  id @0 :UInt64;
  name @1 :Text;
  system @2 :Text;
  version @3 :Text;
  standing @4 :Standing;
  connected @5 :Bool;
  lastSeenMs @6 :Int64;
  devices @7 :List(Device);
  newestReceipt @8 :UInt64;  # Its number; 0: none.
  creditConfirmed @9 :Float64;
  creditPending @10 :Float64;
  creditRejected @11 :Float64;
  account @12 :Text;         # Whose it is; may be empty.
  group @13 :Text;           # Likewise.

  enum Standing {
    volunteer @0;
    trusted @1;     # May hold first and last stages of anchored sessions.
    banned @2;
  }

  struct Device {
    info @0 :Common.DeviceInfo;
    exact @1 :Bool;
    decodeRowsPerSecond @2 :Float64;
    state @3 :Text;          # As in HostStanding.Device; gone: its host is not connected.
    reason @4 :Text;
  }
}

struct StageInfo {
  hostId @0 :UInt64;
  hostName @1 :Text;
  trusted @2 :Bool;
  deviceId @3 :Text;
  deviceName @4 :Text;
  plane @5 :Text;
  firstFragment @6 :UInt32;  # Counted over the model: 0 is the embedding, 1 the first block.
  lastFragment @7 :UInt32;
}

struct SessionInfo {
  id @0 :UInt64;
  model @1 :Text;
  privacy @2 :Common.Privacy;
  state @3 :Text;            # planning, loading, running, repairing, done, failed, cancelled
  reason @4 :Text;
  promptTokens @5 :UInt32;
  tokens @6 :UInt32;
  startedAtMs @7 :Int64;
  endedAtMs @8 :Int64;       # 0 while it lives.
  failovers @9 :UInt32;
  stages @10 :List(StageInfo);
  group @11 :Text;           # At the level of privacy `group`: whose hosts alone took part.
}

struct GenerateRequest {
  model @0 :Text;
  prompt @1 :Text;
  maxTokens @2 :UInt32;
  sampling @3 :Common.Sampling;
  privacy @4 :Common.Privacy;
  stagesMin @5 :UInt32;      # Split over at least so many devices, even where one would do.
  cuts @6 :List(UInt32);     # Exactly these stage starts (fragment numbers), instead of the planner's.
  ignoreEos @7 :Bool;
  group @8 :Text;            # With the level of privacy `group`, which needs it.
  chat @9 :List(ChatMessage);  # Instead of a prompt: put as the model's own chat template puts it.
}

struct ChatMessage {
  role @0 :Text;             # system, user, assistant, or what else the template knows.
  content @1 :Text;
}

interface TokenSink {
  token @0 (id :Int32, text :Text) -> stream;
  # `text` is whole UTF-8; it may be empty while a character is unfinished.

  stages @1 (stages :List(StageInfo)) -> ();
  # Who runs what: at the start, and after each failover.

  failover @2 (event :Failover) -> ();
}

struct Failover {
  stage @0 :UInt32;
  atToken @1 :UInt32;        # Tokens already generated when the device was lost.
  gapMs @2 :UInt32;          # From the last token before to the first after.
  cause @3 :Text;
  replacement @4 :StageInfo;
}

struct GenerateSummary {
  sessionId @0 :UInt64;
  text @1 :Text;
  ids @2 :List(Int32);
  promptIds @3 :List(Int32);
  finishReason @4 :Text;     # stop, length, cancelled
  prefillMs @5 :UInt32;
  tokensPerSecond @6 :Float64;
  relayedBytes @7 :UInt64;
  stages @8 :List(StageInfo);
  failovers @9 :List(Failover);
  figures @10 :SessionFigures;
}

struct SessionFigures {
  # What a session's plan predicted when it began, beside what was measured.

  blockRows @0 :UInt32;      # So many rows of a prompt go into a stage at a time; 0: nothing is known.
  predicted @1 :Times;
  measured @2 :Times;        # So far. 0: it has not come to that.

  struct Times {
    prefillMs @0 :Float64;         # From all stages being open to the first token.
    tokensPerSecond @1 :Float64;   # Of the tokens after it; of this text alone.
    stages @2 :List(Stage);        # In order, whoever ran them; without what was replayed.
  }

  struct Stage {
    rowSeconds @0 :Float64;        # A step of one row, with the way to the host and back: a mean.
    rowSteps @1 :UInt32;           # Of so many; 0 where it is predicted.
    blockSeconds @2 :Float64;      # A step of a whole block of the prompt, likewise.
    blockSteps @3 :UInt32;
    hopSeconds @4 :Float64;        # The way alone; measured at the session's end.
  }
}

struct LivePlan {
  stages @0 :List(StageInfo);
  figures @1 :SessionFigures;      # Nothing of it was measured.
  why @2 :List(Reason);
  whyNotSplit @3 :List(Reason);
  whatWouldHelp @4 :List(Reason);  # What helps most comes first.

  struct Reason {
    code @0 :Text;                 # Stable, for scripts.
    text @1 :Text;                 # A sentence, without its period.
    factor @2 :Float64;            # How many times as fast, where it is about speed; else 0.
  }
}

struct Event {
  id @0 :UInt64;
  atMs @1 :Int64;
  kind @2 :Text;
  hostId @3 :UInt64;
  sessionId @4 :UInt64;
  text @5 :Text;             # Never holds a prompt, a token or a key.
}
