// Goal: the vulkan plane keeps the contract of backend.h on the software driver, says why where it
// cannot, makes no call that the validation layer objects to, and its kernels hold only arithmetic
// that docs/EXACT.md allows. op_parity_test compares the ops' bits on every plane; here they run
// once more, under the validation layer and with every copy staged.

#include <QProcess>
#include <QTest>

#include <filesystem>
#include <memory>
#include <set>

#include "compute/backends/vulkan/hazards.h"
#include "compute/backends/vulkan/kernel_choice.h"
#include "compute/backends/vulkan/vulkan_backend.h"
#include "compute/backends/vulkan/vulkan_device.h"
#include "compute/ops/op.h"
#include "compute/sample_check.h"
#include "shaders/shader_table.h"

namespace shoal::compute {
namespace {

constexpr const char* kSoftwareDriver = "/usr/share/vulkan/icd.d/lvp_icd.x86_64.json";

ByteVector pattern_bytes(size_t count) {
  ByteVector bytes(count);
  uint32_t state = 1;
  for (std::byte& byte : bytes) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<std::byte>(state >> 24);
  }
  return bytes;
}

std::unique_ptr<Buffer> upload_floats(Device& device, const std::vector<float>& values) {
  auto buffer = device.allocate(static_cast<int64_t>(values.size() * 4));
  if (!buffer.ok() || !device.upload(*buffer.value(), 0, std::as_bytes(std::span(values))).ok()) {
    return nullptr;
  }
  return std::move(buffer).value();
}

OpCall elementwise(OpKind kind, uint rows, uint width, Buffer& a, Buffer& b, Buffer& result) {
  OpCall call;
  call.kind = kind;
  call.set_params(AddParams{rows, width});  // SwigluParams is the same.
  for (Buffer* buffer : {&a, &b, &result}) call.buffers.push_back({buffer, 0, buffer->size()});
  return call;
}

}  // namespace

class VulkanTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() {
    if (!std::filesystem::exists(kSoftwareDriver)) {
      QSKIP("the software driver (Debian mesa-vulkan-drivers) is not installed");
    }
    qputenv("VK_ICD_FILENAMES", kSoftwareDriver);
  }

  void a_device_runs_the_quickest_kernels_that_it_can() {
    DeviceFacts software{.software = true, .subgroup_shuffle = true, .texels_max = 1 << 27};
    QVERIFY(choose_kernels(software).matmul == Kernels::kTexels);
    QVERIFY(!why_not(software, Kernels::kTexels));

    DeviceFacts no_shuffle = software;
    no_shuffle.subgroup_shuffle = false;
    QVERIFY(choose_kernels(no_shuffle).matmul == Kernels::kPlain);
    QVERIFY(why_not(no_shuffle, Kernels::kTexels)->find("shuffle") != std::string::npos);
    QVERIFY(!why_not(no_shuffle, Kernels::kPlain));

    DeviceFacts small_views = software;
    small_views.texels_max = (1 << 27) - 1;
    QVERIFY(choose_kernels(small_views).matmul == Kernels::kPlain);
    QVERIFY(why_not(small_views, Kernels::kTexels)->find("134217727") != std::string::npos);

    DeviceFacts gpu = software;
    gpu.software = false;
    QVERIFY(choose_kernels(gpu).matmul == Kernels::kPlain);
  }

  void a_barrier_stands_only_where_a_call_meets_what_came_before() {
    class Plain final : public Buffer {
      int64_t size() const override { return 100; }
    } a, b, c, d;
    const auto all = [](Buffer& buffer) { return BufferView{&buffer, 0, 100}; };
    Hazards hazards;
    const auto barrier = [&](std::vector<BufferView> views) {
      return hazards.barrier_before(views);
    };
    QVERIFY(!barrier({all(a), all(b)}));
    QVERIFY(!barrier({all(a), all(c)}));         // Two may read the same.
    QVERIFY(barrier({all(b), all(c), all(d)}));  // Reads what was written.
    QVERIFY(!barrier({all(c), all(a)}));         // Both were done with at the barrier.
    QVERIFY(barrier({all(d), all(b)}));          // Overwrites what is being read,
    QVERIFY(barrier({all(a), all(b)}));          // or written.
    QVERIFY(!barrier({all(a), {&c, 0, 50}}));    // Halves of a buffer
    QVERIFY(!barrier({all(a), {&c, 50, 50}}));   // do not touch,
    QVERIFY(barrier({all(a), {&c, 49, 2}}));     // and this meets both.
    QVERIFY(!barrier({}));
  }

  // A step that is asked for again is not recorded again; what its buffers hold, or which buffers
  // it has, may be new all the same.
  void a_step_run_again_sees_new_values_and_new_buffers() {
    auto device = make_vulkan_backend()->open("vulkan:0", 0);
    QVERIFY(device.ok());
    Device& d = *device.value();
    const auto sum = [&](Buffer& a, Buffer& b) {
      const auto result = upload_floats(d, {0.0f});
      const OpCall call = elementwise(OpKind::kAdd, 1, 1, a, b, *result);
      float got = -1.0f;
      for (int i = 0; i < 2; ++i) {
        if (!d.run(std::span(&call, 1)).ok()) return -2.0f;
        if (!d.download(*result, 0, std::as_writable_bytes(std::span(&got, 1))).ok()) return -3.0f;
      }
      return got;
    };
    const auto a = upload_floats(d, {1.0f});
    auto b = upload_floats(d, {2.0f});
    QCOMPARE(sum(*a, *b), 3.0f);
    const float more = 5.0f;
    QVERIFY(d.upload(*b, 0, std::as_bytes(std::span(&more, 1))).ok());
    QCOMPARE(sum(*a, *b), 6.0f);
    for (int i = 0; i < 20; ++i) {
      b.reset();
      b = upload_floats(d, {static_cast<float>(i)});
      QCOMPARE(sum(*a, *b), 1.0f + static_cast<float>(i));
    }
  }

  void lists_the_software_device() {
    auto backend = make_vulkan_backend();
    const std::vector<DeviceInfo> devices = backend->devices();
    QCOMPARE(devices.size(), size_t{1});
    QCOMPARE(backend->why_none(), std::string());
    const DeviceInfo& info = devices[0];
    QVERIFY(info.id.starts_with("vulkan:"));
    QCOMPARE(info.id.size(), std::string_view("vulkan:").size() + 32);
    QCOMPARE(info.selector, std::string("vulkan:0"));
    QCOMPARE(info.plane, std::string("vulkan"));
    QVERIFY(info.software);
    QVERIFY(info.memory_bytes > 0);
    QVERIFY(!info.name.empty() && !info.driver.empty());

    for (const std::string& name : {info.id, info.selector}) {
      const auto device = backend->open(name, 0);
      QVERIFY2(device.ok(), name.c_str());
      QCOMPARE(device.value()->info().id, info.id);
    }
    const auto unknown = backend->open("vulkan:7", 0);
    QVERIFY(!unknown.ok());
    QCOMPARE(unknown.error().code, ErrorCode::kNotFound);
  }

  // The loader finds no driver, as on a machine without one; then one is installed.
  void a_machine_without_a_driver_says_so() {
    qputenv("VK_ICD_FILENAMES", "/nowhere/icd.json");
    auto backend = make_vulkan_backend();
    QVERIFY(backend->devices().empty());
    QVERIFY(!backend->why_none().empty());
    const auto device = backend->open("vulkan:0", 0);
    QVERIFY(!device.ok());
    QCOMPARE(device.error().code, ErrorCode::kUnavailable);

    qputenv("VK_ICD_FILENAMES", kSoftwareDriver);
    QCOMPARE(backend->devices().size(), size_t{1});
    QVERIFY(backend->why_none().empty());
    QVERIFY(backend->open("vulkan:0", 0).ok());
  }

  void a_device_outlives_its_backend() {
    auto device = make_vulkan_backend()->open("vulkan:0", 0);
    QVERIFY(device.ok());
    QVERIFY(upload_floats(*device.value(), {1.0f}) != nullptr);
  }

  void refuses_memory_that_does_not_fit() {
    const auto instance = VulkanInstance::create({});
    QVERIFY(instance.ok());
    const PhysicalDevice& physical = instance.value()->devices()[0];
    auto context = VulkanContext::open(instance.value(), physical, {});
    QVERIFY(context.ok());
    const auto use = VulkanContext::MemoryUse::kDevice;

    const int64_t too_large = physical.allocation_bytes_max + 1;
    const auto refused = context.value()->allocate(too_large, use);
    QVERIFY(!refused.ok());
    QCOMPARE(refused.error().code, ErrorCode::kNoSpace);
    QVERIFY(refused.error().message.find(std::to_string(too_large)) != std::string::npos);
    QVERIFY(refused.error().message.find(std::to_string(too_large - 1)) != std::string::npos);

    // Two that fit alone and not together. Their pages are never touched.
    const int64_t most = physical.info.memory_bytes / 4 * 3;
    auto first = context.value()->allocate(most, use);
    QVERIFY2(first.ok(), first.ok() ? "" : first.error().message.c_str());
    const auto second = context.value()->allocate(most, use);
    QVERIFY(!second.ok());
    QCOMPARE(second.error().code, ErrorCode::kNoSpace);
    QVERIFY(second.error().message.find(" are in use") != std::string::npos);
    first.value().reset();
    QVERIFY(context.value()->allocate(most, use).ok());
  }

  void bytes_come_back_as_they_went_data() {
    QTest::addColumn<bool>("always_stage");
    QTest::newRow("mapped") << false;
    QTest::newRow("staged") << true;
  }
  void bytes_come_back_as_they_went() {
    QFETCH(bool, always_stage);
    auto backend = make_vulkan_backend({.always_stage = always_stage});
    auto device = backend->open("vulkan:0", 0);
    QVERIFY(device.ok());
    Device& d = *device.value();

    const size_t size = (size_t{17} << 20) + 3;  // Five pieces, and no whole word at the end.
    auto buffer = d.allocate(static_cast<int64_t>(size));
    QVERIFY(buffer.ok());
    QCOMPARE(buffer.value()->size(), static_cast<int64_t>(size));
    ByteVector got(size, std::byte{1});
    QVERIFY(d.download(*buffer.value(), 0, got).ok());
    QVERIFY(std::all_of(got.begin(), got.end(), [](std::byte b) { return b == std::byte{0}; }));

    const ByteVector bytes = pattern_bytes(size);
    QVERIFY(d.upload(*buffer.value(), 0, bytes).ok());
    QVERIFY(d.download(*buffer.value(), 0, got).ok());
    QVERIFY(got == bytes);

    ByteVector part(7);
    QVERIFY(d.upload(*buffer.value(), 8'388'605, ByteSpan(bytes).first(7)).ok());
    QVERIFY(d.download(*buffer.value(), 8'388'605, part).ok());
    QVERIFY(std::equal(part.begin(), part.end(), bytes.begin()));
    QVERIFY(d.download(*buffer.value(), 0, std::span<std::byte>()).ok());
    QVERIFY(d.allocate(0).ok());
  }

  void the_first_op_that_is_not_finite_is_named() {
    auto device = make_vulkan_backend()->open("vulkan:0", 0);
    QVERIFY(device.ok());
    Device& d = *device.value();
    const std::vector<float> ordinary(100, 1.0f);
    std::vector<float> huge(100, 1.0f);
    huge[99] = 3e38f;
    const auto a = upload_floats(d, ordinary), b = upload_floats(d, huge);
    const auto x = upload_floats(d, ordinary), y = upload_floats(d, ordinary);
    const std::vector<OpCall> calls = {
        elementwise(OpKind::kSwiglu, 1, 100, *a, *a, *x),
        elementwise(OpKind::kAdd, 1, 100, *b, *b, *x),     // Makes an infinity,
        elementwise(OpKind::kSwiglu, 1, 100, *x, *b, *y),  // and this inherits it.
    };
    const Result<void> failed = d.run(calls);
    QVERIFY(!failed.ok());
    QCOMPARE(failed.error().code, ErrorCode::kNonFinite);
    QVERIFY2(failed.error().message.starts_with("add: "), failed.error().message.c_str());

    // The device goes on, and forgets it.
    QVERIFY(d.run(std::span(calls).first(1)).ok());
    QVERIFY(d.run({}).ok());
  }

  void what_has_no_kernel_is_refused() {
    auto device = make_vulkan_backend()->open("vulkan:0", 0);
    QVERIFY(device.ok());
    Device& d = *device.value();
    QVERIFY(d.supports(OpKind::kMatmul, DType::kQ4_0));
    QVERIFY(!d.supports(OpKind::kAdd, DType::kQ4_0));
    QVERIFY(!d.supports(OpKind::kMatmul, static_cast<DType>(99)));
    QVERIFY(!d.supports(static_cast<OpKind>(99), DType::kF32));
    const auto a = upload_floats(d, {1.0f});
    OpCall call = elementwise(OpKind::kAdd, 1, 1, *a, *a, *a);
    call.variant = DType::kQ4_0;
    const Result<void> refused = d.run(std::span(&call, 1));
    QVERIFY(!refused.ok());
    QCOMPARE(refused.error().code, ErrorCode::kUnsupported);
    QVERIFY(refused.error().message.find("add q4_0") != std::string::npos);
    call.variant = DType::kF32;
    QVERIFY(d.run(std::span(&call, 1)).ok());

    // 2^32 elements: more than a call may have.
    call.set_params(AddParams{65536, 65536});
    const Result<void> too_many = d.run(std::span(&call, 1));
    QVERIFY(!too_many.ok());
    QCOMPARE(too_many.error().code, ErrorCode::kUnsupported);
  }

  void weights_of_a_wrong_size_are_refused() {
    auto device = make_vulkan_backend()->open("vulkan:0", 0);
    QVERIFY(device.ok());
    const ByteVector bytes(68);
    QVERIFY(device.value()->upload_weight(DType::kQ8_0, 1, 64, bytes).ok());
    QVERIFY(device.value()->upload_weight(DType::kF16, 2, 17, bytes).ok());
    for (const auto& [dtype, rows, columns] :
         {std::tuple{DType::kQ8_0, 1, 63}, std::tuple{DType::kQ8_0, 2, 64},
          std::tuple{DType::kQ4_0, 1, 64}, std::tuple{DType::kF32, 0, 17},
          std::tuple{DType::kF32, 1, 0}, std::tuple{DType::kI32, 1, 17}}) {
      const auto refused = device.value()->upload_weight(dtype, rows, columns, bytes);
      QVERIFY(!refused.ok());
      QCOMPARE(refused.error().code, ErrorCode::kInvalid);
    }
  }

  // More groups than a device must take in one dimension, and views that begin inside their
  // buffers.
  void a_call_of_many_groups_reaches_every_element() {
    auto device = make_vulkan_backend()->open("vulkan:0", 0);
    QVERIFY(device.ok());
    Device& d = *device.value();
    const uint count = 65535 * 64 + 65;
    std::vector<float> ones(count + 3, 1.0f);
    for (uint i = 0; i < count; ++i) ones[i + 3] = static_cast<float>(i);
    const auto a = upload_floats(d, ones);
    const auto b = upload_floats(d, std::vector<float>(count, 0.5f));
    const auto result = upload_floats(d, std::vector<float>(count + 1, -1.0f));
    QVERIFY(a && b && result);
    OpCall call = elementwise(OpKind::kAdd, 1, count, *a, *b, *result);
    call.buffers[0] = {a.get(), 12, int64_t{count} * 4};
    call.buffers[2] = {result.get(), 4, int64_t{count} * 4};
    QVERIFY(d.run(std::span(&call, 1)).ok());
    std::vector<float> got(count + 1);
    QVERIFY(d.download(*result, 0, std::as_writable_bytes(std::span(got))).ok());
    QCOMPARE(got[0], -1.0f);
    for (uint i = 0; i < count; ++i) {
      if (got[i + 1] != static_cast<float>(i) + 0.5f) QFAIL("an element differs");
    }
  }

  // A run that does not end in time counts as a hung device: this call and all later ones say so,
  // and the end of the device waits for the work rather than free what it uses.
  void a_run_beyond_its_time_means_a_lost_device() {
    auto device = make_vulkan_backend({.run_timeout_ms = 0})->open("vulkan:0", 0);
    QVERIFY(device.ok());
    Device& d = *device.value();
    const int64_t n = 512;
    auto x = d.allocate(n * n * 4), w = d.allocate(n * n * 4), y = d.allocate(n * n * 4);
    QVERIFY(x.ok() && w.ok() && y.ok());
    OpCall call;
    call.kind = OpKind::kMatmul;
    call.set_params(MatmulParams{uint(n), uint(n), uint(n), 0, uint(n)});
    for (auto* buffer : {&x, &w, &y}) call.buffers.push_back({buffer->value().get(), 0, n * n * 4});
    const Result<void> hung = d.run(std::span(&call, 1));
    QVERIFY(!hung.ok());
    QCOMPARE(hung.error().code, ErrorCode::kUnavailable);
    const Result<void> after = d.run(std::span(&call, 1));
    QVERIFY(!after.ok());
    QCOMPARE(after.error().code, ErrorCode::kUnavailable);
    QVERIFY(!d.allocate(4).ok());
  }

  // Half a word at a time, with subnormals on the way: where a shader's conversion could go its own
  // way.
  void every_finite_half_is_the_float_of_the_reference() {
    auto device = make_vulkan_backend()->open("vulkan:0", 0);
    QVERIFY(device.ok());
    const uint width = 64, vocabulary = 2 * 0x7C00 / width;
    OpSample sample{.label = "every finite half", .variant = DType::kF16};
    sample.params = ParamBlock::of(EmbedParams{vocabulary, width, vocabulary});
    SampleBuffer tokens{.dtype = DType::kI32, .rows = 1, .columns = vocabulary};
    SampleBuffer table{.dtype = DType::kF16, .rows = vocabulary, .columns = width, .weight = true};
    for (uint32_t token = 0; token < vocabulary; ++token) {
      const auto bytes = std::as_bytes(std::span(&token, 1));
      tokens.bytes.insert(tokens.bytes.end(), bytes.begin(), bytes.end());
    }
    for (uint32_t half = 0; half < 0xFC00; ++half) {
      if (half == 0x7C00) half = 0x8000;
      const auto bits = static_cast<uint16_t>(half);
      const auto bytes = std::as_bytes(std::span(&bits, 1));
      table.bytes.insert(table.bytes.end(), bytes.begin(), bytes.end());
    }
    sample.inputs = {std::move(tokens), std::move(table)};
    sample.output = {.dtype = DType::kF32,
                     .rows = vocabulary,
                     .columns = width,
                     .bytes = ByteVector(size_t{vocabulary} * width * 4)};
    const auto difference = compare_sample(*device.value(), op_spec(OpKind::kEmbed), sample);
    QVERIFY2(difference.ok(), difference.ok() ? "" : difference.error().message.c_str());
    QCOMPARE(difference.value(), std::string());
  }

  // More than the 128 MiB that a storage buffer's descriptor may span on this driver, and rows so
  // long that a tile of them is more than a piece of an upload.
  void a_weight_may_be_larger_than_a_descriptor_data() {
    QTest::addColumn<int>("kernels");
    QTest::newRow("plain") << int(Kernels::kPlain);
    QTest::newRow("texels") << int(Kernels::kTexels);
  }
  void a_weight_may_be_larger_than_a_descriptor() {
    QFETCH(int, kernels);
    auto backend = make_vulkan_backend({.kernels = KernelChoice{.matmul = Kernels(kernels)}});
    auto device = backend->open("vulkan:0", 0);
    QVERIFY(device.ok());
    Device& d = *device.value();
    const uint k = 1 << 18, n = 16 * 32 + 1;
    const size_t row_bytes = k / 32 * 34, x_bytes = k / 32 * 36;
    ByteVector weight(n * row_bytes);
    QVERIFY(weight.size() > size_t{128} << 20);
    // A half for every block's scale, and values in the first row and the last two.
    for (const size_t row : {size_t{0}, size_t{n - 2}, size_t{n - 1}}) {
      for (size_t block = 0; block < k / 32; ++block) {
        std::byte* at = weight.data() + row * row_bytes + block * 34;
        at[1] = std::byte{0x38};
        for (size_t i = 0; i < 32; ++i) at[2 + i] = std::byte((row + block + i) % 7);
      }
    }
    ByteVector x(x_bytes);
    for (size_t i = 0; i < k; ++i) x[i] = std::byte(i % 5);
    const float scale = 0.25f;
    for (size_t block = 0; block < k / 32; ++block)
      std::memcpy(x.data() + k + 4 * block, &scale, 4);

    auto w = d.upload_weight(DType::kQ8_0, n, k, weight);
    QVERIFY2(w.ok(), w.ok() ? "" : w.error().message.c_str());
    auto input = d.allocate(static_cast<int64_t>(x.size())), y = d.allocate(n * 4);
    QVERIFY(input.ok() && y.ok() && d.upload(*input.value(), 0, x).ok());
    OpCall call{.kind = OpKind::kMatmul, .variant = DType::kQ8_0};
    call.set_params(MatmulParams{1, n, k, 0, n});
    for (auto* buffer : {&input, &w, &y}) {
      call.buffers.push_back({buffer->value().get(), 0, buffer->value()->size()});
    }
    QVERIFY(d.run(std::span(&call, 1)).ok());
    std::vector<float> got(n);
    QVERIFY(d.download(*y.value(), 0, std::as_writable_bytes(std::span(got))).ok());

    const OpSpec& spec = op_spec(OpKind::kMatmul);
    for (const uint row : {0u, 1u, n - 2, n - 1}) {
      const auto params = ParamBlock::of(MatmulParams{1, 1, k, 0, 1});
      const std::vector<ByteSpan> inputs = {x,
                                            ByteSpan(weight).subspan(row * row_bytes, row_bytes)};
      float wanted = -1.0f;
      QVERIFY(spec.reference(DType::kQ8_0, params, inputs,
                             std::as_writable_bytes(std::span(&wanted, 1)))
                  .ok());
      QCOMPARE(got[row], wanted);
      QCOMPARE(wanted != 0.0f, row != 1);
    }
  }

  // The subgroups of other drivers are smaller or larger than this one's eight. The driver reads
  // its vectors' width once in a process.
  void every_size_of_subgroup_gives_the_same_bits_data() {
    QTest::addColumn<QString>("bits");
    QTest::newRow("4") << "128";
    QTest::newRow("16") << "512";
  }
  void every_size_of_subgroup_gives_the_same_bits() {
    QFETCH(QString, bits);
    QProcess other;
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    environment.insert("LP_NATIVE_VECTOR_WIDTH", bits);
    environment.insert("SHOAL_SUBGROUP", QString::number(bits.toInt() / 32));
    other.setProcessEnvironment(environment);
    other.setProcessChannelMode(QProcess::MergedChannels);
    other.start(
        QCoreApplication::applicationFilePath(),
        {"the_driver_has_the_subgroups_asked_for", "both_kinds_of_kernels_give_the_same_bits"});
    QVERIFY(other.waitForFinished(110'000));
    QVERIFY2(other.exitStatus() == QProcess::NormalExit && other.exitCode() == 0,
             other.readAll().constData());
  }
  void the_driver_has_the_subgroups_asked_for() {
    const auto instance = VulkanInstance::create({});
    QVERIFY(instance.ok());
    const uint32_t asked = qEnvironmentVariableIntValue("SHOAL_SUBGROUP");
    const uint32_t size = instance.value()->devices()[0].facts.subgroup_size;
    QVERIFY(asked == 0 ? size >= 4 : size == asked);
  }

  // A driver that fails is told by the call that failed, and takes nothing down.
  void a_kernel_that_does_not_compile_is_named() {
    static PFN_vkCreateComputePipelines real = nullptr;
    static int failures = 0;
    failures = 1;
    VulkanOptions options;
    options.on_functions = [](void* functions) {
      auto& table = *static_cast<VolkDeviceTable*>(functions);
      real = table.vkCreateComputePipelines;
      table.vkCreateComputePipelines = [](VkDevice device, VkPipelineCache cache, uint32_t count,
                                          const VkComputePipelineCreateInfo* infos,
                                          const VkAllocationCallbacks* callbacks,
                                          VkPipeline* pipelines) -> VkResult {
        if (failures-- > 0) return VK_ERROR_UNKNOWN;
        return real(device, cache, count, infos, callbacks, pipelines);
      };
    };
    auto device = make_vulkan_backend(options)->open("vulkan:0", 0);
    QVERIFY(device.ok());
    Device& d = *device.value();
    const auto a = upload_floats(d, {1.0f}), b = upload_floats(d, {2.0f});
    const auto c = upload_floats(d, {0.0f});
    const OpCall call = elementwise(OpKind::kAdd, 1, 1, *a, *b, *c);
    const Result<void> failed = d.run(std::span(&call, 1));
    QVERIFY(!failed.ok());
    QVERIFY2(failed.error().message.find("add f32") != std::string::npos &&
                 failed.error().message.find("vkCreateComputePipelines") != std::string::npos,
             failed.error().message.c_str());
    QVERIFY(d.run(std::span(&call, 1)).ok());  // The driver thought better of it.
  }

  void a_lost_device_says_so_data() {
    QTest::addColumn<bool>("at_submit");
    QTest::newRow("when work is handed over") << true;
    QTest::newRow("while it runs") << false;
  }
  void a_lost_device_says_so() {
    QFETCH(bool, at_submit);
    static bool lost = false;
    static PFN_vkQueueSubmit real_submit = nullptr;
    static PFN_vkWaitForFences real_wait = nullptr;
    lost = false;
    VulkanOptions options{.always_stage = true};
    options.on_functions = [at_submit](void* functions) {
      auto& table = *static_cast<VolkDeviceTable*>(functions);
      real_submit = table.vkQueueSubmit;
      real_wait = table.vkWaitForFences;
      if (at_submit) {
        table.vkQueueSubmit = [](VkQueue queue, uint32_t count, const VkSubmitInfo* infos,
                                 VkFence fence) -> VkResult {
          return lost ? VK_ERROR_DEVICE_LOST : real_submit(queue, count, infos, fence);
        };
      } else {
        table.vkWaitForFences = [](VkDevice device, uint32_t count, const VkFence* fences,
                                   VkBool32 all, uint64_t timeout) -> VkResult {
          const VkResult result = real_wait(device, count, fences, all, timeout);
          return lost ? VK_ERROR_DEVICE_LOST : result;
        };
      }
    };
    auto device = make_vulkan_backend(options)->open("vulkan:0", 0);
    QVERIFY(device.ok());
    Device& d = *device.value();
    const auto a = upload_floats(d, {1.0f}), b = upload_floats(d, {2.0f});
    const auto c = upload_floats(d, {0.0f});
    const OpCall call = elementwise(OpKind::kAdd, 1, 1, *a, *b, *c);
    QVERIFY(d.run(std::span(&call, 1)).ok());

    lost = true;
    const Result<void> failed = d.run(std::span(&call, 1));
    QVERIFY(!failed.ok());
    QCOMPARE(failed.error().code, ErrorCode::kUnavailable);
    QVERIFY2(failed.error().message.find("the device is lost") != std::string::npos,
             failed.error().message.c_str());
    // It stays lost, whatever is asked, and its end goes without a word.
    lost = false;
    const ByteVector bytes(4);
    ByteVector got(4);
    QCOMPARE(d.run(std::span(&call, 1)).error().code, ErrorCode::kUnavailable);
    QCOMPARE(d.upload(*a, 0, bytes).error().code, ErrorCode::kUnavailable);
    QCOMPARE(d.download(*a, 0, got).error().code, ErrorCode::kUnavailable);
    QCOMPARE(d.allocate(4).error().code, ErrorCode::kUnavailable);
    QVERIFY(!d.upload_weight(DType::kF32, 1, 1, bytes).ok());
  }

  void a_driver_without_memory_is_told_as_no_space() {
    static PFN_vkAllocateMemory real = nullptr;
    static bool full = false;
    full = false;
    VulkanOptions options{.always_stage = true};
    options.on_functions = [](void* functions) {
      auto& table = *static_cast<VolkDeviceTable*>(functions);
      real = table.vkAllocateMemory;
      table.vkAllocateMemory = [](VkDevice device, const VkMemoryAllocateInfo* info,
                                  const VkAllocationCallbacks* callbacks,
                                  VkDeviceMemory* memory) -> VkResult {
        return full ? VK_ERROR_OUT_OF_DEVICE_MEMORY : real(device, info, callbacks, memory);
      };
    };
    auto device = make_vulkan_backend(options)->open("vulkan:0", 0);
    QVERIFY(device.ok());
    Device& d = *device.value();
    auto buffer = d.allocate(64);
    QVERIFY(buffer.ok());
    full = true;
    const ByteVector bytes(64);
    QCOMPARE(d.allocate(64).error().code, ErrorCode::kNoSpace);
    QCOMPARE(d.upload(*buffer.value(), 0, bytes).error().code, ErrorCode::kNoSpace);  // Staging.
    full = false;
    QVERIFY(d.upload(*buffer.value(), 0, bytes).ok());
  }

  // What GPUs run must agree as well, where only a software driver is there.
  void both_kinds_of_kernels_give_the_same_bits() {
    for (const Kernels kernels : {Kernels::kPlain, Kernels::kTexels}) {
      auto backend = make_vulkan_backend({.kernels = KernelChoice{.matmul = kernels}});
      auto device = backend->open("vulkan:0", 0);
      QVERIFY2(device.ok(), device.ok() ? "" : device.error().message.c_str());
      for (const OpSample& sample : op_spec(OpKind::kMatmul).samples()) {
        const auto difference = compare_sample(*device.value(), op_spec(OpKind::kMatmul), sample);
        QVERIFY2(difference.ok(), difference.ok() ? "" : difference.error().message.c_str());
        QVERIFY2(difference.value().empty(), (sample.label + ": " + difference.value()).c_str());
      }
    }
  }

  void every_op_runs_without_a_word_from_the_validation_layer() {
    std::vector<std::string> messages;
    VulkanOptions options{.validation = true, .always_stage = true};
    options.on_message = [&](std::string_view message) { messages.emplace_back(message); };
    {
      auto backend = make_vulkan_backend(options);
      auto device = backend->open("vulkan:0", 0);
      if (!device.ok() && device.error().code == ErrorCode::kUnsupported) {
        QSKIP("the validation layer (Debian vulkan-validationlayers) is not installed");
      }
      QVERIFY2(device.ok(), device.ok() ? "" : device.error().message.c_str());
      for (const OpSpec& spec : op_list()) {
        for (const OpSample& sample : spec.samples()) {
          const Result<std::string> difference = compare_sample(*device.value(), spec, sample);
          QVERIFY2(difference.ok(), difference.ok() ? "" : difference.error().message.c_str());
          QVERIFY2(difference.value().empty(), (std::string(op_name(spec.kind)) + " " +
                                                sample.label + ": " + difference.value())
                                                   .c_str());
        }
      }
    }
    QVERIFY2(messages.empty(), messages.empty() ? "" : messages[0].c_str());

    // The layer was listening: a wrong call is told.
    const auto instance = VulkanInstance::create(options);
    QVERIFY(instance.ok());
    auto context = VulkanContext::open(instance.value(), instance.value()->devices()[0], options);
    QVERIFY(context.ok());
    const auto commands = context.value()->begin_recording();
    QVERIFY(commands.ok());
    const uint32_t word = 0;
    context.value()->vk().vkCmdPushConstants(commands.value(), context.value()->pipeline_layout(),
                                             VK_SHADER_STAGE_COMPUTE_BIT, 0, /*size=*/3, &word);
    QVERIFY(!messages.empty());
  }

  // The bits of a contracted multiply-add, a division or a built-in exp are the driver's choice,
  // and a driver that chooses well today hides the fault. So look at the instructions: only + - *
  // on floats, each decorated against contraction, and no built-in function that rounds.
  // (SPIR-V 1.5.)
  void kernels_hold_only_exact_arithmetic() {
    constexpr uint32_t kOpExtInst = 12, kOpTypeFloat = 22, kOpDecorate = 71, kNoContraction = 42;
    const std::set<uint32_t> rounded = {129, 131, 133};  // FAdd, FSub, FMul
    const std::set<uint32_t> forbidden = {
        136, 140, 141,                      // FDiv, FRem, FMod
        142, 143, 144, 145, 146, 147, 148,  // vectors and matrices
        350, 351, 352, 359, 360, 361,       // subgroup float reductions
        115};                               // FConvert
    const std::set<uint32_t> integer_functions = {38, 39, 41,
                                                  42, 44, 45};  // min, max, clamp of ints
    // Nothing of small types, of 64 bits or of floats that a device may lack: buffers by their
    // addresses, and for kernels that are asked for by choose_kernels() texels and shuffles.
    constexpr uint32_t kOpCapability = 17;
    const std::set<uint32_t> capabilities = {1, 5347};           // Shader, addresses
    const std::set<uint32_t> of_texels = {1, 5347, 46, 61, 65};  // texels, subgroups, shuffle
    QVERIFY(shader_table().size() >= 20);
    for (const Shader& shader : shader_table()) {
      const auto& allowed = shader.op.ends_with("_texels") ? of_texels : capabilities;
      const std::string name = std::string(shader.op) + " " + std::string(shader.variant);
      const auto words = shader.words;
      std::set<uint32_t> exact;
      std::vector<uint32_t> results;
      for (size_t i = 5; i < words.size(); i += words[i] >> 16) {
        QVERIFY(words[i] >> 16 > 0);
        const uint32_t op = words[i] & 0xFFFF;
        if (op == kOpCapability) {
          QVERIFY2(allowed.count(words[i + 1]),
                   (name + ": capability " + std::to_string(words[i + 1])).c_str());
        }
        if (op == kOpDecorate && words[i + 2] == kNoContraction) exact.insert(words[i + 1]);
        if (rounded.count(op)) results.push_back(words[i + 2]);
        QVERIFY2(!forbidden.count(op), (name + ": opcode " + std::to_string(op)).c_str());
        if (op == kOpExtInst) {
          QVERIFY2(integer_functions.count(words[i + 4]),
                   (name + ": built-in function " + std::to_string(words[i + 4])).c_str());
        }
        if (op == kOpTypeFloat) QCOMPARE(words[i + 2], 32u);
      }
      for (const uint32_t result : results) {
        QVERIFY2(exact.count(result), (name + ": a sum or product may be contracted").c_str());
      }
    }
  }
};

}  // namespace shoal::compute

QTEST_GUILESS_MAIN(shoal::compute::VulkanTest)
#include "vulkan_test.moc"
