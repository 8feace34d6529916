# The installed copy: the library, its public headers, and the package that find_package(weft) reads.
include(CMakePackageConfigHelpers)

# Installs the public headers, and below detail/ everything that they include: nothing else of the library.
weft_public_headers(weft_installed_headers)
weft_included_headers(weft_detail_headers ${weft_installed_headers})
foreach(header IN LISTS weft_detail_headers)
  get_filename_component(folder "${header}" DIRECTORY)
  install(FILES "${PROJECT_SOURCE_DIR}/${header}" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/weft/detail/${folder}")
endforeach()
list(TRANSFORM weft_part_headers REPLACE "=.*" ".h" OUTPUT_VARIABLE weft_part_names)
list(PREPEND weft_part_names weft.h)
foreach(header IN LISTS weft_part_names weft_installed_headers)
  get_filename_component(folder "${header}" DIRECTORY)
  install(FILES "${PROJECT_BINARY_DIR}/include/weft/${header}" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/weft/${folder}")
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
# The built tree can be found too, by -Dweft_DIR or CMAKE_PREFIX_PATH.
export(EXPORT weftTargets NAMESPACE weft:: FILE "${PROJECT_BINARY_DIR}/weftTargets.cmake")
configure_file("${PROJECT_SOURCE_DIR}/cmake/dependencies.cmake" "${PROJECT_BINARY_DIR}/dependencies.cmake" COPYONLY)
install(EXPORT weftTargets NAMESPACE weft:: DESTINATION "${weft_package_dir}")
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/weftConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/weftConfig.cmake" INSTALL_DESTINATION "${weft_package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/weftConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/weftConfig.cmake" "${PROJECT_BINARY_DIR}/weftConfigVersion.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/dependencies.cmake" DESTINATION "${weft_package_dir}")
