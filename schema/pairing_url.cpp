#include "schema/pairing_url.h"

namespace shoal::rpc {
namespace {

constexpr std::string_view kAttachScheme = "shoal://";
constexpr std::string_view kPairScheme = "shoal+pair://";
constexpr std::string_view kInvite = "&invite=";
constexpr std::string_view kToken = "&token=";

void replace_once(std::string& text, std::string_view from, std::string_view to) {
  if (const size_t at = text.find(from); at != std::string::npos) {
    text.replace(at, from.size(), to);
  }
}

}  // namespace

Result<AttachUrl> parse_pairing_url(std::string_view text) {
  if (!text.starts_with(kPairScheme)) {
    return Error{ErrorCode::kInvalid,
                 "pairing URL: it does not begin with shoal+pair://; 'shoal-client pair' on the "
                 "other machine prints one"};
  }
  if (text.find(kInvite) != std::string_view::npos) {
    return Error{ErrorCode::kInvalid, "pairing URL: an invite is no token"};
  }
  // The rest is built like an attach URL, and so are its limits.
  std::string attach(kAttachScheme);
  attach += text.substr(kPairScheme.size());
  replace_once(attach, kToken, kInvite);
  Result<AttachUrl> url = parse_attach_url(attach);
  if (url.ok()) return url;
  std::string message = url.error().message;
  replace_once(message, "attach URL", "pairing URL");
  replace_once(message, "the invite", "the token");
  replace_once(message, "shoal://host:port/?pin=...", "shoal+pair://host:port/?pin=...&token=...");
  return Error{url.error().code, message};
}

std::string format_pairing_url(const AttachUrl& url) {
  std::string text = format_attach_url(url);
  replace_once(text, kAttachScheme, kPairScheme);
  replace_once(text, kInvite, kToken);
  return text;
}

}  // namespace shoal::rpc
