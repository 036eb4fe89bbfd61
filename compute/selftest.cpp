
#include "base/check.h"
#include "compute/compute.h"
#include "compute/sample_check.h"

namespace shoal::compute {

Result<SelfTestReport> self_test(Device& device) {
  SelfTestReport report;
  for (const OpSpec& spec : op_list()) {
    int number = 0;
    for (const OpSample& sample : spec.samples()) {
      ++number;
      ++report.samples;
      if (!device.supports(spec.kind, sample.variant)) {
        ++report.unsupported;
        continue;
      }
      SHOAL_TRY_ASSIGN(difference, compare_sample(device, spec, sample));
      if (difference.empty()) continue;
      ++report.failed;
      if (report.first_failure.empty()) {
        report.first_failure = std::string(op_name(spec.kind)) + " " +
                               std::string(dtype_name(sample.variant)) + " sample " +
                               std::to_string(number) + " (" + sample.label + "): " + difference;
      }
    }
  }
  report.exact = report.failed == 0 && report.unsupported == 0;
  return report;
}

}  // namespace shoal::compute
