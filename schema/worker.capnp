@0xb4d2f0a6c1e93702;
# What a client asks of a worker process, over the worker's standard pipes.
#
# The worker is the only process that sees plain weights and the device. It has no network and no
# files of its own: shard bytes and sealed keys come through this interface, tensors go back.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("shoal::rpc");

using Common = import "common.capnp";

interface Worker {
  describe @0 () -> (device :Common.DeviceInfo, publicKey :Data, pid :UInt32);
  # `publicKey` (X25519) was made when this process started and was never written down.

  openStage @1 (spec :Common.StageSpec) -> (loader :StageLoader);
  # Begins a stage. Fails at once when a key does not open or the shape of the spec is refused.

  selfTest @2 () -> (report :Common.SelfTest);

  benchmark @3 () -> (report :Common.Benchmark);

  ping @4 () -> ();
  # Answered by the worker's loop even while the device computes.

  setPace @5 (dutyPercent :UInt32, rowsMax :UInt32) -> ();
  # From now on the device computes at most this part of the time (1 to 100), pausing between ops, or
  # between the fragments of a GPU's stage, and steps run in pieces of at most `rowsMax` rows (0: as
  # they come). Results do not change.
}

interface StageLoader {
  # Takes the ciphertext of the spec's shards, in order, each from its first byte to its last.

  write @0 (shard :UInt32, bytes :Data) -> stream;
  # A wrong byte fails the loader with the shard's digest.

  finish @1 () -> (stage :Common.Stage);
}
