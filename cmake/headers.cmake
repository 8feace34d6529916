# Generates <weft/...>: the headers that programs include, spelled alike in the build tree and in an installed copy.
#
# Programs include weft.h, the headers of its parts below, and those at the top of a public folder by its path
# (<weft/runtime/graph.h>). Each is a one-line file that forwards to detail/, which mirrors the folders of the library.
# The headers there are what templates need, and no file name in it is a promise.
set(weft_part_headers
  algorithms=runtime/algorithms/algorithms.h
  dlpack=runtime/dlpack.h
  geometry=runtime/geometry/geometry.h
  graph=runtime/graph.h
  loader=loader/loader.h
  profile=runtime/profile.h
  volume=runtime/volume/volumes.h
  vulkan=runtime/vulkan_interop.h)
set(weft_public_folders runtime runtime/algorithms runtime/geometry runtime/volume loader)

# Lists the public headers, as paths in the source tree.
function(weft_public_headers result)
  set(headers "")
  foreach(folder IN LISTS weft_public_folders)
    file(GLOB found CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/${folder}/*.h")
    list(APPEND headers ${found})
  endforeach()
  set(${result} ${headers} PARENT_SCOPE)
endfunction()

# Lists the given headers and everything that they include, directly or not: all that an installed copy needs.
function(weft_included_headers result)
  set(found "")
  set(ahead ${ARGN})
  while(ahead)
    list(POP_FRONT ahead header)
    if(header IN_LIST found)
      continue()
    endif()
    list(APPEND found "${header}")
    get_filename_component(folder "${header}" DIRECTORY)
    file(STRINGS "${PROJECT_SOURCE_DIR}/${header}" lines REGEX "^ *# *include \"")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^[^\"]*\"([^\"]*)\".*" "\\1" name "${line}")
      cmake_path(SET path NORMALIZE "${folder}/${name}")
      list(APPEND ahead "${path}")
    endforeach()
  endwhile()
  set(${result} ${found} PARENT_SCOPE)
endfunction()

# Fills `folder` with <weft/...>: the public headers, and detail/ with links to the named source folders.
function(weft_link_headers folder)
  file(MAKE_DIRECTORY "${folder}/detail")
  foreach(name IN LISTS ARGN)
    if(IS_SYMLINK "${folder}/${name}")
      file(REMOVE "${folder}/${name}")  # an earlier version's link: files written below must not go through it
    endif()
    if(NOT IS_SYMLINK "${folder}/detail/${name}" AND EXISTS "${folder}/detail/${name}")
      file(REMOVE_RECURSE "${folder}/detail/${name}")  # an earlier copy may be stale
    endif()
    # If links are refused (Windows without developer mode), the headers are copied at each configuration.
    file(CREATE_LINK "${PROJECT_SOURCE_DIR}/${name}" "${folder}/detail/${name}" RESULT link_result SYMBOLIC)
    if(NOT link_result STREQUAL "0")
      file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}"
        "${PROJECT_SOURCE_DIR}/${name}/*.h" "${PROJECT_SOURCE_DIR}/${name}/*.def")
      foreach(header IN LISTS headers)
        configure_file("${PROJECT_SOURCE_DIR}/${header}" "${folder}/detail/${header}" COPYONLY)
      endforeach()
    endif()
  endforeach()
  configure_file("${PROJECT_SOURCE_DIR}/cmake/weft.h.in" "${folder}/weft.h" @ONLY)
  foreach(part IN LISTS weft_part_headers)
    string(REPLACE "=" ";" part "${part}")
    list(GET part 0 name)
    list(GET part 1 header)
    weft_forward("${folder}/${name}.h" "detail/${header}" "${header}")
  endforeach()
  weft_public_headers(headers)
  foreach(header IN LISTS headers)
    get_filename_component(depth "${header}" DIRECTORY)
    string(REGEX REPLACE "[^/]+" ".." up "${depth}")
    weft_forward("${folder}/${header}" "${up}/detail/${header}" "${header}")
  endforeach()
endfunction()

# Writes a forwarding header, which opens with the first line of the source header.
function(weft_forward file target header)
  file(STRINGS "${PROJECT_SOURCE_DIR}/${header}" opening LIMIT_COUNT 1)
  file(CONFIGURE OUTPUT "${file}" CONTENT "@opening@\n#pragma once\n\n#include \"@target@\"\n" @ONLY)
endfunction()
