import { type Child, field, h, replace, tableOf } from "../../../shared/src/elements.js";
import { number, say } from "../catalogue/languages.js";
import { type Campaign, type CampaignAct, type CampaignRound, type Count, server } from "../server.js";
import { confirmed } from "./confirmed.js";
import { inEnglish } from "./in_english.js";
import { problem } from "./problem.js";
import { sameAs } from "./same_as.js";
import { stageOf, stateOf, trustOf } from "./states.js";

const EVERY = 2_000;
const SHOWN = 6;

/** One campaign while it goes on: its rounds and shards, who declined and why, its map so far, what can be done. */
export function campaign(name: string): HTMLElement {
  const state = h("p", { role: "status", class: "chosen" });
  const rounds = h("div", {}, h("p", {}, say("loading")));
  const picture = h("div", {});
  const acts = h("div", {});
  const view = h(
    "div",
    {},
    h("h1", { tabindex: -1 }, name),
    state,
    h("div", { class: "columns wide" }, h("div", {}, picture, rounds), acts),
    h("p", {}, h("a", { href: "#/campaigns" }, say("back"))),
  );
  let drawn = -1,
    told = "";

  async function draw(): Promise<void> {
    const image = h("img", { alt: say("mapSoFarAlt", { name }) });
    const content = await server.campaignMap(name);
    image.src = URL.createObjectURL(content);
    image.addEventListener("load", () => URL.revokeObjectURL(image.src), { once: true });
    replace(picture, h("figure", { class: "view" }, image, h("figcaption", {}, say("mapSoFar"))));
  }

  function show(found: Campaign): void {
    const words = `${found.state} ${found.reason}`;
    if (words !== told) {
      told = words;
      replace(state, stateOf(found.state), " ", inEnglish(found.reason));
      replace(acts, ...actsOf(found, again));
    }
    replace(rounds, ...roundsOf(found));
    const answered = found.rounds.filter((each) => each.answered).length;
    const mapped = ["running", "done", "partial"].includes(found.state);
    if (answered !== drawn && answered > 0 && mapped) {
      drawn = answered;
      draw().catch((error: unknown) => replace(picture, problem(error)));
    }
  }

  async function look(): Promise<void> {
    for (;;) {
      const found = await server.campaign(name);
      show(found);
      if (found.state !== "running") return;
      await new Promise((done) => setTimeout(done, EVERY));
      if (!view.isConnected) return;
    }
  }

  function again(): void {
    told = "";
    look().catch((error: unknown) => replace(rounds, problem(error)));
  }

  again();
  return view;
}

function roundsOf(found: Campaign): Child[] {
  const rows = found.rounds.map((each) => [
    each.round,
    each.cells === null ? "…" : number(each.cells),
    each.stddev === null ? "…" : number(each.stddev, 1),
    each.price ?? "…",
    number(each.survivors),
    sum(each.dropped),
    sum(each.refusals),
    each.culprits,
    shardsOf(each),
  ]);
  const running = found.running.map((each) =>
    say("shardRunning", {
      round: each.round,
      shard: each.shard,
      stage: stageOf(each.stage),
      waiting: number(each.waiting),
      clients: number(each.clients),
    }),
  );
  const more = running.length - SHOWN;
  return [
    found.missing > 0 ? h("p", {}, say("waitingFor", { count: number(found.missing) })) : null,
    running.length === 0
      ? null
      : h(
          "ul",
          {},
          ...running.slice(0, SHOWN).map((line) => h("li", {}, line)),
          more > 0 ? h("li", {}, say("moreShards", { count: more })) : null,
        ),
    rows.length === 0
      ? h("p", {}, say("noRounds"))
      : tableOf(
          say("rounds"),
          [
            say("round"),
            say("cellsNumber"),
            say("perCell"),
            say("price"),
            say("peopleAnswered"),
            say("dropped"),
            say("declined"),
            say("culprits"),
            say("shards"),
          ],
          rows,
        ),
    ...reasons(found.rounds),
  ];
}

/** Why devices declined, and why shards were lost, in the words of devices and server. */
function reasons(rounds: CampaignRound[]): HTMLElement[] {
  return rounds
    .filter((each) => each.refusals.length > 0 || each.lost.length > 0)
    .map((each) =>
      h(
        "section",
        { class: "card" },
        h("h2", {}, say("reasonsOf", { round: each.round })),
        h(
          "ul",
          { lang: "en", translate: "no" },
          ...each.refusals.map(({ said, number: people }) => h("li", {}, `${number(people)}: ${said}`)),
          ...each.lost.map((line) => h("li", {}, line)),
        ),
      ),
    );
}

function shardsOf(each: CampaignRound): HTMLElement {
  return h(
    "span",
    {},
    ...each.shards.flatMap(({ said, number: shards }, at) => [
      at === 0 ? "" : ", ",
      `${number(shards)} `,
      stateOf(said),
    ]),
  );
}

function sum(counted: Count[]): string {
  return number(counted.reduce((all, each) => all + each.number, 0));
}

function actsOf(found: Campaign, again: () => void): Child[] {
  const { enrolled, recent } = found.devices;
  const facts: [string, Child][] = [
    [say("purpose"), h("span", { translate: "no" }, found.purpose)],
    [say("price"), found.price],
    [say("spentOf"), `${number(100 * found.spent, 1)} %`],
    [say("dataset"), found.dataset],
    [say("method"), h("code", {}, found.method)],
    [say("trust"), trustOf(found.trust)],
    [
      say("peopleARound"),
      `${number(found.people)} (${say(found.sampling === "one" ? "samplingOne" : "samplingFresh")})`,
    ],
    [say("shards"), number(found.shards)],
    [say("mode"), say(found.mode === "malicious" ? "modeMalicious" : "modeSemiHonest")],
    [say("devices"), say("devicesHere", { enrolled: number(enrolled), recent: number(recent) })],
    [say("begun"), found.created],
    ...(found.ended === null ? [] : [[say("ended"), found.ended] as [string, Child]]),
  ];
  const act = (what: CampaignAct, label: string, why: string): HTMLElement =>
    h(
      "div",
      {},
      confirmed(label, why, async () => {
        await server.tellCampaign(found.name, what);
        again();
      }),
      sameAs(found.same_as[what]),
    );
  const over = found.state === "failed" || found.state === "stopped";
  return [
    h("dl", {}, ...facts.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
    sameAs(found.same_as.watch),
    found.state === "running" ? act("stop", say("stop"), say("stopWhy")) : null,
    found.state === "failed" ? act("resume", say("resume"), say("resumeWhy")) : null,
    over && found.rounds.some((each) => each.answered)
      ? act("release-partial", say("partial"), say("partialWhy"))
      : null,
    found.state === "done" || found.state === "partial" ? fetched(found.name) : null,
  ];
}

function fetched(name: string): HTMLElement {
  const file = h("input", { name: "file", value: `${name}.parquet`, required: true, autocomplete: "off" });
  const said = h("div", { "aria-live": "polite" });
  return h(
    "form",
    {
      class: "card",
      onsubmit: (event) => {
        event.preventDefault();
        replace(said, h("p", {}, say("loading")));
        server.fetchCampaign(name, file.value.trim()).then(
          (made) =>
            replace(
              said,
              h("p", {}, h("a", { href: `#/maps/${encodeURIComponent(made.file)}` }, say("lookAt"))),
              sameAs(made.same_as),
            ),
          (error: unknown) => replace(said, problem(error)),
        );
      },
    },
    field(say("output"), file),
    h("button", { type: "submit" }, say("fetch")),
    said,
  );
}
