#pragma once
// A list that a command prints: its columns as data, so that the table for people, the CSV and the
// JSON of one list cannot say different things.

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::client {

using Json = nlohmann::ordered_json;

// What people read, and what scripts do.
struct Cell {
  std::string text;
  Json value;

  Cell(std::string text) : text(std::move(text)), value(this->text) {}
  Cell(const char* text) : Cell(std::string(text)) {}
  Cell(std::string text, Json value) : text(std::move(text)), value(std::move(value)) {}
};

struct Column {
  std::string_view key;    // In JSON and CSV.
  std::string_view title;  // For people; empty: not shown to them.
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  void add(std::vector<Cell> row);  // REQUIRES: one cell for each column.
  bool empty() const { return rows_.empty(); }

  std::string text() const;  // Aligned, with a line of titles. Nothing in it orders a terminal.
  std::string csv() const;   // RFC 4180; what a spreadsheet would take for a formula is quoted.
  Json json() const;         // A list of objects.

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace shoal::client
