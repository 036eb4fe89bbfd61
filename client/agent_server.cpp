#include "client/agent_server.h"

#include <capnp/message.h>

#include "client/device_wire.h"
#include "schema/limits.h"
#include "schema/require.h"

namespace shoal::client {
kj::Promise<void> AgentServer::snapshot(SnapshotContext context) {
  context.allowCancellation();
  return agent_.changed_after(context.getParams().getAfterRevision())
      .then([this, context]() mutable {
        agent_.write_snapshot(context.getResults().initSnapshot());
      });
}

kj::Promise<void> AgentServer::benchmark(BenchmarkContext context) {
  context.allowCancellation();
  return agent_
      .measure(rpc::text_of(context.getParams().getDeviceId(), limits::kNameBytesMax, "deviceId"))
      .promise()
      .then([context](Measurement measured) mutable {
        write_benchmark(measured.benchmark, context.getResults().initReport());
        write_self_test(measured.self_test, context.getResults().initSelfTest());
      });
}

kj::Promise<void> AgentServer::stop(StopContext) {
  agent_.request_stop();
  return kj::READY_NOW;
}

kj::Promise<void> AgentServer::attach(AttachContext context) {
  context.allowCancellation();
  return agent_.attach(rpc::text_of(context.getParams().getUrl(), limits::kUrlBytesMax, "url"))
      .promise()
      .then([this, context](uint32_t index) mutable {
        capnp::MallocMessageBuilder message;
        auto snapshot = message.initRoot<rpc::Snapshot>();
        agent_.write_snapshot(snapshot);
        context.getResults().setConnection(snapshot.asReader().getConnections()[index]);
      });
}

kj::Promise<void> AgentServer::detach(DetachContext context) {
  context.allowCancellation();
  return agent_.detach(rpc::text_of(context.getParams().getUrl(), limits::kUrlBytesMax, "url"))
      .promise()
      .then([context](int count) mutable {
        context.getResults().setCount(static_cast<uint32_t>(count));
      });
}

}  // namespace shoal::client
