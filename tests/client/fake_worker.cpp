// A worker without a device, for tests of the client: it checks digests, echoes hidden rows, and
// misbehaves as its first argument says.
//
//   good       does its work
//   exit       ends at once with status 3
//   mute       takes its pipe and never answers
//   deaf       describes itself, then stops answering
//   confused   gives a public key of a wrong size
//   unmeasured fails its self-test's call
//   inexact    says that its results are not exact
//   unlisted   ends with status 4 when it is asked for its devices
//   stubborn   does not end when its pipe is closed
//   endless    its benchmark never ends
//   once       fails every benchmark but the first
//   gpu, endless_gpu  the same as good and endless, as a GPU
//   model      its stages are whole models, as tests/client/toy_unit_model.h has them

#include <kj/async-io.h>

#include <cstdlib>
#include <iostream>
#include <string>

#include "base/digest.h"
#include "base/host.h"
#include "base/secrets.h"
#include "schema/transport.h"
#include "schema/worker.capnp.h"
#include "tests/client/toy_unit_model.h"

using namespace shoal;
namespace toy = shoal::client::toy;

namespace {

bool is_gpu(const std::string& mode) { return mode.ends_with("gpu"); }

class FakeStage final : public rpc::Stage::Server {
  kj::Promise<void> step(StepContext context) override {
    context.getResults().initOutput().setHidden(context.getParams().getInput().getHidden());
    return kj::READY_NOW;
  }
  kj::Promise<void> shape(ShapeContext context) override {
    context.getResults().setWidth(4);
    return kj::READY_NOW;
  }
};

class ToyStage final : public rpc::Stage::Server {
 public:
  explicit ToyStage(rpc::StageSpec::Reader spec)
      : stage_(spec.getContext(), spec.getSequences(), spec.getRowsMax()) {}

 private:
  kj::Promise<void> step(StepContext context) override {
    using Trouble = toy::Stage::Trouble;
    const Result<Trouble> trouble =
        stage_.step(context.getParams().getInput(), context.getResults().initOutput());
    if (!trouble.ok()) rpc::throw_error(trouble.error());
    if (trouble.value() == Trouble::kCrash) std::_Exit(9);
    if (trouble.value() == Trouble::kHang) return kj::NEVER_DONE;
    return kj::READY_NOW;
  }
  kj::Promise<void> shape(ShapeContext context) override {
    context.getResults().setBeginsWithTokens(true);
    context.getResults().setEndsWithLogits(true);
    context.getResults().setWidth(toy::kWidth);
    context.getResults().setVocabulary(toy::kVocabulary);
    return kj::READY_NOW;
  }

  toy::Stage stage_;
};

class FakeLoader final : public rpc::StageLoader::Server {
 public:
  FakeLoader(std::vector<Digest> digests, kj::Own<rpc::Stage::Server> stage)
      : digests_(std::move(digests)), found_(digests_.size()), stage_(kj::mv(stage)) {}

  kj::Promise<void> write(WriteContext context) override {
    const auto params = context.getParams();
    if (params.getShard() >= found_.size())
      rpc::throw_error({ErrorCode::kInvalid, "no such shard"});
    found_[params.getShard()].update(rpc::bytes_of(params.getBytes()));
    return kj::READY_NOW;
  }
  kj::Promise<void> finish(FinishContext context) override {
    for (size_t i = 0; i < digests_.size(); ++i) {
      if (found_[i].finish() != digests_[i]) {
        rpc::throw_error({ErrorCode::kCorrupt, "shard " + digests_[i].hex() + " is damaged"});
      }
    }
    context.getResults().setStage(kj::mv(stage_));
    return kj::READY_NOW;
  }

 private:
  std::vector<Digest> digests_;
  std::vector<DigestBuilder> found_;
  kj::Own<rpc::Stage::Server> stage_;
};

class FakeWorker final : public rpc::Worker::Server {
 public:
  explicit FakeWorker(std::string mode) : mode_(std::move(mode)), keys_(BoxKeyPair::generate()) {}

  kj::Promise<void> describe(DescribeContext context) override {
    if (mode_ == "mute") return kj::NEVER_DONE;
    auto results = context.getResults();
    auto device = results.initDevice();
    device.setId(is_gpu(mode_) ? "vulkan:00-ab" : "fake");
    device.setSelector("fake");
    device.setPlane(is_gpu(mode_) ? "vulkan" : "cpu");
    device.setName("a fake");
    if (mode_ == "confused") {
      results.initPublicKey(5);
    } else {
      results.setPublicKey(rpc::kj_bytes(keys_.public_key().bytes));
    }
    described_ = true;
    return kj::READY_NOW;
  }
  kj::Promise<void> openStage(OpenStageContext context) override {
    std::vector<Digest> digests;
    const auto spec = context.getParams().getSpec();
    if (spec.getContext() == toy::kContextTooLarge) {
      rpc::throw_error({ErrorCode::kNoSpace, "the stage takes too much memory"});
    }
    kj::Own<rpc::Stage::Server> stage = kj::heap<FakeStage>();
    if (mode_ == "model") {
      // As a real worker: a key that was sealed for another one does not open.
      for (const auto shard : spec.getShards()) {
        if (!open_sealed(keys_, rpc::bytes_of(shard.getSealedKey())).ok()) {
          rpc::throw_error({ErrorCode::kDenied, "the key was not sealed for this worker"});
        }
      }
      stage = kj::heap<ToyStage>(spec);
    }
    for (const auto shard : context.getParams().getSpec().getShards()) {
      digests.push_back(Digest::from_bytes(rpc::bytes_of(shard.getDigest())).value());
    }
    context.getResults().setLoader(kj::heap<FakeLoader>(std::move(digests), kj::mv(stage)));
    return kj::READY_NOW;
  }
  kj::Promise<void> selfTest(SelfTestContext context) override {
    if (mode_ == "unmeasured") rpc::throw_error({ErrorCode::kIo, "the test cannot run"});
    auto report = context.getResults().initReport();
    report.setExact(mode_ != "inexact");
    report.setSamples(7);
    if (mode_ == "inexact") report.setFirstFailure("add sample 1");
    return kj::READY_NOW;
  }
  kj::Promise<void> benchmark(BenchmarkContext context) override {
    if (mode_.starts_with("endless")) return kj::NEVER_DONE;
    if (mode_ == "once" && ++benchmarks_ > 1) rpc::throw_error({ErrorCode::kIo, "one is enough"});
    context.getResults().initReport().setDecodeRowsPerSecond(42);
    return kj::READY_NOW;
  }
  kj::Promise<void> ping(PingContext) override {
    if (mode_ == "mute" || (mode_ == "deaf" && described_)) return kj::NEVER_DONE;
    return kj::READY_NOW;
  }

 private:
  std::string mode_;
  BoxKeyPair keys_;
  bool described_ = false;
  int benchmarks_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  ignore_broken_pipes();
  const std::string mode = argc > 1 ? argv[1] : "good";
  if (std::string(argv[argc - 1]) == "--list") {
    if (mode == "unlisted") return 4;
    std::cout << (is_gpu(mode) ? R"([{"id":"vulkan:00-ab","selector":"fake","plane":"vulkan",)"
                               : R"([{"id":"fake","selector":"fake","plane":"cpu",)")
              << R"("name":"a fake","driver":"",)"
                 R"("memory_bytes":0,"software":false}])";
    return 0;
  }
  if (mode == "exit") return 3;
  kj::AsyncIoContext io = kj::setupAsyncIo();
  auto stream = io.lowLevelProvider->wrapSocketFd(kChildChannelFd,
                                                  kj::LowLevelAsyncIoProvider::TAKE_OWNERSHIP);
  rpc::Connection connection(kj::mv(stream), true,
                             capnp::Capability::Client(kj::heap<FakeWorker>(mode)));
  connection.closed().wait(io.waitScope);
  if (mode == "stubborn") kj::Promise<void>(kj::NEVER_DONE).wait(io.waitScope);
  return 0;
}
