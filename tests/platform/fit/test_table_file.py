"""A table is read alike in every form that programs and spreadsheets write."""

import gzip

import pytest

from ablations.errors import FileError
from ablations.fit.curve_file import read_seed_curves

PLAIN = "curve,seed,compute,score\na,1,0,0.25\na,1,2.5,0.5\n"
GERMAN = PLAIN.replace(",", ";").replace(".", ",")


@pytest.mark.parametrize(
    "content",
    [
        PLAIN.encode(),
        PLAIN.replace("\n", "\r\n").encode("utf-8-sig"),
        PLAIN.replace(",", "\t").encode("utf-16"),
        gzip.compress(PLAIN.encode(), mtime=0),
        PLAIN.replace(",", ";").encode(),
        GERMAN.encode(),
        GERMAN.replace("\n", ";;\n").encode() + b";;;;;\n",
        PLAIN.replace("2.5", '"2,5"').replace("0.5", '"0,500"').replace("0.25", '"0,25"').encode(),
        f"# exported\n\n{PLAIN.replace('curve', 'Curve').replace('score', 'SCORE')}".encode(),
        f"sep=;\n{PLAIN.replace(',', ';')}".encode(),
        PLAIN.replace("a,1,2.5", "curve,seed,compute,score\na,1,2.5").encode(),
        PLAIN.replace("a,1,", "a,seed_1,").encode(),
        PLAIN.replace("a,1,", "a,1.0,").encode(),
    ],
)
def test_delimiters_decimal_commas_encodings_and_gzip_change_nothing(tmp_path, content):
    (path := tmp_path / "curves.csv").write_bytes(content)
    (run,) = read_seed_curves(path)
    assert (run.variant, run.seed) == ("a", 1)
    assert (run.curve.compute.tolist(), run.curve.score.tolist()) == ([0.0, 2.5], [0.25, 0.5])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            b'curve,compute,score\na,"1,200",0.5\n',
            "curves.csv:2: compute: found '1,200'; must be a number; write no",
        ),
        (b"curve;compute;score\na;1,200;0.5\n", "found '1,200'; must be a number; write no sign between thousands"),
        (b"curve,compute,score\na,1,50%\n", "found '50%'; must be a number; divide percent by 100"),
        (b"# x\ncurve,compute,score\na,1\n", "curves.csv:3: 2 fields below a header of 3"),
        (gzip.compress(PLAIN.encode(), mtime=0)[:-9], "gzip cannot unpack it"),
        (
            b"curve,compute,score,scale\na,1,.5,small\na,2,.6,large\n",
            "runs of 2 scales (small, large); run `platform lad",
        ),
        (b"method,hours,acc\na,1,.5\n", "`import` reads other names with --score, --compute, --variant and --seed"),
    ],
)
def test_what_may_mean_two_things_is_refused(tmp_path, content, said):
    (path := tmp_path / "curves.csv").write_bytes(content)
    with pytest.raises(FileError) as raised:
        read_seed_curves(path)
    assert said in str(raised.value)
