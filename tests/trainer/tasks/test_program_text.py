"""The program in an answer, wherever a model of language puts it."""

import pytest

from scalerl.tasks.program_text import program_in

CODE = "def area(w, h):\n    return w * h"
SCRIPT = "n = int(input())\nprint(n * 2)"


@pytest.mark.parametrize(
    "after",
    ["```bash\npython area.py\n```", "```shell\n$ python area.py\n```", "```json\n[12]\n```", "```text\n12\n```",
     "```output\n12\n```", "```\n12\n```", "```\nYES\n```", "```\n3 4\n12\n```", "```console\npython\n```", "``` \n```",
     "```python\n>>> area(3, 4)\n12\n```", "```python\nreturn w * h\n```", "```python\n    return w * h\n```",
     "```python\nprint(area(3, 4))\n```", "```\narea(3, 4)\n```", "```python\nassert area(3, 4) == 13\n```",
     "```python\nfrom solution import area\nfor i in range(3):\n    print(area(i, i))\n```",
     "```python\nimport pytest\n\ndef test_area():\n    assert area(3, 4) == 12\n```",
     "```python\nimport unittest\nclass TestArea(unittest.TestCase):\n    def test(self):\n"
     "        self.assertEqual(area(1, 2), 2)\n```", "```javascript\nprint(12)\n```", "```python\n```",
     "```\nx = 3\n```", "```\nOutput: [0, 1]\n```"],
)  # fmt: skip
def test_a_block_that_is_no_program_hides_none(after):
    assert program_in(f"```python\n{CODE}\n```\nIt gives\n{after}\nas it should.").text == CODE


def test_the_last_program_counts():
    assert program_in("```python\ndef area(w, h):\n    return 0\n```\nBetter:\n```py\n" + CODE + "\n```").text == CODE
    assert program_in("```python\ndef area(w, h):\n    return 0\n```\nBetter:\n```\n" + CODE + "\n```").text == CODE
    broken = "def area(w, h)\n    return w * h"
    assert program_in(f"```python\n{CODE}\n```\nShorter:\n```python\n{broken}\n```").text == broken


def test_blocks_that_need_each_other_are_read_together():
    helper, user = "def twice(n):\n    return 2 * n", "def solve(n):\n    return twice(twice(n))"
    assert program_in(f"```python\n{helper}\n```\nand\n```python\n{user}\n```").text == f"{helper}\n\n{user}"


def test_a_script_in_two_blocks_is_one_only_where_the_first_prints_nothing_itself():
    main, start = "def main():\n    print(int(input()) * 2)", "main()"
    text = f"```python\n{main}\n```\nStart it:\n```python\n{start}\n```"
    assert program_in(text, reads_input=True).text == f"{main}\n\n{start}"
    assert program_in(text).text == main
    whole = f"{main}\n\nmain()"
    text = f"```python\n{whole}\n```\nStart it:\n```python\n{start}\n```"
    assert program_in(text, reads_input=True).text == whole
    assert program_in(f"```python\n{SCRIPT}\n```\nFor 4 the output is\n```\n8\n```", reads_input=True).text == SCRIPT


@pytest.mark.parametrize(
    "answer",
    [CODE, f"{CODE}\n```", f"{CODE}\n```\nIt multiplies.", f"{CODE}\n```\n\n```bash\npython a.py\n```",
     f"{CODE}\n```\nUse:\n```python\nprint(area(1, 2))\n```",
     f"Here is the program:\n\n{CODE}", f"Sure!\n{CODE}\n\nThis multiplies both sides.", f"**Solution**\n\n{CODE}",
     f"here is my program:\n{CODE}", f"<answer>\n{CODE}\n</answer>", f"<answer>\n```python\n{CODE}\n```\n</answer>",
     f"[PYTHON]\n{CODE}\n[/PYTHON]", f"[BEGIN]\n{CODE}\n[DONE]", f"[PYTHON]\n{CODE}",
     f"```python\n{CODE}\n```\n<answer>\nsee above\n</answer>", f"<answer>{CODE}</answer>",
     f"<solution>\n{CODE}\n</solution>", f"<pre><code>\n{CODE}\n</code></pre>", f"The code: <code>{CODE}</code>",
     f"1. The program:\n   ```python\n   {CODE.replace(chr(10), chr(10) + '   ')}\n   ```",
     f"> ```python\n> {CODE.replace(chr(10), chr(10) + '> ')}\n> ```", f"Code: ```python\n{CODE}```",
     f"\ufeff```python\n{CODE}\n```"],
)  # fmt: skip
def test_a_program_is_found_without_a_block_of_its_own_too(answer):
    assert program_in(answer).text == CODE


def test_a_docstring_may_show_a_fence():
    code = 'def area(w, h):\n    """As in\n    ```\n    area(1, 2)\n    ```\n    """\n    return w * h'
    assert program_in(f"```python\n{code}\n```\nDone.").text == code


@pytest.mark.parametrize("answer", ["", "I do not know.", "```\n12\n```", "```bash\nls\n```", "```js\nprint(1)\n```"])
def test_an_answer_without_a_program_has_none(answer):
    assert program_in(answer).text in ("", "I do not know.")


@pytest.mark.parametrize("answer", [f"imprt math\n{CODE}", f"{CODE}\nprint(", f"Area = w * * h\n{CODE}"])
def test_an_error_is_no_sentence(answer):
    assert program_in(answer).text == answer


def test_what_was_left_out_is_said():
    assert program_in(f"```python\n{CODE}\n```\nDone.").dropped == ""
    assert program_in(f"Here it is:\n{CODE}").dropped == "text around the program"
    text = f"```python\n{CODE}\n```\n```python\nprint(area(1, 2))\n```"
    assert program_in(text).dropped == "a block of Python after the program"
