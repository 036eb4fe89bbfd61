#pragma once
// One connection to a D-Bus bus on which nothing waits longer than it is told to, nothing is
// started by being asked, and nothing that comes back is trusted.
//
// Belongs to its sensor's thread.

#include <systemd/sd-bus.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "client/sensors/sensor.h"

namespace shoal::client {

// Where something on a bus is found.
struct BusPlace {
  std::string service, path, interface;
};
inline const BusPlace kLogind = {"org.freedesktop.login1", "/org/freedesktop/login1",
                                 "org.freedesktop.login1.Manager"};

using BusArgument = std::variant<std::string, uint32_t>;
using BusValue = std::variant<bool, int64_t, uint64_t, double, std::string>;

struct BusMessageEnd {
  void operator()(sd_bus_message* message) const { sd_bus_message_unref(message); }
};
using BusMessage = std::unique_ptr<sd_bus_message, BusMessageEnd>;

using BusListener = std::function<void(sd_bus_message* signal)>;

class Bus {
 public:
  enum class Which { kSystem, kSession };

  explicit Bus(Which which) : which_(which) {}
  ~Bus();
  Bus(const Bus&) = delete;

  // Whether there is one to connect to. False: this system, or this user, has no such bus.
  bool exists() const;

  // kNotFound: no such service runs. kUnsupported: it runs but does not know this. kTimeout: it
  // does not answer. Else the bus itself fails; the next call connects anew.
  Result<BusMessage> call(const SensorRequest& request, const BusPlace& place,
                          const std::string& method,
                          const std::vector<BusArgument>& arguments = {});
  Result<BusValue> property(const SensorRequest& request, const BusPlace& place,
                            const std::string& name);
  // The plain ones of all properties.
  Result<std::map<std::string, BusValue>> properties(const SensorRequest& request,
                                                     const BusPlace& place);

  // Calls `act` for each such signal, from within receive() or a call. For the connection that
  // exists now. REQUIRES: `act` lives as long as this.
  Result<void> on_signal(const SensorRequest& request, const BusPlace& place, const char* signal,
                         const BusListener& act);
  // Takes in what has come. Connects when there is no connection.
  Result<void> receive(const SensorRequest& request);
  uint64_t connection() const { return connection_; }  // Grows with each; 0 before the first.
  SensorWake wake() const;

 private:
  Result<void> connect(const SensorRequest& request);
  void close();
  Error failed(int code, const sd_bus_error* error, const std::string& whom);

  Which which_;
  sd_bus* bus_ = nullptr;  // Null: not connected.
  bool ready_ = false;
  uint64_t connection_ = 0;
};

// No call waits longer than this, so that several fit into one reading.
inline constexpr Millis kBusCallMax{500};

// A text from a peer, fit to be shown.
std::string peer_text(const char* text);

// What a value is if it is of that kind.
std::optional<bool> as_flag(const BusValue& value);
std::optional<int64_t> as_number(const BusValue& value);  // Of any integer kind that fits.
std::optional<double> as_real(const BusValue& value);
std::optional<std::string> as_text(const BusValue& value);

// Of properties(); none when it is absent or of another kind.
template <class T>
std::optional<T> find_property(const std::map<std::string, BusValue>& properties,
                               const std::string& name,
                               std::optional<T> (*as)(const BusValue& value)) {
  const auto entry = properties.find(name);
  return entry == properties.end() ? std::optional<T>() : as(entry->second);
}

}  // namespace shoal::client
