# Every third-party library, named once: how it is found, and which Debian package has it.
#
# The file is installed too, because a program that links a static weft needs the same libraries.

# Looks for the libraries of the named groups (library, tools, examples, tests, bench). `out_missing` receives one line
# for each missing library. This is a macro, because the variables of find_package() must reach the caller.
macro(weft_find_dependencies out_missing)
  set(${out_missing})
  foreach(weft_group ${ARGN})
    cmake_language(CALL weft_find_${weft_group}_dependencies ${out_missing})
  endforeach()
endmacro()

# A library with a CMake package: its target, the CMake package, the Debian package.
macro(weft_need_package out_missing target package debian)
  if(NOT TARGET ${target})
    find_package(${package} CONFIG QUIET)
  endif()
  if(NOT TARGET ${target})
    list(APPEND ${out_missing} "${package} (Debian: ${debian})")
  endif()
endmacro()

# A library without a CMake package: a header, and optionally the names under which its library may be found. With
# WEFT_STATIC_DEPENDENCIES that is the archive.
macro(weft_need_header out_missing target header debian)
  if(NOT TARGET ${target})
    string(MAKE_C_IDENTIFIER "WEFT_${target}" weft_variable)
    find_path(${weft_variable}_INCLUDE "${header}" PATH_SUFFIXES Volk volk stb)
    set(weft_links)
    if(NOT "${ARGN}" STREQUAL "")
      set(weft_names ${ARGN})
      set(weft_found ${weft_variable}_LIBRARY)
      if(WEFT_STATIC_DEPENDENCIES)
        list(TRANSFORM weft_names PREPEND "${CMAKE_STATIC_LIBRARY_PREFIX}")
        list(TRANSFORM weft_names APPEND "${CMAKE_STATIC_LIBRARY_SUFFIX}")
        set(weft_found ${weft_variable}_ARCHIVE)
      endif()
      find_library(${weft_found} NAMES ${weft_names})
      mark_as_advanced(${weft_found})
      set(weft_links "${${weft_found}}")
    endif()
    mark_as_advanced(${weft_variable}_INCLUDE)
    if(${weft_variable}_INCLUDE AND ("${ARGN}" STREQUAL "" OR weft_links))
      add_library(${target} INTERFACE IMPORTED)
      set_target_properties(${target} PROPERTIES
        INTERFACE_INCLUDE_DIRECTORIES "${${weft_variable}_INCLUDE}" INTERFACE_LINK_LIBRARIES "${weft_links}")
    else()
      list(APPEND ${out_missing} "${header} (Debian: ${debian})")
    endif()
  endif()
endmacro()

macro(weft_find_library_dependencies out_missing)
  weft_need_header(${out_missing} weft_dep::vulkan_headers vulkan/vulkan.h libvulkan-dev)
  weft_need_header(${out_missing} weft_dep::volk volk.h libvulkan-volk-dev)
  weft_need_header(${out_missing} weft_dep::spirv_headers spirv/unified1/spirv.hpp11 spirv-headers)
  weft_need_package(${out_missing} SPIRV-Tools-static SPIRV-Tools spirv-tools)
  weft_need_package(${out_missing} SPIRV-Tools-opt SPIRV-Tools-opt spirv-tools)
  weft_need_package(${out_missing} spirv-cross-core spirv_cross_core libspirv-cross-c-shared-dev)
  weft_need_package(${out_missing} spirv-cross-glsl spirv_cross_glsl libspirv-cross-c-shared-dev)
  weft_need_package(${out_missing} fmt::fmt fmt libfmt-dev)
  weft_need_header(${out_missing} weft_dep::xxhash xxhash.h libxxhash-dev xxhash)
  weft_need_header(${out_missing} weft_dep::fast_float fast_float/fast_float.h libfast-float-dev)
  weft_need_package(${out_missing} nlohmann_json::nlohmann_json nlohmann_json nlohmann-json3-dev)
  weft_need_header(${out_missing} weft_dep::dlpack dlpack/dlpack.h libdlpack-dev)
  weft_need_header(${out_missing} weft_dep::zlib zlib.h zlib1g-dev z zlib)
  # A codec of volumes' files; without it, those that need it are refused. Packages have no archive of it that a module
  # of Python's could link: theirs is no position-independent code.
  if(NOT WEFT_STATIC_DEPENDENCIES)
    weft_need_header(weft_left_out weft_dep::blosc blosc.h libblosc-dev blosc)
  endif()
  set(THREADS_PREFER_PTHREAD_FLAG ON)
  find_package(Threads QUIET)
  if(NOT Threads_FOUND)
    list(APPEND ${out_missing} "a threads library (Debian: libc6-dev)")
  endif()
endmacro()
# Packages have fmt as a shared library; its headers hold the same code.
set(WEFT_FMT fmt::fmt)
if(WEFT_STATIC_DEPENDENCIES)
  set(WEFT_FMT fmt::fmt-header-only)
endif()
set(WEFT_LIBRARY_DEPENDENCIES
  weft_dep::volk weft_dep::vulkan_headers weft_dep::spirv_headers SPIRV-Tools-opt SPIRV-Tools-static
  spirv-cross-glsl spirv-cross-core ${WEFT_FMT}
  weft_dep::xxhash weft_dep::fast_float nlohmann_json::nlohmann_json weft_dep::dlpack weft_dep::zlib
  $<TARGET_NAME_IF_EXISTS:weft_dep::blosc> Threads::Threads ${CMAKE_DL_LIBS})

macro(weft_find_tools_dependencies out_missing)
  weft_need_package(${out_missing} fmt::fmt fmt libfmt-dev)
  weft_need_package(${out_missing} CLI11::CLI11 CLI11 libcli11-dev)
endmacro()
set(WEFT_TOOLS_DEPENDENCIES fmt::fmt CLI11::CLI11)

macro(weft_find_examples_dependencies out_missing)
  weft_need_package(${out_missing} fmt::fmt fmt libfmt-dev)
  weft_need_package(${out_missing} CLI11::CLI11 CLI11 libcli11-dev)
  weft_need_header(${out_missing} weft_dep::stb stb_image_write.h libstb-dev)
  weft_need_package(${out_missing} glslang::SPIRV glslang glslang-dev)
  # Windows on screen; examples that show them say so if glfw is missing.
  find_package(glfw3 3.3 CONFIG QUIET)
endmacro()
set(WEFT_EXAMPLES_DEPENDENCIES fmt::fmt CLI11::CLI11 weft_dep::stb)
# Dependencies of the example that has a renderer of its own.
set(WEFT_EMBED_DEPENDENCIES
  weft_dep::volk weft_dep::vulkan_headers glslang::SPIRV glslang::glslang glslang::glslang-default-resource-limits
  ${CMAKE_DL_LIBS})

# OpenVDB, against which tests and the benchmark hold level sets; they are skipped without it. Its headers need the
# others. No program that forks may link it: a library of its own hangs forked children at their end.
macro(weft_find_openvdb)
  set(weft_openvdb_missing)
  weft_need_header(weft_openvdb_missing weft_dep::boost boost/numeric/conversion/conversion_traits.hpp libboost-dev)
  weft_need_header(weft_openvdb_missing weft_dep::tbb tbb/global_control.h libtbb-dev tbb)
  weft_need_header(weft_openvdb_missing weft_dep::imath Imath/half.h libimath-dev Imath Imath-3_1)
  weft_need_header(weft_openvdb_missing weft_dep::openvdb_alone openvdb/openvdb.h libopenvdb-dev openvdb)
  if(weft_openvdb_missing)
    list(APPEND weft_left_out "openvdb/openvdb.h (Debian: libopenvdb-dev)")
  elseif(NOT TARGET weft_dep::openvdb)
    add_library(weft_dep::openvdb INTERFACE IMPORTED)
    set_target_properties(weft_dep::openvdb PROPERTIES
      INTERFACE_LINK_LIBRARIES "weft_dep::openvdb_alone;weft_dep::imath;weft_dep::tbb;weft_dep::boost")
  endif()
endmacro()

macro(weft_find_tests_dependencies out_missing)
  weft_need_package(${out_missing} GTest::gtest GTest libgtest-dev)
  weft_need_header(${out_missing} weft_dep::vulkan_loader vulkan/vulkan.h libvulkan-dev vulkan vulkan-1)
  weft_need_package(${out_missing} glslang::SPIRV glslang glslang-dev)
  # The host library of NanoVDB, against which tests compare volumes; they are skipped without it.
  weft_need_header(weft_left_out weft_dep::nanovdb nanovdb/NanoVDB.h libnanovdb-dev)
  weft_find_openvdb()
  find_program(WEFT_PYTHON NAMES python3 python)
  mark_as_advanced(WEFT_PYTHON)
  if(NOT WEFT_PYTHON)
    list(APPEND ${out_missing} "python3 (Debian: python3)")
  endif()
endmacro()
# Tests look inside the library, so they link its dependencies.
set(WEFT_TESTS_DEPENDENCIES
  GTest::gtest glslang::SPIRV glslang::glslang glslang::glslang-default-resource-limits ${WEFT_LIBRARY_DEPENDENCIES})

macro(weft_find_bench_dependencies out_missing)
  weft_find_openvdb()
  weft_need_package(${out_missing} fmt::fmt fmt libfmt-dev)
  weft_need_package(${out_missing} CLI11::CLI11 CLI11 libcli11-dev)
  weft_need_package(${out_missing} benchmark::benchmark benchmark libbenchmark-dev)
  weft_need_package(${out_missing} glslang::SPIRV glslang glslang-dev)
endmacro()
set(WEFT_BENCH_DEPENDENCIES
  fmt::fmt CLI11::CLI11 benchmark::benchmark glslang::SPIRV glslang::glslang glslang::glslang-default-resource-limits
  ${WEFT_LIBRARY_DEPENDENCIES})

# The Python that the package is built for, and nanobind, which is a package of Python's. The folder build/venv, which
# cmake/install_packages.sh makes, comes first; -DPython_EXECUTABLE names another one.
macro(weft_find_python out_found)
  set(${out_found} OFF)
  if(NOT DEFINED Python_EXECUTABLE AND EXISTS "${PROJECT_SOURCE_DIR}/build/venv/bin/python")
    set(Python_EXECUTABLE "${PROJECT_SOURCE_DIR}/build/venv/bin/python")
  endif()
  find_package(Python 3.10 QUIET COMPONENTS Interpreter Development.Module)
  if(Python_Development.Module_FOUND)
    execute_process(COMMAND "${Python_EXECUTABLE}" -m nanobind --cmake_dir OUTPUT_VARIABLE weft_nanobind
      OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    find_package(nanobind CONFIG QUIET HINTS "${weft_nanobind}")
    if(COMMAND nanobind_add_module)
      set(${out_found} ON)
    endif()
  endif()
endmacro()

# MPI, for one example. The folder build/venv has one if tests/run.sh has made it.
macro(weft_find_mpi)
  # An earlier run of CMake may have kept that there was none.
  if(NOT MPI_CXX_COMPILER AND EXISTS "${PROJECT_SOURCE_DIR}/build/venv/bin/mpicxx")
    set(MPI_CXX_COMPILER "${PROJECT_SOURCE_DIR}/build/venv/bin/mpicxx" CACHE FILEPATH "Compiles with MPI" FORCE)
    set(MPIEXEC_EXECUTABLE "${PROJECT_SOURCE_DIR}/build/venv/bin/mpiexec" CACHE FILEPATH "Starts processes" FORCE)
  endif()
  set(MPI_CXX_SKIP_MPICXX ON)
  find_package(MPI QUIET COMPONENTS CXX)
endmacro()
