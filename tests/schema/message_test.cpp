// The sentences that cross programs, and the receipts that a coordinator signs.

#include <capnp/message.h>

#include <QTest>
#include <algorithm>

#include "base/text.h"
#include "schema/limits.h"
#include "schema/message.h"
#include "schema/receipt.h"

using namespace shoal;

class MessageTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void table_is_sorted_and_whole();
  void places_are_filled();
  void unknown_codes_are_still_said();
  void message_survives_the_wire();
  void hostile_message_is_cut();
  void receipt_survives_the_wire_and_verifies();
  void receipt_with_any_other_field_is_not_genuine();
};

void MessageTest::table_is_sorted_and_whole() {
  const auto table = message_table();
  QVERIFY(!table.empty());
  // Strictly: no code twice.
  QVERIFY(std::ranges::is_sorted(table, std::ranges::less_equal{}, &MessageSpec::code));
  for (const MessageSpec& spec : table) {
    QVERIFY2(find_message(spec.code) == &spec, spec.code.data());
    QVERIFY2(!spec.text.empty() && is_printable(spec.text), spec.code.data());
    QVERIFY2(spec.text.ends_with('.') || spec.text.ends_with('}') || spec.text.ends_with('?'),
             spec.code.data());
    if (spec.code.ends_with(".remedy")) {
      const auto rule = spec.code.substr(0, spec.code.size() - 7);
      QVERIFY2(find_message(rule) != nullptr, spec.code.data());
    }
  }
  QVERIFY(find_message("no.such.code") == nullptr);
}

void MessageTest::places_are_filled() {
  const std::string words[] = {"one", "two"};
  QCOMPARE(fill_places("{1} and {0}, {0}.", words), std::string("two and one, one."));
  QCOMPARE(fill_places("{2}{", words), std::string("{"));
  QCOMPARE(english(Message{"working.now", {std::string("demo")}}), std::string("Working on demo."));
  QCOMPARE(english(MessageParameter{Millis{90'000}}), std::string("1 min"));
  QCOMPARE(english(MessageParameter{Bytes{2'529'184}}), std::string("2.5 MB"));
  QCOMPARE(english(MessageParameter{Celsius{84.6}}), std::string("85 °C"));
  QCOMPARE(english(Message{}), std::string());
}

void MessageTest::unknown_codes_are_still_said() {
  QCOMPARE(english(Message{"later.rule", {Count{3}}}), std::string("later.rule 3"));
}

void MessageTest::message_survives_the_wire() {
  const Message sent{"offline.unreachable",
                     {std::string("ada"), Millis{5}, Bytes{7}, Celsius{1.5}, Watts{2}, Percent{25},
                      Count{-3}, WallTime{Millis{99}}, KilowattHours{0.25}}};
  capnp::MallocMessageBuilder wire;
  auto built = wire.initRoot<rpc::Message>();
  write_message(sent, built);
  const Message read = read_message(built.asReader());
  QCOMPARE(read.code, sent.code);
  QCOMPARE(read.parameters.size(), sent.parameters.size());
  for (size_t i = 0; i < sent.parameters.size(); ++i) {
    QCOMPARE(read.parameters[i].index(), sent.parameters[i].index());
    QCOMPARE(english(read.parameters[i]), english(sent.parameters[i]));
  }
}

void MessageTest::hostile_message_is_cut() {
  capnp::MallocMessageBuilder wire;
  auto built = wire.initRoot<rpc::Message>();
  built.setCode(std::string(5'000, 'c'));
  auto parameters = built.initParameters(40);
  for (auto parameter : parameters) parameter.setText(std::string(100'000, 'x') + "\x1b[2J");
  const Message read = read_message(built.asReader());
  QCOMPARE(read.code.size(), size_t{limits::kNameBytesMax});
  QCOMPARE(read.parameters.size(), size_t{limits::kMessageParametersMax});
  QVERIFY(english(read).size() < 20'000);
  QVERIFY(is_printable(english(read)));
}

namespace {

Receipt sample_receipt() {
  Receipt receipt;
  receipt.number = 7;
  receipt.host = HostId{3};
  receipt.lease = LeaseId{44};
  receipt.device = "cpu";
  receipt.job_class = {"generate", "demo", false};
  receipt.rows = 160;
  receipt.credit = 0.125;
  receipt.verdict = ReceiptVerdict::kConfirmed;
  receipt.at = Millis{1'700'000'000'000};
  return receipt;
}

}  // namespace

void MessageTest::receipt_survives_the_wire_and_verifies() {
  const SigningKey key = SigningKey::generate();
  Receipt receipt = sample_receipt();
  sign_receipt(receipt, key);
  capnp::MallocMessageBuilder wire;
  auto built = wire.initRoot<rpc::Receipt>();
  write_receipt(receipt, built);
  const Receipt read = read_receipt(built.asReader());
  QVERIFY(receipt_is_genuine(read, key.public_key()));
  QVERIFY(!receipt_is_genuine(read, SigningKey::generate().public_key()));
}

void MessageTest::receipt_with_any_other_field_is_not_genuine() {
  const SigningKey key = SigningKey::generate();
  Receipt receipt = sample_receipt();
  sign_receipt(receipt, key);
  const auto refused = [&](auto change) {
    Receipt changed = receipt;
    change(changed);
    return !receipt_is_genuine(changed, key.public_key());
  };
  QVERIFY(refused([](Receipt& r) { ++r.number; }));
  QVERIFY(refused([](Receipt& r) { r.host = HostId{4}; }));
  QVERIFY(refused([](Receipt& r) { r.lease = LeaseId{45}; }));
  QVERIFY(refused([](Receipt& r) {
    r.device = "cpug";
    r.job_class.kind = "enerate";
  }));
  QVERIFY(refused([](Receipt& r) { r.job_class.model = "dem0"; }));
  QVERIFY(refused([](Receipt& r) { r.job_class.anchored = true; }));
  QVERIFY(refused([](Receipt& r) { ++r.rows; }));
  QVERIFY(refused([](Receipt& r) { r.credit = 0.25; }));
  QVERIFY(refused([](Receipt& r) { r.verdict = ReceiptVerdict::kRejected; }));
  QVERIFY(refused([](Receipt& r) { r.reason = "x"; }));
  QVERIFY(refused([](Receipt& r) { r.at = Millis{1}; }));
  QVERIFY(refused([](Receipt& r) { r.signature.clear(); }));
}

QTEST_GUILESS_MAIN(MessageTest)
#include "message_test.moc"
