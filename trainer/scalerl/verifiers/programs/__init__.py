"""Judges of programs: only the program and its inputs enter its sandbox, and results are compared outside.

code_tests     calls and standard inputs with expected values
  code_harness code around the program in the sandbox
  code_values  equality of returned and expected values
  given_names  imports that public graders put before a program
python_tests   Python tests, which run in a sandbox of their own
  python_test_processes  code in the tests' sandbox: what they use of the program asks for it
  python_test_program    code in the program's sandbox, which answers
  python_test_wire       values sent between the two, as lines of JSON
"""
