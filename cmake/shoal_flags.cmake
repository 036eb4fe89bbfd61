# One interface target, shoal_flags, carries every compiler flag of the project.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2")  # No -DNDEBUG: SHOAL_CHECK and assertions stay on in every build.

find_program(SHOAL_CCACHE ccache)
if(SHOAL_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${SHOAL_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${SHOAL_CCACHE})
endif()

set(SHOAL_SANITIZE "" CACHE STRING "Sanitizers: address,undefined or thread")
option(SHOAL_FUZZ "Build the fuzzers of tests/fuzz (needs clang); see ./run fuzz" OFF)
if(SHOAL_FUZZ AND NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  message(FATAL_ERROR "SHOAL_FUZZ needs clang++ (libFuzzer): configure by ./run fuzz or --preset fuzz")
endif()

option(SHOAL_FAST "What exactness costs: kernels that fuse, keep subnormals and differ from device to
  device. To measure with (tests/bench/exactness.sh); such a device fails the self-test" OFF)

add_library(shoal_flags INTERFACE)
target_compile_options(shoal_flags INTERFACE
  -Wall -Wextra -Wno-missing-field-initializers
  -fno-math-errno)
if(SHOAL_FAST)
  target_compile_options(shoal_flags INTERFACE -ffp-contract=fast -DSHOAL_FAST)
else()
  # docs/EXACT.md: a contracted multiply-add changes results.
  target_compile_options(shoal_flags INTERFACE -ffp-contract=off)
endif()
if(SHOAL_SANITIZE)
  target_compile_options(shoal_flags INTERFACE
    -fsanitize=${SHOAL_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all -g1)
  target_link_options(shoal_flags INTERFACE -fsanitize=${SHOAL_SANITIZE})
endif()
if(SHOAL_FUZZ)
  # Every library reports the branches it takes to the fuzzer; only shoal_fuzzer() brings its main().
  # clang 14 cannot assemble coroutines with UBSan's marks for calls through pointers ("function").
  target_compile_options(shoal_flags INTERFACE
    -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize=function -fno-omit-frame-pointer
    -fno-sanitize-recover=all -g1)
  target_link_options(shoal_flags INTERFACE -fsanitize=address,undefined)
endif()
