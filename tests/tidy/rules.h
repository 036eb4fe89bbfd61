#pragma once
// Holds the house's rules that a machine can check: who may include whom, and the hazards of
// docs/STYLE.md. Pure: a path and a text in, findings out.

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shoal {

struct Finding {
  std::string path;
  int line = 0;
  std::string rule;    // Which rule, for tests: "include", "new", ...
  std::string advice;  // What is wrong, and what to write instead.

  std::string text() const;  // "path:line: advice"
};

// `path` is relative to the repository: it says which room the file is in.
std::vector<Finding> check_source(std::string_view path, std::string_view content);

// One hazard, with a line that has it and one that does not: the rule's test of itself.
struct Hazard {
  std::string_view rule;
  std::string_view pattern;          // A regular expression over code without comments and texts.
  std::vector<std::string_view> in;  // Files where it is allowed: beginnings of paths.
  std::string_view advice;
  std::string_view bad;
  std::string_view good;
};
std::span<const Hazard> hazards();

// Code with every comment, and every text literal too when asked, replaced by spaces; lines stay.
std::string without_comments(std::string_view content, bool without_texts);

// The migrations that were released: "digest path" a line. `files` are paths and contents, in any
// order. A recorded file that changed or vanished is a finding, and so is any but the newest file
// that is not recorded.
struct SourceText {
  std::string path;
  std::string content;
};
std::vector<Finding> check_migrations(std::string_view record, std::vector<SourceText> files);

}  // namespace shoal
