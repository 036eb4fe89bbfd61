// SmolLM3: a Llama whose every fourth block does not turn queries and keys.

#include "compute/models/family.h"

namespace shoal::compute {

static constexpr std::string_view kClasses[] = {"SmolLM3ForCausalLM"};

const Family kSmolLm3 = {
    .name = "smollm3",
    .hugging_face_classes = kClasses,
    .gguf_architecture = "smollm3",
    .some_without_rotary = true,
    .pairs_in_gguf = true,
    .theta = 2000000.0,
    .tied = true,
    .context = 32768,
};

}  // namespace shoal::compute
