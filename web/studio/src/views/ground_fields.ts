import { field, h, select } from "../../../shared/src/elements.js";
import { say } from "../catalogue/languages.js";
import type { Order } from "../server.js";

const SIDES = ["west", "south", "east", "north"] as const;
const SQUARES = "quadtree",
  HEXAGONS = "h3",
  DISTRICTS = "districts";

/** Where a map is, in which cells, and what one person can bring to it. `ofTable` is what only tables have. */
export class GroundFields {
  readonly element: HTMLElement;
  readonly bounding: HTMLSelectElement;
  private readonly method = h("input", { name: "method", placeholder: "auto", autocomplete: "off" });
  private readonly box = SIDES.map((name) =>
    h("input", {
      type: "number",
      name,
      step: "any",
      inputmode: "decimal",
      autocomplete: "off",
    }),
  );
  private readonly cells: HTMLSelectElement;
  private readonly coarsest = select("coarsest", levels(0, 15), "7");
  private readonly finest = select("finest", [["", say("asSensible")], ...levels(1, 20)]);
  private readonly districts = h("input", {
    name: "districts",
    autocomplete: "off",
    placeholder: "a.geojson,b.geojson",
  });
  private readonly ofCounts: HTMLElement;
  private values = false;

  constructor(ofTable: boolean, boxHelp: string, changed: () => void) {
    this.cells = select(
      "cells",
      [
        [SQUARES, say("squares")],
        [HEXAGONS, say("hexagons")],
        ...(ofTable ? [[DISTRICTS, say("districts")] as const] : []),
      ],
      SQUARES,
    );
    this.bounding = select("bounding", [
      ["", say("oneRow")],
      ["one vote", say("oneVote")],
      ...[5, 10, 50].map((count) => [`rows:${count}`, say("rowsOf", { count })] as const),
      ...[5, 10].map((count) => [`cells:${count}`, say("cellsOf", { count })] as const),
      ...(ofTable ? [["rows are people", say("rowsArePeople")] as const] : []),
    ]);
    for (const each of [...this.box, this.coarsest, this.finest, this.bounding, this.method, this.districts]) {
      each.addEventListener("input", changed);
    }
    this.cells.addEventListener("input", () => {
      this.fit();
      changed();
    });
    this.ofCounts = h(
      "div",
      {},
      h("div", { class: "fields" }, field(say("bounding"), this.bounding)),
      h("details", {}, h("summary", {}, say("more")), field(say("method"), this.method, say("methodHelp"))),
    );
    this.element = h(
      "div",
      {},
      h(
        "fieldset",
        {},
        h("legend", {}, say("box")),
        h("div", { class: "fields" }, ...SIDES.map((name, at) => field(say(name), this.box[at]!))),
        h("small", {}, boxHelp),
      ),
      h(
        "div",
        { class: "fields" },
        field(say("cells"), this.cells),
        field(say("coarsest"), this.coarsest),
        field(say("finest"), this.finest),
        field(say("districtFiles"), this.districts, say("districtFilesHelp")),
      ),
      this.ofCounts,
    );
    this.fit();
  }

  /** Have statistics of a value told here, or counts: a value has cells of one size, and its own bounding. */
  tell(values: boolean): void {
    this.values = values;
    this.ofCounts.hidden = values;
    this.cells.value = values ? HEXAGONS : SQUARES;
    this.finest.value = "";
    this.fit();
  }

  /** Names of a specification; what is left blank is empty. */
  order(): Order {
    const sides = this.box.map((side) => side.value.trim());
    const where = { box: sides.every((side) => side !== "") ? sides.join(",") : "", cells: this.chosenCells() };
    return this.values ? where : { bounding: this.bounding.value, method: this.method.value.trim(), ...where };
  }

  private chosenCells(): string {
    const finest = this.finest.value;
    if (this.cells.value === DISTRICTS) return `districts:${this.districts.value.trim()}`;
    if (this.cells.value === SQUARES) return finest === "" ? "" : `quadtree:${finest}`;
    return this.values ? `h3:${finest}` : `h3:${this.coarsest.value}-${finest}`;
  }

  private fit(): void {
    const hexagons = this.cells.value === HEXAGONS,
      districts = this.cells.value === DISTRICTS;
    show(this.coarsest, hexagons && !this.values);
    show(this.finest, !districts);
    show(this.districts, districts);
    if (this.values && this.finest.value === "") this.finest.value = "7";
    if (hexagons && (this.finest.value === "" || Number(this.finest.value) > 15)) this.finest.value = "10";
    if (!hexagons && !this.values) this.finest.value = "";
  }
}

function show(control: HTMLElement, shown: boolean): void {
  control.closest(".field")?.toggleAttribute("hidden", !shown);
}

function levels(from: number, to: number): (readonly [string, string])[] {
  return Array.from({ length: to - from + 1 }, (_, at) => [String(from + at), String(from + at)] as const);
}
