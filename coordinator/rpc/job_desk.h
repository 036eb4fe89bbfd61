#pragma once
// The administrators' calls about jobs: reads uploads, shows jobs, streams outputs.

#include "coordinator/rpc/parts.h"
#include "schema/admin.capnp.h"

namespace shoal {

// `spec` was checked for its size. Fills in `inputs`.
rpc::JobUpload::Client begin_job_upload(Parts& parts, std::string spec,
                                        std::vector<std::string>& inputs);

struct ShownJob;
void write_job_info(rpc::JobInfo::Builder out, const ShownJob& shown);

// Sends the file piece by piece, no faster than it is taken.
kj::Promise<void> send_output(std::filesystem::path path, bool temporary,
                              rpc::ByteSink::Client sink);

}  // namespace shoal
