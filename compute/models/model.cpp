#include "compute/models/model.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "compute/models/family.h"
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

// One fragment's weights by role; 1-D ones as f32.
struct TakenWeights {
  std::map<std::string, ByteSpan> bytes;
  WeightTypes types;
};

// [rows, columns] as [columns, rows]; elements of 2 or 4 bytes.
ByteVector transposed(ByteSpan bytes, int64_t rows, int64_t columns, int64_t width) {
  ByteVector result(bytes.size());
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      std::copy_n(bytes.begin() + (row * columns + column) * width, width,
                  result.begin() + (column * rows + row) * width);
    }
  }
  return result;
}

class ModelAssembler {
 public:
  ModelAssembler(const Family& family, FileFormat format, WeightPool& pool, QuantMode quantise,
                 Model& model)
      : family_(family), format_(format), pool_(pool), quantise_(quantise), model_(model) {}

  Result<void> assemble() {
    ModelConfig& config = model_.config;
    SHOAL_TRY_ASSIGN(embedding, take_all(embedding_weights(family_, config, format_)));
    SHOAL_TRY_ASSIGN(head, take_all(head_weights(family_, config, format_)));
    std::vector<TakenWeights> blocks;
    for (int64_t i = 0; i < config.blocks; ++i) {
      SHOAL_TRY_ASSIGN(block, take_all(block_weights(family_, config, format_, i), i));
      blocks.push_back(std::move(block));
    }
    SHOAL_TRY(refuse_leftovers());
    model_.quantised = cost_.lines();

    config.state_dtype = only_f32_ ? DType::kF32 : DType::kF16;
    SHOAL_TRY(add("embedding", embedding_graph(config, embedding.types), embedding));
    for (int64_t i = 0; i < config.blocks; ++i) {
      TakenWeights& block = blocks[static_cast<size_t>(i)];
      SHOAL_TRY(add("block " + std::to_string(i), block_graph(config, block.types, i), block));
    }
    return add("head", head_graph(config, head.types), head);
  }

 private:
  Result<TakenWeights> take_all(const std::vector<WeightSpec>& weights, int64_t block = 0) {
    TakenWeights result;
    for (const WeightSpec& weight : weights) {
      DType dtype = DType::kF32;
      auto taken = weight.experts > 0         ? take_experts(weight, block, dtype)
                   : weight.shape.size() == 1 ? take_vector(weight)
                                              : take_rounded(weight, block, dtype);
      if (!taken.ok()) return taken.error();
      if (weight.shape.size() > 1) only_f32_ = only_f32_ && dtype == DType::kF32;
      result.bytes.emplace(weight.role, taken.value());
      result.types.emplace(weight.role, dtype);
    }
    return result;
  }

  // The type that a matrix is to be rounded to, if any.
  std::optional<DType> wanted_type(const WeightSpec& weight, int64_t block, DType stored) const {
    if (is_quantised_weight(stored)) return {};
    return quant_type(quantise_, weight.role, block, model_.config.blocks, weight.shape.back());
  }

  Result<ByteVector> rounded(const WeightSpec& weight, const std::string& name, DType stored,
                             DType wanted, ByteSpan bytes) {
    QuantError error;
    auto made = quantise_tensor(stored, bytes, wanted, error);
    if (!made.ok()) return with_context(made.error(), where(pool_, name));
    cost_.add(weight.role, name, wanted, error);
    return made;
  }

  // A matrix, in the type that was asked for.
  Result<ByteSpan> take_rounded(const WeightSpec& weight, int64_t block, DType& dtype) {
    SHOAL_TRY_ASSIGN(bytes, take_matrix(weight, weight.name, dtype));
    const auto wanted = wanted_type(weight, block, dtype);
    if (!wanted.has_value()) return bytes;
    // The embedding is the head's matrix too where they are tied.
    const auto key = std::tuple(weight.name, weight.first_row, *wanted);
    if (const auto known = rounded_.find(key); known != rounded_.end()) {
      dtype = *wanted;
      return known->second;
    }
    SHOAL_TRY_ASSIGN(made, rounded(weight, weight.name, dtype, *wanted, bytes));
    dtype = *wanted;
    return rounded_.emplace(key, keep(std::move(made))).first->second;
  }

  ByteSpan keep(ByteVector bytes) {
    model_.converted.push_back(std::move(bytes));
    return model_.converted.back();
  }

  Result<ByteSpan> take_vector(const WeightSpec& weight) {
    SHOAL_TRY_ASSIGN(tensor, take(pool_, weight.name, weight.stored));
    ByteSpan bytes = tensor->bytes;
    if (tensor->dtype != DType::kF32 || weight.plus_one) {
      auto converted = to_f32(*tensor);
      if (!converted.ok()) return with_context(converted.error(), where(pool_, weight.name));
      ByteVector values = std::move(converted).value();
      for (size_t at = 0; weight.plus_one && at < values.size(); at += 4) {
        const float value = std::bit_cast<float>(load_le<uint32_t>(values.data() + at)) + 1.0f;
        store_le(values.data() + at, std::bit_cast<uint32_t>(value));
      }
      bytes = keep(std::move(values));
    }
    return bytes.subspan(static_cast<size_t>(weight.first_row) * 4,
                         static_cast<size_t>(weight.shape[0]) * 4);
  }

  Result<ByteSpan> take_matrix(const WeightSpec& weight, const std::string& name, DType& dtype) {
    SHOAL_TRY_ASSIGN(tensor, take(pool_, name, weight.stored));
    dtype = *tensor->dtype;
    ByteSpan bytes = tensor->bytes;
    if (weight.transposed) {
      if (is_quantised_weight(dtype)) {
        return Error{ErrorCode::kUnsupported,
                     where(pool_, name) + ": type " + tensor->type + " cannot be transposed"};
      }
      const auto known = turned_.find(name);
      if (known == turned_.end()) {
        bytes = keep(
            transposed(bytes, weight.stored[0], weight.stored[1], dtype == DType::kF32 ? 4 : 2));
        turned_.emplace(name, bytes);
      } else {
        bytes = known->second;
      }
    }
    if (weight.stored.size() == 3) return bytes;  // All experts' rows, as they stand.
    auto row = byte_size(dtype, {weight.shape.back()});
    if (!row.ok()) return with_context(row.error(), where(pool_, name));
    const auto row_bytes = static_cast<size_t>(row.value());
    return bytes.subspan(static_cast<size_t>(weight.first_row) * row_bytes,
                         experts_rows(weight) * row_bytes);
  }

  // The rows of one tensor.
  static size_t experts_rows(const WeightSpec& weight) {
    return static_cast<size_t>(weight.experts > 0 ? weight.stored[0] : weight.shape[0]);
  }

  // The graph wants all experts' rows in one piece; only that piece is kept.
  Result<ByteSpan> take_experts(const WeightSpec& weight, int64_t block, DType& dtype) {
    ByteVector all;
    DType stored = DType::kF32;
    for (int64_t e = 0; e < weight.experts; ++e) {
      std::string name = weight.name;
      name.replace(name.find("{e}"), 3, std::to_string(e));
      DType own = DType::kF32;
      SHOAL_TRY_ASSIGN(bytes, take_matrix(weight, name, own));
      if (e > 0 && own != stored) {
        return Error{ErrorCode::kUnsupported,
                     where(pool_, name) + ": has another type than the expert before it"};
      }
      stored = own;
      ByteVector made;
      if (const auto wanted = wanted_type(weight, block, own)) {
        SHOAL_TRY_ASSIGN(smaller, rounded(weight, name, own, *wanted, bytes));
        made = std::move(smaller);
        bytes = made;
        own = *wanted;
      }
      dtype = own;
      if (e == 0) all.reserve(bytes.size() * static_cast<size_t>(weight.experts));
      all.insert(all.end(), bytes.begin(), bytes.end());
    }
    return keep(std::move(all));
  }

  // A tensor that nobody takes is a part of the model that would be left out: never silently.
  Result<void> refuse_leftovers() {
    for (const auto& [name, tensor] : pool_.table) {
      if (pool_.taken.find(name) != pool_.taken.end()) continue;
      if (format_ == FileFormat::kHuggingFace) {
        if (name.ends_with(".rotary_emb.inv_freq"))
          continue;  // Made from the config; old files keep it.
        if (model_.config.tied && name == "lm_head.weight") continue;
        // GPT-2's masks are what attention does anyway.
        const bool mask = name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
        if (mask && !family_.optional_prefix.empty()) continue;
      } else if (family_.rotary &&
                 (name == "rope_freqs.weight" || name == "rope_factors_long.weight" ||
                  name == "rope_factors_short.weight")) {
        continue;  // They are in the config's rope already.
      }
      return Error{ErrorCode::kUnsupported, where(pool_, name) + ": the architecture " +
                                                std::string(family_.name) + " has no such weight"};
    }
    return {};
  }

  Result<void> add(const std::string& name, Graph graph, TakenWeights& weights) {
    if (auto checked = verify(graph); !checked.ok()) return with_context(checked.error(), name);
    model_.fragments.push_back({std::move(graph), std::move(weights.bytes)});
    return {};
  }

  const Family& family_;
  const FileFormat format_;
  WeightPool& pool_;
  const QuantMode quantise_;
  Model& model_;
  QuantCost cost_;
  std::map<std::string, ByteSpan> turned_;  // Transposed tensors, by name.
  // Rounded ones, by name, first row and type.
  std::map<std::tuple<std::string, int64_t, DType>, ByteSpan> rounded_;
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

// Some files of a family put a prefix before every name, others do not.
Result<void> strip_prefix(std::string_view prefix, WeightPool& pool) {
  if (prefix.empty()) return {};
  const bool all = std::all_of(pool.table.begin(), pool.table.end(), [&](const auto& entry) {
    return entry.first.starts_with(prefix) || entry.first == "lm_head.weight";
  });
  if (!all) return {};
  WeightTable table;
  std::map<std::string, std::string, std::less<>> file_of;
  for (auto& [name, tensor] : pool.table) {
    const std::string bare = name.starts_with(prefix) ? name.substr(prefix.size()) : name;
    if (const auto file = pool.file_of.find(name); file != pool.file_of.end())
      file_of.emplace(bare, file->second);
    if (!table.emplace(bare, std::move(tensor)).second) {
      return Error{ErrorCode::kCorrupt, where(pool, name) + ": stands in it twice, with and " +
                                            "without the prefix " + std::string(prefix)};
    }
  }
  pool.table = std::move(table);
  pool.file_of = std::move(file_of);
  return {};
}

Result<Model> open_folder(const fs::path& folder, const OpenOptions& options) {
  Model model;
  model.name = name_of(folder.has_filename() ? folder : folder.parent_path());
  SHOAL_TRY_ASSIGN(text, read_text(folder / "config.json", kConfigBytesMax));
  const Family* family = nullptr;
  SHOAL_TRY_ASSIGN(config, read_config(text, "config.json", &family));
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
  SHOAL_TRY(strip_prefix(family->optional_prefix, pool));
  SHOAL_TRY(
      ModelAssembler(*family, FileFormat::kHuggingFace, pool, options.quantise, model).assemble());
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

// How many parts a GGUF file is in, and which of them this is, counted from 0.
Result<std::pair<int64_t, int64_t>> read_split(const GgufFile& file) {
  SHOAL_TRY_ASSIGN(count, file.integer_or("split.count", 1, 0, 65535));
  SHOAL_TRY_ASSIGN(number, file.integer_or("split.no", 0, 0, 65535));
  return std::pair(std::max<int64_t>(count, 1), number);
}

Result<void> add_tensors(const GgufFile& file, WeightPool& pool) {
  for (const auto& [name, tensor] : file.tensors()) {
    if (!pool.table.emplace(name, tensor).second) {
      return Error{ErrorCode::kCorrupt, file.file() + ": tensor " + printable(name) +
                                            ": stands in " + pool.file_of[name] + " too"};
    }
    pool.file_of.emplace(name, file.file());
  }
  return {};
}

// `name` of the first part says where the others are: "...-00001-of-00003.gguf".
Result<void> add_parts(const fs::path& path, const GgufFile& first, int64_t count, Model& model,
                       WeightPool& pool) {
  const auto ending = [count](int64_t number) {
    char text[32];
    std::snprintf(text, sizeof text, "-%05d-of-%05d.gguf", static_cast<int>(number),
                  static_cast<int>(count));
    return std::string(text);
  };
  const std::string name = path.filename().string();
  if (!name.ends_with(ending(1))) {
    return first.wrong("split.count", "the file is one of " + std::to_string(count) +
                                          " and its name does not end in " + ending(1));
  }
  const std::string stem = name.substr(0, name.size() - ending(1).size());
  model.name = name_of(stem);
  for (int64_t part = 1; part < count; ++part) {
    const std::string part_name = stem + ending(part + 1);
    SHOAL_TRY_ASSIGN(mapped, MappedFile::open(path.parent_path() / part_name));
    model.files.push_back(std::move(mapped));
    SHOAL_TRY_ASSIGN(gguf, GgufFile::read(model.files.back().bytes(), part_name));
    SHOAL_TRY_ASSIGN(split, read_split(gguf));
    if (split != std::pair(count, part)) {
      return gguf.wrong("split.no", "this is part " + std::to_string(split.second + 1) + " of " +
                                        std::to_string(split.first) + ", not " +
                                        std::to_string(part + 1) + " of " + std::to_string(count));
    }
    SHOAL_TRY(add_tensors(gguf, pool));
  }
  SHOAL_TRY_ASSIGN(
      tensors, first.integer_or("split.tensors.count", static_cast<int64_t>(pool.table.size()), 0,
                                int64_t{1} << 40));
  if (tensors != static_cast<int64_t>(pool.table.size())) {
    return first.wrong("split.tensors.count", std::to_string(tensors) + " is not the parts' " +
                                                  std::to_string(pool.table.size()));
  }
  return {};
}

// `path`: where the other parts are looked for; empty where there can be none.
Result<void> read_gguf_model(ByteSpan bytes, const std::string& file, const fs::path& path,
                             const OpenOptions& options, Model& model) {
  SHOAL_TRY_ASSIGN(gguf, GgufFile::read(bytes, file));
  SHOAL_TRY_ASSIGN(split, read_split(gguf));
  if (split.second != 0) {
    return gguf.wrong("split.no",
                      "this is part " + std::to_string(split.second + 1) + ": open the first");
  }
  WeightPool pool{.whole = file};
  SHOAL_TRY(add_tensors(gguf, pool));
  if (split.first > 1) {
    if (path.empty())
      return gguf.wrong("split.count", "the other parts are not here", ErrorCode::kUnsupported);
    SHOAL_TRY(add_parts(path, gguf, split.first, model, pool));
  }
  const Family* family = nullptr;
  SHOAL_TRY_ASSIGN(config, read_gguf_config(gguf, pool.table, &family));
  model.config = std::move(config);
  SHOAL_TRY(read_gguf_ids(gguf, model.config));
  SHOAL_TRY(ModelAssembler(*family, FileFormat::kGguf, pool, options.quantise, model).assemble());
  SHOAL_TRY_ASSIGN(tokenizer, tokenizer_of_gguf(gguf, model.config));
  model.tokenizer = std::move(tokenizer);
  return {};
}

}  // namespace

Result<Model> open_model(const fs::path& path, const OpenOptions& options) {
  std::error_code failed;
  const fs::file_status status = fs::status(path, failed);
  if (!fs::exists(status))
    return Error{ErrorCode::kNotFound, path.string() + ": there is no such model"};
  if (fs::is_directory(status)) {
    auto model = open_folder(path, options);
    if (!model.ok()) return with_context(model.error(), path.string());
    return model;
  }
  Model model;
  model.name = name_of(path.stem());
  SHOAL_TRY_ASSIGN(mapped, MappedFile::open(path));
  model.files.push_back(std::move(mapped));
  SHOAL_TRY(
      read_gguf_model(model.files.back().bytes(), path.filename().string(), path, options, model));
  return model;
}

Result<Model> model_of_gguf(ByteSpan bytes, const std::string& file) {
  Model model;
  model.name = name_of(fs::path(file).stem());
  SHOAL_TRY(read_gguf_model(bytes, file, {}, {}, model));
  return model;
}

}  // namespace shoal::compute
