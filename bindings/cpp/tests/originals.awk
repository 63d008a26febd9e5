# Writes the C++ programs of a document to files, with the includes of the original's headers replaced by
# Millstream's.
#
#   awk -v directory=DIRECTORY -v names='FIRST;SECOND;...' -f originals.awk DOCUMENT

BEGIN { split(names, name, ";") }
/^```cpp/ { file = directory "/" name[++count] ".cpp"; printf "" > file; next }
/^```/ { file = "" }
file != "" {
    sub(/"(SmartBuffer\.hpp|SyncIOReadBuffer\.h|SyncIOLazyWriteBuffer\.h)"/, "\"millstream/smart_buffer.hpp\"")
    print > file
}
