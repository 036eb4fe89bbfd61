@0xb4d2f0a6c1e93708;
# How neighbours in a session pass hidden rows on to each other, without the coordinator in between.
#
# A host whose owner allows it implements DirectHost and DirectStage in place of Host and Stage; a
# coordinator finds out by asking. The coordinator opens a path from a stage's outputs to the next
# stage's inputs: it makes a token, tells one end to expect a neighbour that names it, and the other
# one where to dial. A path carries rows of direct steps, one block at a time. What fails on it is
# nobody's failure: the coordinator drops the path, asks for the rows that it was not sent, and goes
# on as the relay.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("shoal::rpc");

using Common = import "common.capnp";
using Coordinator = import "coordinator.capnp";

interface DirectHost extends(Coordinator.Host) {
  door @0 () -> (dials :Bool, port :UInt16, pin :Text);
  # Whether this host may dial its neighbours, and the port where they may dial it (0: they may not)
  # with the pin of the certificate that it shows there (schema/transport.h).
}

struct PathEnd {
  # One end of a path, as the coordinator names it to the stage that has it.

  token @0 :Data;    # kPathTokenBytes (schema/direct.h) of chance: good for one meeting.
  side @1 :Side;

  enum Side {
    inputs @0;       # The stage takes its hidden rows from the path.
    outputs @1;      # It passes on what it computes.
  }
}

interface DirectStage extends(Common.Stage) {
  expect @0 (end :PathEnd) -> ();
  # Somebody who comes to this host's door with the token has the path's other end. Ends the path
  # that this side of the stage had before.

  dial @1 (end :PathEnd, address :Text, port :UInt16, pin :Text) -> (roundTripMicros :UInt32);
  # Meets who expects the token there. Likewise.

  stepDirect @2 (input :Common.StepInput, fromNeighbour :Bool, toNeighbour :Bool)
      -> (output :DirectOutput);
  # As step(), but with `fromNeighbour` the hidden rows, which the input then lacks, come over the
  # path, and with `toNeighbour` the hidden rows go over it. The positions are of one sequence and
  # follow each other.

  outputs @3 (first :UInt32, rows :UInt32) -> (hidden :Data);
  # What this stage passed on of these positions, since its present path was opened. It keeps all of
  # it until then.
}

struct DirectOutput {
  union {
    output @0 :Common.StepOutput;  # Without `toNeighbour`.
    passedOn @1 :Data;             # With it: BLAKE2b-256 of the hidden rows.
    notDone @2 :Text;              # The path failed: why, for people. What was computed is unknown.
  }
  received @3 :Data;               # With `fromNeighbour`: BLAKE2b-256 of what came.
}

interface PathDoor {
  # All that a stranger has at a host's door.

  meet @0 (token :Data, inlet :PathInlet) -> (inlet :PathInlet);
  # Whoever of the two has the path's inputs hands its inlet to the other.
}

interface PathInlet {
  put @0 (first :UInt32, hidden :Data) -> ();
  # One block of rows, f32 little-endian, from the position `first` on. Fails when those before have
  # not been taken.
}
