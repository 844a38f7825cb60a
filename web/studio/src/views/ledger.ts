import { type Child, h, replace, tableOf } from "../../../shared/src/elements.js";
import { say } from "../catalogue/languages.js";
import { type Ledger, server } from "../server.js";
import { inEnglish, partlyEnglish } from "./in_english.js";
import { problem } from "./problem.js";
import { follow, goingOn } from "./run.js";
import { sameAs } from "./same_as.js";

/** Every page of the ledger, every charge, and what can be recovered. */
export function ledger(): HTMLElement {
  const body = h("div", {}, h("p", {}, say("loading")));
  server.ledger().then(
    (found) => replace(body, ...shown(found)),
    (error: unknown) => replace(body, problem(error)),
  );
  return h("div", {}, h("h1", { tabindex: -1 }, say("ledger")), body);
}

function shown(found: Ledger): Child[] {
  const pages = found.pages.map((page) => [
    h("strong", {}, page.dataset),
    say(page.model === "full" ? "modelFull" : "modelValuesOnly"),
    page.said.protects === null ? say("none") : english(page.said.protects),
    page.said.cap ?? say("noCap"),
    page.said.spent ?? "",
    page.said.left ?? "",
    page.charges,
  ]);
  const charges = [...found.charges]
    .reverse()
    .map((charge) => [
      charge.charge,
      charge.time,
      charge.dataset,
      charge.said,
      english(charge.what),
      charge.file === null
        ? say("none")
        : charge.here
          ? h("a", { href: `#/maps/${encodeURIComponent(charge.file)}` }, charge.file)
          : charge.file,
    ]);
  const changes = [...found.changes]
    .reverse()
    .map((change) => [
      change.time,
      change.dataset,
      say(change.changed === "cap" ? "cap" : "protectsWhom"),
      change.said.old ?? say("none"),
      change.said.new,
      change.who,
      change.why ?? "",
    ]);
  return [
    h("p", {}, h("code", {}, found.ledger)),
    ...waiting(found),
    pages.length === 0
      ? h("p", {}, say("noPages"))
      : tableOf(
          say("pages"),
          [say("ofDataset"), say("model"), say("protectsWhom"), say("cap"), say("spent"), say("left"), say("charges")],
          pages,
        ),
    charges.length === 0
      ? null
      : tableOf(say("charges"), ["#", say("when"), say("ofDataset"), say("paid"), say("what"), say("file")], charges),
    changes.length === 0
      ? null
      : tableOf(
          say("changes"),
          [say("when"), say("ofDataset"), say("changed"), say("from"), say("to"), say("by"), say("why")],
          changes,
        ),
    partlyEnglish(),
    sameAs(found.same_as),
  ];
}

function english(words: string): HTMLElement {
  return h("span", { lang: "en" }, words);
}

function waiting(found: Ledger): HTMLElement[] {
  if (found.recoverable.length === 0) return [];
  const cards = found.recoverable.map((each) => {
    const place = h("div", {});
    const button = !each.possible
      ? null
      : each.rest !== null
        ? goingOn(each.charge, each.rest, (run) => replace(place, follow(run)))
        : h(
            "button",
            {
              type: "button",
              onclick: () => {
                server.recover(each.charge).then(
                  (run) => replace(place, follow(run)),
                  (error: unknown) => replace(place, problem(error)),
                );
              },
            },
            say("recover", { charge: each.charge }),
          );
    const price = !each.possible
      ? say("recoverElsewhere")
      : each.rest !== null
        ? say("goOnWhy", { rest: each.rest })
        : say(each.free ? "recoverFree" : "recoverPerhaps");
    replace(place, button);
    return h(
      "li",
      {},
      h("p", {}, `${each.dataset}, ${each.price}: `, inEnglish(`${each.what}; ${each.state}`)),
      h("p", {}, price),
      place,
      sameAs(each.same_as),
    );
  });
  return [
    h(
      "section",
      { class: "card", "aria-labelledby": "recoverable" },
      h("h2", { id: "recoverable" }, say("recoverable")),
      h("p", {}, say("recoverableWhy")),
      h("ul", {}, ...cards),
    ),
  ];
}
