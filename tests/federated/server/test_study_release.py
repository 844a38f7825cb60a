"""What a server says that a study cost and promised, when its answers are published."""

from fractions import Fraction

import httpx
import pytest
from tests.federated.server.asking_studies import recipe
from tests.federated.server.fleet import AS_OPERATOR
from tests.federated.server.test_studies import begun, charges, played

from hazemap.errors import InputError
from hazemap.federated.study.http_study import HttpStudy
from hazemap.privacy.budget import ApproxDP


def test_a_release_holds_every_answer_and_the_price_of_every_round_that_was_paid(tmp_path):
    asked = [recipe(name) for name in ("one", "two", "three")]

    async def play(town):
        await begun(town)
        where = "/v1/studies/spring/release"
        early = await town.http.get(where, headers=AS_OPERATOR)
        found = []
        for number, each in enumerate(asked, 1):
            for device in town.devices:
                device.declines = "not now" if number == 2 else ""
            await town.ask(each)
            found.append(await town.answered(number))
        await town.http.post("/v1/studies/spring/stop", headers=AS_OPERATOR)
        every, one, failed, odd = [
            await town.http.get(f"{where}{query}", headers=AS_OPERATOR)
            for query in ("", "?round=3", "?round=2", "?round=٣")
        ]
        audit = (await town.http.get("/v1/audit", headers=AS_OPERATOR)).text
        return early, every, one, failed, odd, found, audit, charges(town)

    early, every, one, failed, odd, found, audit, paid = played(tmp_path, play)
    assert [each.status_code for each in (early, every, one, failed, odd)] == [409, 200, 200, 409, 422]
    assert (paid, audit.count('"act":"study release"')) == (3, 2)
    replies = {"": every, "round=3": one}
    http = httpx.Client(
        transport=httpx.MockTransport(lambda asked: httpx.Response(200, json=replies[asked.url.query.decode()].json())),
        base_url="http://town",
    )
    whole, single = HttpStudy(http, "spring").release(), HttpStudy(http, "spring").release(round_=3)
    assert [(each.round, each.recipe.id) for each in whole.rounds] == [(1, "one"), (3, "three")]
    assert [each.round for each in single.rounds] == [3]
    for made, left_out in ((whole, "round 2;"), (single, "round 1, 2;")):
        assert made.statement.budget == ApproxDP(12, Fraction(3, 10**6)), "three rounds were paid"
        assert f"left out of this file: {left_out}" in made.statement.text()
    assert whole.rounds[0].answer.people == found[0]["survivors"] == 12
    replies[""] = type("Reply", (), {"json": staticmethod(lambda: {"rounds": []})})
    with pytest.raises(InputError, match="no answer to the recipe"):
        HttpStudy(http, "spring").release(recipe("four"))
