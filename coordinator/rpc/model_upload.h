#pragma once
// A model on its way in: its sealed shards in order, proved one by one; stored only when all are
// there.

#include <string>

#include "coordinator/rpc/parts.h"
#include "schema/admin.capnp.h"

namespace shoal {

// Checks the manifest and wraps the keys. `parts` outlives the upload. Throws what is wrong.
rpc::ModelUpload::Client begin_model_upload(Parts& parts, const std::string& manifest,
                                            capnp::List<capnp::Data>::Reader keys,
                                            std::string purpose, std::string group);

// What lists say of a model beyond its row: read once from its manifest, without its tokenizer. A
// manifest that cannot be read is said to be damaged; the other models are listed all the same.
const ModelFacts& model_facts(Parts& parts, const ModelRow& row);
ModelFacts facts_of(const ModelManifest& manifest);

void write_model_info(rpc::ModelInfo::Builder out, const ModelRow& row, const ModelFacts& facts);

// Removes the model and those of its shards that no other model has.
Result<void> remove_model(Parts& parts, const std::string& name);

// The model, read and kept on its first use. kNotFound with what to do.
Result<std::shared_ptr<const LiveModel>> use_model(Parts& parts, const std::string& name);

}  // namespace shoal
