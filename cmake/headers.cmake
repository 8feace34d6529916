# <weft/...> for users of the build tree, spelled as it is in an installed copy.

# Makes `folder` show the source folders named, and beside them weft.h, vulkan.h and a header for each part of the
# library that has one of its own.
set(weft_part_headers algorithms geometry)
function(weft_link_headers folder)
  file(MAKE_DIRECTORY "${folder}")
  foreach(name IN LISTS ARGN)
    if(NOT IS_SYMLINK "${folder}/${name}" AND EXISTS "${folder}/${name}")
      file(REMOVE_RECURSE "${folder}/${name}")  # an earlier copy may be stale
    endif()
    # Where links are refused (Windows without developer mode) the headers are copied, at each configuration.
    file(CREATE_LINK "${PROJECT_SOURCE_DIR}/${name}" "${folder}/${name}" RESULT link_result SYMBOLIC)
    if(NOT link_result STREQUAL "0")
      file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}"
        "${PROJECT_SOURCE_DIR}/${name}/*.h" "${PROJECT_SOURCE_DIR}/${name}/*.def")
      foreach(header IN LISTS headers)
        configure_file("${PROJECT_SOURCE_DIR}/${header}" "${folder}/${header}" COPYONLY)
      endforeach()
    endif()
  endforeach()
  configure_file("${PROJECT_SOURCE_DIR}/cmake/weft.h.in" "${folder}/weft.h" @ONLY)
  foreach(part IN LISTS weft_part_headers)
    file(CONFIGURE OUTPUT "${folder}/${part}.h" CONTENT
"// The headers of runtime/${part}.
#pragma once

#include \"runtime/${part}/${part}.h\"
")
  endforeach()
  file(CONFIGURE OUTPUT "${folder}/vulkan.h" CONTENT
"// weft within a program that has a Vulkan device of its own. Needs none of Vulkan's headers.
#pragma once

#include \"runtime/vulkan_interop.h\"
")
endfunction()
