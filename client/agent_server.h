#pragma once
// agent.capnp for user interfaces and the command line: translates between the wire and the agent.
//
// Belongs to the KJ loop's thread.

#include "client/agent.h"
#include "schema/agent.capnp.h"

namespace shoal::client {

class AgentServer final : public rpc::Agent::Server {
 public:
  explicit AgentServer(Agent& agent) : agent_(agent) {}  // `agent` outlives the server.

  kj::Promise<void> snapshot(SnapshotContext context) override;
  kj::Promise<void> benchmark(BenchmarkContext context) override;
  kj::Promise<void> stop(StopContext context) override;
  kj::Promise<void> attach(AttachContext context) override;
  kj::Promise<void> detach(DetachContext context) override;

 private:
  Agent& agent_;
};

}  // namespace shoal::client
