// Speaks as shoal-sensors does, well or badly as its first argument says.

#include <nlohmann/json.hpp>

#include <iostream>
#include <string>

namespace {

using nlohmann::json;

void say(const json& line) { std::cout << line.dump() << std::endl; }

void say_all_is_well(int64_t idle_ms) {
  say({{"sensor", "idle"},
       {"known", true},
       {"backend", "mutter"},
       {"idle_ms", idle_ms},
       {"every_ms", 1000}});
  say({{"sensor", "power"},
       {"known", true},
       {"backend", "upower"},
       {"on_battery", true},
       {"battery_percent", 71.5},
       {"power_profile", "balanced"},
       {"every_ms", 5000}});
}

void say_what_makes_no_sense() {
  std::cout << "no json\n[1,2]\n{\"sensor\":7}\n{\"sensor\":\"mood\",\"known\":true}\n\n";
  say({{"sensor", "idle"}, {"known", true}, {"idle_ms", "soon"}, {"locked", 1}});
  say({{"sensor", "power"}, {"known", true}, {"on_battery", true}, {"battery_percent", 1e9}});
  say({{"sensor", "load"}, {"known", true}, {"other_cpu_load", -1}});
  say({{"sensor", "memory"}, {"known", true}, {"memory_available", 1e300}});
  say({{"sensor", "gpu"}, {"known", true}, {"gpus", json::array({1, {{"name", "a\x1b[2Jb"}}})}});
  say({{"sensor", "inhibitors"}, {"known", true}, {"inhibitors", json(std::vector<int>(100))}});
  say({{"sensor", "network"}, {"known", true}, {"online", true}});
}

// Answers each wish, until there are none.
void obey(const std::string& mode) {
  int64_t idle_ms = 0;
  std::string line;
  while (std::getline(std::cin, line)) {
    const json wish = json::parse(line);
    if (wish.contains("configure")) {
      say({{"sensor", "programs"}, {"known", true}, {"programs", wish["configure"]["exclusive"]}});
    }
    if (mode == "steady" && wish.value("released", false)) {
      // A second later, with all else as it was.
      say_all_is_well(idle_ms += 1'000);
    } else if (wish.value("released", false)) {
      say({{"sensor", "sleep"}, {"known", true}, {"sleeping", false}});
    }
    if (wish.contains("test") && wish["test"] != "disk") {
      say({{"sensor", wish["test"]},
           {"known", true},
           {"idle_ms", 5000},
           {"tests", {wish["id"]}},
           {"backend", "mutter"},
           {"backends",
            {{{"name", "mutter"}, {"usable", true}, {"idle_ms", 5000}},
             {{"name", "logind"}, {"usable", false}, {"problem", "not running"}}}}});
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "exit") return 3;
  if (mode == "endless") {
    const std::string piece(4'096, 'x');
    while (std::cout << piece) {
    }
    return 0;
  }
  if (mode == "good" || mode == "sleepy") say_all_is_well(1'234);
  if (mode == "sleepy") say({{"sensor", "sleep"}, {"known", true}, {"sleeping", true}});
  if (mode == "hostile") say_what_makes_no_sense();
  obey(mode);
  return 0;
}
