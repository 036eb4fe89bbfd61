#pragma once
// What an administrator asks of a coordinator, for tests and benchmarks that drive a whole one:
// publish a toy model, submit a job, read what came of it.

#include <string>
#include <vector>

#include "schema/admin.capnp.h"
#include "schema/task.h"
#include "tests/coordinator/toy_model.h"

namespace shoal::test {

// The world's and the peer's errors are thrown, as by any call.
rpc::Task<void> publish_toy(rpc::Admin::Client admin, ToyModel model);
// `file` is the input of each of its tasks that has one. Its id.
rpc::Task<uint64_t> submit_job(rpc::Admin::Client admin, std::string spec, std::string file);
rpc::Task<void> trust_host(rpc::Admin::Client admin, uint64_t host);

struct SeenJob {
  bool done = false, ended = false;
  uint64_t items = 0, items_done = 0, items_pending = 0, items_quarantined = 0;
};
rpc::Task<SeenJob> see_job(rpc::Admin::Client admin, uint64_t job);
// The output file of its last task, by line.
rpc::Task<std::vector<std::string>> read_output(rpc::Admin::Client admin, uint64_t job);

// Prompts with the text "prompt number <i>", a line each.
std::string numbered_prompts(int count);
// The tokens that a machine alone draws for prompt `i` of those, in a task with that seed.
std::vector<int32_t> numbered_answer(int i, int64_t tokens_max, uint64_t seed);

}  // namespace shoal::test
