import { field, h, replace, select } from "../../../shared/src/elements.js";
import { number, type Sentence, say } from "../catalogue/languages.js";
import { type CampaignForm, type CampaignReview, server } from "../server.js";
import { GroundFields } from "./ground_fields.js";
import { englishList, inEnglish } from "./in_english.js";
import { problem } from "./problem.js";
import { sameAs } from "./same_as.js";
import { trustOf } from "./states.js";

const TEXTS = [
  "name",
  "purpose",
  "dropout",
  "corrupt",
  "local_epsilon",
  "leader",
  "helper",
  "shuffler",
  "shuffler_key",
] as const;
const WHOLES = ["people", "shard", "numbers", "least", "levels"] as const;
const SECONDS = ["stage", "upload", "quiet", "wait"] as const;
const OF_MAP = ["epsilon", "delta", "dataset", "goal"] as const;
type Own = (typeof TEXTS)[number] | (typeof WHOLES)[number] | (typeof SECONDS)[number] | (typeof OF_MAP)[number];

const LABELS: Record<Own, Sentence> = {
  name: "campaignName",
  purpose: "purpose",
  dropout: "dropout",
  corrupt: "corrupt",
  local_epsilon: "localEpsilon",
  leader: "leader",
  helper: "helper",
  shuffler: "shuffler",
  shuffler_key: "shufflerKey",
  people: "peopleARound",
  shard: "shardSize",
  numbers: "mostNumbers",
  least: "leastReports",
  levels: "reportLevels",
  stage: "stageSeconds",
  upload: "uploadSeconds",
  quiet: "quietSeconds",
  wait: "waitSeconds",
  epsilon: "epsilon",
  delta: "delta",
  dataset: "dataset",
  goal: "goal",
};
const HELP: Partial<Record<Own, Sentence>> = {
  name: "campaignNameHelp",
  purpose: "purposeHelp",
  epsilon: "epsilonHelp",
  dataset: "campaignDatasetHelp",
  dropout: "dropoutHelp",
  corrupt: "corruptHelp",
  quiet: "quietHelp",
  local_epsilon: "localEpsilonHelp",
};
const FIRST: Partial<Record<Own, string>> = { epsilon: "1", people: "1000" };
const LEFT_OUT: Partial<Record<Own, string>> = {
  dropout: "0.2",
  corrupt: "0.1",
  shard: "1000",
  numbers: "20000",
  stage: "120",
  wait: "3600",
  levels: "8",
};
const TRUSTED: Record<string, Own[]> = {
  "secure-sum": ["local_epsilon"],
  local: ["local_epsilon"],
  "two-servers": ["leader", "helper", "least"],
  "one-report": ["leader", "helper", "least", "levels"],
  shuffled: ["shuffler", "shuffler_key", "least", "local_epsilon"],
};

/** An order of a map from people's devices: what is asked, of whom, whom they trust, what it costs. */
export function campaignOrder(): HTMLElement {
  const below = h("div", { class: "review" });
  const inputs = new Map<Own, HTMLInputElement>();
  const stale = (): void => replace(below);
  const ground = new GroundFields(false, say("campaignBoxHelp"), stale);
  const trust = select(
    "trust",
    Object.keys(TRUSTED).map((each) => [each, trustOf(each)] as const),
    "secure-sum",
  );
  const sampling = select("sampling", [
    ["", say("asSensible")],
    ["fresh", say("samplingFresh")],
    ["one", say("samplingOne")],
  ]);
  const mode = select(
    "mode",
    [
      ["malicious", say("modeMalicious")],
      ["semi-honest", say("modeSemiHonest")],
    ],
    "malicious",
  );
  const mark = h("input", { name: "mark", autocomplete: "off" });
  const times = { slots: "hour-of-day", time_zone: "UTC", since: "", until: "" };
  const slots = Object.entries(times).map(([name, usual]) =>
    h("input", { name, autocomplete: "off", placeholder: usual || null }),
  );

  function own(name: Own): HTMLElement {
    const numeric = !(TEXTS as readonly Own[]).includes(name) && name !== "dataset" && name !== "goal";
    const made = h("input", {
      name,
      autocomplete: "off",
      value: FIRST[name] ?? "",
      placeholder: LEFT_OUT[name] ?? null,
      type: numeric ? "number" : "text",
      step: numeric ? "any" : null,
      required: name === "name" || name === "purpose" || name === "people" || name === "epsilon",
    });
    made.addEventListener("input", stale);
    inputs.set(name, made);
    return field(say(LABELS[name]), made, HELP[name] === undefined ? undefined : say(HELP[name]));
  }

  const ofTrust = [...new Set(Object.values(TRUSTED).flat())].map((name) => [name, own(name)] as const);
  const fit = (): void =>
    ofTrust.forEach(([name, made]) => {
      made.hidden = !TRUSTED[trust.value]?.includes(name);
    });
  for (const each of [trust, sampling, mode, mark, ...slots]) each.addEventListener("input", stale);
  trust.addEventListener("input", fit);
  fit();

  function order(): CampaignForm {
    const given = new Map([...inputs].map(([name, made]) => [name, made.value.trim()] as const));
    const told = (name: Own): string =>
      TRUSTED[trust.value]?.includes(name) || !ofTrust.some(([each]) => each === name) ? (given.get(name) ?? "") : "";
    const own: Record<string, string | number> = {};
    for (const name of TEXTS) if (told(name) !== "") own[name] = told(name);
    for (const name of [...WHOLES, ...SECONDS]) if (told(name) !== "") own[name] = Number(told(name));
    for (const [name, chosen, usual] of [
      ["trust", trust, "secure-sum"],
      ["sampling", sampling, ""],
      ["mode", mode, "malicious"],
    ] as const)
      if (chosen.value !== usual) own[name] = chosen.value;
    const marks = mark.value.trim();
    const map: [string, string | string[]][] = [
      ...OF_MAP.map((name) => [name, given.get(name) ?? ""] as [string, string]),
      ...Object.entries(ground.order()).map(([name, value]) => [name, String(value)] as [string, string]),
      ...slots.map((each) => [each.name, each.value.trim()] as [string, string]),
      ...(marks === "" ? [] : [["mark", marks.split(",").map((each) => each.trim())] as [string, string[]]]),
    ];
    return { order: own, map: Object.fromEntries(map.filter(([, value]) => value !== "")) };
  }

  async function look(): Promise<void> {
    try {
      const form = order();
      const found = await server.reviewCampaign(form);
      replace(
        below,
        review(found, () => void begin(form), stale),
      );
    } catch (error) {
      replace(below, problem(error));
    }
    below.querySelector<HTMLElement>("h2, [role=alert]")?.scrollIntoView({ block: "nearest" });
    below.querySelector<HTMLElement>("h2")?.focus();
  }

  async function begin(form: CampaignForm): Promise<void> {
    below.querySelectorAll("button").forEach((button) => {
      button.disabled = true;
    });
    try {
      const { name } = await server.orderCampaign(form);
      location.hash = `#/campaigns/${encodeURIComponent(name)}`;
    } catch (error) {
      replace(below, problem(error));
    }
  }

  const fields = (...names: Own[]): HTMLElement => h("div", { class: "fields" }, ...names.map(own));
  const form = h(
    "form",
    {
      novalidate: true,
      onsubmit: (event) => {
        event.preventDefault();
        void look();
      },
    },
    card("order-what", say("campaign"), fields("name", "purpose", "dataset")),
    card(
      "order-map",
      say("map"),
      ground.element,
      h(
        "details",
        {},
        h("summary", {}, say("moreOfMap")),
        h("div", { class: "fields" }, field(say("marks"), mark, say("campaignMarksHelp")), own("goal"), own("numbers")),
        h(
          "div",
          { class: "fields" },
          field(say("slots"), slots[0]!, say("slotsHelp")),
          field(say("timeZone"), slots[1]!),
          field(say("since"), slots[2]!, say("spanHelp")),
          field(say("untilTime"), slots[3]!),
        ),
      ),
    ),
    card("order-price", say("price"), fields("epsilon", "delta")),
    card(
      "order-people",
      say("thePeople"),
      fields("people", "shard", "dropout", "corrupt"),
      h("div", { class: "fields" }, field(say("sampling"), sampling), field(say("mode"), mode)),
    ),
    card(
      "order-trust",
      say("trust"),
      h("div", { class: "fields" }, field(say("trust"), trust), ...ofTrust.map(([, made]) => made)),
    ),
    card("order-time", say("theTime"), fields("stage", "upload", "quiet", "wait")),
    h("button", { type: "submit", class: "main" }, say("look")),
  );
  return h(
    "div",
    {},
    h("h1", { tabindex: -1 }, say("newCampaign")),
    form,
    below,
    h("p", {}, h("a", { href: "#/campaigns" }, say("back"))),
  );
}

function review(found: CampaignReview, buy: () => void, back: () => void): HTMLElement {
  const rows: [string, string | HTMLElement][] = [
    [say("purpose"), h("span", { translate: "no" }, found.purpose)],
    [say("dataset"), found.dataset],
    [say("peopleARound"), number(found.people)],
    ...(found.shards === 0 ? [] : [[say("shards"), number(found.shards)] as [string, string]]),
  ];
  return h(
    "section",
    { class: "card cost", "aria-labelledby": "cost" },
    h("h2", { id: "cost", tabindex: -1 }, `${say("cost")}: ${found.price}`),
    h("dl", {}, ...rows.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
    h("p", {}, say("assumes")),
    englishList(found.assumed),
    ...found.cautions.map((each) => h("p", { class: "problem" }, inEnglish(each))),
    h("p", {}, say("campaignForGood")),
    h(
      "div",
      { class: "line" },
      h(
        "button",
        { type: "button", class: "main spend", onclick: buy },
        say("begin", { name: found.name, price: found.price }),
      ),
      h("button", { type: "button", class: "quiet", onclick: back }, say("goBack")),
    ),
    sameAs(found.same_as),
  );
}

function card(id: string, title: string, ...children: HTMLElement[]): HTMLElement {
  return h("section", { class: "card", "aria-labelledby": id }, h("h2", { id }, title), ...children);
}
