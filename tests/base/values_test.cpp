// Bytes, digests, chance, time, units and log records.

#include <QTest>
#include <set>
#include <thread>
#include <unordered_set>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/log.h"
#include "base/random.h"
#include "base/text.h"
#include "base/units.h"

using namespace shoal;

class ValuesTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void units_add_and_compare();
  void ids_are_different_types_and_hash();
  void hex_round_trips_and_refuses();
  void base64url_round_trips_and_refuses();
  void reader_reads_what_the_writer_wrote();
  void reader_refuses_beyond_the_end_and_names_the_field();
  void digest_is_blake2b();
  void digest_refuses_wrong_texts();
  void random_is_the_same_everywhere();
  void random_below_keeps_its_bound_and_its_fairness();
  void random_uniform_stays_below_one();
  void secrets_differ();
  void manual_clock_moves_only_when_told();
  void time_is_written_as_utc();
  void local_time_knows_its_weekday_and_its_day();
  void text_is_cut_between_characters();
  void text_for_a_terminal_holds_no_orders();
  void log_quotes_what_could_break_a_line();
  void log_obeys_its_level();
  void log_lines_of_threads_stay_whole();
};

void ValuesTest::units_add_and_compare() {
  Bytes sum = kKibibyte + Bytes{24};
  sum -= Bytes{4};
  QVERIFY(sum == Bytes{1044});
  QVERIFY(kKibibyte < kMebibyte && kMebibyte < kGibibyte);
  static_assert(!std::is_convertible_v<Bytes, Millis>);
}

void ValuesTest::ids_are_different_types_and_hash() {
  static_assert(!std::is_convertible_v<HostId, DeviceId>);
  const std::unordered_set<HostId> hosts = {HostId{1}, HostId{2}, HostId{1}};
  QCOMPARE(hosts.size(), size_t{2});
  QVERIFY(HostId{1} < HostId{2});
  QVERIFY(!HostId{});
}

void ValuesTest::hex_round_trips_and_refuses() {
  const auto decoded = hex_decode("00ffA5");
  QVERIFY(decoded.ok());
  QCOMPARE(hex_encode(decoded.value()), std::string("00ffa5"));
  for (const char* wrong : {"0", "0g", "g0", "00 ", "0x00", "000"})
    QVERIFY(!hex_decode(wrong).ok());
  QVERIFY(hex_decode("").ok());
}

void ValuesTest::base64url_round_trips_and_refuses() {
  Random random(7);
  for (size_t size = 0; size < 70; ++size) {
    ByteVector bytes(size);
    random.fill(bytes);
    const std::string text = base64url_encode(bytes);
    QVERIFY(text.find_first_of("+/=") == std::string::npos);
    const auto decoded = base64url_decode(text);
    QVERIFY(decoded.ok() && decoded.value() == bytes);
  }
  QCOMPARE(base64url_encode(as_bytes("any carnal pleas")), std::string("YW55IGNhcm5hbCBwbGVhcw"));
  // Padding, the other alphabet, a lone letter, bits beyond the last byte.
  for (const char* wrong : {"YQ==", "a+b/", "A", "YR", "YW5=", "YW 5"}) {
    QVERIFY2(!base64url_decode(wrong).ok(), wrong);
  }
}

void ValuesTest::reader_reads_what_the_writer_wrote() {
  ByteWriter writer;
  writer.u8(1);
  writer.u16(0x0203);
  writer.u32(0x04050607);
  writer.u64(0x08090a0b0c0d0e0f);
  writer.f32(-1.5f);
  writer.text("end");
  QCOMPARE(hex_encode(writer.view()), std::string("010302070605040f0e0d0c0b0a09080000c0bf656e64"));
  ByteReader reader(writer.view());
  QCOMPARE(reader.u8().value(), uint8_t{1});
  QCOMPARE(reader.u16().value(), uint16_t{0x0203});
  QCOMPARE(reader.u32().value(), uint32_t{0x04050607});
  QCOMPARE(reader.u64().value(), uint64_t{0x08090a0b0c0d0e0f});
  QCOMPARE(reader.f32().value(), -1.5f);
  QVERIFY(reader.text(3).value() == "end");
  QVERIFY(reader.at_end());
}

void ValuesTest::reader_refuses_beyond_the_end_and_names_the_field() {
  const ByteVector bytes(5);
  ByteReader reader(bytes);
  QVERIFY(reader.u16("width").ok());
  const auto refused = reader.u32("height");
  QVERIFY(!refused.ok());
  QVERIFY(refused.error().code == ErrorCode::kCorrupt);
  QVERIFY(refused.error().message.starts_with("height needs 4 bytes at offset 2"));
  QVERIFY(!reader.bytes(UINT64_MAX, "name").ok());
  QCOMPARE(reader.position(), size_t{2});  // A refusal moves nothing.
  QVERIFY(reader.bytes(3).ok());
  QVERIFY(reader.bytes(0).ok());
  QVERIFY(!reader.u8().ok());
}

// Goal: the digest is the published function. Method: BLAKE2b-256 of nothing and of "abc", from
// an independent program (b2sum -l 256).
void ValuesTest::digest_is_blake2b() {
  QCOMPARE(digest_of({}).hex(),
           std::string("0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8"));
  QCOMPARE(digest_of(as_bytes("abc")).hex(),
           std::string("bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319"));
  DigestBuilder builder;
  builder.update(as_bytes("a"));
  builder.update({});
  builder.update(as_bytes("bc"));
  QVERIFY(builder.finish() == digest_of(as_bytes("abc")));
}

void ValuesTest::digest_refuses_wrong_texts() {
  const Digest digest = digest_of(as_bytes("x"));
  QVERIFY(Digest::from_hex(digest.hex()).value() == digest);
  QVERIFY(!Digest::from_hex(digest.hex().substr(1)).ok());
  QVERIFY(!Digest::from_hex(digest.hex() + "00").ok());
  QVERIFY(!Digest::from_hex(digest.hex().replace(3, 1, "z")).ok());
  QVERIFY(std::hash<Digest>{}(digest) != std::hash<Digest>{}(Digest{}));
}

// Goal: a seed replays a run on any machine, for ever. Method: stored numbers.
void ValuesTest::random_is_the_same_everywhere() {
  Random random(1);
  const uint64_t first = random.next_u64();
  const uint64_t second = random.next_u64();
  QCOMPARE(first, uint64_t{0xb3f2af6d0fc710c5});
  QCOMPARE(second, uint64_t{0x853b559647364cea});
  Random again(1);
  ByteVector bytes(16);
  again.fill(bytes);
  QCOMPARE(load_le<uint64_t>(bytes.data()), first);
  QCOMPARE(load_le<uint64_t>(bytes.data() + 8), second);
}

void ValuesTest::random_below_keeps_its_bound_and_its_fairness() {
  Random random(2);
  int counts[7] = {};
  for (int i = 0; i < 70'000; ++i) ++counts[random.below(7)];
  for (const int count : counts) QVERIFY(count > 9'500 && count < 10'500);
  QCOMPARE(random.below(1), uint64_t{0});
  for (int i = 0; i < 100; ++i) QVERIFY(random.below((uint64_t{1} << 63) + 1) <= uint64_t{1} << 63);
}

void ValuesTest::random_uniform_stays_below_one() {
  Random random(3);
  double sum = 0;
  for (int i = 0; i < 100'000; ++i) {
    const double value = random.uniform();
    QVERIFY(value >= 0 && value < 1);
    sum += value;
  }
  QVERIFY(sum > 49'500 && sum < 50'500);
}

void ValuesTest::secrets_differ() {
  ByteVector a(32), b(32);
  fill_secret(a);
  fill_secret(b);
  QVERIFY(a != b);
  QVERIFY(seed_from_system() != seed_from_system());
}

void ValuesTest::manual_clock_moves_only_when_told() {
  ManualClock clock(Millis{1000});
  const Millis before = clock.now_monotonic();
  clock.advance(Millis{250});
  QVERIFY(clock.now_monotonic() - before == Millis{250});
  QVERIFY(clock.now_wall() == Millis{1250});
  clock.set_wall(Millis{5});
  QVERIFY(clock.now_wall() == Millis{5});
  QVERIFY(clock.now_monotonic() - before == Millis{250});
  const SystemClock system;
  const Millis start = system.now_monotonic();
  QVERIFY(system.now_monotonic() >= start);
}

void ValuesTest::time_is_written_as_utc() {
  QCOMPARE(format_utc(Millis{0}), std::string("1970-01-01T00:00:00.000Z"));
  QCOMPARE(format_utc(Millis{1'709'210'096'789}), std::string("2024-02-29T12:34:56.789Z"));
  QCOMPARE(format_utc(Millis{-1}), std::string("1969-12-31T23:59:59.999Z"));
}

void ValuesTest::local_time_knows_its_weekday_and_its_day() {
  qputenv("TZ", "UTC");
  tzset();
  const LocalTime monday = local_time(Millis{1'796'040'000'000});  // 2026-11-30 12:00 UTC.
  QCOMPARE(monday.weekday, 0);
  QCOMPARE(monday.minute_of_day, 12 * 60);
  QCOMPARE(monday.month * 100 + monday.day_of_month, 1130);
  QCOMPARE(local_time(Millis{1'796'040'000'000 + 12 * 3'600'000}).day, monday.day + 1);
  QCOMPARE(local_time(Millis{1'796'040'000'000 + 12 * 3'600'000 - 1}).day, monday.day);
  QCOMPARE(local_time(Millis{-1}).minute_of_day, 1439);
  QCOMPARE(format_local_minute(Millis{1'796'040'000'000}), std::string("2026-11-30 12:00"));
}

void ValuesTest::text_is_cut_between_characters() {
  const std::string text = "a\u00e4\u20ac";  // One, two and three bytes.
  QCOMPARE(cut_utf8(text, 6), std::string_view(text));
  QCOMPARE(cut_utf8(text, 5), std::string_view(text).substr(0, 3));
  QCOMPARE(cut_utf8(text, 2), std::string_view(text).substr(0, 1));
  QCOMPARE(cut_utf8(text, 0), std::string_view());
}

void ValuesTest::text_for_a_terminal_holds_no_orders() {
  for (const char* harmless :
       {"", "plain", "Käse \xE2\x82\xAC \xF0\x9F\x90\x9F", "\xC2\xA0", "\xF4\x8F\xBF\xBF"}) {
    QVERIFY(is_printable(harmless));
    QCOMPARE(printable(harmless), std::string(harmless));
  }
  const std::pair<const char*, const char*> cases[] = {
      {"a\x1b[31mb", "a?[31mb"},
      {"\x7f\r\n\t", "????"},
      {"\xC2\x9B"
       "31m",
       "?31m"},  // A control sequence in one character.
      {"\x9B"
       "31m",
       "?31m"},  // And as the byte alone.
      {"\xE2\x80\xAE"
       "txt",
       "?txt"},                      // Writes from right to left.
      {"\xC0\xAF", "??"},            // Overlong,
      {"\xED\xA0\x80", "???"},       // a surrogate,
      {"\xF4\x90\x80\x80", "????"},  // beyond Unicode,
      {"\xE2\x82", "??"},
      {"\xFF", "?"},  // cut off, and never UTF-8.
  };
  for (const auto& [text, shown] : cases) {
    QVERIFY(!is_printable(text));
    QCOMPARE(printable(text), std::string(shown));
  }
  QCOMPARE(printable("a\n\tb\r\x1b", /*keep_lines=*/true), std::string("a\n\tb??"));
  QCOMPARE(printable(std::string_view("\0x", 2)), std::string("?x"));
}

void ValuesTest::log_quotes_what_could_break_a_line() {
  const std::string line = format_log_record(LogLevel::kInfo, "client", "attached",
                                             {{"host", HostId{7}},
                                              {"name", "two words"},
                                              {"empty", ""},
                                              {"bad", std::string("a\nb\"c\\d\x1b[0m")},
                                              {"ok", true},
                                              {"rate", 0.5},
                                              {"bytes", Bytes{12}}});
  QCOMPARE(line, std::string(R"(info client attached host=7 name="two words" empty="" )"
                             R"(bad="a\nb\"c\\d\x1b[0m" ok=true rate=0.5 bytes=12)"));
}

void ValuesTest::log_obeys_its_level() {
  std::vector<std::string> lines;
  set_log_sink([&lines](LogLevel, std::string_view line) { lines.emplace_back(line); });
  const LogLevel before = log_level();
  set_log_level(LogLevel::kWarning);
  log_info("test", "quiet");
  log_error("test", "loud", {{"why", Error{ErrorCode::kIo, "disk on fire"}}});
  set_log_level(LogLevel::kOff);
  log_error("test", "off");
  set_log_level(before);
  set_log_sink({});
  QCOMPARE(lines.size(), size_t{1});
  QVERIFY(lines[0].ends_with("error test loud why=\"disk on fire\""));
  QVERIFY(log_level_from_text("debug").value() == LogLevel::kDebug);
  QVERIFY(!log_level_from_text("loud").ok());
}

void ValuesTest::log_lines_of_threads_stay_whole() {
  std::multiset<std::string> events;
  set_log_sink([&events](LogLevel, std::string_view line) {
    events.insert(std::string(line.substr(line.find("info "))));
  });
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([i] {
      for (int n = 0; n < 100; ++n) log_info("test", "line", {{"thread", i}});
    });
  }
  for (std::thread& thread : threads) thread.join();
  set_log_sink({});
  for (int i = 0; i < 4; ++i) {
    QCOMPARE(events.count("info test line thread=" + std::to_string(i)), size_t{100});
  }
}

QTEST_GUILESS_MAIN(ValuesTest)
#include "values_test.moc"
