#include "client/sensors/bus.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>

#include "base/text.h"
#include "client/sensors/system_files.h"

namespace shoal::client {
namespace {

constexpr size_t kTextBytesMax = 200;
constexpr int kPropertiesMax = 256;
constexpr int kSignalsAtOnceMax = 1'000;

// The variant or plain value that comes next; none for a kind that nobody here asks for, which is
// skipped. REQUIRES: the message is at a variant.
std::optional<BusValue> read_variant(sd_bus_message* message, int& status) {
  char kind = 0;
  const char* contents = nullptr;
  status = sd_bus_message_peek_type(message, &kind, &contents);
  if (status < 0) return {};
  if (kind != SD_BUS_TYPE_VARIANT || contents == nullptr) {
    status = -EBADMSG;
    return {};
  }
  const std::string inner = contents;
  if (inner.size() != 1 || std::strchr("bynqiuxtdsogh", inner[0]) == nullptr || inner == "h") {
    status = sd_bus_message_skip(message, "v");
    return {};
  }
  status = sd_bus_message_enter_container(message, SD_BUS_TYPE_VARIANT, inner.c_str());
  if (status < 0) return {};
  std::optional<BusValue> value;
  const auto take = [&](auto plain, auto convert) {
    status = sd_bus_message_read_basic(message, inner[0], &plain);
    if (status >= 0) value = convert(plain);
  };
  const auto to_signed = [](auto number) { return BusValue(int64_t{number}); };
  const auto to_unsigned = [](auto number) { return BusValue(uint64_t{number}); };
  switch (inner[0]) {
    case 'b': take(int{0}, [](int flag) { return BusValue(flag != 0); }); break;
    case 'y': take(uint8_t{0}, to_unsigned); break;
    case 'n': take(int16_t{0}, to_signed); break;
    case 'q': take(uint16_t{0}, to_unsigned); break;
    case 'i': take(int32_t{0}, to_signed); break;
    case 'u': take(uint32_t{0}, to_unsigned); break;
    case 'x': take(int64_t{0}, to_signed); break;
    case 't': take(uint64_t{0}, to_unsigned); break;
    case 'd': take(double{0}, [](double number) { return BusValue(number); }); break;
    default:
      take(static_cast<const char*>(nullptr),
           [](const char* text) { return BusValue(peer_text(text)); });
      break;
  }
  if (status >= 0) status = sd_bus_message_exit_container(message);
  return value;
}

BusPlace properties_of(const BusPlace& place) {
  return {place.service, place.path, "org.freedesktop.DBus.Properties"};
}

Error strange_answer(const std::string& whom) {
  return {ErrorCode::kCorrupt, whom + " gave an answer that makes no sense"};
}

}  // namespace

std::string peer_text(const char* text) {
  return text == nullptr ? "" : printable(cut_utf8(text, kTextBytesMax));
}

std::optional<bool> as_flag(const BusValue& value) {
  const bool* flag = std::get_if<bool>(&value);
  return flag == nullptr ? std::optional<bool>() : *flag;
}

std::optional<int64_t> as_number(const BusValue& value) {
  if (const auto* number = std::get_if<int64_t>(&value)) return *number;
  if (const auto* number = std::get_if<uint64_t>(&value)) {
    if (*number <= uint64_t{std::numeric_limits<int64_t>::max()}) {
      return static_cast<int64_t>(*number);
    }
  }
  return {};
}

std::optional<double> as_real(const BusValue& value) {
  const double* number = std::get_if<double>(&value);
  return number == nullptr ? std::optional<double>() : *number;
}

std::optional<std::string> as_text(const BusValue& value) {
  const std::string* text = std::get_if<std::string>(&value);
  return text == nullptr ? std::optional<std::string>() : *text;
}

Bus::~Bus() { close(); }

void Bus::close() {
  if (bus_ != nullptr) {
    sd_bus_close(bus_);
    sd_bus_unref(bus_);
  }
  bus_ = nullptr;
  ready_ = false;
}

bool Bus::exists() const {
  std::error_code code;
  if (which_ == Which::kSystem) {
    return !environment("DBUS_SYSTEM_BUS_ADDRESS").empty() ||
           std::filesystem::exists("/run/dbus/system_bus_socket", code) ||
           std::filesystem::exists("/var/run/dbus/system_bus_socket", code);
  }
  if (!environment("DBUS_SESSION_BUS_ADDRESS").empty()) return true;
  const std::string folder = environment("XDG_RUNTIME_DIR");
  return !folder.empty() && std::filesystem::exists(folder + "/bus", code);
}

Result<void> Bus::connect(const SensorRequest& request) {
  const std::string whom = which_ == Which::kSystem ? "the system bus" : "the session bus";
  if (bus_ == nullptr) {
    if (!exists()) return Error{ErrorCode::kNotFound, "there is no such thing as " + whom};
    request.about_to_ask(whom);
    const int status =
        which_ == Which::kSystem ? sd_bus_open_system(&bus_) : sd_bus_open_user(&bus_);
    if (status < 0) {
      bus_ = nullptr;
      return Error{ErrorCode::kUnavailable, whom + " cannot be reached: " + std::strerror(-status)};
    }
    ready_ = false;
    ++connection_;
  }
  const Millis end = request.clock.now_monotonic() + std::min(kBusCallMax, request.left());
  for (int i = 0; i < kSignalsAtOnceMax;) {
    const int status = sd_bus_process(bus_, nullptr);
    if (status < 0) return failed(status, nullptr, whom);
    if (!ready_) ready_ = sd_bus_is_ready(bus_) > 0;
    if (status > 0) {
      ++i;
      continue;
    }
    if (ready_) return {};
    const Millis left = end - request.clock.now_monotonic();
    if (left.count <= 0) {
      close();
      return Error{ErrorCode::kTimeout, whom + " does not answer"};
    }
    request.about_to_ask(whom);
    const int fd = sd_bus_get_fd(bus_);
    const int events = sd_bus_get_events(bus_);
    if (fd < 0 || events < 0) return failed(std::min(fd, events), nullptr, whom);
    pollfd wait = {fd, static_cast<short>(events), 0};
    (void)poll(&wait, 1, static_cast<int>(left.count));
  }
  return {};  // More has come than one reading looks at.
}

Error Bus::failed(int code, const sd_bus_error* error, const std::string& whom) {
  if (error != nullptr && sd_bus_error_is_set(error) != 0) {
    const std::string name = error->name == nullptr ? "" : error->name;
    const auto is = [&name](const char* last) {
      return name == std::string("org.freedesktop.DBus.Error.") + last;
    };
    if (is("ServiceUnknown") || is("NameHasNoOwner") || is("Spawn.ServiceNotFound")) {
      return {ErrorCode::kNotFound, whom + " is not running"};
    }
    if (is("UnknownMethod") || is("UnknownObject") || is("UnknownInterface") ||
        is("UnknownProperty") || is("NotSupported") || is("InvalidArgs")) {
      return {ErrorCode::kUnsupported, whom + " does not know what it was asked"};
    }
    if (is("AccessDenied")) return {ErrorCode::kDenied, whom + " refuses to answer"};
    if (is("NoReply") || is("Timeout") || is("TimedOut")) {
      return {ErrorCode::kTimeout, whom + " does not answer"};
    }
    if (!is("Disconnected")) {
      return {ErrorCode::kUnavailable, whom + " failed: " + peer_text(error->message)};
    }
  }
  if (code == -ETIMEDOUT) return {ErrorCode::kTimeout, whom + " does not answer"};
  close();
  return {ErrorCode::kUnavailable, whom + " was lost: " + std::strerror(-code)};
}

Result<BusMessage> Bus::call(const SensorRequest& request, const BusPlace& place,
                             const std::string& method, const std::vector<BusArgument>& arguments) {
  SHOAL_TRY(connect(request));
  sd_bus_message* raw = nullptr;
  int status = sd_bus_message_new_method_call(bus_, &raw, place.service.c_str(), place.path.c_str(),
                                              place.interface.c_str(), method.c_str());
  if (status < 0) return failed(status, nullptr, place.service);
  const BusMessage message(raw);
  // A service that does not run has nothing to say; asking must not start it.
  status = sd_bus_message_set_auto_start(raw, 0);
  for (const BusArgument& argument : arguments) {
    if (status < 0) break;
    if (const auto* text = std::get_if<std::string>(&argument)) {
      status = sd_bus_message_append_basic(raw, 's', text->c_str());
    } else {
      status = sd_bus_message_append_basic(raw, 'u', &std::get<uint32_t>(argument));
    }
  }
  if (status < 0) return failed(status, nullptr, place.service);
  const Millis limit = std::min(kBusCallMax, request.left());
  if (limit.count == 0)
    return Error{ErrorCode::kTimeout, "no time was left to ask " + place.service};
  request.about_to_ask(place.service);
  sd_bus_error error = SD_BUS_ERROR_NULL;
  sd_bus_message* reply = nullptr;
  status = sd_bus_call(bus_, raw, static_cast<uint64_t>(limit.count) * 1'000, &error, &reply);
  if (status < 0) {
    Error told = failed(status, &error, place.service);
    sd_bus_error_free(&error);
    return told;
  }
  return BusMessage(reply);
}

Result<BusValue> Bus::property(const SensorRequest& request, const BusPlace& place,
                               const std::string& name) {
  SHOAL_TRY_ASSIGN(reply, call(request, properties_of(place), "Get", {place.interface, name}));
  int status = 0;
  std::optional<BusValue> value = read_variant(reply.get(), status);
  if (status < 0 || !value) return strange_answer(place.service);
  return std::move(*value);
}

Result<std::map<std::string, BusValue>> Bus::properties(const SensorRequest& request,
                                                        const BusPlace& place) {
  SHOAL_TRY_ASSIGN(reply, call(request, properties_of(place), "GetAll", {place.interface}));
  std::map<std::string, BusValue> values;
  sd_bus_message* message = reply.get();
  if (sd_bus_message_enter_container(message, SD_BUS_TYPE_ARRAY, "{sv}") <= 0) {
    return strange_answer(place.service);
  }
  for (int i = 0; i < kPropertiesMax; ++i) {
    int status = sd_bus_message_enter_container(message, SD_BUS_TYPE_DICT_ENTRY, "sv");
    if (status == 0) break;
    const char* name = nullptr;
    if (status > 0) status = sd_bus_message_read_basic(message, 's', &name);
    if (status <= 0) return strange_answer(place.service);
    std::optional<BusValue> value = read_variant(message, status);
    if (value) values.emplace(peer_text(name), std::move(*value));
    if (status < 0 || sd_bus_message_exit_container(message) < 0) {
      return strange_answer(place.service);
    }
  }
  return values;
}

Result<void> Bus::on_signal(const SensorRequest& request, const BusPlace& place, const char* signal,
                            const BusListener& act) {
  SHOAL_TRY(connect(request));
  const auto took = [](sd_bus_message* message, void* context, sd_bus_error*) {
    (*static_cast<const BusListener*>(context))(message);
    return 0;
  };
  // The slot is the connection's own, and goes with it.
  const int status = sd_bus_match_signal_async(bus_, nullptr, place.service.c_str(),
                                               place.path.c_str(), place.interface.c_str(), signal,
                                               took, nullptr, const_cast<BusListener*>(&act));
  if (status < 0) return failed(status, nullptr, place.service);
  return {};
}

Result<void> Bus::receive(const SensorRequest& request) { return connect(request); }

SensorWake Bus::wake() const {
  if (bus_ == nullptr) return {};
  const int fd = sd_bus_get_fd(bus_);
  const int events = sd_bus_get_events(bus_);
  if (fd < 0 || events < 0) return {};
  return {fd, static_cast<short>(events), {}};
}

}  // namespace shoal::client
