// How shoalctl shows answers, and its line to the coordinator.

#include <algorithm>
#include <cstdio>

#include "base/clock.h"
#include "base/files.h"
#include "base/text.h"
#include "coordinator/ctl/commands.h"
#include "schema/transport.h"

namespace shoal::ctl {
namespace {

// Columns count what is seen, not bytes.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(std::ranges::count_if(
      text, [](char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; }));
}

}  // namespace

Result<void> with_coordinator(const Context& context,
                              const std::function<Result<void>(Link&)>& body) {
  const std::filesystem::path socket = std::filesystem::absolute(context.data) / "admin.sock";
  const std::string data = context.data.string();
  const Error not_running{ErrorCode::kUnavailable,
                          "the coordinator is not running: start shoal-coordinator --data " + data};
  if (!is_there(context.data / "store.sqlite")) {
    return Error{ErrorCode::kNotFound,
                 data + " holds no coordinator: make one with shoalctl --data " + data + " init"};
  }
  if (!is_there(socket)) return not_running;
  try {  // KJ reports by exceptions; they end here.
    kj::AsyncIoContext io = kj::setupAsyncIo();
    kj::Own<rpc::Connection> connection;
    try {
      connection =
          rpc::dial_unix(io.provider->getNetwork(), io.provider->getTimer(), socket.string())
              .wait(io.waitScope);
    } catch (const kj::Exception& exception) {
      const Error error = rpc::error_of(exception);
      return error.code == ErrorCode::kDenied ? error : not_running;
    }
    Link link{io, connection->bootstrap().castAs<rpc::Admin>()};
    return body(link);
  } catch (const kj::Exception& exception) {
    if (exception.getType() == kj::Exception::Type::DISCONNECTED) {
      return Error{ErrorCode::kUnavailable, "the coordinator stopped before it answered"};
    }
    return rpc::error_of(exception);
  }
}

void print_table(const std::vector<std::string>& titles,
                 const std::vector<std::vector<std::string>>& rows_as_they_came) {
  std::vector<std::vector<std::string>> rows = rows_as_they_came;
  for (auto& row : rows) {
    for (std::string& cell : row) cell = printable(cell);
  }
  std::vector<size_t> widths;
  for (const std::string& title : titles) widths.push_back(width_of(title));
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  const auto print_row = [&](const std::vector<std::string>& row) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - width_of(row[i]) + 2, ' ');
    }
    std::printf("%s\n", line.c_str());
  };
  print_row(titles);
  for (const auto& row : rows) print_row(row);
}

void print_json(const Json& json) {
  std::printf("%s\n", json.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  std::fflush(stdout);
}

std::string show_time(int64_t wall_ms) { return wall_ms == 0 ? "-" : format_utc(Millis{wall_ms}); }

std::string show_bytes(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
  return text;
}

std::string show_credit(double credit) {
  char text[32];
  std::snprintf(text, sizeof text, credit < 1 ? "%.6f" : "%.3f", credit);
  return text;
}

std::string text_or_dash(capnp::Text::Reader text) { return text.size() == 0 ? "-" : text.cStr(); }

std::string csv_line(const std::vector<std::string>& cells) {
  std::string line;
  for (const std::string& cell : cells) {
    if (!line.empty() || &cell != &cells.front()) line += ',';
    // A spreadsheet would take these for a formula.
    const bool formula =
        !cell.empty() && std::string_view("=+-@\t\r").find(cell[0]) != std::string_view::npos;
    const std::string text = (formula ? "'" : "") + cell;
    if (text.find_first_of(",\"\r\n'") == std::string::npos) {
      line += text;
      continue;
    }
    line += '"';
    for (const char c : text) line += c == '"' ? std::string("\"\"") : std::string(1, c);
    line += '"';
  }
  return line + "\r\n";
}

std::string show_worth(double credit, const Worth& worth) {
  const double value = credit * worth.rate;
  char text[48];
  std::snprintf(text, sizeof text, value != 0 && value < 0.01 ? "%.6f" : "%.2f", value);
  return text + (" " + worth.unit);
}

Json stage_json(rpc::StageInfo::Reader stage) {
  return {{"host_id", stage.getHostId()},
          {"host", stage.getHostName().cStr()},
          {"trusted", stage.getTrusted()},
          {"device", stage.getDeviceId().cStr()},
          {"device_name", stage.getDeviceName().cStr()},
          {"plane", stage.getPlane().cStr()},
          {"first_fragment", stage.getFirstFragment()},
          {"last_fragment", stage.getLastFragment()}};
}

std::string stage_text(rpc::StageInfo::Reader stage) {
  return "fragments " + std::to_string(stage.getFirstFragment()) + "-" +
         std::to_string(stage.getLastFragment()) + " on " + printable(stage.getHostName().cStr()) +
         " (" + printable(stage.getDeviceId().cStr()) + (stage.getTrusted() ? ", trusted)" : ")");
}

}  // namespace shoal::ctl
