"""Reads files that people write, and remembers where every key was written. A map of the room:

source        a YAML file with the line of every key
validation    pydantic's complaints about a file, rewritten as messages that teach
lookup        the file that `reference: scalerl` or `scale: laptop` means
trees         dataclasses and arrays saved to one file and read back
database      URLs of SQLite files
tail          the last lines of a log
checked_json  JSON that the platform wrote, with its types checked on reading
"""
