import { say } from "../catalogue/languages.ts";
import { field, h, select } from "../elements.ts";
import type { Order } from "../server.ts";

const SIDES = ["west", "south", "east", "north"] as const;

/** Where a map is, in which cells, and what one person can bring to it. */
export class GroundFields {
  readonly element: HTMLElement;
  readonly method = h("input", { name: "method", placeholder: "auto", autocomplete: "off" });
  readonly bounding: HTMLSelectElement;
  private readonly box = SIDES.map((name) => h("input", {
    type: "number", name, step: "any", inputmode: "decimal", autocomplete: "off",
  }));
  private readonly cells = select("cells", [["quadtree", say("squares")], ["h3", say("hexagons")]], "quadtree");
  private readonly coarsest = select("coarsest", levels(0, 15), "7");
  private readonly finest = select("finest", [["", say("asSensible")], ...levels(1, 20)]);

  constructor(rowsMayBePeople: boolean, boxHelp: string, changed: () => void) {
    this.bounding = select("bounding", [
      ["", say("oneRow")], ["one vote", say("oneVote")],
      ...[5, 10, 50].map((count) => [`rows:${count}`, say("rowsOf", { count })] as const),
      ...[5, 10].map((count) => [`cells:${count}`, say("cellsOf", { count })] as const),
      ...(rowsMayBePeople ? [["rows are people", say("rowsArePeople")] as const] : []),
    ]);
    for (const each of [...this.box, this.coarsest, this.finest, this.bounding, this.method]) {
      each.addEventListener("input", changed);
    }
    this.cells.addEventListener("input", () => {
      this.fitLevels();
      changed();
    });
    this.element = h(
      "div", {},
      h("fieldset", {}, h("legend", {}, say("box")), h("div", { class: "fields" },
        ...SIDES.map((name, at) => field(say(name), this.box[at]!))), h("small", {}, boxHelp)),
      h("div", { class: "fields" }, field(say("cells"), this.cells), field(say("coarsest"), this.coarsest),
        field(say("finest"), this.finest), field(say("bounding"), this.bounding)),
      h("details", {}, h("summary", {}, say("more")), field(say("method"), this.method, say("methodHelp"))),
    );
    this.fitLevels();
  }

  /** Names of a specification; what is left blank is empty. */
  order(): Order {
    const sides = this.box.map((side) => side.value.trim());
    const hexagons = this.cells.value === "h3", finest = this.finest.value;
    const squares = finest === "" ? "" : `quadtree:${finest}`;
    return {
      bounding: this.bounding.value, method: this.method.value.trim(),
      box: sides.every((side) => side !== "") ? sides.join(",") : "",
      cells: hexagons ? `h3:${this.coarsest.value}-${finest || "10"}` : squares,
    };
  }

  private fitLevels(): void {
    const hexagons = this.cells.value === "h3";
    this.coarsest.closest(".field")?.toggleAttribute("hidden", !hexagons);
    if (hexagons && (this.finest.value === "" || Number(this.finest.value) > 15)) this.finest.value = "10";
    if (!hexagons) this.finest.value = "";
  }
}

function levels(from: number, to: number): (readonly [string, string])[] {
  return Array.from({ length: to - from + 1 }, (_, at) => [String(from + at), String(from + at)] as const);
}
