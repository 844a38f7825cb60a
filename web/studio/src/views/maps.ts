import { field, h, replace, select } from "../../../shared/src/elements.js";
import { countedOf } from "../../../shared/src/estimand.js";
import { language, number, say } from "../catalogue/languages.js";
import { type Facts, server } from "../server.js";
import { inEnglish, partlyEnglish } from "./in_english.js";
import { problem } from "./problem.js";
import { sameAs } from "./same_as.js";

/** The maps of a folder, to choose one. */
export function maps(folder = ""): HTMLElement {
  const body = h("div", {}, h("p", {}, say("loading")));
  server
    .files(folder)
    .then((found) => {
      const entries = found.entries.filter((entry) => entry.kind !== "table");
      const rest =
        entries.length === 0
          ? h("p", {}, say("noMaps"))
          : h(
              "ul",
              { class: "entries" },
              ...entries.map((entry) => {
                const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
                const opens = entry.kind === "folder";
                return h(
                  "li",
                  {},
                  h(
                    "a",
                    {
                      class: "entry",
                      href: `#/${opens ? "folder" : "maps"}/${encodeURIComponent(path)}`,
                      title: say(opens ? "openFolder" : "openMap", { name: entry.name }),
                    },
                    opens ? `▸ ${entry.name}/` : entry.name,
                  ),
                );
              }),
            );
      const above = folder.includes("/") ? folder.slice(0, folder.lastIndexOf("/")) : "";
      replace(
        body,
        h("p", {}, say("chooseMap", { folder: folder || say("theFolder") })),
        folder === ""
          ? null
          : h(
              "a",
              { class: "entry", href: above === "" ? "#/maps" : `#/folder/${encodeURIComponent(above)}` },
              "↑ ",
              say("up", { folder: above || say("theFolder") }),
            ),
        rest,
      );
    })
    .catch((error: unknown) => replace(body, problem(error)));
  return h("div", {}, h("h1", { tabindex: -1 }, say("maps")), body);
}

/** One map: its page or its picture, what is said of it, files of it, another beside it. */
export function map(file: string): HTMLElement {
  const view = h("div", { class: "view" }, h("p", {}, say("loading")));
  const about = h("div", {});
  const two = h("div", {});
  server.map(file).then(
    (facts) => replace(about, ...said(file, facts, two)),
    (error: unknown) => {
      replace(about, problem(error));
    },
  );
  void show(file, view);
  return h(
    "div",
    {},
    h("h1", { tabindex: -1 }, file),
    h("div", { class: "columns wide" }, view, about),
    two,
    h("p", {}, h("a", { href: "#/maps" }, say("back"))),
  );
}

async function show(file: string, view: HTMLElement): Promise<void> {
  const place = h("div", {});
  let first = true;
  const page = async (): Promise<void> => {
    const url = await server.page(file);
    replace(
      place,
      h("iframe", {
        src: `${url}#language=${language()}`,
        sandbox: "allow-scripts",
        title: say("pageTitle", { name: file }),
      }),
    );
  };
  const picture = async (): Promise<void> => {
    const content = await server.picture(file);
    const image = h("img", { alt: say("pictureAlt", { name: file }) });
    image.src = URL.createObjectURL(content);
    image.addEventListener("load", () => URL.revokeObjectURL(image.src), { once: true });
    replace(place, image);
  };
  const choices = (
    [
      ["thePage", page],
      ["thePicture", picture],
    ] as const
  ).map(([name, make]) => {
    const button = h(
      "button",
      {
        type: "button",
        "aria-pressed": "false",
        class: "quiet",
        onclick: () => {
          choices.forEach((each) => each.setAttribute("aria-pressed", String(each === button)));
          replace(place, h("p", { role: "status" }, say("loading")));
          make()
            .catch((error: unknown) => {
              replace(place, problem(error));
              if (first) choices[1]?.click(); // a clone without the page of releases still has pictures
            })
            .finally(() => {
              first = false;
            });
        },
      },
      say(name),
    );
    return button;
  });
  replace(view, h("div", { class: "line" }, ...choices), place);
  choices[0]?.click();
}

function said(file: string, facts: Facts, two: HTMLElement): (HTMLElement | null)[] {
  const status = h("div", { "aria-live": "polite" });
  const save = h(
    "div",
    { class: "line" },
    ...facts.exports.map((ending) =>
      h(
        "button",
        {
          type: "button",
          class: "quiet",
          onclick: () => {
            replace(status, h("p", {}, say("saving", { name: ending })));
            server.save(file, ending).then(
              (made) => {
                const link = h("a", { href: made.url, download: made.name });
                link.click();
                replace(status, h("p", {}, say("saved", { name: made.name })), sameAs(made.same_as));
              },
              (error: unknown) => replace(status, problem(error)),
            );
          },
        },
        ending,
      ),
    ),
  );
  const other = select("other", []);
  const folder = file.includes("/") ? file.slice(0, file.lastIndexOf("/") + 1) : "";
  void server.files(folder.slice(0, -1)).then((found) => {
    const names = found.entries.filter((entry) => entry.kind === "release").map((entry) => folder + entry.name);
    replace(other, ...names.filter((name) => name !== file).map((name) => h("option", { value: name }, name)));
    compare.hidden = other.options.length === 0;
  });
  const compare = h(
    "form",
    {
      hidden: true,
      onsubmit: (event) => {
        event.preventDefault();
        void beside(file, other.value, two);
      },
    },
    field(say("compareWith"), other),
    h("button", { type: "submit" }, say("compare")),
  );
  const rows: [string, string | HTMLElement][] = [
    ...(facts.total === null ? [] : [[say("total"), totalOf(facts.total, facts.estimand)] as [string, string]]),
    [say("cellsNumber"), number(facts.cells)],
    ...(facts.outside === null ? [] : [[say("outside"), inEnglish(facts.outside)] as [string, HTMLElement]]),
    [say("protects"), inEnglish(facts.line)],
  ];
  return [
    h("dl", {}, ...rows.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
    h(
      "details",
      {},
      h("summary", {}, say("statement")),
      partlyEnglish(),
      h("pre", { lang: "en", class: "statement", tabindex: 0 }, facts.statement),
    ),
    h("h2", {}, say("exportAs")),
    save,
    status,
    compare,
    facts.same_as ? sameAs(facts.same_as) : null,
  ];
}

async function beside(first: string, second: string, two: HTMLElement): Promise<void> {
  replace(two, h("p", { role: "status" }, say("loading")));
  try {
    const found = await server.compare(first, second);
    const title = say("compared", { first, second });
    const lines = found.maps.map((facts, at) =>
      h(
        "li",
        {},
        `${found.files[at] ?? ""}: ${facts.total === null ? "" : totalOf(facts.total, facts.estimand)} `,
        inEnglish(facts.line),
      ),
    );
    replace(
      two,
      h(
        "section",
        { class: "card", "aria-labelledby": "compared" },
        h("h2", { id: "compared", tabindex: -1 }, title),
        h("img", { src: found.picture, alt: title }),
        h("ul", {}, ...lines),
        sameAs(found.same_as),
      ),
      changed(first, second),
    );
    two.querySelector<HTMLElement>("h2")?.focus();
  } catch (error) {
    replace(two, problem(error));
  }
}

/** What changed from one map to another, either way: a page with each cell's interval, hatched where noise explains it. */
function changed(first: string, second: string): HTMLElement {
  const place = h("div", { "aria-live": "polite" });
  const since = (before: string, after: string): HTMLElement =>
    h(
      "button",
      {
        type: "button",
        class: "quiet",
        onclick: () => {
          replace(place, h("p", {}, say("loading")));
          server.difference(before, after).then(
            (found) =>
              replace(
                place,
                h(
                  "p",
                  {},
                  say("changedCells", { changed: number(found.summary.changed), cells: number(found.summary.cells) }),
                ),
                h(
                  "div",
                  { class: "view" },
                  h("iframe", {
                    src: `${found.url}#language=${language()}`,
                    sandbox: "allow-scripts",
                    title: say("changedSince", { before, after }),
                  }),
                ),
                sameAs(found.same_as),
              ),
            (error: unknown) => replace(place, problem(error)),
          );
        },
      },
      say("changedSince", { before, after }),
    );
  return h(
    "section",
    { class: "card", "aria-labelledby": "changed" },
    h("h2", { id: "changed" }, say("whatChanged")),
    h("p", {}, say("whatChangedWhy")),
    h("div", { class: "line" }, since(first, second), since(second, first)),
    place,
  );
}

function totalOf({ best_guess, stddev, low, high }: NonNullable<Facts["total"]>, estimand: Facts["estimand"]): string {
  const digits = stddev > 0 ? Math.max(0, 1 - Math.floor(Math.log10(stddev))) : 0;
  const [said, least, most] = [best_guess, low, high].map((each) => number(each, digits)) as [string, string, string];
  return say("totalSaid", {
    value: said,
    counted: estimand === null ? "" : countedOf(estimand, language(), number),
    low: least,
    high: most,
  });
}
