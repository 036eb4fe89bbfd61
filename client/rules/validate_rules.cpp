#include "client/rules/validate_rules.h"

#include <charconv>

#include "base/text.h"
#include "client/rules/tariff.h"
#include "schema/week_hours.h"

namespace shoal::client {
namespace {

constexpr size_t kHostBytesMax = 255;
constexpr size_t kCurrencyBytesMax = 12;

Result<void> in_key(std::string_view key, const Error& error) { return with_context(error, key); }

Result<void> check_programs(const Settings& settings, std::string_view key) {
  for (const std::string& program : settings.list(key)) {
    if (program.empty() || !is_printable(program)) {
      return Error{ErrorCode::kInvalid,
                   std::string(key) + ": '" + printable(program) + "' is no program's name"};
    }
  }
  return {};
}

}  // namespace

Result<ListenAddress> parse_listen_address(std::string_view text) {
  const auto refuse = [text](size_t at, std::string_view why) {
    return refused_text(text, at, why);
  };
  size_t host_end = 0;
  ListenAddress address;
  if (text.starts_with('[')) {
    host_end = text.find(']');
    if (host_end == std::string_view::npos) return refuse(0, "this bracket is not closed");
    address.host = text.substr(1, host_end - 1);
    ++host_end;
  } else {
    host_end = std::min(text.find(':'), text.size());
    address.host = text.substr(0, host_end);
  }
  if (address.host.empty() || address.host.size() > kHostBytesMax || !is_printable(address.host) ||
      address.host.find_first_of(" /[]") != std::string::npos) {
    return refuse(0, "expected an address such as 0.0.0.0 or [::]");
  }
  if (host_end == text.size() || text[host_end] != ':') {
    return refuse(host_end, "expected ':' and a port");
  }
  const std::string_view digits = text.substr(host_end + 1);
  const auto [end, code] =
      std::from_chars(digits.data(), digits.data() + digits.size(), address.port);
  if (code != std::errc() || end != digits.data() + digits.size() || address.port == 0) {
    return refuse(host_end + 1, "expected a port from 1 to 65535; an IPv6 address needs brackets");
  }
  return address;
}

Result<void> validate_rules(const Settings& settings) {
  for (const std::string_view key : {"rules.compute_hours", "rules.network_hours"}) {
    const Result<WeekHours> hours = WeekHours::parse(settings.list(key));
    if (!hours.ok()) return in_key(key, hours.error());
  }
  const Result<Tariff> tariff =
      Tariff::parse(settings.real("energy.price_per_kwh"), settings.list("energy.tariff"));
  if (!tariff.ok()) return in_key("energy.tariff", tariff.error());
  SHOAL_TRY(check_programs(settings, "rules.exclusive_programs"));
  SHOAL_TRY(check_programs(settings, "rules.exclusive_programs_gpu"));
  for (const char* const key : {"remote.listen", "network.direct_listen"}) {
    const std::string& listen = settings.text(key);
    if (listen.empty()) continue;
    const Result<ListenAddress> address = parse_listen_address(listen);
    if (!address.ok()) return in_key(key, address.error());
  }
  const std::string& currency = settings.text("energy.currency");
  if (currency.empty() || currency.size() > kCurrencyBytesMax || !is_printable(currency)) {
    return Error{ErrorCode::kInvalid, "energy.currency must be a short name such as EUR"};
  }
  return {};
}

}  // namespace shoal::client
