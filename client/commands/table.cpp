#include "client/commands/table.h"

#include <algorithm>

#include "base/check.h"
#include "base/text.h"

namespace shoal::client {
namespace {

// Characters, as UTF-8 counts them.
size_t width_of(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string csv_field(const Json& value) {
  if (value.is_null()) return "";
  if (!value.is_string()) return value.dump();
  std::string text = printable(value.get<std::string>());
  // Names come from strangers, and spreadsheets run what looks like a formula.
  if (!text.empty() && std::string_view("=+-@").find(text[0]) != std::string_view::npos) {
    text.insert(0, "'");
  }
  if (text.find_first_of(",\"") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace

void Table::add(std::vector<Cell> row) {
  SHOAL_CHECK(row.size() == columns_.size());
  for (Cell& cell : row) cell.text = printable(cell.text);
  rows_.push_back(std::move(row));
}

std::string Table::text() const {
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    widths.push_back(width_of(columns_[i].title));
    for (const auto& row : rows_) widths[i] = std::max(widths[i], width_of(row[i].text));
  }
  std::string out;
  const auto add_line = [&](auto cell_text) {
    std::string line;
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i].title.empty()) continue;
      const std::string text(cell_text(i));
      line += text + std::string(widths[i] - width_of(text) + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  };
  add_line([this](size_t i) { return columns_[i].title; });
  for (const auto& row : rows_) add_line([&row](size_t i) { return row[i].text; });
  return out;
}

std::string Table::csv() const {
  std::string out;
  const auto add_line = [&](auto field) {
    for (size_t i = 0; i < columns_.size(); ++i) out += (i == 0 ? "" : ",") + field(i);
    out += "\r\n";
  };
  add_line([this](size_t i) { return std::string(columns_[i].key); });
  for (const auto& row : rows_) add_line([&row](size_t i) { return csv_field(row[i].value); });
  return out;
}

Json Table::json() const {
  Json list = Json::array();
  for (const auto& row : rows_) {
    Json object = Json::object();
    for (size_t i = 0; i < columns_.size(); ++i)
      object[std::string(columns_[i].key)] = row[i].value;
    list.push_back(std::move(object));
  }
  return list;
}

}  // namespace shoal::client
