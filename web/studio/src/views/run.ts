import { h, replace } from "../../../shared/src/elements.js";
import { say } from "../catalogue/languages.js";
import { type Run, server } from "../server.js";
import { confirmed } from "./confirmed.js";
import { inEnglish } from "./in_english.js";
import { problem, toldOf } from "./problem.js";
import { doingOf } from "./states.js";

const EVERY = 400;

/** A run until it is over: what it does now, a button that stops it, then where its map is. */
export function follow(first: Run): HTMLElement {
  const heading = h("h2", { tabindex: -1 }, say("running"));
  const bar = h("progress", { max: 1, "aria-label": say("progress") });
  const said = h("p", { role: "status" });
  const stop = stopper(first, "stopRunWhy");
  const body = h("div", {}, bar, said, h("p", {}, say("leaving")), stop);
  const card = h("section", { class: "card" }, heading, body);
  let told = "";

  function show(run: Run): void {
    const percent = run.part === null ? null : Math.round(100 * run.part);
    if (percent === null) bar.removeAttribute("value");
    else bar.value = percent / 100;
    const step = percent === null ? "" : String(Math.floor(percent / 25) * 25),
      what = doingOf(run.doing);
    const words = step === "" ? say("doing", { what }) : say("doingPart", { what, percent: step });
    if (words !== told) {
      told = words;
      replace(said, words);
    }
  }

  function over(run: Run): void {
    const warnings = run.warnings.map((line) => h("p", { class: "problem" }, inEnglish(line)));
    const links = h(
      "p",
      { class: "line" },
      h("a", { href: "#/ledger" }, say("ledger")),
      h("a", { href: `#/release/${Date.now()}` }, say("another")),
    );
    if (run.state === "done") {
      const file = run.file ?? "";
      replace(heading, run.left ? say("doneLeft", { file, left: run.left }) : say("done", { file }));
      replace(
        body,
        h("p", { role: "status" }, inEnglish(run.line ?? "")),
        ...warnings,
        h(
          "p",
          { class: "line" },
          h("a", { class: "main", href: `#/maps/${encodeURIComponent(file)}` }, say("lookAt")),
          h("a", { href: `#/release/${Date.now()}` }, say("another")),
        ),
      );
    } else if (run.state === "looked") {
      replace(heading, say("endedAfterLookShort"));
      const place = h(
        "div",
        {},
        goingOn(run.charge!, run.rest!, (next) => replace(card, follow(next))),
      );
      replace(body, run.error && toldOf(run.error), ...warnings, place, links);
    } else {
      const stopped = run.state === "stopped";
      replace(heading, say(stopped ? "stopped" : "failed"));
      replace(
        body,
        stopped
          ? h("p", { role: "alert", class: "problem" }, say(run.paid ? "stoppedPaid" : "stoppedFree"))
          : run.error && toldOf(run.error),
        ...warnings,
        links,
      );
    }
    heading.focus();
  }

  async function look(run: Run): Promise<void> {
    let now = run;
    while (now.state === "running") {
      show(now);
      await new Promise((done) => setTimeout(done, EVERY));
      if (!card.isConnected) return;
      now = await server.run(run.run);
    }
    over(now);
  }

  queueMicrotask(() =>
    look(first).catch((error: unknown) =>
      replace(body, problem(error), h("p", {}, say("lostRun"), " ", h("a", { href: "#/ledger" }, say("ledger")))),
    ),
  );
  return card;
}

/** A button that pays the rest after a look, once somebody has read what it costs; `then` gets the run that it begins. */
export function goingOn(charge: number, rest: string, then: (run: Run) => void): HTMLElement {
  return confirmed(say("goOn", { rest }), say("goOnWhy", { rest }), async () =>
    then(await server.recover(charge, true)),
  );
}

/** A button that stops a run, once somebody has read what that costs. */
export function stopper(run: Run, why: "stopRunWhy" | "stoppedComparison"): HTMLElement {
  const place = h("div", {});
  replace(
    place,
    confirmed(say("stop"), say(why), async () => {
      await server.stop(run.run);
      replace(place, h("p", { role: "status" }, say("stopping")));
    }),
  );
  return place;
}
