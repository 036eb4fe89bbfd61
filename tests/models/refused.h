#pragma once
// Whether a result was refused as it should be: with these words in its message, and this kind.

#include <QTest>

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace shoal {

template <class T>
bool refused(const Result<T>& result, std::initializer_list<std::string_view> words,
             std::optional<ErrorCode> code = {}) {
  if (result.ok()) {
    qWarning("was accepted; expected a refusal with \"%s\"", std::string(*words.begin()).c_str());
    return false;
  }
  const Error& error = result.error();
  for (const std::string_view word : words) {
    if (error.message.find(word) == std::string::npos) {
      qWarning("message \"%s\" lacks \"%s\"", error.message.c_str(), std::string(word).c_str());
      return false;
    }
  }
  if (code.has_value() && error.code != *code) {
    qWarning("kind is %s: %s", std::string(error_code_name(error.code)).c_str(),
             error.message.c_str());
    return false;
  }
  return true;
}

}  // namespace shoal
