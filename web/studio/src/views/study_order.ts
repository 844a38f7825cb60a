import { field, h, replace, select } from "../../../shared/src/elements.js";
import { number, type Sentence, say } from "../catalogue/languages.js";
import { type StudyReview, server } from "../server.js";
import { englishList } from "./in_english.js";
import { problem } from "./problem.js";
import { sameAs } from "./same_as.js";
import { trustOf } from "./states.js";

type Own =
  | "name"
  | "analysis"
  | "epsilon"
  | "delta"
  | "reports"
  | "people"
  | "shard"
  | "dropout"
  | "corrupt"
  | "stage"
  | "quiet"
  | "wait"
  | "leader"
  | "helper"
  | "least";
const TEXTS: readonly Own[] = ["name", "analysis", "epsilon", "delta", "dropout", "corrupt", "leader", "helper"];
const LABELS: Record<Own, Sentence> = {
  name: "studyName",
  analysis: "analysis",
  epsilon: "epsilon",
  delta: "delta",
  reports: "mostRounds",
  people: "peopleARound",
  shard: "shardSize",
  dropout: "dropout",
  corrupt: "corrupt",
  stage: "stageSeconds",
  quiet: "quietSeconds",
  wait: "waitSeconds",
  leader: "leader",
  helper: "helper",
  least: "leastReports",
};
const FIRST: Partial<Record<Own, string>> = { people: "2000", reports: "10", delta: "1e-6" };
const LEFT_OUT: Partial<Record<Own, string>> = {
  dropout: "0.2",
  corrupt: "0.1",
  shard: "1000",
  stage: "120",
  wait: "3600",
};
const OF_TWO: readonly Own[] = ["leader", "helper", "least"];

/** A study to begin: whose budget pays, how much at most, and who is asked. */
export function studyOrder(): HTMLElement {
  const below = h("div", { class: "review" });
  const stale = (): void => replace(below);
  const inputs = new Map<Own, HTMLInputElement>();
  const trust = select(
    "trust",
    ["secure-sum", "two-servers"].map((each) => [each, trustOf(each)] as const),
    "secure-sum",
  );

  function own(name: Own): HTMLElement {
    const made = h("input", {
      name,
      autocomplete: "off",
      value: FIRST[name] ?? "",
      placeholder: LEFT_OUT[name] ?? null,
      type: TEXTS.includes(name) ? "text" : "number",
      step: TEXTS.includes(name) ? null : "any",
    });
    made.addEventListener("input", stale);
    inputs.set(name, made);
    const help: Partial<Record<Own, Sentence>> = { analysis: "analysisHelp", epsilon: "studyEpsilonHelp" };
    return field(say(LABELS[name]), made, help[name] && say(help[name]));
  }

  const two = OF_TWO.map(own);
  const fit = (): void =>
    two.forEach((each) => {
      each.hidden = trust.value !== "two-servers";
    });
  trust.addEventListener("input", () => {
    fit();
    stale();
  });
  fit();

  function order(): Record<string, string | number> {
    const made: Record<string, string | number> = {};
    for (const [name, input] of inputs) {
      const value = input.value.trim();
      if (value === "" || (OF_TWO.includes(name) && trust.value !== "two-servers")) continue;
      made[name] = TEXTS.includes(name) ? value : Number(value);
    }
    if (trust.value !== "secure-sum") made["trust"] = trust.value;
    return made;
  }

  async function look(): Promise<void> {
    try {
      const form = order();
      const found = await server.reviewStudy(form);
      replace(
        below,
        review(found, () => void begin(form), stale),
      );
    } catch (error) {
      replace(below, problem(error));
    }
    below.querySelector<HTMLElement>("h2")?.focus();
  }

  async function begin(form: object): Promise<void> {
    try {
      const { name } = await server.beginStudy(form);
      location.hash = `#/studies/${encodeURIComponent(name)}`;
    } catch (error) {
      replace(below, problem(error));
    }
  }

  const fields = (...names: Own[]): HTMLElement => h("div", { class: "fields" }, ...names.map(own));
  const form = h(
    "form",
    {
      class: "card",
      novalidate: true,
      onsubmit: (event) => {
        event.preventDefault();
        void look();
      },
    },
    fields("name", "analysis", "epsilon", "delta", "reports", "people"),
    h(
      "details",
      {},
      h("summary", {}, say("more")),
      fields("shard", "dropout", "corrupt", "stage", "quiet", "wait"),
      h("div", { class: "fields" }, field(say("trust"), trust), ...two),
    ),
    h("button", { type: "submit", class: "main" }, say("look")),
  );
  return h(
    "div",
    {},
    h("h1", { tabindex: -1 }, say("newStudy")),
    form,
    below,
    h("p", {}, h("a", { href: "#/studies" }, say("back"))),
  );
}

function review(found: StudyReview, begin: () => void, back: () => void): HTMLElement {
  const rows: [string, string][] = [
    [say("analysis"), found.analysis],
    [say("mostRounds"), number(found.reports)],
    [say("peopleARound"), number(found.people)],
  ];
  return h(
    "section",
    { class: "card cost", "aria-labelledby": "cost" },
    h("h2", { id: "cost", tabindex: -1 }, `${say("upperPrice")}: ${found.price}`),
    h("dl", {}, ...rows.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
    h("p", {}, say("assumes")),
    englishList(found.assumed),
    h("p", {}, say("studyIsFree")),
    h(
      "div",
      { class: "line" },
      h("button", { type: "button", class: "main", onclick: begin }, say("beginStudy", { name: found.name })),
      h("button", { type: "button", class: "quiet", onclick: back }, say("goBack")),
    ),
    sameAs(found.same_as),
  );
}
