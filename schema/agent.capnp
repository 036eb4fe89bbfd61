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

  benchmark @1 (deviceId :Text) -> (report :Common.Benchmark, selfTest :Common.SelfTest);
  # Measures a device again. Waits until it has no stage.

  stop @2 () -> ();
  # Ends the client in order: stages are given back, workers stop.

  attach @3 (url :Text) -> (connection :Snapshot.Connection);
  # Contacts the coordinator, enrols with the URL's invite, and stays attached. Fails with the reason.

  detach @4 (url :Text) -> (count :UInt32);
  # Leaves the coordinator at this URL, with or without its pin; all of them when it is empty.
}

struct Snapshot {
  revision @0 :UInt64;
  version @1 :Text;
  hostName @2 :Text;
  connections @3 :List(Connection);
  devices @4 :List(Device);
  cacheBytes @5 :UInt64;
  cacheBytesMax @6 :UInt64;
  transfers @7 :List(Transfer);
  pid @8 :UInt32;

  struct Connection {
    url @0 :Text;            # Without pin and invite.
    name @1 :Text;
    state @2 :Text;          # connecting, connected, waiting, refused
    reason @3 :Text;
    retryInMs @4 :UInt32;
    hostId @5 :UInt64;       # As the coordinator numbers this host; 0 before the first login.
    trusted @6 :Bool;
  }

  struct Device {
    report @0 :Coordinator.DeviceReport;
    workerPid @1 :UInt32;
    restarts @2 :UInt32;
    stages @3 :UInt32;
    steps @4 :UInt64;
    rows @5 :UInt64;
  }

  struct Transfer {
    digest @0 :Text;
    bytesDone @1 :UInt64;
    bytesTotal @2 :UInt64;
  }
}
