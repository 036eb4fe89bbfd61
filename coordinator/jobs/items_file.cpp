#include "coordinator/jobs/items_file.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "schema/limits.h"

namespace shoal {
namespace {

using Json = nlohmann::json;

// The layout, every number little-endian: the magic; the items one after another; for each where it
// begins, and where the last ends; how many there are, and where that list begins.
constexpr std::string_view kMagic = "shoal-items-1\n";
constexpr size_t kFooterBytes = 16;
constexpr uint64_t kReadBytesMax = uint64_t{1} << 28;
constexpr uint8_t kMissing = 2;  // Older files have a 1, too, which says nothing.

Error wrong(std::string what) { return {ErrorCode::kInvalid, std::move(what)}; }

// The text with every {text} of the template replaced.
std::string filled(const std::string& text_template, const std::string& text) {
  static constexpr std::string_view kPlace = "{text}";
  if (text_template == kPlace) return text;
  std::string out;
  size_t from = 0;
  for (size_t at; (at = text_template.find(kPlace, from)) != std::string::npos;
       from = at + kPlace.size()) {
    out.append(text_template, from, at - from).append(text);
  }
  return out.append(text_template, from);
}

int64_t context_of(const LiveModel& model) {
  return std::min<int64_t>(model.manifest.context, limits::kContextMax);
}

Result<std::optional<std::string>> text_field(const Json& line, const char* key) {
  const auto found = line.find(key);
  if (found == line.end()) return std::optional<std::string>();
  if (!found->is_string()) return wrong("\"" + std::string(key) + "\" is not a text");
  return std::optional<std::string>(found->get<std::string>());
}

Result<void> override_sampling(const Json& line, WorkItem& item) {
  const auto number = [&](const char* key, float& into) -> Result<void> {
    const auto found = line.find(key);
    if (found == line.end()) return {};
    if (!found->is_number()) return wrong("\"" + std::string(key) + "\" is not a number");
    into = found->get<float>();
    return {};
  };
  const auto whole = [&](const char* key, uint64_t max, auto& into) -> Result<void> {
    const auto found = line.find(key);
    if (found == line.end()) return {};
    if (!found->is_number_unsigned() || found->get<uint64_t>() > max) {
      return wrong("\"" + std::string(key) + "\" is not a whole number between 0 and " +
                   std::to_string(max));
    }
    into = static_cast<std::remove_reference_t<decltype(into)>>(found->get<uint64_t>());
    return {};
  };
  SHOAL_TRY(number("temperature", item.sampling.temperature));
  SHOAL_TRY(number("top_p", item.sampling.top_p));
  SHOAL_TRY(number("min_p", item.sampling.min_p));
  SHOAL_TRY(number("repetition_penalty", item.sampling.repetition_penalty));
  SHOAL_TRY(whole("top_k", INT32_MAX, item.sampling.top_k));
  SHOAL_TRY(whole("seed", INT64_MAX, item.sampling.seed));
  SHOAL_TRY(whole("max_tokens", limits::kTokensPerUnitMax, item.tokens_max));
  if (item.tokens_max == 0) return wrong("\"max_tokens\" is 0");
  if (const auto bad = out_of_bounds(item.sampling))
    return wrong("\"" + std::string(bad->field) + "\": " + bad->what);
  return {};
}

// Cuts `tokens` so that the model's context holds them, and something can be drawn.
void fit_into_context(WorkItem& item, const LiveModel& model) {
  const auto context = static_cast<size_t>(context_of(model));
  if (item.tokens.size() > context) item.tokens.resize(context);
}

WorkItem blank_item(const JobTask& task, int64_t index) {
  WorkItem item;
  item.sampling = task.sampling;
  item.sampling.seed = item_seed(task.sampling.seed, index);
  item.tokens_max = static_cast<uint32_t>(task.tokens_max);
  return item;
}

// The last token that is drawn is never run, so one position fewer than tokens is needed.
void bound_tokens(WorkItem& item, const LiveModel& model) {
  const int64_t room = context_of(model) - static_cast<int64_t>(item.tokens.size()) + 1;
  item.tokens_max = static_cast<uint32_t>(std::clamp<int64_t>(item.tokens_max, 1, room));
}

void put_item(ByteWriter& to, const WorkItem& item) {
  to.u8(item.missing ? kMissing : uint8_t{0});
  to.u32(static_cast<uint32_t>(item.id.size()));
  to.text(item.id);
  to.u32(item.tokens_max);
  to.u32(item.score_from);
  to.f32(item.sampling.temperature);
  to.u32(item.sampling.top_k);
  to.f32(item.sampling.top_p);
  to.f32(item.sampling.min_p);
  to.f32(item.sampling.repetition_penalty);
  to.u64(item.sampling.seed);
  to.u32(static_cast<uint32_t>(item.tokens.size()));
  for (const int32_t token : item.tokens) to.u32(static_cast<uint32_t>(token));
}

Result<WorkItem> take_item(ByteReader& from) {
  WorkItem item;
  SHOAL_TRY_ASSIGN(flags, from.u8("flags"));
  item.missing = (flags & kMissing) != 0;
  SHOAL_TRY_ASSIGN(id_size, from.u32("id"));
  SHOAL_TRY_ASSIGN(id, from.text(id_size, "id"));
  item.id = id;
  SHOAL_TRY_ASSIGN(tokens_max, from.u32("tokens_max"));
  SHOAL_TRY_ASSIGN(score_from, from.u32("score_from"));
  SHOAL_TRY_ASSIGN(temperature, from.f32("temperature"));
  SHOAL_TRY_ASSIGN(top_k, from.u32("top_k"));
  SHOAL_TRY_ASSIGN(top_p, from.f32("top_p"));
  SHOAL_TRY_ASSIGN(min_p, from.f32("min_p"));
  SHOAL_TRY_ASSIGN(penalty, from.f32("repetition_penalty"));
  SHOAL_TRY_ASSIGN(seed, from.u64("seed"));
  item.tokens_max = tokens_max;
  item.score_from = score_from;
  item.sampling = {temperature, top_p, min_p, penalty, top_k, seed};
  SHOAL_TRY_ASSIGN(count, from.u32("tokens"));
  SHOAL_TRY_ASSIGN(bytes, from.bytes(uint64_t{count} * 4, "tokens"));
  item.tokens.resize(count);
  for (uint32_t i = 0; i < count; ++i) {
    item.tokens[i] = static_cast<int32_t>(load_le<uint32_t>(bytes.data() + size_t{i} * 4));
  }
  return item;
}

Error damaged() { return {ErrorCode::kCorrupt, "a task's items are damaged on the disk"}; }

Result<ByteVector> read_exactly(const InputFile& file, uint64_t offset, uint64_t size) {
  if (size > kReadBytesMax) return damaged();
  ByteVector bytes(size);
  SHOAL_TRY_ASSIGN(count, file.read_at(offset, bytes));
  if (count != size) return damaged();
  return bytes;
}

}  // namespace

Result<WorkItem> read_input_line(std::string_view line, const JobTask& task, const LiveModel& model,
                                 int64_t index) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object()) return wrong("it is no JSON object");
  WorkItem item = blank_item(task, index);
  item.id = std::to_string(index + 1);
  if (const auto id = json.find("id"); id != json.end()) {
    if (!id->is_string() && !id->is_number_integer())
      return wrong("\"id\" is neither a text nor a whole number");
    item.id = id->dump(-1, ' ', false, Json::error_handler_t::replace);
    if (item.id.size() > limits::kNameBytesMax) return wrong("\"id\" is too long");
  }
  static constexpr std::string_view kGenerates[] = {
      "temperature", "top_k", "top_p", "min_p", "repetition_penalty", "seed", "max_tokens"};
  const bool generates = task.kind == TaskKind::kGenerate;
  for (const auto& [key, value] : json.items()) {
    if (key == "id" || key == "text" || key == "prompt") continue;
    if (generates && std::ranges::find(kGenerates, key) != std::end(kGenerates)) continue;
    return wrong("there is no field \"" + std::string(cut_utf8(printable(key), 64)) +
                 "\" in the lines of a task that " +
                 (generates                       ? "generates"
                  : task.kind == TaskKind::kScore ? "scores"
                                                  : "embeds"));
  }
  SHOAL_TRY_ASSIGN(prompt, text_field(json, "prompt"));
  SHOAL_TRY_ASSIGN(text, text_field(json, "text"));
  const Tokenizer& tokenizer = model.tokenizer;
  if (task.kind == TaskKind::kScore) {
    if (!text) return wrong("it has no \"text\"");
    if (prompt) {
      item.tokens = tokenizer.encode(*prompt, tokenizer.adds_bos());
      item.score_from = static_cast<uint32_t>(std::max<size_t>(item.tokens.size(), 1));
      const std::vector<int32_t> rest =
          tokenizer.encode(filled(task.text_template, *text), /*add_bos=*/false);
      item.tokens.insert(item.tokens.end(), rest.begin(), rest.end());
    } else {
      item.tokens = tokenizer.encode(filled(task.text_template, *text), tokenizer.adds_bos());
      item.score_from = 1;
    }
    if (item.tokens.size() <= item.score_from) return wrong("its text has nothing to score");
  } else {
    if (prompt && text) return wrong("it has both \"prompt\" and \"text\"");
    if (!prompt && !text) return wrong("it has neither \"prompt\" nor \"text\"");
    item.tokens = tokenizer.encode(filled(task.text_template, prompt ? *prompt : *text),
                                   tokenizer.adds_bos());
    if (item.tokens.empty()) return wrong("its text is empty");
  }
  if (static_cast<int64_t>(item.tokens.size()) > context_of(model)) {
    return wrong("its text has " + std::to_string(item.tokens.size()) +
                 " tokens, but the model's context holds " + std::to_string(context_of(model)));
  }
  if (generates) {
    SHOAL_TRY(override_sampling(json, item));
    bound_tokens(item, model);
  }
  return item;
}

WorkItem item_from_output(const FormerOutput& former, const JobTask& task, const LiveModel& model,
                          int64_t index) {
  WorkItem item = blank_item(task, index);
  item.id = former.id;
  const Tokenizer& tokenizer = model.tokenizer;
  if (former.text) {
    item.tokens = tokenizer.encode(filled(task.text_template, *former.text), tokenizer.adds_bos());
  }
  item.missing = !former.text.has_value();
  // A text of nothing, or one that is not there, still has its place: the least that can be
  // computed.
  const size_t least = task.kind == TaskKind::kScore ? 2 : 1;
  const int32_t filler = tokenizer.bos().value_or(0);
  while (item.tokens.size() < least) item.tokens.insert(item.tokens.begin(), filler);
  fit_into_context(item, model);
  if (task.kind == TaskKind::kScore) item.score_from = 1;
  if (item.missing) item.tokens_max = 1;
  bound_tokens(item, model);
  return item;
}

std::vector<int32_t> stop_tokens(const JobTask& task, const LiveModel& model) {
  std::vector<int32_t> stop = task.stop;
  if (!task.ignore_eos) {
    stop.insert(stop.end(), model.manifest.eos.begin(), model.manifest.eos.end());
    const auto& more = model.tokenizer.eos_ids();
    stop.insert(stop.end(), more.begin(), more.end());
  }
  std::ranges::sort(stop);
  stop.erase(std::unique(stop.begin(), stop.end()), stop.end());
  if (stop.size() > limits::kStopTokensMax) stop.resize(limits::kStopTokensMax);
  return stop;
}

void ItemSums::add(const WorkItem& item, TaskKind kind) {
  const auto length = static_cast<int64_t>(item.tokens.size());
  const int64_t drawn = kind == TaskKind::kGenerate ? int64_t{item.tokens_max} : 0;
  const int64_t positions = length + std::max<int64_t>(drawn - 1, 0);
  count += 1;
  rows += positions;
  context_max = std::max(context_max, positions);
  tokens_max = std::max({tokens_max, length, drawn});
}

int64_t unit_items_max(TaskKind kind, int64_t tokens_max, int64_t width) {
  int64_t items = int64_t{limits::kTokensPerUnitMax} / std::max<int64_t>(tokens_max, 1);
  if (kind == TaskKind::kEmbed) {
    items = std::min(items, int64_t{limits::kHiddenBytesMax} / (std::max<int64_t>(width, 1) * 4));
  }
  return std::clamp<int64_t>(items, 1, limits::kItemsPerUnitMax);
}

Result<ItemsWriter> ItemsWriter::begin(const std::filesystem::path& folder,
                                       const std::string& name) {
  SHOAL_TRY_ASSIGN(file, DigestFile::begin(folder / name));
  SHOAL_TRY(file.add(as_bytes(kMagic)));
  return ItemsWriter(std::move(file));
}

Result<void> ItemsWriter::add(const WorkItem& item) {
  offsets_.push_back(file_.size());
  ByteWriter bytes;
  put_item(bytes, item);
  return file_.add(bytes.view());
}

Result<Digest> ItemsWriter::finish() {
  const uint64_t count = offsets_.size();
  const uint64_t offsets_at = file_.size();
  offsets_.push_back(offsets_at);
  ByteWriter footer;
  for (const uint64_t offset : offsets_) footer.u64(offset);
  footer.u64(count);
  footer.u64(offsets_at);
  SHOAL_TRY(file_.add(footer.view()));
  return file_.finish("items");
}

std::filesystem::path items_path(const std::filesystem::path& folder, const Digest& digest) {
  return folder / (digest.hex() + ".items");
}

Result<ItemsFile> ItemsFile::open(const std::filesystem::path& folder, const Digest& digest) {
  SHOAL_TRY_ASSIGN(file, InputFile::open(items_path(folder, digest)));
  if (file.size() < kMagic.size() + kFooterBytes + 8) return damaged();
  SHOAL_TRY_ASSIGN(footer, read_exactly(file, file.size() - kFooterBytes, kFooterBytes));
  const uint64_t count = load_le<uint64_t>(footer.data());
  const uint64_t offsets_at = load_le<uint64_t>(footer.data() + 8);
  if (count > file.size() || offsets_at + (count + 1) * 8 + kFooterBytes != file.size()) {
    return damaged();
  }
  return ItemsFile(std::move(file), static_cast<int64_t>(count), offsets_at);
}

Result<std::vector<WorkItem>> ItemsFile::read(int64_t first, int64_t count) const {
  SHOAL_CHECK(first >= 0 && count > 0 && first + count <= count_);
  SHOAL_TRY_ASSIGN(offsets, read_exactly(file_, offsets_at_ + static_cast<uint64_t>(first) * 8,
                                         static_cast<uint64_t>(count + 1) * 8));
  const uint64_t begin = load_le<uint64_t>(offsets.data());
  const uint64_t end = load_le<uint64_t>(offsets.data() + static_cast<size_t>(count) * 8);
  if (begin > end || end > offsets_at_) return damaged();
  SHOAL_TRY_ASSIGN(bytes, read_exactly(file_, begin, end - begin));
  ByteReader from(bytes);
  std::vector<WorkItem> items;
  for (int64_t i = 0; i < count; ++i) {
    SHOAL_TRY_ASSIGN(item, take_item(from));
    items.push_back(std::move(item));
  }
  if (!from.at_end()) return damaged();
  return items;
}

}  // namespace shoal
