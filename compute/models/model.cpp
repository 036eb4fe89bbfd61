#include "compute/models/model.h"

#include <algorithm>
#include <set>

#include "compute/models/model_spec.h"
#include "compute/models/safetensors.h"
#include "compute/models/tokenizer_definition.h"

namespace shoal::compute {
namespace {

namespace fs = std::filesystem;

constexpr Bytes kConfigBytesMax{4 << 20};
constexpr Bytes kIndexBytesMax{64 << 20};
constexpr size_t kWeightFilesMax = 1000;
constexpr size_t kNameBytesMax = 128;

// The weights of all files, and which of them the architecture has taken.
struct WeightPool {
  WeightTable table;
  std::map<std::string, std::string, std::less<>> file_of;  // By tensor.
  std::set<std::string, std::less<>> taken;
  std::string whole;  // Names the pool in messages about what it lacks.
};

std::string where(const WeightPool& pool, const std::string& name) {
  const auto at = pool.file_of.find(name);
  return (at == pool.file_of.end() ? pool.whole : at->second) + ": tensor " + printable(name);
}

Result<const StoredTensor*> take(WeightPool& pool, const std::string& name, const Shape& shape) {
  const auto at = pool.table.find(name);
  if (at == pool.table.end()) return Error{ErrorCode::kCorrupt, where(pool, name) + ": is missing"};
  const StoredTensor& tensor = at->second;
  if (tensor.shape != shape) {
    return Error{ErrorCode::kCorrupt, where(pool, name) + ": shape " + shape_text(tensor.shape) +
                                          " is not the " + shape_text(shape) +
                                          " that the config asks for"};
  }
  if (!tensor.dtype.has_value() || !is_weight_type(*tensor.dtype)) {
    return Error{ErrorCode::kUnsupported,
                 where(pool, name) + ": type " + tensor.type + " is not supported"};
  }
  pool.taken.insert(name);
  return &tensor;
}

enum class FileFormat { kHuggingFace, kGguf };

// One fragment's weights by role; 1-D ones as f32.
struct TakenWeights {
  std::map<std::string, ByteSpan> bytes;
  WeightTypes types;
};

class ModelAssembler {
 public:
  ModelAssembler(const ModelSpec& spec, FileFormat format, WeightPool& pool, Model& model)
      : spec_(spec), format_(format), pool_(pool), model_(model) {}

  Result<void> assemble() {
    ModelConfig& config = model_.config;
    SHOAL_TRY_ASSIGN(embedding, take_all(spec_.embedding, 0));
    SHOAL_TRY_ASSIGN(head, take_all(spec_.head, 0));
    std::vector<TakenWeights> blocks;
    for (int64_t i = 0; i < config.blocks; ++i) {
      SHOAL_TRY_ASSIGN(block, take_all(spec_.block, i));
      blocks.push_back(std::move(block));
    }
    SHOAL_TRY(refuse_leftovers());

    config.state_dtype = only_f32_ ? DType::kF32 : DType::kF16;
    SHOAL_TRY(add("embedding", spec_.embedding_graph, std::move(embedding)));
    for (TakenWeights& block : blocks) {
      const std::string name = "block " + std::to_string(model_.fragments.size() - 1);
      SHOAL_TRY(add(name, spec_.block_graph, std::move(block)));
    }
    return add("head", spec_.head_graph, std::move(head));
  }

 private:
  std::string_view pattern(const WeightSpec& weight) const {
    const WeightSpec& named =
        weight.tied_to_embedding && model_.config.tied ? spec_.embedding.front() : weight;
    return format_ == FileFormat::kGguf ? named.gguf : named.hugging_face;
  }

  Result<TakenWeights> take_all(std::span<const WeightSpec> weights, int64_t block) {
    TakenWeights result;
    for (const WeightSpec& weight : weights) {
      const std::string name = weight_name(pattern(weight), block);
      const Shape shape = weight.shape(model_.config);
      SHOAL_TRY_ASSIGN(tensor, take(pool_, name, shape));
      ByteSpan bytes = tensor->bytes;
      DType dtype = *tensor->dtype;
      if (shape.size() > 1) {
        only_f32_ = only_f32_ && dtype == DType::kF32;
      } else if (dtype != DType::kF32) {
        auto converted = to_f32(*tensor);
        if (!converted.ok()) return with_context(converted.error(), where(pool_, name));
        model_.converted.push_back(std::move(converted).value());
        bytes = model_.converted.back();
        dtype = DType::kF32;
      }
      result.bytes.emplace(weight.role, bytes);
      result.types.emplace(weight.role, dtype);
    }
    return result;
  }

  // A tensor that nobody takes is a part of the model that would be left out: never silently.
  Result<void> refuse_leftovers() {
    for (const auto& [name, tensor] : pool_.table) {
      if (pool_.taken.find(name) != pool_.taken.end()) continue;
      if (format_ == FileFormat::kHuggingFace) {
        if (name.ends_with(".rotary_emb.inv_freq"))
          continue;  // Made from the config; old files keep it.
        if (model_.config.tied && name == "lm_head.weight") continue;
      }
      return Error{ErrorCode::kUnsupported, where(pool_, name) + ": the architecture " +
                                                std::string(spec_.name) + " has no such weight"};
    }
    return {};
  }

  Result<void> add(const std::string& name, Graph (*build)(const ModelConfig&, const WeightTypes&),
                   TakenWeights weights) {
    Graph graph = build(model_.config, weights.types);
    if (auto checked = verify(graph); !checked.ok()) return with_context(checked.error(), name);
    model_.fragments.push_back({std::move(graph), std::move(weights.bytes)});
    return {};
  }

  const ModelSpec& spec_;
  const FileFormat format_;
  WeightPool& pool_;
  Model& model_;
  bool only_f32_ = true;
};

std::string name_of(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.substr(0, kNameBytesMax);
}

Result<std::string> read_text(const fs::path& path, Bytes bytes_max) {
  SHOAL_TRY_ASSIGN(bytes, read_file(path, bytes_max));
  return std::string(as_text(bytes));
}

Result<void> add_weight_file(const fs::path& folder, const std::string& file, Model& model,
                             WeightPool& pool) {
  SHOAL_TRY_ASSIGN(mapped, MappedFile::open(folder / file));
  model.files.push_back(std::move(mapped));
  SHOAL_TRY_ASSIGN(table, read_safetensors(model.files.back().bytes(), file));
  for (auto& [name, tensor] : table) {
    if (!pool.table.emplace(name, tensor).second) {
      return Error{ErrorCode::kCorrupt, file + ": tensor " + printable(name) + ": stands in " +
                                            pool.file_of[name] + " too"};
    }
    pool.file_of.emplace(name, file);
  }
  return {};
}

// Several files: the index says which tensor is where. Files and index must agree exactly.
Result<void> add_indexed_files(const fs::path& folder, const std::string& index_file, Model& model,
                               WeightPool& pool) {
  SHOAL_TRY_ASSIGN(text, read_text(folder / index_file, kIndexBytesMax));
  SHOAL_TRY_ASSIGN(index, parse_json(text, index_file));
  SHOAL_TRY_ASSIGN(fields, JsonFields::of(index, index_file));
  SHOAL_TRY_ASSIGN(map, fields.object("weight_map"));
  std::set<std::string> files;
  for (const auto& [name, file] : map.json().items()) {
    if (!file.is_string()) return map.wrong(printable(name), "is not a file's name");
    const auto& named = file.get_ref<const std::string&>();
    if (named.find_first_of("/\\") != std::string::npos || !named.ends_with(".safetensors")) {
      return map.wrong(printable(name),
                       "\"" + printable(named) + "\" is not the name of a .safetensors file");
    }
    files.insert(named);
  }
  if (files.size() > kWeightFilesMax) return map.wrong("weight_map", "names too many files");
  for (const std::string& file : files) SHOAL_TRY(add_weight_file(folder, file, model, pool));

  for (const auto& [name, file] : map.json().items()) {
    const auto at = pool.file_of.find(name);
    if (at == pool.file_of.end() || at->second != file.get_ref<const std::string&>()) {
      return map.wrong(printable(name),
                       "is not in " + printable(file.get_ref<const std::string&>()));
    }
  }
  for (const auto& [name, file] : pool.file_of) {
    if (!map.has(name)) {
      return Error{ErrorCode::kCorrupt,
                   file + ": tensor " + printable(name) + ": is not in " + index_file};
    }
  }
  return {};
}

Result<std::vector<int32_t>> read_eos(const JsonFields& fields, int64_t vocabulary) {
  std::vector<int32_t> result;
  const Json* value = fields.find("eos_token_id");
  if (value == nullptr) return result;
  const Json list = value->is_array() ? *value : Json::array({*value});
  if (list.size() > kEosMax) return fields.wrong("eos_token_id", "holds too many ids");
  for (const Json& id : list) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= static_cast<uint64_t>(vocabulary)) {
      return fields.wrong("eos_token_id",
                          "is not an id below vocab_size " + std::to_string(vocabulary));
    }
    result.push_back(id.get<int32_t>());
  }
  return result;
}

Result<void> read_generation_config(const fs::path& folder, ModelConfig& config) {
  const std::string file = "generation_config.json";
  auto text = read_text(folder / file, kConfigBytesMax);
  if (!text.ok()) {
    if (text.error().code == ErrorCode::kNotFound) return {};
    return text.error();
  }
  SHOAL_TRY_ASSIGN(json, parse_json(text.value(), file));
  SHOAL_TRY_ASSIGN(fields, JsonFields::of(json, file));
  SHOAL_TRY_ASSIGN(eos, read_eos(fields, config.vocabulary));
  for (const int32_t id : eos) {
    if (std::find(config.eos.begin(), config.eos.end(), id) == config.eos.end())
      config.eos.push_back(id);
  }
  if (!config.bos.has_value() && fields.has("bos_token_id")) {
    SHOAL_TRY_ASSIGN(bos, fields.integer("bos_token_id", 0, config.vocabulary - 1));
    config.bos = static_cast<int32_t>(bos);
  }
  return {};
}

Result<Model> open_folder(const fs::path& folder) {
  Model model;
  model.name = name_of(folder.has_filename() ? folder : folder.parent_path());
  SHOAL_TRY_ASSIGN(text, read_text(folder / "config.json", kConfigBytesMax));
  const ModelSpec* spec = nullptr;
  SHOAL_TRY_ASSIGN(config, read_config(text, "config.json", &spec));
  model.config = std::move(config);
  SHOAL_TRY(read_generation_config(folder, model.config));

  WeightPool pool;
  std::error_code ignored;
  const std::string single = "model.safetensors", index = single + ".index.json";
  if (fs::exists(folder / single, ignored)) {
    pool.whole = single;
    SHOAL_TRY(add_weight_file(folder, single, model, pool));
  } else if (fs::exists(folder / index, ignored)) {
    pool.whole = index;
    SHOAL_TRY(add_indexed_files(folder, index, model, pool));
  } else {
    return Error{ErrorCode::kNotFound,
                 folder.string() + " holds neither " + single + " nor " + index};
  }
  SHOAL_TRY(ModelAssembler(*spec, FileFormat::kHuggingFace, pool, model).assemble());
  SHOAL_TRY_ASSIGN(tokenizer, tokenizer_of_folder(folder, model.config));
  model.tokenizer = std::move(tokenizer);
  return model;
}

Result<void> read_gguf_ids(const GgufFile& file, ModelConfig& config) {
  const auto read = [&](std::string_view key) -> Result<std::optional<int32_t>> {
    if (!file.has(key)) return std::optional<int32_t>();
    SHOAL_TRY_ASSIGN(id, file.integer(key, 0, int64_t{1} << 32));
    if (id == 0xFFFFFFFF) return std::optional<int32_t>();  // Converters write it for "none".
    if (id >= config.vocabulary) {
      return file.wrong(key, std::to_string(id) + " is not below the vocabulary's " +
                                 std::to_string(config.vocabulary));
    }
    return std::optional<int32_t>(static_cast<int32_t>(id));
  };
  SHOAL_TRY_ASSIGN(bos, read("tokenizer.ggml.bos_token_id"));
  config.bos = bos;
  for (const std::string_view key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                     "tokenizer.ggml.eom_token_id"}) {
    SHOAL_TRY_ASSIGN(eos, read(key));
    if (eos.has_value() &&
        std::find(config.eos.begin(), config.eos.end(), *eos) == config.eos.end()) {
      config.eos.push_back(*eos);
    }
  }
  return {};
}

Result<void> read_gguf_model(ByteSpan bytes, const std::string& file, Model& model) {
  SHOAL_TRY_ASSIGN(gguf, GgufFile::read(bytes, file));
  if (gguf.has("split.count")) {
    SHOAL_TRY_ASSIGN(parts, gguf.integer("split.count", 0, 65535));
    if (parts > 1)
      return gguf.wrong("split.count", "split files are not supported", ErrorCode::kUnsupported);
  }
  SHOAL_TRY_ASSIGN(architecture, gguf.text("general.architecture"));
  const auto specs = model_specs();
  const auto spec = std::find_if(specs.begin(), specs.end(), [&](const ModelSpec* candidate) {
    return candidate->gguf_architecture == architecture;
  });
  if (spec == specs.end()) {
    return gguf.wrong("general.architecture",
                      "\"" + printable(architecture) + "\" is not supported",
                      ErrorCode::kUnsupported);
  }
  SHOAL_TRY_ASSIGN(config, (*spec)->read_gguf(gguf));
  model.config = std::move(config);
  SHOAL_TRY(read_gguf_ids(gguf, model.config));
  WeightPool pool{.table = gguf.tensors(), .whole = file};
  SHOAL_TRY(ModelAssembler(**spec, FileFormat::kGguf, pool, model).assemble());
  SHOAL_TRY_ASSIGN(tokenizer, tokenizer_of_gguf(gguf, model.config));
  model.tokenizer = std::move(tokenizer);
  return {};
}

}  // namespace

std::string weight_name(std::string_view pattern, int64_t block) {
  std::string name(pattern);
  if (const size_t at = name.find("{}"); at != std::string::npos)
    name.replace(at, 2, std::to_string(block));
  return name;
}

Result<ModelConfig> read_config(std::string_view text, const std::string& file,
                                const ModelSpec** spec) {
  SHOAL_TRY_ASSIGN(json, parse_json(text, file));
  SHOAL_TRY_ASSIGN(fields, JsonFields::of(json, file));
  SHOAL_TRY_ASSIGN(classes, fields.array("architectures"));
  if (classes->size() != 1 || !classes->front().is_string()) {
    return fields.wrong("architectures", "is not a list of one name");
  }
  const auto& wanted = classes->front().get_ref<const std::string&>();
  for (const ModelSpec* candidate : model_specs()) {
    const auto names = candidate->hugging_face_classes;
    if (std::find(names.begin(), names.end(), wanted) == names.end()) continue;
    *spec = candidate;
    SHOAL_TRY_ASSIGN(config, candidate->read_hugging_face(fields));
    SHOAL_TRY_ASSIGN(eos, read_eos(fields, config.vocabulary));
    config.eos = std::move(eos);
    return config;
  }
  return fields.wrong("architectures", "\"" + printable(wanted) + "\" is not supported",
                      ErrorCode::kUnsupported);
}

Result<Model> open_model(const fs::path& path) {
  std::error_code failed;
  const fs::file_status status = fs::status(path, failed);
  if (!fs::exists(status))
    return Error{ErrorCode::kNotFound, path.string() + ": there is no such model"};
  if (fs::is_directory(status)) {
    auto model = open_folder(path);
    if (!model.ok()) return with_context(model.error(), path.string());
    return model;
  }
  Model model;
  model.name = name_of(path.stem());
  SHOAL_TRY_ASSIGN(mapped, MappedFile::open(path));
  model.files.push_back(std::move(mapped));
  SHOAL_TRY(read_gguf_model(model.files.back().bytes(), path.filename().string(), model));
  return model;
}

Result<Model> model_of_gguf(ByteSpan bytes, const std::string& file) {
  Model model;
  model.name = name_of(fs::path(file).stem());
  SHOAL_TRY(read_gguf_model(bytes, file, model));
  return model;
}

}  // namespace shoal::compute
