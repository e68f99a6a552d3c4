"""What stands for a part or a column in a template, and which braces are left alone."""

import pytest

from scalerl.recipe.template import fill, shows

COLUMNS = {"context": "the article", "answer": "gold", "n": "5"}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{context}\n\n{question}", "the article\n\nWho?"),
        (r"{question} Write \boxed{answer}.", r"Who? Write \boxed{answer}."),
        (r"{question} \frac{1}{n} \sqrt[3]{n} x^{n} a_{n}", r"Who? \frac{1}{n} \sqrt[3]{n} x^{n} a_{n}"),
        (r"{question} \boxed{} {} {1, 2}", r"Who? \boxed{} {} {1, 2}"),
        (r"\begin{quote}{context}\end{quote}{question}", r"\begin{quote}the article\end{quote}Who?"),
        (r"\textbf{question}", r"\textbfWho?"),
        (r"\textbf{{question}}", r"\textbf{Who?}"),
        ('{"context": "{context}", "none": {}}{question}', '{"context": "the article", "none": {}}Who?'),
        ("{{context}} is {context}, {question}", "{context} is the article, Who?"),
        (r"{question}\n{context}", r"Who?\nthe article"),
    ],
)  # fmt: skip
def test_a_name_alone_in_braces_is_filled_and_other_braces_stay(template, text):
    assert fill(template, {"question": "Who?"}, COLUMNS.get) == text


def test_what_is_filled_in_is_not_filled_again():
    parts = {"question": "{choices} and {context}", "choices": "A. {question}"}
    assert fill("{question}|{choices}|{context}", parts, {"context": "{question}"}.get) == (
        "{choices} and {context}|A. {question}|{question}"
    )


def test_a_name_that_is_written_as_text_shows_nothing():
    assert shows("Q: {question}", "question")
    assert not shows("Q: {{question}}", "question")
    assert not shows("Q: { question }", "question")
