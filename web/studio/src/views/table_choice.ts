import { h, replace, tableOf } from "../../../shared/src/elements.js";
import { number, say } from "../catalogue/languages.js";
import { type Entry, type Preview, server } from "../server.js";
import { problem } from "./problem.js";

/** Folders and files to choose a table from; then its columns and first rows. */
export class TableChoice {
  readonly element = h("div", {});
  private readonly list = h("div", {});
  private readonly shown = h("div", { "aria-live": "polite" });

  constructor(private readonly chose: (source: string, preview: Preview) => void) {
    this.element.append(this.list, this.shown);
  }

  async open(folder: string): Promise<void> {
    try {
      const found = await server.files(folder);
      const above = folder.includes("/") ? folder.slice(0, folder.lastIndexOf("/")) : "";
      const usable = found.entries.filter((entry) => entry.kind !== "release");
      const files = usable.filter((entry) => entry.kind === "table");
      replace(
        this.list,
        folder === ""
          ? null
          : h(
              "button",
              {
                type: "button",
                class: "entry",
                onclick: () => void this.open(above),
              },
              "↑ ",
              say("up", { folder: above || say("theFolder") }),
            ),
        usable.length === 0
          ? h("p", {}, say("emptyFolder"))
          : h("ul", { class: "entries" }, ...usable.map((entry) => h("li", {}, this.entry(folder, entry)))),
        folder !== "" && files.length > 1
          ? h(
              "button",
              {
                type: "button",
                class: "quiet",
                onclick: () => void this.choose(folder),
              },
              say("chooseThisFolder"),
            )
          : null,
      );
    } catch (error) {
      replace(this.list, problem(error));
    }
  }

  private entry(folder: string, entry: Entry): HTMLElement {
    const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
    const opens = entry.kind === "folder";
    return h(
      "button",
      {
        type: "button",
        class: "entry",
        title: say(opens ? "openFolder" : "chooseFile", { name: entry.name }),
        onclick: () => void (opens ? this.open(path) : this.choose(path)),
      },
      opens ? "▸ " : "",
      entry.name,
      opens ? "/" : h("small", {}, ` ${number(entry.size / 1024, 1)} KB`),
    );
  }

  private async choose(source: string): Promise<void> {
    replace(this.shown, h("p", {}, say("loading")));
    try {
      const preview = await server.table(source);
      replace(this.shown, ...this.preview(source, preview));
      this.chose(source, preview);
    } catch (error) {
      replace(this.shown, problem(error));
    }
  }

  private preview(source: string, preview: Preview): (HTMLElement | null)[] {
    const heads = preview.columns.map((column) => column.name);
    const facts = [
      preview.rows_in_all === null ? "" : say("rowsInAll", { rows: number(preview.rows_in_all) }),
      preview.more === 0 ? "" : say("moreColumns", { count: preview.more }),
    ]
      .filter((each) => each !== "")
      .join(", ");
    const columns = tableOf(preview.rows_shown ? say("firstRows") : say("rowsElsewhere"), heads, [
      preview.columns.map((column) => h("em", { translate: "no" }, column.kind)),
      ...preview.rows,
    ]);
    return [
      h("p", { class: "chosen" }, say("chosen", { name: source })),
      facts === "" ? null : h("p", {}, facts),
      columns,
    ];
  }
}
