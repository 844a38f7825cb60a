import { say } from "../catalogue/languages.ts";
import { h, replace } from "../elements.ts";
import { server, type Run } from "../server.ts";
import { problem } from "./problem.ts";

const EVERY = 400;

/** A run until it is over: what it does now, then where its map is. */
export function follow(first: Run): HTMLElement {
  const heading = h("h2", { tabindex: -1 }, say("running"));
  const bar = h("progress", { max: 1, "aria-label": say("progress") });
  const said = h("p", { role: "status" });
  const body = h("div", {}, bar, said, h("p", {}, say("leaving")));
  const card = h("section", { class: "card" }, heading, body);
  let told = "";

  function show(run: Run): void {
    const percent = run.part === null ? null : Math.round(100 * run.part);
    if (percent === null) bar.removeAttribute("value");
    else bar.value = percent / 100;
    const step = percent === null ? "" : String(Math.floor(percent / 25) * 25);
    const words = step === "" ? say("doing", { what: run.doing }) : say("doingPart", { what: run.doing, percent: step });
    if (words !== told) {
      told = words;
      replace(said, words);
    }
  }

  function over(run: Run): void {
    const warnings = run.warnings.map((line) => h("p", { class: "problem", lang: "en" }, line));
    if (run.state === "failed") {
      replace(heading, say("failed"));
      replace(body, problem(new Error(run.error?.message)), ...warnings,
        h("p", {}, h("a", { href: "#/ledger" }, say("ledger"))));
      return;
    }
    const file = run.file ?? "";
    const words = run.left ? say("doneLeft", { file, left: run.left }) : say("done", { file });
    replace(heading, words);
    replace(
      body, h("p", { role: "status", lang: "en" }, run.line ?? ""), ...warnings,
      h("p", { class: "line" },
        h("a", { class: "main", href: `#/maps/${encodeURIComponent(file)}` }, say("lookAt")),
        h("a", { href: `#/release/${Date.now()}` }, say("another"))),
    );
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

  queueMicrotask(() => look(first).catch((error: unknown) => replace(body, problem(error))));
  return card;
}
