@0xb4d2f0a6c1e93705;
# What a user interface, or the command line, may see and ask of the client on the same machine, over
# a Unix socket (mode 0600) in the client's runtime folder.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("shoal::rpc");

using Common = import "common.capnp";
using Coordinator = import "coordinator.capnp";

interface Agent {
  snapshot @0 (afterRevision :UInt64) -> (snapshot :Snapshot);
  # Answers at once when the revision is another than `afterRevision`, else when something changes.
  # Changes of mere figures (a temperature, a count) come at most once a second.

  benchmark @1 (deviceId :Text) -> (report :Common.Benchmark, selfTest :Common.SelfTest);
  # Measures a device again. Waits until it has no stage.

  stop @2 () -> ();
  # Ends the client in order: stages are given back, workers stop.

  attach @3 (url :Text, denied :List(Common.JobClass)) -> (connection :Snapshot.Connection);
  # Contacts the coordinator, enrols with the URL's invite, and stays attached. Fails with the reason.
  # What is denied is stored, and told to the coordinator, before it hears of any device.

  detach @4 (url :Text) -> (count :UInt32);
  # Leaves the coordinator at this URL, with or without its pin; all of them when it is empty.

  previewAttach @5 (url :Text) -> (card :Coordinator.CoordinatorCard);
  # What the coordinator would ask, before joining it: uses no invite and changes nothing.

  setMode @6 (resource :Resource, mode :Mode, forMs :UInt64) -> ();
  # Durable. A pause, and any mode `forMs` long (0: until changed), passes: at its end, or by resume(),
  # the mode before it holds again.

  setLeaveBy @7 (atMs :Int64) -> ();
  # From now on only work that ends before this wall time is taken, and then none; 0: no such time.

  settings @8 () -> (settings :List(Setting));
  # Every setting of the client, in the order of its table.

  changeSettings @9 (changes :List(SettingChange)) -> ();
  # All or nothing; durable; acts at once. Fails with the key and what is wrong with its value.

  trace @10 (fromMs :Int64, toMs :Int64) -> (spans :List(TraceSpan));
  # What each resource did and why, oldest first; the newest kRowsMax of the time asked for.

  whatIf @11 (changes :List(SettingChange), days :UInt32) -> (resources :List(WhatIf));
  # How long each resource could have worked in the last days, under the rules as they are and as
  # they would be with the changes. Nothing is changed.

  statistics @12 (fromMs :Int64, toMs :Int64, stepMs :Int64) -> (rows :List(StatisticsRow));
  # Sums by step (at least a minute; made coarser where only coarser rows are kept) and device.

  history @13 (countMax :UInt32) -> (work :List(PastWork));
  # Stages that ended, newest first.

  receipts @14 (afterRow :UInt64, countMax :UInt32) -> (receipts :List(StoredReceipt));

  verifyReceipts @15 () -> (report :List(ReceiptReport));
  # Checks every stored signature offline, and each coordinator's totals against them.

  setConsent @16 (url :Text, jobClass :Common.JobClass, allowed :Bool) -> ();
  # Durable, and told to the coordinator at once. Stages of a denied class are given back.

  setDeviceLent @17 (deviceId :Text, lent :Bool) -> ();
  # Durable: changes the setting compute.devices.

  log @18 (afterId :UInt64, countMax :UInt32) -> (lines :List(LogLine));
  # The newest lines after `afterId`, oldest first.

  bundle @19 () -> (text :Text);
  # For a bug report: versions, devices, settings, snapshot, trace and log, without keys, invites,
  # addresses, and names of people and machines.

  testSensor @20 (name :Text) -> (sensor :Sensor);
  # Asks one sensor anew, now.

  pair @21 () -> (url :Text, expiresMs :Int64);
  # Lets one user interface on another machine pair, within ten minutes, by this URL. Fails while
  # the setting remote.listen is empty.

  pairings @22 () -> (pairings :List(Pairing));
  unpair @23 (id :UInt64) -> ();

  resume @24 (resource :Resource) -> ();
  # Ends a pause, or a mode for a time. Nothing when there is none.
}

interface RemoteAgent {
  # The bootstrap capability of the remote door (TLS 1.3, pinned by the pairing URL).

  open @0 (token :Text, name :Text) -> (agent :Agent, token :Text);
  # `token` is the URL's, which works once, or the one that an earlier call answered with.
}

enum Resource { gpu @0; cpu @1; network @2; }
enum Mode { byRules @0; always @1; paused @2; }

enum Activity {
  # The five states of the tray, and of each resource and device.

  working @0;        # It computes, or could: work may come at any time.
  waiting @1;        # A rule forbids it now.
  paused @2;         # The owner paused it.
  attention @3;      # Only a person can put it right.
  offline @4;        # No coordinator can be reached, or none is attached.
}

struct Verdict {
  activity @0 :Activity;
  why @1 :Common.Message;       # One sentence.
  remedy @2 :Common.Message;    # What would change it. May be empty.
  rule @3 :Text;                # The settings key of the rule, if one decided.
  sinceMs @4 :Int64;            # Wall time.
  changesAtMs @5 :Int64;        # When it changes by itself; 0: not known.
}

struct Snapshot {
  revision @0 :UInt64;
  version @1 :Text;
  hostName @2 :Text;
  connections @3 :List(Connection);
  devices @4 :List(Device);     # All of this machine, lent or not.
  cacheBytes @5 :UInt64;
  cacheBytesMax @6 :UInt64;
  transfers @7 :List(Transfer);
  pid @8 :UInt32;

  overall @9 :Verdict;          # What the tray shows.
  resources @10 :List(ResourceState);
  sensors @11 :List(Sensor);
  work @12 :List(Work);         # Stages that are open now.
  today @13 :Totals;
  ever @14 :Totals;
  leaveByMs @15 :Int64;         # 0: none.
  yield @16 :Yield;
  startedAtMs @17 :Int64;
  stateFolder @18 :Text;
  remoteListens @19 :Bool;
  idleSupported @20 :Bool;      # False: no source tells whether the owner is here.
  notices @21 :List(Common.Message);
  # What the owner should know though work goes on: a file that was damaged, a door that is closed.

  struct ResourceState {
    resource @0 :Resource;
    mode @1 :Mode;
    modeEndsMs @2 :Int64;       # Wall time at which the mode ends, as of setMode; 0: not by itself.
    verdict @3 :Verdict;
  }

  struct Connection {
    url @0 :Text;            # Without pin and invite.
    name @1 :Text;
    state @2 :Text;          # connecting, connected, waiting, refused
    reason @3 :Text;
    retryInMs @4 :UInt32;
    hostId @5 :UInt64;       # As the coordinator numbers this host; 0 before the first login.
    trusted @6 :Bool;
    standing @7 :Coordinator.HostStanding;
    card @8 :Coordinator.CoordinatorCard;
    denied @9 :List(Common.JobClass);
    lastWorkMs @10 :Int64;   # Wall time of the last step from there; 0: never.
    connectedSinceMs @11 :Int64;
    receiptsStored @12 :UInt64;
  }

  struct Device {
    report @0 :Coordinator.DeviceReport;
    workerPid @1 :UInt32;
    restarts @2 :UInt32;
    stages @3 :UInt32;
    steps @4 :UInt64;
    rows @5 :UInt64;
    lent @6 :Bool;
    resource @7 :Resource;
    verdict @8 :Verdict;
    temperatureC @9 :Float32;    # NaN: not known.
    watts @10 :Float32;          # NaN: not known.
    wattsMeasured @11 :Bool;     # False: estimated.
    duty @12 :Float32;           # 0 to 1, over the last minute.
    paceDuty @13 :Float32;       # What the comfort governor allows: 0 to 1.
    paceWhy @14 :Common.Message;
    memoryUsedBytes @15 :UInt64; # By Shoal.
    today @16 :Totals;
  }

  struct Transfer {
    digest @0 :Text;
    bytesDone @1 :UInt64;
    bytesTotal @2 :UInt64;
    bytesPerSecond @3 :Float64;
    coordinator @4 :Text;
  }

  struct Work {
    leaseId @0 :UInt64;
    sessionId @1 :UInt64;
    coordinator @2 :Text;
    deviceId @3 :Text;
    jobClass @4 :Common.JobClass;
    firstFragment @5 :UInt32;
    lastFragment @6 :UInt32;
    state @7 :Text;          # ahead, fetching, loading, ready, working
    sinceMs @8 :Int64;
    steps @9 :UInt64;
    rows @10 :UInt64;
    unit @11 :Unit;          # When it is a unit of a job: then no session and no fragments.
  }

  struct Unit {
    id @0 :UInt64;           # 0: it is a stage of a session.
    itemsDone @1 :UInt32;
    items @2 :UInt32;
    untilMs @3 :Int64;       # Wall time at which its lease ends.
    estimateMs @4 :UInt64;   # For the whole of it.
  }
}

struct Totals {
  creditConfirmed @0 :Float64;
  creditPending @1 :Float64;
  creditRejected @2 :Float64;
  rows @3 :UInt64;           # Rows (a generated or read token, once through a stage).
  workedMs @4 :UInt64;       # Time with a step on the device.
  allowedMs @5 :UInt64;      # Time in which the rules allowed work.
  kilowattHours @6 :Float64;
  cost @7 :Float64;          # In the currency of the setting energy.currency.
  bytesDown @8 :UInt64;
  bytesUp @9 :UInt64;
}

struct Yield {
  # How fast the devices were free again when the owner or a rule asked, over the last 1,000 times.

  count @0 :UInt32;
  stopMsP50 @1 :UInt32;      # Until no kernel ran.
  stopMsP99 @2 :UInt32;
  freeMsP50 @3 :UInt32;      # Until the device's memory was free.
  freeMsP99 @4 :UInt32;
  stopMsBound @5 :UInt32;    # As the owner chose.
  freeMsBound @6 :UInt32;
  late @7 :UInt32;           # How many were over a bound.
}

struct Sensor {
  name @0 :Text;             # idle, inhibitors, power, load, gpu, network, programs, sleep, memory, disk
  backend @1 :Text;          # What answered, such as "mutter" or "upower"; empty: none.
  value @2 :Common.Message;  # What it says now.
  known @3 :Bool;
  problem @4 :Text;          # Why it is not known, for people.
  ageMs @5 :UInt64;          # Since it last answered.
  backends @6 :List(Backend);

  struct Backend {
    name @0 :Text;
    usable @1 :Bool;
    problem @2 :Text;
    value @3 :Common.Message;
  }
}

struct Setting {
  key @0 :Text;
  help @1 :Text;
  value @2 :SettingValue;
  fallback @3 :SettingValue;
  minimum @4 :Float64;       # Infinite: none.
  maximum @5 :Float64;
  choices @6 :List(Text);
  needsRestart @7 :Bool;     # Acts only when the client starts again.
}

struct SettingValue {
  union {
    flag @0 :Bool;
    integer @1 :Int64;
    real @2 :Float64;
    text @3 :Text;
    list @4 :List(Text);
  }
}

struct SettingChange {
  key @0 :Text;
  value @1 :SettingValue;
}

struct TraceSpan {
  # From a verdict to the next one of the same resource.

  resource @0 :Resource;
  verdict @1 :Verdict;       # sinceMs is the span's start.
  endMs @2 :Int64;           # 0: it lasts.
}

struct WhatIf {
  resource @0 :Resource;
  knownMs @1 :UInt64;        # Of the time asked for, how long the client was watching.
  allowedMs @2 :UInt64;      # Under the rules as they are.
  wouldBeMs @3 :UInt64;      # With the changes.
}

struct StatisticsRow {
  startMs @0 :Int64;
  deviceId @1 :Text;         # Empty: what belongs to no device.
  totals @2 :Totals;
  temperatureMax @3 :Float32;   # NaN: not known.
  wattsMean @4 :Float32;        # NaN: not known.
}

struct PastWork {
  leaseId @0 :UInt64;
  sessionId @1 :UInt64;
  coordinator @2 :Text;
  deviceId @3 :Text;
  jobClass @4 :Common.JobClass;
  firstFragment @5 :UInt32;
  lastFragment @6 :UInt32;
  startedMs @7 :Int64;
  endedMs @8 :Int64;
  steps @9 :UInt64;
  rows @10 :UInt64;
  ended @11 :Common.Message; # Why it ended.
  unitId @12 :UInt64;        # 0: it was a stage of a session.
}

struct StoredReceipt {
  row @0 :UInt64;
  coordinator @1 :Text;
  receipt @2 :Common.Receipt;
  genuine @3 :Bool;          # The signature fits.
}

struct ReceiptReport {
  coordinator @0 :Text;
  count @1 :UInt64;
  genuine @2 :UInt64;
  missing @3 :UInt64;        # Numbers that the coordinator named and that are not here.
  creditConfirmed @4 :Float64;   # The sum of genuine receipts.
  creditStated @5 :Float64;      # What the coordinator says.
  agrees @6 :Bool;
  why @7 :Common.Message;
  days @8 :UInt32;           # Daily roots of the coordinator whose signatures and order were checked.
  inDays @9 :UInt64;         # Receipts that were proved to be among those of their days.
  newestDay @10 :Int64;      # Of these days, since 1970-01-01; 0: none.
}

struct LogLine {
  id @0 :UInt64;
  atMs @1 :Int64;
  level @2 :Text;            # error, warning, info
  module @3 :Text;
  event @4 :Text;
  fields @5 :Text;           # "key=value key=value"
}

struct Pairing {
  id @0 :UInt64;
  name @1 :Text;
  pairedMs @2 :Int64;
  lastUsedMs @3 :Int64;
}
