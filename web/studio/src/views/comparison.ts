import { field, h, replace } from "../../../shared/src/elements.js";
import { number, say } from "../catalogue/languages.js";
import { type Run, type SameAs, server } from "../server.js";
import { hoverChart } from "./hover_chart.js";
import { problem, toldOf } from "./problem.js";
import { stopper } from "./run.js";
import { sameAs } from "./same_as.js";

const EVERY = 600;

/** Methods side by side on maps whose truth is known, also on somebody's own; figures whose points say their numbers. */
export function comparison(): HTMLElement {
  const shown = h("div", {});
  const running = h("div", {});
  const maps = h("fieldset", { class: "choices" }),
    methods = h("fieldset", { class: "choices" });
  const own: string[] = [];
  const owned = h("ul", { class: "told" });
  const said = h("div", { "aria-live": "polite" });
  const epsilons = h("input", { name: "epsilons", value: "0.1, 0.5", autocomplete: "off" });
  const repetitions = h("input", { name: "repetitions", type: "number", min: 1, max: 20, value: "3" });
  const folder = h("input", { name: "folder", value: "comparison", autocomplete: "off" });
  const file = h("input", { type: "file", name: "own" });
  const drop = h(
    "div",
    {
      class: "drop",
      ondragover: (event) => event.preventDefault(),
      ondrop: (event) => {
        event.preventDefault();
        for (const each of (event as DragEvent).dataTransfer?.files ?? []) void keep(each);
      },
    },
    field(say("ownMap"), file, say("ownMapHelp")),
    owned,
    said,
  );
  file.addEventListener("change", () => {
    for (const each of file.files ?? []) void keep(each);
    file.value = "";
  });

  async function keep(each: File): Promise<void> {
    replace(said, h("p", {}, say("loading")));
    try {
      const made = await server.ownMap(each);
      own.push(made.file);
      owned.append(h("li", {}, say("ownMapIs", { file: made.file, people: number(made.people) })));
      replace(said);
    } catch (error) {
      replace(said, problem(error));
    }
  }

  server.comparisons().then(
    (known) => {
      replace(
        maps,
        h("legend", {}, say("mapsKnown")),
        ...known.maps.map((each) => choice("map", each.name, each.name === "city", each.what)),
      );
      replace(
        methods,
        h("legend", {}, say("methods")),
        ...known.methods.map((each) => choice("method", each, ["auto", "AG", "UG"].includes(each))),
      );
    },
    (error: unknown) => replace(shown, problem(error)),
  );

  async function show(name: string): Promise<void> {
    const found = await server.figuresOf(name);
    replace(
      shown,
      h(
        "section",
        { "aria-labelledby": "figures" },
        h("h2", { id: "figures", tabindex: -1 }, say("resultsIn", { folder: found.folder })),
        h(
          "div",
          { class: "charts" },
          ...found.maps.flatMap((each) => each.scores.map((chart) => hoverChart(chart, each.map))),
        ),
      ),
    );
    shown.querySelector<HTMLElement>("h2")?.focus();
  }

  async function follow(first: Run & { same_as: SameAs }, name: string): Promise<void> {
    const bar = h("progress", { max: 1, "aria-label": say("progress") });
    replace(
      running,
      h(
        "section",
        { class: "card" },
        h("p", { role: "status" }, say("comparing")),
        bar,
        stopper(first, "stoppedComparison"),
        sameAs(first.same_as),
      ),
    );
    let now: Run = first;
    while (now.state === "running") {
      if (now.part !== null) bar.value = now.part;
      await new Promise((done) => setTimeout(done, EVERY));
      if (!running.isConnected) return;
      now = await server.run(now.run);
    }
    replace(
      running,
      sameAs(first.same_as),
      now.state === "failed" && now.error ? toldOf(now.error) : null,
      now.state === "stopped"
        ? h("p", { role: "alert", class: "problem" }, `${say("stopped")} ${say("stoppedComparison")}`)
        : null,
      ...(now.failures ?? []).map((each) => problem(new Error(each))),
    );
    if (now.state === "done") await show(name);
  }

  const chosen = (name: string): string[] =>
    [...form.querySelectorAll<HTMLInputElement>(`input[name="${name}"]:checked`)].map((each) => each.value);
  const form = h(
    "form",
    {
      novalidate: true,
      onsubmit: (event) => {
        event.preventDefault();
        const name = folder.value.trim();
        replace(shown);
        server
          .compareMethods({
            folder: name,
            maps: chosen("map"),
            own,
            methods: chosen("method"),
            epsilons: epsilons.value.split(",").map((each) => each.trim()),
            repetitions: Number(repetitions.value),
          })
          .then((run) => follow(run, name))
          .catch((error: unknown) => replace(running, problem(error)));
      },
    },
    h("p", {}, say("compareWhy")),
    h("section", { class: "card" }, maps, drop),
    h("section", { class: "card" }, methods),
    h(
      "section",
      { class: "card" },
      h(
        "div",
        { class: "fields" },
        field(say("epsilons"), epsilons),
        field(say("repetitions"), repetitions),
        field(say("resultsFolder"), folder, say("resultsFolderHelp")),
      ),
    ),
    h("button", { type: "submit", class: "main" }, say("measure")),
    h(
      "button",
      {
        type: "button",
        class: "quiet",
        onclick: () => {
          show(folder.value.trim()).catch((error: unknown) => replace(shown, problem(error)));
        },
      },
      say("showResults"),
    ),
  );
  return h("div", {}, h("h1", { tabindex: -1 }, say("comparison")), form, running, shown);
}

function choice(name: string, value: string, checked: boolean, title = ""): HTMLElement {
  return h(
    "label",
    { class: "choice", title: title || null, lang: "en" },
    h("input", { type: "checkbox", name, value, checked }),
    " ",
    value,
  );
}
