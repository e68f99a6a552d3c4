"""Files that people write, read with the place of every key. A map of the room:

source        a YAML file with the line of every key
validation    mistakes in it as messages that teach
lookup        the file that `reference: scalerl` or `scale: laptop` means
trees         dataclasses and arrays in one file, and back
database      URLs of SQLite files
checked_json  a JSON file of ours, its types checked as it is read
"""
