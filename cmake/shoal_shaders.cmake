# Compiles shaders/*.comp to SPIR-V and embeds them; see shaders/CMakeLists.txt for its use.
