#include "tests/swarm/job_calls.h"

#include "coordinator/jobs/job_file.h"
#include "schema/limits.h"
#include "schema/transport.h"

namespace shoal::test {
namespace {

class Collector final : public rpc::ByteSink::Server {
 public:
  explicit Collector(std::string& out) : out_(out) {}
  kj::Promise<void> write(WriteContext context) override {
    out_ += as_text(rpc::bytes_of(context.getParams().getBytes()));
    return kj::READY_NOW;
  }

 private:
  std::string& out_;
};

}  // namespace

rpc::Task<void> publish_toy(rpc::Admin::Client admin, ToyModel model) {
  auto request = admin.publishModelRequest();
  request.setManifest(model.manifest);
  auto keys = request.initKeys(static_cast<uint>(model.keys.size()));
  for (uint i = 0; i < keys.size(); ++i) keys.set(i, rpc::kj_bytes(model.keys[i].view()));
  auto begun = co_await request.send();
  auto upload = begun.getUpload();
  for (uint i = 0; i < model.shards.size(); ++i) {
    auto write = upload.writeRequest();
    write.setShard(i);
    write.setBytes(rpc::kj_bytes(model.shards[i]));  // They are small.
    co_await write.send();
  }
  co_await upload.finishRequest().send();
}

rpc::Task<uint64_t> submit_job(rpc::Admin::Client admin, std::string spec, std::string file) {
  auto request = admin.submitJobRequest();
  request.setSpec(spec);
  auto begun = co_await request.send();
  auto upload = begun.getUpload();
  const uint inputs = begun.getInputs().size();
  for (uint i = 0; i < inputs; ++i) {
    for (size_t from = 0; from < file.size(); from += limits::kChunkBytesMax) {
      const std::string piece = file.substr(from, limits::kChunkBytesMax);
      auto write = upload.writeRequest();
      write.setInput(i);
      write.setBytes(rpc::kj_bytes(as_bytes(piece)));
      co_await write.send();
    }
  }
  auto finished = co_await upload.finishRequest().send();
  co_return finished.getJob().getId();
}

rpc::Task<void> trust_host(rpc::Admin::Client admin, uint64_t host) {
  auto request = admin.setHostStandingRequest();
  request.setHostId(host);
  request.setStanding(rpc::HostInfo::Standing::TRUSTED);
  co_await request.send();
}

rpc::Task<SeenJob> see_job(rpc::Admin::Client admin, uint64_t job) {
  auto request = admin.showJobRequest();
  request.setJobId(job);
  auto response = co_await request.send();
  const auto info = response.getJob();
  SeenJob seen;
  const auto state = info.getState();
  seen.done = state == rpc::JobInfo::State::DONE;
  seen.ended =
      seen.done || state == rpc::JobInfo::State::FAILED || state == rpc::JobInfo::State::CANCELLED;
  for (const auto task : info.getTasks()) {
    seen.items += task.getItems();
    seen.items_done += task.getItemsDone();
    seen.items_pending += task.getItemsPending();
    seen.items_quarantined += task.getItemsQuarantined();
  }
  co_return seen;
}

rpc::Task<std::vector<std::string>> read_output(rpc::Admin::Client admin, uint64_t job) {
  std::string text;
  auto request = admin.jobResultsRequest();
  request.setJobId(job);
  request.setSink(kj::heap<Collector>(text));
  co_await request.send();
  std::vector<std::string> lines;
  size_t from = 0;
  for (size_t end; (end = text.find('\n', from)) != std::string::npos; from = end + 1)
    lines.push_back(text.substr(from, end - from));
  co_return lines;
}

std::string numbered_prompts(int count) {
  std::string lines;
  for (int i = 0; i < count; ++i)
    lines += "{\"prompt\":\"prompt number " + std::to_string(i) + "\"}\n";
  return lines;
}

std::vector<int32_t> numbered_answer(int i, int64_t tokens_max, uint64_t seed) {
  // As the toy's tokenizer has it: a space is the three bytes of its sign.
  std::vector<int32_t> tokens = {1};
  for (const char byte : "prompt number " + std::to_string(i)) {
    if (byte == ' ') {
      for (const int sign : {0xe2, 0x96, 0x81}) tokens.push_back(3 + sign);
    } else {
      tokens.push_back(3 + static_cast<unsigned char>(byte));
    }
  }
  return toy_tokens(tokens, tokens_max, item_seed(seed, i));
}

}  // namespace shoal::test
