#pragma once
// Holds what must be known of characters: which letter is the capital of which (Unicode's simple
// mappings), what Python calls white space, and what it prints as an escape.

#include <cstdint>

namespace shoal::chat {

uint32_t to_upper(uint32_t code_point);
uint32_t to_lower(uint32_t code_point);
inline bool has_case(uint32_t code_point) {
  return to_upper(code_point) != code_point || to_lower(code_point) != code_point;
}

bool is_python_space(uint32_t code_point);
bool is_python_printable(uint32_t code_point);

}  // namespace shoal::chat
