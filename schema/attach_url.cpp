#include <charconv>

#include "schema/limits.h"
#include "schema/transport.h"

namespace shoal::rpc {
namespace {

constexpr std::string_view kScheme = "shoal://";
constexpr size_t kPinBytes = 43;  // 32 bytes in base64url without padding.

bool is_base64url(std::string_view text) {
  for (char c : text) {
    const bool fits = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                      c == '-' || c == '_';
    if (!fits) return false;
  }
  return !text.empty();
}

Error bad(const std::string& what) {
  return Error{ErrorCode::kInvalid,
               "attach URL: " + what + "; it should look like shoal://host:port/?pin=..."};
}

}  // namespace

Result<AttachUrl> parse_attach_url(std::string_view text) {
  if (text.size() > limits::kUrlBytesMax) return bad("it is longer than 1024 characters");
  for (char c : text) {
    if (c <= ' ' || c > '~') return bad("it holds a space or a character that no URL has");
  }
  if (!text.starts_with(kScheme)) return bad("it does not begin with shoal://");
  text.remove_prefix(kScheme.size());

  const size_t query_at = text.find('?');
  if (query_at == std::string_view::npos) return bad("the part ?pin=... is missing");
  std::string_view authority = text.substr(0, query_at);
  std::string_view query = text.substr(query_at + 1);
  if (authority.ends_with('/')) authority.remove_suffix(1);

  AttachUrl url;
  std::string_view port;
  if (authority.starts_with('[')) {
    const size_t end = authority.find("]:");
    if (end == std::string_view::npos) return bad("the port is missing after the address in [ ]");
    url.host = authority.substr(1, end - 1);
    port = authority.substr(end + 2);
  } else {
    const size_t colon = authority.rfind(':');
    if (colon == std::string_view::npos) return bad("the port is missing");
    url.host = authority.substr(0, colon);
    port = authority.substr(colon + 1);
    if (url.host.find(':') != std::string::npos) return bad("an IPv6 address needs [ ]");
  }
  if (url.host.empty()) return bad("the host is missing");
  if (url.host.find_first_of("/@*,") != std::string::npos)
    return bad("the host is not a name or address");

  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), url.port);
  if (error != std::errc() || end != port.data() + port.size() || url.port == 0) {
    return bad("the port is not a number from 1 to 65535");
  }

  while (!query.empty()) {
    const size_t amp = query.find('&');
    const std::string_view field = query.substr(0, amp);
    query = amp == std::string_view::npos ? std::string_view() : query.substr(amp + 1);
    if (field.starts_with("pin=")) {
      url.pin = field.substr(4);
    } else if (field.starts_with("invite=")) {
      url.invite = field.substr(7);
      if (!is_base64url(url.invite) || url.invite.size() > limits::kInviteBytesMax) {
        return bad("the invite is damaged");
      }
    } else {
      return bad("it has an unknown field \"" + std::string(field.substr(0, field.find('='))) +
                 "\"");
    }
  }
  if (url.pin.size() != kPinBytes || !is_base64url(url.pin)) {
    return bad("the pin is missing or damaged (43 letters, digits, - and _)");
  }
  return url;
}

std::string format_attach_url(const AttachUrl& url) {
  const bool ipv6 = url.host.find(':') != std::string::npos;
  std::string text = std::string(kScheme) + (ipv6 ? "[" + url.host + "]" : url.host) + ":" +
                     std::to_string(url.port) + "/?pin=" + url.pin;
  if (!url.invite.empty()) text += "&invite=" + url.invite;
  return text;
}

}  // namespace shoal::rpc
