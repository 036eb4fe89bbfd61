# Whether, and for which cards, the CUDA plug-in is built. SHOAL_CUDA_COMPILER is empty where it is
# not: no toolkit is a build without that part, never a failure.
option(SHOAL_CUDA "Build the CUDA plug-in where nvcc (13.0 or later) is found" ON)
option(SHOAL_CUDA_ALL "Compile the plug-in for every kind of card, as a release is" OFF)
set(SHOAL_CUDA_ARCHITECTURES "" CACHE STRING "Kinds of cards; \"native\": those of this machine")

set(SHOAL_CUDA_COMPILER "")
if(SHOAL_CUDA AND NOT SHOAL_SANITIZE AND NOT SHOAL_FUZZ)
  find_program(SHOAL_NVCC nvcc HINTS ENV CUDA_PATH PATHS /usr/local/cuda/bin)
  if(SHOAL_NVCC)
    set(SHOAL_CUDA_COMPILER ${SHOAL_NVCC})
  else()
    message(STATUS "No nvcc: the CUDA plug-in is not built")
  endif()
endif()

# One kind of card and its intermediate code, from which drivers compile for later ones, keeps a
# developer's build short.
if(SHOAL_CUDA_ALL)
  set(SHOAL_CUDA_ARCHITECTURES 75-real 80-real 86-real 89-real 90-real 100-real 120-real 120-virtual)
elseif(NOT SHOAL_CUDA_ARCHITECTURES)
  set(SHOAL_CUDA_ARCHITECTURES 80)
endif()
