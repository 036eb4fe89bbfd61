#include "coordinator/jobs/makers.h"

#include "schema/limits.h"

namespace shoal {
namespace {

constexpr int64_t kUnitsReadAtOnce = 64;
// Of lines: some milliseconds of a turn.
constexpr size_t kPieceBytes = size_t{128} << 10;

}  // namespace

std::filesystem::path result_path(const std::filesystem::path& folder, UnitId unit,
                                  const Digest& digest) {
  return folder / (std::to_string(unit.value) + "-" + digest.hex() + ".result");
}

Result<std::unique_ptr<OutputMaker>> OutputMaker::begin(UnitTable& units,
                                                        std::shared_ptr<const LiveTask> task,
                                                        const std::filesystem::path& folder,
                                                        const std::filesystem::path& path) {
  SHOAL_TRY_ASSIGN(writer, OutputWriter::begin(path));
  return std::make_unique<OutputMaker>(units, std::move(task), folder, std::move(writer));
}

OutputMaker::OutputMaker(UnitTable& units, std::shared_ptr<const LiveTask> task,
                         std::filesystem::path folder, OutputWriter writer)
    : units_(units),
      task_(std::move(task)),
      folder_(std::move(folder)),
      writer_(std::move(writer)) {}

Result<ByteVector> OutputMaker::result_bytes(const EndedUnit& unit) {
  ByteVector bytes = unit.bytes;
  if (bytes.empty()) {
    Result<ByteVector> read = read_file(result_path(folder_, unit.cut.unit, unit.digest),
                                        Bytes{int64_t{limits::kMessageBytesMax}});
    if (!read.ok()) {
      // A disk that cannot be read now may be read later.
      if (read.error().code == ErrorCode::kNotFound) lost_ = unit.cut.unit;
      return read.error();
    }
    bytes = std::move(read).value();
  }
  if (digest_of(bytes) != unit.digest) {
    lost_ = unit.cut.unit;
    return Error{ErrorCode::kCorrupt,
                 "the result of unit " + std::to_string(unit.cut.unit.value) + " is damaged"};
  }
  return bytes;
}

Result<bool> OutputMaker::next_unit() {
  if (task_->items == nullptr) return false;
  if (unit_ == ended_.size()) {
    SHOAL_TRY_ASSIGN(ended, units_.ended_units(task_->id, next_item_, kUnitsReadAtOnce));
    ended_ = std::move(ended);
    unit_ = 0;
    if (ended_.empty()) return false;
  }
  const EndedUnit& unit = ended_[unit_++];
  next_item_ = unit.cut.first_item + unit.cut.items;
  SHOAL_TRY_ASSIGN(items, task_->items->read(unit.cut.first_item, unit.cut.items));
  items_ = std::move(items);
  values_.clear();
  item_ = 0;
  if (!unit.done) return true;
  SHOAL_TRY_ASSIGN(bytes, result_bytes(unit));
  SHOAL_TRY_ASSIGN(values, read_unit_output(bytes, unit_kind(task_->spec.kind)));
  if (values.size() != items_.size())
    return Error{ErrorCode::kCorrupt, "a stored result has another number of items"};
  values_ = std::move(values);
  return true;
}

Result<bool> OutputMaker::go_on() {
  for (size_t written = 0; written < kPieceBytes;) {
    if (item_ == items_.size()) {
      SHOAL_TRY_ASSIGN(more, next_unit());
      if (!more) return false;
      continue;
    }
    const WorkItem& item = items_[item_];
    const std::string line = values_.empty() ? quarantined_line(item)
                                             : output_line(item, values_[item_], task_->spec.kind,
                                                           *task_->model, task_->stop);
    SHOAL_TRY(writer_.add(line));
    written += line.size();
    ++item_;
  }
  return true;
}

Result<std::unique_ptr<ItemsMaker>> ItemsMaker::begin(std::shared_ptr<const LiveTask> task,
                                                      const std::filesystem::path& source,
                                                      const std::filesystem::path& folder,
                                                      const std::string& name) {
  SHOAL_TRY_ASSIGN(reader, OutputReader::open(source));
  SHOAL_TRY_ASSIGN(writer, ItemsWriter::begin(folder, name));
  return std::make_unique<ItemsMaker>(std::move(task), std::move(reader), std::move(writer));
}

ItemsMaker::ItemsMaker(std::shared_ptr<const LiveTask> task, OutputReader reader,
                       ItemsWriter writer)
    : task_(std::move(task)), reader_(std::move(reader)), writer_(std::move(writer)) {}

Result<bool> ItemsMaker::go_on() {
  for (size_t read = 0; read < kPieceBytes;) {
    SHOAL_TRY_ASSIGN(former, reader_.next());
    if (!former) return false;
    read += former->id.size() + (former->text ? former->text->size() : 0) + 64;
    SHOAL_TRY(writer_.add(item_from_output(*former, task_->spec, *task_->model, index_++)));
  }
  return true;
}

}  // namespace shoal
