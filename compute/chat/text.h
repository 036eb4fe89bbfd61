#pragma once
// Holds a text that remembers, byte for byte, whether it came from a message or from the template.
// All texts are valid UTF-8 and are cut between characters only.

#include <string>
#include <string_view>

namespace shoal::chat {

class Text {
 public:
  Text() = default;
  Text(std::string bytes, bool from_message)
      : bytes_(std::move(bytes)), from_message_(from_message) {}

  std::string_view view() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }

  bool from_message(size_t at) const {
    return origins_.empty() ? from_message_ : origins_[at] != '\0';
  }

  void append(std::string_view bytes, bool from_message) {
    if (bytes.empty()) return;
    if (bytes_.empty()) from_message_ = from_message;
    if (!origins_.empty() || from_message != from_message_) {
      spread();
      origins_.append(bytes.size(), from_message ? '\1' : '\0');
    }
    bytes_.append(bytes);
  }

  void append(const Text& other) { append(other, 0, other.size()); }

  // The bytes of `other` from `begin` to before `end`.
  void append(const Text& other, size_t begin, size_t end) {
    if (begin >= end) return;
    if (other.origins_.empty())
      return append(other.view().substr(begin, end - begin), other.from_message_);
    spread();
    origins_.append(other.origins_, begin, end - begin);
    bytes_.append(other.bytes_, begin, end - begin);
  }

  Text slice(size_t begin, size_t end) const {
    Text out;
    out.append(*this, begin, end);
    return out;
  }

 private:
  void spread() {
    if (origins_.empty()) origins_.assign(bytes_.size(), from_message_ ? '\1' : '\0');
  }

  std::string bytes_;
  std::string origins_;  // One for each byte; empty while all are of one origin.
  bool from_message_ = false;
};

}  // namespace shoal::chat
