# Read by ctest when it starts: makes one entry of each suite of a GoogleTest program.
# Given: program, label, folder (where the tests run), cache (of compiled kernels: not the user's own).
if(NOT EXISTS "${program}")
  add_test("${label}.not-built" "${program}")
  set_tests_properties("${label}.not-built" PROPERTIES LABELS "${label}")
  return()
endif()
execute_process(COMMAND "${program}" --gtest_list_tests OUTPUT_VARIABLE listing ERROR_VARIABLE errors
  RESULT_VARIABLE result TIMEOUT 120)
if(NOT result EQUAL 0)
  message(SEND_ERROR "cannot list the tests of ${program}: ${result}\n${errors}")
endif()
string(REGEX REPLACE "[][;]" "_" listing "${listing}")  # these would break CMake's lists
string(REPLACE "\n" ";" listing "${listing}")
# A suite is a line without indent that ends in a point (a comment may follow); its tests are indented.
set(suites)
foreach(line IN LISTS listing)
  if(line MATCHES "^([^ ]+)\\.( *#.*)?$")
    set(suite "${CMAKE_MATCH_1}")
    list(APPEND suites "${suite}")
    set(count_${suite} 0)
  elseif(line MATCHES "^  [^ ]" AND suites)
    math(EXPR count_${suite} "${count_${suite}} + 1")
  endif()
endforeach()
foreach(suite IN LISTS suites)
  if(suite MATCHES "^DISABLED_|/DISABLED_")
    continue()
  endif()
  set(entry "${label}.${suite} (${count_${suite}})")
  add_test("${entry}" "${program}" "--gtest_filter=${suite}.*" --gtest_brief=0)
  # A suite counts as skipped if none of its tests ran or failed; a list of failures would follow the match.
  set_tests_properties("${entry}" PROPERTIES LABELS "${label}" WORKING_DIRECTORY "${folder}" TIMEOUT 1800
    ENVIRONMENT "WEFT_CACHE_DIR=${cache}"
    SKIP_REGULAR_EXPRESSION "PASSED  . 0 tests\\.\n(.  SKIPPED . [^\n]*\n)+$")
endforeach()
