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

add_library(shoal_flags INTERFACE)
target_compile_options(shoal_flags INTERFACE
  -Wall -Wextra -Wno-missing-field-initializers
  -ffp-contract=off  # docs/EXACT.md: a contracted multiply-add changes results.
  -fno-math-errno)
if(SHOAL_SANITIZE)
  target_compile_options(shoal_flags INTERFACE
    -fsanitize=${SHOAL_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all -g1)
  target_link_options(shoal_flags INTERFACE -fsanitize=${SHOAL_SANITIZE})
endif()
