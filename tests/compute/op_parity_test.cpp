// Goal: every op gives the same bits on every plane. Method: each op's samples, ordinary and
// awkward, on each device of this machine and on the op's plain reference; a table of what was
// covered is printed. SHOAL_DEVICE=vulkan:0 restricts it to one device.

#include <QTest>

#include <cstdio>
#include <map>

#include "compute/backends/cpu/cpu_backend.h"
#include "compute/compute.h"
#include "compute/sample_check.h"

using namespace shoal;
using namespace shoal::compute;

class OpParityTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void every_op_agrees_on_every_device_data();
  void every_op_agrees_on_every_device();
  void the_self_test_says_so_too();

 private:
  struct Cell {
    int samples = 0;
    int failed = 0;
    bool supported = true;
  };
  void check(const std::string& column, Device& device);
};

void OpParityTest::every_op_agrees_on_every_device_data() {
  QTest::addColumn<QString>("selector");
  QTest::addColumn<int>("kernels");  // Of the cpu plane.
  QTest::addColumn<int>("threads");
  const QString only = qEnvironmentVariable("SHOAL_DEVICE");
  std::string before;
  for (const CpuKernels kernels : kAllCpuKernels) {
    const std::string driver = make_cpu_backend({kernels})->devices().front().driver;
    if (driver == before) continue;  // This machine has no others.
    before = driver;
    QTest::addRow("cpu, %s", driver.c_str()) << "cpu" << int(kernels) << 1;
  }
  for (const DeviceInfo& info : list_devices()) {
    const QString selector = QString::fromStdString(info.selector);
    if (!only.isEmpty() && only != selector) continue;
    QTest::newRow(
        qPrintable(selector + " (" + QString::fromStdString(info.name + ", " + info.driver) + ")"))
        << selector << -1 << 3;
  }
}

void OpParityTest::every_op_agrees_on_every_device() {
  QFETCH(QString, selector);
  QFETCH(int, kernels);
  QFETCH(int, threads);
  auto device = kernels < 0 ? open_device(selector.toStdString(), threads)
                            : make_cpu_backend({CpuKernels(kernels)})->open("cpu", threads);
  QVERIFY2(device.ok(), device.ok() ? "" : device.error().message.c_str());
  check(QTest::currentDataTag(), *device.value());
}

void OpParityTest::check(const std::string& column, Device& device) {
  std::map<std::pair<int, DType>, Cell> table;
  QStringList differences;
  for (const OpSpec& spec : op_list()) {
    for (const OpSample& sample : spec.samples()) {
      Cell& cell = table[{static_cast<int>(spec.kind), sample.variant}];
      if (!device.supports(spec.kind, sample.variant)) {
        cell.supported = false;
        continue;
      }
      const Result<std::string> difference = compare_sample(device, spec, sample);
      QVERIFY2(difference.ok(), difference.ok() ? "" : difference.error().message.c_str());
      ++cell.samples;
      if (difference.value().empty()) continue;
      ++cell.failed;
      differences << QString::fromStdString(std::string(op_name(spec.kind)) + " " +
                                            std::string(dtype_name(sample.variant)) + ", " +
                                            sample.label + ": " + difference.value());
    }
  }
  std::printf("%s\n", column.c_str());
  for (const auto& [key, cell] : table) {
    const std::string name(op_name(static_cast<OpKind>(key.first)));
    const std::string variant(dtype_name(key.second));
    if (!cell.supported) {
      std::printf("  %-13s %-5s not supported\n", name.c_str(), variant.c_str());
    } else {
      std::printf("  %-13s %-5s %3d of %3d samples exact\n", name.c_str(), variant.c_str(),
                  cell.samples - cell.failed, cell.samples);
    }
  }
  std::fflush(stdout);
  QVERIFY2(differences.isEmpty(), qPrintable(differences.join("\n")));
}

void OpParityTest::the_self_test_says_so_too() {
  auto device = open_device("cpu", 2);
  QVERIFY(device.ok());
  const Result<SelfTestReport> report = self_test(*device.value());
  QVERIFY(report.ok());
  QVERIFY2(report.value().exact, report.value().first_failure.c_str());
  QVERIFY(report.value().samples > 200);
  QCOMPARE(report.value().failed, 0);
  QCOMPARE(report.value().unsupported, 0);
}

QTEST_GUILESS_MAIN(OpParityTest)
#include "op_parity_test.moc"
