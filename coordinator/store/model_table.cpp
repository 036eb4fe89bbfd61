#include "coordinator/store/model_table.h"

namespace shoal {

Result<ModelId> ModelTable::add(const ModelRow& model) {
  ModelId id;
  const Result<void> done = store_.transaction([&]() -> Result<void> {
    {
      Query query = store_.query("SELECT id FROM model WHERE name = ?");
      SHOAL_TRY_ASSIGN(taken, query.bind(model.name).row());
      if (taken) {
        return Error{ErrorCode::kExists,
                     "there is a model " + model.name +
                         " already; remove it first, or publish under another --name"};
      }
    }
    {
      Query query = store_.query(
          "INSERT INTO model (name, digest, manifest, purpose, published_at_ms, group_name) "
          "VALUES (?, ?, ?, ?, ?, ?)");
      SHOAL_TRY(query.bind(model.name)
                    .bind(ByteSpan(model.digest.bytes))
                    .bind(as_bytes(model.manifest))
                    .bind(model.purpose)
                    .bind(model.published_at.count)
                    .bind(model.group)
                    .run());
    }
    id = ModelId{store_.last_id()};
    for (size_t i = 0; i < model.shards.size(); ++i) {
      const ShardRow& shard = model.shards[i];
      Query query = store_.query(
          "INSERT INTO shard (model_id, fragment, digest, sealed_bytes, wrapped_key) VALUES (?, ?, "
          "?, ?, ?)");
      SHOAL_TRY(query.bind(id.value)
                    .bind(static_cast<int64_t>(i))
                    .bind(ByteSpan(shard.digest.bytes))
                    .bind(shard.sealed_bytes)
                    .bind(ByteSpan(shard.wrapped_key))
                    .run());
    }
    return {};
  });
  if (!done.ok()) return done.error();
  return id;
}

Result<int64_t> ModelTable::count() {
  Query query = store_.query("SELECT count(*) FROM model");
  SHOAL_TRY_ASSIGN(some, query.row());
  SHOAL_CHECK(some);
  return query.integer(0);
}

Result<std::optional<ByteVector>> ModelTable::some_wrapped_key() {
  Query query = store_.query("SELECT wrapped_key FROM shard LIMIT 1");
  SHOAL_TRY_ASSIGN(some, query.row());
  if (!some) return std::optional<ByteVector>();
  return std::optional<ByteVector>(query.blob(0));
}

Result<std::vector<ModelRow>> ModelTable::list(int64_t count_max) {
  std::vector<ModelRow> models;
  Query query = store_.query(
      "SELECT model.id, name, model.digest, published_at_ms, count(fragment), "
      "coalesce(sum(sealed_bytes), 0), purpose, group_name FROM model LEFT JOIN shard ON model_id "
      "= model.id "
      "GROUP BY model.id ORDER BY name LIMIT ?");
  query.bind(count_max);
  while (true) {
    SHOAL_TRY_ASSIGN(some, query.row());
    if (!some) return models;
    ModelRow model;
    model.id = ModelId{query.integer(0)};
    model.name = query.text(1);
    SHOAL_TRY_ASSIGN(digest, Digest::from_bytes(query.blob(2)));
    model.digest = digest;
    model.published_at = Millis{query.integer(3)};
    model.fragments = query.integer(4);
    model.sealed_bytes = query.integer(5);
    model.purpose = query.text(6);
    model.group = query.text(7);
    models.push_back(std::move(model));
  }
}

Result<std::optional<ModelRow>> ModelTable::find(const std::string& name) {
  ModelRow model;
  {
    Query query = store_.query(
        "SELECT id, digest, manifest, published_at_ms, purpose, group_name FROM model WHERE name = "
        "?");
    SHOAL_TRY_ASSIGN(some, query.bind(name).row());
    if (!some) return std::optional<ModelRow>();
    model.id = ModelId{query.integer(0)};
    model.name = name;
    SHOAL_TRY_ASSIGN(digest, Digest::from_bytes(query.blob(1)));
    model.digest = digest;
    model.manifest = as_text(query.blob(2));
    model.published_at = Millis{query.integer(3)};
    model.purpose = query.text(4);
    model.group = query.text(5);
  }
  Query query = store_.query(
      "SELECT digest, sealed_bytes, wrapped_key FROM shard WHERE model_id = ? ORDER BY fragment");
  query.bind(model.id.value);
  while (true) {
    SHOAL_TRY_ASSIGN(some, query.row());
    if (!some) break;
    ShardRow shard;
    SHOAL_TRY_ASSIGN(digest, Digest::from_bytes(query.blob(0)));
    shard.digest = digest;
    shard.sealed_bytes = query.integer(1);
    shard.wrapped_key = query.blob(2);
    model.sealed_bytes += shard.sealed_bytes;
    model.shards.push_back(std::move(shard));
  }
  model.fragments = static_cast<int64_t>(model.shards.size());
  return std::optional<ModelRow>(std::move(model));
}

Result<void> ModelTable::remove(ModelId id) {
  Query query = store_.query("DELETE FROM model WHERE id = ?");
  return query.bind(id.value).run();
}

Result<bool> ModelTable::has_shard(const Digest& digest) {
  Query query = store_.query("SELECT 1 FROM shard WHERE digest = ? LIMIT 1");
  return query.bind(ByteSpan(digest.bytes)).row();
}

}  // namespace shoal
