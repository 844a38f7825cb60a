/** The page: the map, and beside it what it shows, what a cell says, questions, and how people are protected. */

import { LAYERS, type Layer, Palette } from "../map/colours.js";
import { MapCells } from "../map/cells.js";
import { NONE } from "../map/raster.js";
import { groundSide, type Projection, projectionOf } from "../map/sheet.js";
import type { PagePayload } from "../payload/release.js";
import { CATALOGUE, LANGUAGES } from "../words/catalogue.js";
import { plainWords } from "../words/privacy.js";
import { decimals, Words } from "../words/words.js";
import { AskPanel, type Asker } from "./ask_panel.js";
import { DARK, LIGHT, type Point } from "./decorations.js";
import { button, checkbox, choice, make } from "./elements.js";
import { Gestures } from "./gestures.js";
import { legend } from "./legend.js";
import { type Link, readLink, type Theme, THEMES, writeLink } from "./link.js";
import { MapCanvas, type Paint } from "./map_canvas.js";

interface State {
  layer: Layer;
  beside: Layer | null;
  hatch: boolean;
  theme: Theme;
}

const QUIET = 350; // milliseconds until what a keyboard points at is read out

/** Shows a release in an element; resolves when the map stands there. */
export async function showPage(payload: PagePayload, into: HTMLElement, asker: Asker | null): Promise<void> {
  const projection = projectionOf(payload.plane);
  const cells = await MapCells.of(payload, projection);
  new Page(payload, projection, cells, into, asker);
}

class Page {
  private words: Words;
  private readonly state: State;
  private readonly map: MapCanvas;
  private readonly gestures: Gestures;
  private readonly ask: AskPanel | null;
  private readonly stage = make("div", { class: "stage" });
  private readonly panel = make("div", { class: "panel" });
  private readonly facts = make("div", { class: "facts" });
  private readonly aloud = make("p", { class: "unseen", "aria-live": "polite" });
  private readonly scale = make("div", { class: "scale" });
  private readonly night = window.matchMedia("(prefers-color-scheme: dark)");
  private readonly hatched: Uint8Array;
  private quiet: ReturnType<typeof setTimeout> | undefined;
  private write: ReturnType<typeof setTimeout> | undefined;
  private shown = NONE;

  constructor(private readonly payload: PagePayload, private readonly projection: Projection,
    private readonly cells: MapCells, private readonly into: HTMLElement, asker: Asker | null) {
    const link = readLink(window.location.hash);
    this.words = new Words(link.language ?? Words.preferred(navigator.languages));
    this.state = { layer: link.layer ?? "density", beside: link.beside, hatch: link.hatch ?? true, theme: link.theme ?? "auto" };
    this.hatched = cells.uncertain();
    this.map = new MapCanvas(cells.shapes, projection, payload.base, this.ink, this.paints(), cells.shapes.extent);
    this.gestures = new Gestures(this.map, {
      pointed: (at) => this.point(at),
      middle: () => this.middle(),
      drawn: (corners, whole) => this.drawn(corners, whole),
      cancelled: () => this.drawn([], false),
    });
    this.ask = asker && new AskPanel(asker, projection, payload, {
      draw: (mode) => {
        this.gestures.draw(mode);
        this.map.element.focus();
      },
      show: (corners) => this.drawn(corners, false),
      seen: () => this.map.seen,
    });
    this.build();
    this.map.onMove = () => this.moved();
    this.night.addEventListener("change", () => this.recolour());
    window.addEventListener("hashchange", () => this.follow(readLink(window.location.hash)));
    this.follow(link);
    this.map.repaint();
    this.moved();
  }

  private get dark(): boolean {
    return this.state.theme === "dark" || (this.state.theme === "auto" && this.night.matches);
  }

  private get ink() {
    return this.dark ? DARK : LIGHT;
  }

  private get palette(): Palette {
    return new Palette(this.payload.colours, this.dark);
  }

  private paints(): Paint[] {
    const { layer, beside, hatch } = this.state;
    return [layer, ...(beside ? [beside] : [])].map((each) => ({
      colours: this.cells.colours(each, this.palette),
      hatched: hatch && each !== "certainty" ? this.hatched : null,
    }));
  }

  /** Everything with words in it, anew. */
  private build(): void {
    const { words, payload } = this;
    document.documentElement.lang = words.language;
    document.documentElement.dataset["theme"] = this.state.theme;
    this.panel.replaceChildren(
      this.layers(), this.cellSection(), this.ask?.element(words) ?? "", this.largest(), this.whole(), this.settings());
    const { map, stage } = this;
    map.element.tabIndex = 0;
    map.element.setAttribute("role", "application");
    map.element.setAttribute("aria-label", `${words.say("map")}: ${payload.title}`);
    map.element.setAttribute("aria-describedby", "map-help");
    const zoom = make("div", { class: "zoom" },
      button("+", () => this.map.zoom(1.5), { "aria-label": words.say("zoomIn"), title: words.say("zoomIn") }),
      button("−", () => this.map.zoom(1 / 1.5), { "aria-label": words.say("zoomOut"), title: words.say("zoomOut") }),
      button("⤢", () => this.map.fit(), { "aria-label": words.say("showAll"), title: words.say("showAll") }));
    stage.replaceChildren(map.element, zoom, this.scale, ...this.divider(),
      make("p", { class: "unseen", id: "map-help" }, words.say("mapHelp")), this.aloud);
    const privacy = this.privacy();
    this.into.replaceChildren(
      make("header", {},
        make("div", {}, make("h1", {}, payload.title), make("p", { class: "line" }, payload.line)),
        button(words.say(window.innerWidth < 600 ? "privacyShort" : "privacy"), () => privacy.showModal(),
          { class: "privacy", "aria-haspopup": "dialog" })),
      make("main", {}, stage, make("section", { class: "side", "aria-label": words.say("details"), tabindex: "0" }, this.panel)),
      privacy);
    this.tell(this.shown);
  }

  private layers(): HTMLElement {
    const { words, state } = this;
    const radios = LAYERS.map((layer) => {
      const input = make("input", { type: "radio", name: "layer", value: layer, checked: layer === state.layer });
      input.addEventListener("change", () => {
        state.layer = layer;
        if (state.beside === layer) state.beside = LAYERS.find((other) => other !== layer)!;
        this.rebuilt(`input[value="${layer}"]`);
      });
      return make("label", { class: "layer" }, input, make("span", {}, words.say(layer)));
    });
    const others = LAYERS.filter((each) => each !== state.layer);
    return make("section", {},
      make("fieldset", {}, make("legend", {}, words.say("layers")), make("div", { class: "layers" }, ...radios)),
      legend(this.payload, state.layer, this.palette, words),
      state.beside ? legend(this.payload, state.beside, this.palette, words) : null,
      state.hatch ? make("p", { class: "hatched" }, make("span", { class: "swatch", "aria-hidden": "true" }), words.say("hatched")) : null,
      checkbox(words.say("hatch"), state.hatch, (hatch) => {
        state.hatch = hatch;
        this.rebuilt(".check input");
      }),
      checkbox(words.say("compare"), state.beside !== null, (beside) => {
        state.beside = beside ? (state.layer === "certainty" ? "density" : "certainty") : null;
        this.rebuilt(".check:nth-of-type(2) input");
      }),
      state.beside ? choice(words.say("compareWith"), others.map((each) => [each, words.say(each)]), state.beside, (value) => {
        state.beside = value as Layer;
        this.rebuilt(".side .choice select");
      }) : null);
  }

  private cellSection(): HTMLElement {
    return make("section", {}, make("h2", {}, this.words.say("cell")), this.facts);
  }

  private whole(): HTMLElement {
    const { words, payload } = this, counted = words.counted(payload.counted);
    return make("section", { class: "whole" },
      make("p", {}, words.say("total", { ...words.interval(payload.total), counted })),
      payload.nowhere
        ? make("p", {}, words.say("nowhere", { ...words.interval(payload.nowhere), counted }))
        : make("p", { lang: "en" }, payload.said),
      payload.base ? make("p", { class: "source" }, words.say("source", { source: payload.base.source })) : null);
  }

  private largest(): HTMLElement {
    const { words, cells, payload } = this;
    const list = make("ol");
    const counted = words.counted(payload.counted);
    for (const found of payload.densest) {
      const text = words.say("answer", { ...words.interval(found), counted });
      list.append(make("li", {}, button(text, () => this.goTo(cells.partOf(found.cell)), { title: words.say("goTo") })));
    }
    return make("details", {}, make("summary", {}, words.say("largest")), make("p", { class: "hint" }, words.say("largestHint")), list);
  }

  private settings(): HTMLElement {
    const { words, state } = this;
    const said = make("p", { "aria-live": "polite", class: "hint" });
    const names = { auto: "themeAuto", light: "themeLight", dark: "themeDark" } as const;
    return make("section", { class: "settings", "aria-label": words.say("settings") },
      choice(words.say("language"), LANGUAGES.map((each) => [each, CATALOGUE[each].languageName]), words.language, (value) => {
        this.words = new Words(value as Words["language"]);
        this.rebuilt(".settings .choice:nth-of-type(1) select");
      }),
      choice(words.say("appearance"), THEMES.map((each) => [each, words.say(names[each])]), state.theme, (value) => {
        state.theme = value as Theme;
        this.rebuilt(".settings .choice:nth-of-type(2) select");
      }),
      button(words.say("copyLink"), () => {
        this.address();
        const copied = navigator.clipboard?.writeText(window.location.href) ?? Promise.reject(new Error("no clipboard"));
        copied.then(() => said.replaceChildren(words.say("linkCopied")), () => said.replaceChildren(words.say("linkFailed")));
      }),
      button(words.say("print"), () => window.print()), said);
  }

  private privacy(): HTMLDialogElement {
    const { words, payload } = this;
    const dialog = make("dialog", { "aria-labelledby": "privacy-title" },
      make("h2", { id: "privacy-title" }, words.say("privacy")),
      ...plainWords(payload, words).map((sentence) => make("p", {}, sentence)),
      make("details", {}, make("summary", {}, words.say("wholeStatement")),
        make("pre", { lang: "en", tabindex: "0" }, payload.text)),
      make("form", { method: "dialog" }, make("button", {}, words.say("close"))));
    return dialog;
  }

  /** The line between two layers, to be dragged or moved by keys. */
  private divider(): HTMLElement[] {
    if (!this.state.beside) return [];
    const line = make("input", { type: "range", class: "divider", min: "0", max: "100", step: "0.5", "aria-label": this.words.say("divider") });
    line.value = String(100 * this.map.divider);
    line.addEventListener("input", () => {
      this.map.divider = Number(line.value) / 100;
      this.map.draw();
    });
    return [line];
  }

  private rebuilt(focus: string): void {
    this.build();
    this.recolour();
    this.into.querySelector<HTMLElement>(focus)?.focus();
    this.address();
  }

  private recolour(): void {
    this.map.paint(this.paints(), this.ink);
  }

  private point(at: Point | null): void {
    if (at !== null) this.tell(this.map.partAt(at));
  }

  /** What is in the middle, on the panel at once and read out when the map stands still. */
  private middle(): void {
    clearTimeout(this.quiet);
    this.quiet = setTimeout(() => {
      this.tell(this.map.partAt([this.map.width / 2, this.map.height / 2]));
      this.aloud.textContent = [...this.facts.querySelectorAll("p")].map((each) => each.textContent).join(" ");
    }, QUIET);
  }

  private tell(part: number): void {
    const { words, payload, cells } = this;
    this.shown = part;
    if (part === NONE) {
      this.facts.replaceChildren(make("p", { class: "hint" }, words.say("hoverHint")));
      return;
    }
    const facts = cells.facts(part), counted = words.counted(payload.counted);
    const noise = words.interval({ ...facts, value: facts.unbiased });
    const count = Math.max(facts.count, 0);
    const parts = { ...noise, counted, unit: payload.unit, count: words.number(count, decimals(facts.stddev)),
      density: words.number(facts.density, decimals(facts.stddev / facts.area)),
      ...words.ends(Math.max(facts.low, 0), Math.max(facts.high, 0), facts.stddev < 1 ? decimals(facts.stddev) : 0) };
    this.facts.replaceChildren(
      make("p", { class: "best" }, words.say("cellSentence", parts)),
      this.bar(facts.low, facts.high, count),
      make("p", {}, words.say("cellInterval", parts)),
      facts.relative > 1 ? make("p", { class: "warning" }, words.say("cellUncertain")) : "",
      make("p", { class: "hint" }, words.say("cellNoise", parts), " ",
        words.say("cellName", { name: facts.name, area: words.short(facts.area), unit: payload.unit })));
  }

  /** An interval as a line, the best guess as a point on it. */
  private bar(low: number, high: number, count: number): HTMLElement {
    const least = Math.min(low, 0), most = Math.max(high, count, 1e-9);
    const place = (value: number) => `${(100 * (value - least)) / (most - least)}%`;
    const span = make("span", { class: "span" }), dot = make("span", { class: "dot" }), zero = make("span", { class: "zero" });
    span.style.left = place(low);
    span.style.width = `${(100 * (high - low)) / (most - least)}%`;
    dot.style.left = place(count);
    zero.style.left = place(0);
    return make("div", { class: "interval", "aria-hidden": "true" }, zero, span, dot);
  }

  private goTo(part: number): void {
    const { shapes } = this.cells;
    const side = Math.max(shapes.east[part]! - shapes.west[part]!, shapes.south[part]! - shapes.north[part]!);
    const scale = Math.max(this.map.view.scale, 60 / side);
    this.map.look({ x: (shapes.west[part]! + shapes.east[part]!) / 2, y: (shapes.north[part]! + shapes.south[part]!) / 2, scale });
    this.tell(part);
  }

  private drawn(corners: readonly Point[], whole: boolean): void {
    this.map.region = corners;
    this.map.draw();
    if (whole) this.ask?.answer(corners);
  }

  private follow(link: Link): void {
    if (link.middle && link.zoom !== null) {
      const [lon, lat] = link.middle;
      this.map.look({ x: this.projection.x(lon), y: this.projection.y(lat), scale: 256 * 2 ** link.zoom });
    }
  }

  private moved(): void {
    const side = groundSide(this.projection, this.map.view.y) / this.map.view.scale; // of a pixel
    const most = side * 140, power = 10 ** Math.floor(Math.log10(most));
    const length = [5, 2, 1].map((digit) => digit * power).find((each) => each <= most)!;
    const unit = this.projection.plane?.unit ?? "m";
    const text = unit === "m" && length >= 1000 ? `${this.words.short(length / 1000)} km` : `${this.words.short(length)} ${unit}`;
    this.scale.replaceChildren(text);
    this.scale.style.width = `${length / side}px`;
    clearTimeout(this.write);
    this.write = setTimeout(() => this.address(), 300);
  }

  /** Write what is seen into the page's address, where the browser lets it. */
  private address(): void {
    const { view } = this.map, { layer, beside, hatch, theme } = this.state;
    const link: Link = {
      middle: [this.projection.lon(view.x), this.projection.lat(view.y)], zoom: Math.log2(view.scale / 256),
      layer, beside, language: this.words.language, theme, hatch,
    };
    try {
      window.history.replaceState(null, "", writeLink(link));
    } catch {
      // a frame without an address of its own
    }
  }
}
