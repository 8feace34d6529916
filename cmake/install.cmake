# The installed copy: the library, its public headers, and the package that find_package(weft) reads.
include(CMakePackageConfigHelpers)

# Public are the headers of frontend, runtime and loader, the emitter's interface, each backend's header of its own name,
# and what others with a Vulkan device see. The rest need third-party headers that a user of weft does not have.
foreach(folder frontend runtime loader)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/${folder}" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/weft"
    FILES_MATCHING PATTERN "*.h" PATTERN "*.def" PATTERN "dlpack_*.h" EXCLUDE)
endforeach()
file(GLOB weft_backend_headers CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}"
  "${PROJECT_SOURCE_DIR}/spirv/emit.h" "${PROJECT_SOURCE_DIR}/spirv/target.h" "${PROJECT_SOURCE_DIR}/backends/*.h" "${PROJECT_SOURCE_DIR}/backends/*/*.h")
foreach(header IN LISTS weft_backend_headers)
  get_filename_component(folder "${header}" DIRECTORY)
  get_filename_component(stem "${header}" NAME_WE)
  if(NOT folder MATCHES "^backends/" OR folder STREQUAL "backends/${stem}" OR stem MATCHES "^(handles|interop|shared_memory)$")
    install(FILES "${PROJECT_SOURCE_DIR}/${header}" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/weft/${folder}")
  endif()
endforeach()
foreach(header weft vulkan ${weft_part_headers})
  install(FILES "${PROJECT_BINARY_DIR}/include/weft/${header}.h" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/weft")
endforeach()

set(weft_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/weft")
set(weft_installed weft_runtime weft_loader)
if(WEFT_BUILD_TOOLS)
  list(APPEND weft_installed weft_kernels)
endif()
install(TARGETS ${weft_installed} EXPORT weftTargets
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
# The built tree, too, is found: by -Dweft_DIR or CMAKE_PREFIX_PATH.
export(EXPORT weftTargets NAMESPACE weft:: FILE "${PROJECT_BINARY_DIR}/weftTargets.cmake")
configure_file("${PROJECT_SOURCE_DIR}/cmake/dependencies.cmake" "${PROJECT_BINARY_DIR}/dependencies.cmake" COPYONLY)
install(EXPORT weftTargets NAMESPACE weft:: DESTINATION "${weft_package_dir}")
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/weftConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/weftConfig.cmake" INSTALL_DESTINATION "${weft_package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/weftConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/weftConfig.cmake" "${PROJECT_BINARY_DIR}/weftConfigVersion.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/dependencies.cmake" DESTINATION "${weft_package_dir}")
