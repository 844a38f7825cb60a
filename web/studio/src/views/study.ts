import { type Child, field, h, replace, tableOf } from "../../../shared/src/elements.js";
import { number, say } from "../catalogue/languages.js";
import { type Study, type StudyAnswer, server } from "../server.js";
import { confirmed } from "./confirmed.js";
import { englishList, partlyEnglish } from "./in_english.js";
import { intervalBars } from "./interval_bars.js";
import { problem } from "./problem.js";
import { RecipeDesk } from "./recipe_desk.js";
import { sameAs } from "./same_as.js";
import { budgetOf, stateOf, trustOf } from "./states.js";

const EVERY = 1_500;

/** One study: what is left, a recipe to write, check and ask, what every round answered. */
export function study(name: string): HTMLElement {
  const about = h("div", {}, h("p", {}, say("loading")));
  const rounds = h("div", {});
  const answer = h("div", {});
  const view = h("div", {});

  async function look(): Promise<void> {
    try {
      const found = await server.study(name);
      replace(about, ...said(found, () => void look()));
      replace(rounds, ...roundsOf(found, (round) => void show(round, true)), released(found));
      desk.element.hidden = found.state !== "open";
    } catch (error) {
      replace(about, problem(error));
    }
  }

  async function show(round: number, focus: boolean): Promise<void> {
    replace(answer, h("p", { role: "status" }, say("waitingForRound", { round })));
    try {
      for (;;) {
        const found = await server.answerOf(name, round);
        if (found.state !== "running" || found.reason !== "") {
          replace(answer, answered(found));
          if (focus) answer.querySelector<HTMLElement>("h2")?.focus();
          break;
        }
        await new Promise((done) => setTimeout(done, EVERY));
        if (!view.isConnected) return;
      }
    } catch (error) {
      replace(answer, problem(error));
    }
    await look();
  }

  const desk = new RecipeDesk(name, (round) => void show(round, true));
  void look();
  view.append(
    h("h1", { tabindex: -1 }, name),
    h("div", { class: "columns wide" }, h("div", {}, desk.element, answer, rounds), about),
    h("p", {}, h("a", { href: "#/studies" }, say("back"))),
  );
  return view;
}

function said(found: Study, again: () => void): Child[] {
  const facts: [string, Child][] = [
    [say("left"), h("strong", {}, budgetOf(found.left))],
    [say("budgetOfAll"), budgetOf(found.budget)],
    [say("analysis"), found.analysis],
    [say("state"), stateOf(found.state)],
    [say("peopleARound"), number(found.people)],
    [say("trust"), trustOf(found.trust)],
    [say("begun"), found.created],
  ];
  return [
    h("dl", {}, ...facts.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
    h("details", {}, h("summary", {}, say("assumes")), englishList(found.assumptions)),
    sameAs(found.same_as.status),
    found.state === "open"
      ? h(
          "div",
          {},
          confirmed(say("stop"), say("stopStudyWhy"), async () => {
            await server.stopStudy(found.name);
            again();
          }),
          sameAs(found.same_as.stop),
        )
      : null,
  ];
}

function roundsOf(found: Study, show: (round: number) => void): Child[] {
  if (found.rounds.length === 0) return [h("p", {}, say("noRounds"))];
  return [
    tableOf(
      say("rounds"),
      [say("round"), say("state"), say("price"), say("peopleAnswered"), say("why"), say("answer")],
      [...found.rounds]
        .reverse()
        .map((each) => [
          each.round,
          stateOf(each.state),
          each.price,
          number(each.survivors),
          h("span", { lang: "en" }, each.reason),
          each.state === "done"
            ? h(
                "button",
                { type: "button", class: "quiet", onclick: () => show(each.round) },
                say("showRound", { round: each.round }),
              )
            : null,
        ]),
    ),
    partlyEnglish(),
  ];
}

function released(found: Study): HTMLElement | null {
  if (!found.rounds.some((each) => each.state === "done")) return null;
  const file = h("input", { name: "answers", value: `${found.name}.parquet`, required: true, autocomplete: "off" });
  const told = h("div", { "aria-live": "polite" });
  return h(
    "form",
    {
      class: "card",
      onsubmit: (event) => {
        event.preventDefault();
        server.releaseStudy(found.name, file.value.trim()).then(
          (made) => replace(told, h("p", {}, say("isThere", { file: made.file })), sameAs(made.same_as)),
          (error: unknown) => replace(told, problem(error)),
        );
      },
    },
    field(say("answersFile"), file, say("answersFree")),
    h("button", { type: "submit" }, say("writeAnswers")),
    told,
  );
}

function answered(found: StudyAnswer): HTMLElement {
  const title = h(
    "h2",
    { id: "answer", tabindex: -1 },
    say("answerOf", { round: found.round }),
    ": ",
    stateOf(found.state),
  );
  const refusals =
    found.refusals.length === 0
      ? null
      : englishList(found.refusals.map((each) => `${number(each.number)}: ${each.said}`));
  if (found.table === null) {
    return h(
      "section",
      { class: "card", "aria-labelledby": "answer" },
      title,
      problem(new Error(found.reason)),
      refusals,
    );
  }
  const { table } = found;
  const percent = number(100 * table.confidence, 1);
  const bars = intervalBars(table.lines);
  const rows = table.lines.map((line, at) => [
    ...line.labels,
    number(line.count),
    number(line.standard_error),
    number(line.low),
    number(line.high),
    bars[at] ?? null,
  ]);
  return h(
    "section",
    { class: "card", "aria-labelledby": "answer" },
    title,
    h(
      "p",
      {},
      say("peopleInAnswer", { people: number(table.people) }),
      " ",
      say("intervalsHold", { percent }),
      " ",
      table.none === null
        ? ""
        : say("withoutMatch", {
            count: number(table.none.count),
            error: number(table.none.standard_error),
          }),
    ),
    tableOf(
      say("largestCounts"),
      [...table.features, say("count"), say("standardError"), say("lowest"), say("highest"), say("interval")],
      rows,
    ),
    table.more > 0 ? h("p", {}, say("moreBins", { count: number(table.more) })) : null,
    refusals,
    h("details", {}, h("summary", {}, say("promised")), englishList(table.promise)),
    found.left === null ? null : h("p", {}, `${say("left")}: `, h("strong", {}, budgetOf(found.left))),
    sameAs(found.same_as),
  );
}
