"""Pages without content are left out of the list."""

from dashboard.test_search_page import make_record, make_search
from fixtures_home import make_home, make_ladder

from ablations.home.home import Home
from ablations_dashboard.reading.contents import empty_pages

EVERY = {"ladder", "search", "campaigns", "paper"}


def test_a_page_is_listed_once_the_home_folder_has_something_for_it(tmp_path):
    assert empty_pages(Home(tmp_path / "nothing")) == EVERY
    home = make_home(tmp_path / "one").home
    assert empty_pages(home) == EVERY
    ledger = home.campaigns / "night" / "ledger.jsonl"
    ledger.parent.mkdir(parents=True)
    ledger.write_text("")
    assert empty_pages(home) == EVERY - {"campaigns"}
    (home.sweep("loo") / "card.json").write_text("{}")
    assert empty_pages(home) == EVERY - {"campaigns", "paper"}
    (tmp_path / "ladder").mkdir()
    assert empty_pages(make_ladder(tmp_path / "ladder")) == EVERY - {"ladder"}
    assert empty_pages(make_search(tmp_path / "search", make_record()).home) == EVERY - {"search"}
