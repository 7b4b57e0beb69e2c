# Makes one page of template, style and scripts, and a source file that holds it. Run by the build:
# cmake -DFOLDER=… -DSTYLES=a.css,b.css -DSCRIPTS=a.js,b.js -DCHART_JS=FILE or empty -DOUTPUT=page.cpp -P page.cmake
cmake_minimum_required(VERSION 3.25)

# Replaces the one place of that name in the page.
function(put name text)
  string(FIND "${page}" "@${name}@" first)
  string(FIND "${page}" "@${name}@" last REVERSE)
  if(first EQUAL -1 OR NOT first EQUAL last)
    message(FATAL_ERROR "report.html: @${name}@ must stand there once")
  endif()
  string(REPLACE "@${name}@" "${text}" page "${page}")
  set(page "${page}" PARENT_SCOPE)
endfunction()

# Reads a file that stands inside an element of that name, which nothing in it may end.
function(read_part variable file element)
  file(READ "${file}" text)
  string(TOLOWER "${text}" lower)
  foreach(markup "</${element}" "<!--")
    string(FIND "${lower}" "${markup}" found)
    if(NOT found EQUAL -1)
      message(FATAL_ERROR "${file} holds ${markup} and cannot be put into a page")
    endif()
  endforeach()
  set(${variable} "${text}" PARENT_SCOPE)
endfunction()

# Reads several, one after another.
function(read_parts variable names element)
  set(texts "")
  string(REPLACE "," ";" names "${names}")
  foreach(name IN LISTS names)
    read_part(text "${FOLDER}/${name}" ${element})
    string(APPEND texts "${text}")
  endforeach()
  set(${variable} "${texts}" PARENT_SCOPE)
endfunction()

file(READ "${FOLDER}/report.html" page)
set(chart "")
if(CHART_JS)
  read_part(chart "${CHART_JS}" script)
endif()
read_parts(styles "${STYLES}" style)
read_parts(scripts "${SCRIPTS}" script)
put(STYLE "${styles}")
put(SCRIPTS "${scripts}")
put(CHART_JS "${chart}")
string(FIND "${page}" "@DOCUMENT@" first)
string(FIND "${page}" "@DOCUMENT@" last REVERSE)
if(first EQUAL -1 OR NOT first EQUAL last)
  message(FATAL_ERROR "the page must hold the place of the document once")
endif()

string(HEX "${page}" bytes)
string(REGEX REPLACE "(................................................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE "${OUTPUT}" "// The page of a report, written by page.cmake of the folder report.
#include \"report/page.hpp\"
namespace sluice::cli {
const unsigned char report_page[] = {
${bytes}
};
const std::size_t report_page_size = sizeof report_page;
}  // namespace sluice::cli
")
