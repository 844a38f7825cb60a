import { type Child, h, replace, tableOf } from "../../../shared/src/elements.js";
import { number, say } from "../catalogue/languages.js";
import { type Campaigns, type Health, server } from "../server.js";
import { inEnglish, partlyEnglish } from "./in_english.js";
import { problem } from "./problem.js";
import { sameAs } from "./same_as.js";
import { stateOf } from "./states.js";

/** Every campaign of the coordinator, its devices, and the aggregators that were named. */
export function campaigns(): HTMLElement {
  const body = h("div", {}, h("p", {}, say("loading")));
  server.campaigns().then(
    (found) => replace(body, ...shown(found)),
    (error: unknown) => replace(body, problem(error)),
  );
  return h("div", {}, h("h1", { tabindex: -1 }, say("campaigns")), body);
}

function shown(found: Campaigns): Child[] {
  const rows = [...found.campaigns]
    .reverse()
    .map((each) => [
      h("a", { href: `#/campaigns/${encodeURIComponent(each.name)}` }, each.name),
      stateOf(each.state),
      each.created,
      each.ended ?? "",
      h("span", { lang: "en" }, each.reason),
    ]);
  const { enrolled, recent } = found.devices;
  return [
    h(
      "p",
      {},
      h("code", {}, found.server),
      " ",
      say("devicesHere", { enrolled: number(enrolled), recent: number(recent) }),
    ),
    h("p", { class: "line" }, h("a", { class: "main", href: "#/campaigns/new/order" }, say("newCampaign"))),
    rows.length === 0
      ? h("p", {}, say("noCampaigns"))
      : tableOf(say("campaigns"), [say("campaign"), say("state"), say("begun"), say("ended"), say("why")], rows),
    partlyEnglish(),
    sameAs(found.same_as),
    aggregators(),
    devices(),
  ];
}

function aggregators(): HTMLElement {
  const place = h("div", { hidden: true });
  server.aggregators().then(
    (found) => {
      if (found.length === 0) return;
      place.hidden = false;
      replace(
        place,
        h("h2", {}, say("aggregators")),
        tableOf(
          say("aggregatorsWhy"),
          [say("address"), say("health"), say("took")],
          found.map((each) => [
            each.url,
            h(
              "span",
              {},
              `${say(each.well ? "isWell" : "isIll")} ${say(each.sentence, each.words)} `,
              each.more === "" ? null : inEnglish(each.more),
            ),
            each.milliseconds === null ? "" : `${number(each.milliseconds)} ms`,
          ]),
        ),
        ...found.map(tasks),
        found.every((each) => each.tasks === null) ? h("p", {}, h("small", {}, say("numbersHow"))) : null,
      );
    },
    (error: unknown) => {
      place.hidden = false;
      replace(place, problem(error));
    },
  );
  return place;
}

/** What an aggregator counts of its tasks, where it was asked with its operator's token. */
function tasks(of: Health): HTMLElement | null {
  if (of.tasks === null) return null;
  if (of.tasks.length === 0) return h("p", {}, say("noTasks", { url: of.url }));
  return tableOf(
    say("tasksOf", { url: of.url }),
    [
      say("task"),
      say("reportsWaiting"),
      say("jobsOpen"),
      say("batches"),
      say("reportsCounted"),
      say("reportsRejected"),
    ],
    of.tasks.map((each) => [
      h("code", {}, each.task),
      ...[each.waiting, each.jobs, each.batches, each.counted, each.rejected].map((count) => number(count)),
    ]),
  );
}

/** The list of devices, which the server notes on its audit log: asked for when it is opened. */
function devices(): HTMLElement {
  const place = h("div", {});
  let asked = false;
  return h(
    "details",
    {
      ontoggle: () => {
        if (asked) return;
        asked = true;
        replace(place, h("p", {}, say("loading")));
        server.devices().then(
          (found) =>
            replace(
              place,
              tableOf(
                say("devices"),
                [say("device"), say("enrolledAt"), say("until"), say("heardOf")],
                found.devices.map((each) => [
                  each.device,
                  each.enrolled,
                  each.revoked === null ? (each.expires ?? say("untilAgain")) : say("revoked", { when: each.revoked }),
                  each.silent === null ? say("never") : say("secondsAgo", { seconds: number(each.silent) }),
                ]),
              ),
              sameAs(found.same_as),
            ),
          (error: unknown) => replace(place, problem(error)),
        );
      },
    },
    h("summary", {}, say("devices")),
    h("p", {}, say("devicesAudited")),
    place,
  );
}
