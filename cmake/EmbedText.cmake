# cmake -DOUTPUT=FILE -DNAME=IDENTIFIER "-DINPUTS=A;B" -P EmbedText.cmake
# Writes a C++ string literal with the text of the inputs, one after the other. They are ASCII and UTF-8 text files
# without the delimiter of the literal.
set(text "")
foreach(input IN LISTS INPUTS)
  file(READ "${input}" content)
  string(APPEND text "${content}")
endforeach()
string(FIND "${text}" ")MEMPLAN\"" delimiter)
if(NOT delimiter EQUAL -1)
  message(FATAL_ERROR "${INPUTS}: text with the delimiter of C++'s raw strings can't be embedded")
endif()
file(WRITE "${OUTPUT}" "static constexpr char ${NAME}[] = R\"MEMPLAN(${text})MEMPLAN\";\n")
