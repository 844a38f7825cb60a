/** The page: the map, and beside it what it shows, what a cell says, questions, and how people are protected. */

import { h } from "../../../shared/src/elements.js";
import { LANGUAGES } from "../../../shared/src/texts.js";
import type { Slot, Subject } from "../kinds/subject.js";
import { subjectOf } from "../kinds/subject_of.js";
import { Palette } from "../map/colours.js";
import { NONE } from "../map/raster.js";
import { type Extent, groundSide, type Projection, projectionOf } from "../map/sheet.js";
import type { PagePayload } from "../payload/release.js";
import { CATALOGUE } from "../words/catalogue.js";
import { plainWords } from "../words/privacy.js";
import { Words } from "../words/words.js";
import { AskPanel } from "./ask_panel.js";
import type { Asker } from "./askers.js";
import { button, checkbox, choice } from "./controls.js";
import { DARK, LIGHT, type Point } from "./decorations.js";
import { Gestures } from "./gestures.js";
import { ALL, type Link, readLink, THEMES, type Theme, writeLink } from "./link.js";
import { MapCanvas, type Paint } from "./map_canvas.js";
import { TimeBar } from "./time_bar.js";

interface State {
  layer: string;
  beside: string | null;
  slot: Slot;
  hatch: boolean;
  theme: Theme;
}

const QUIET = 350; // milliseconds until what a keyboard points at is read out
const ABREAST = 3; // layers beside each other; more are a list

/** Shows a release in an element; resolves when the map stands there. */
export async function showPage(payload: PagePayload, into: HTMLElement, asker: Asker | null): Promise<void> {
  const projection = projectionOf(payload.plane);
  const subject = await subjectOf(payload, projection);
  new Page(payload, projection, subject, into, asker);
}

class Page {
  private words: Words;
  private readonly state: State;
  private readonly map: MapCanvas;
  private readonly gestures: Gestures;
  private readonly ask: AskPanel | null;
  private readonly time: TimeBar | null;
  private readonly stage = h("div", { class: "stage" });
  private readonly panel = h("div", { class: "panel" });
  private readonly legends = h("div");
  private readonly facts = h("div", { class: "facts" });
  private readonly whole = h("div");
  private readonly list = h("ol");
  private readonly aloud = h("p", { class: "unseen", "aria-live": "polite" });
  private readonly scale = h("div", { class: "scale" });
  private readonly night = window.matchMedia("(prefers-color-scheme: dark)");
  private quiet: ReturnType<typeof setTimeout> | undefined;
  private write: ReturnType<typeof setTimeout> | undefined;
  private shown = NONE;
  private paper = false; // while it is printed: always light

  constructor(
    private readonly payload: PagePayload,
    private readonly projection: Projection,
    private readonly subject: Subject,
    private readonly into: HTMLElement,
    asker: Asker | null,
  ) {
    const { shapes, layers, slots, together } = subject,
      link = readLink(window.location.hash, layers, slots);
    const first = slots.length && !together ? 0 : null;
    this.words = new Words(link.language ?? Words.preferred(navigator.languages));
    this.state = {
      layer: link.layer ?? layers[0]!,
      beside: link.beside,
      slot: this.slotOf(link.slot) ?? first,
      hatch: link.hatch ?? true,
      theme: link.theme ?? "auto",
    };
    this.time = slots.length
      ? new TimeBar(slots, together, this.state.slot, (slot, playing) => this.during(slot, playing))
      : null;
    this.map = new MapCanvas(
      shapes,
      projection,
      payload.base,
      this.ink,
      this.paints(),
      shapes.extent,
      this.first(shapes.extent),
      payload.outlines,
    );
    this.gestures = new Gestures(this.map, {
      pointed: (at) => this.point(at),
      middle: () => this.middle(),
      drawn: (corners, whole) => this.drawn(corners, whole),
      cancelled: () => this.drawn([], false),
    });
    this.ask =
      asker &&
      new AskPanel(asker, projection, {
        draw: (mode) => {
          this.gestures.draw(mode);
          this.map.element.focus();
        },
        show: (corners) => this.drawn(corners, false),
        seen: () => this.map.seen,
        slot: () => this.state.slot,
      });
    this.build();
    this.map.onMove = () => this.moved();
    this.map.element.addEventListener("keydown", (event) => this.timeKey(event));
    this.night.addEventListener("change", () => {
      this.recolour();
      this.refresh();
    });
    window.matchMedia("print").addEventListener("change", ({ matches }) => this.print(matches));
    window.addEventListener("beforeprint", () => this.print(true));
    window.addEventListener("afterprint", () => this.print(false));
    window.addEventListener("hashchange", () => this.follow(readLink(window.location.hash, layers, slots)));
    this.follow(link);
    this.map.repaint();
    this.moved();
  }

  private get dark(): boolean {
    return !this.paper && (this.state.theme === "dark" || (this.state.theme === "auto" && this.night.matches));
  }

  private get ink() {
    return this.dark ? DARK : LIGHT;
  }

  private get palette(): Palette {
    return new Palette(this.payload.colours, this.dark);
  }

  private paints(): Paint[] {
    const { layer, beside, slot, hatch } = this.state;
    return [layer, ...(beside ? [beside] : [])].map((each) => ({
      colours: this.subject.colours(each, slot, this.palette),
      hatched: hatch ? this.subject.hatched(each, slot) : null,
    }));
  }

  /** Everything with words in it, anew. */
  /** The part of the sheet that is shown at first. */
  private first(whole: Extent): Extent {
    const {
      payload: { box },
      projection,
    } = this;
    if (!box) return whole;
    const [[west, east], [one, two]] = [
      [projection.x(box[0]), projection.x(box[2])],
      [projection.y(box[1]), projection.y(box[3])],
    ];
    return { west, east, north: Math.min(one, two), south: Math.max(one, two) };
  }

  private build(): void {
    const { words, payload } = this;
    document.documentElement.lang = words.language;
    document.documentElement.dataset["theme"] = this.paper ? "light" : this.state.theme;
    this.panel.replaceChildren(
      this.layers(),
      this.cellSection(),
      this.ask?.element(words) ?? "",
      this.largest(),
      this.wholeSection(),
      this.settings(),
    );
    const { map, stage } = this;
    map.element.tabIndex = 0;
    map.element.setAttribute("role", "application");
    map.element.setAttribute("aria-label", `${words.say("map")}: ${payload.title}`);
    map.element.setAttribute("aria-describedby", "map-help");
    const zoom = h(
      "div",
      { class: "zoom" },
      button("+", () => this.map.zoom(1.5), { "aria-label": words.say("zoomIn"), title: words.say("zoomIn") }),
      button("−", () => this.map.zoom(1 / 1.5), { "aria-label": words.say("zoomOut"), title: words.say("zoomOut") }),
      button("⤢", () => this.map.fit(), { "aria-label": words.say("showAll"), title: words.say("showAll") }),
    );
    const help = words.say("mapHelp") + (this.time ? ` ${words.say("timeHelp")}` : "");
    stage.replaceChildren(
      map.element,
      zoom,
      this.scale,
      ...this.divider(),
      h("p", { class: "unseen", id: "map-help" }, help),
      this.aloud,
    );
    const privacy = this.privacy();
    this.into.replaceChildren(
      h(
        "header",
        {},
        h("div", {}, h("h1", {}, payload.title), h("p", { class: "line" }, payload.line)),
        button(words.say(window.innerWidth < 600 ? "privacyShort" : "privacy"), () => privacy.showModal(), {
          class: "privacy",
          "aria-haspopup": "dialog",
        }),
      ),
      h(
        "main",
        {},
        h("div", { class: "scene" }, stage, this.time?.element(words)),
        h("section", { class: "side", "aria-label": words.say("details"), tabindex: "0" }, this.panel),
      ),
      privacy,
    );
    this.refresh();
  }

  /** What hangs on the slot: legends, what is known of the cell, of the densest ones and of the whole map. */
  private refresh(): void {
    const { words, state, subject, payload } = this,
      { layer, beside, slot } = state;
    this.legends.replaceChildren(
      subject.legend(layer, slot, this.palette, words),
      beside ? subject.legend(beside, slot, this.palette, words) : "",
    );
    this.whole.replaceChildren(
      ...subject.whole(slot, words),
      payload.base ? h("p", { class: "source" }, words.say("source", { source: payload.base.source })) : "",
    );
    this.list.replaceChildren(
      ...subject.largest(slot, words).map(({ text, part }) =>
        h(
          "li",
          {},
          button(text, () => this.goTo(part), { title: words.say("goTo") }),
        ),
      ),
    );
    this.tell(this.shown);
  }

  private layers(): HTMLElement {
    const { words, state, subject } = this,
      { layers } = subject,
      name = (layer: string) => subject.name(layer, words);
    const chosen = (layer: string, focus: string) => {
      if (state.beside === layer) state.beside = state.layer;
      state.layer = layer;
      this.rebuilt(focus);
    };
    const radios = layers.map((layer) => {
      const input = h("input", { type: "radio", name: "layer", value: layer, checked: layer === state.layer });
      input.addEventListener("change", () => chosen(layer, `input[value="${CSS.escape(layer)}"]`));
      return h("label", { class: "layer" }, input, h("span", {}, name(layer)));
    });
    const others = layers.filter((each) => each !== state.layer),
      hatching = subject.hatching(state.layer);
    const several = layers.length > ABREAST;
    const another = state.layer === subject.certainty ? layers[0]! : subject.certainty;
    return h(
      "section",
      { class: "shown" },
      several
        ? choice(
            words.say("layers"),
            layers.map((each) => [each, name(each)]),
            state.layer,
            (layer) => chosen(layer, ".shown .choice select"),
          )
        : h("fieldset", {}, h("legend", {}, words.say("layers")), h("div", { class: "layers" }, ...radios)),
      this.legends,
      state.hatch
        ? h(
            "p",
            { class: "hatched" },
            h("span", { class: "swatch", "aria-hidden": "true" }),
            words.say(hatching.legend),
          )
        : null,
      checkbox("hatching", words.say(hatching.choice), state.hatch, (hatch) => {
        state.hatch = hatch;
        this.rebuilt(".hatching input");
      }),
      checkbox("comparing", words.say("compare"), state.beside !== null, (beside) => {
        state.beside = beside ? another : null;
        this.rebuilt(".comparing input");
      }),
      state.beside
        ? choice(
            words.say("compareWith"),
            others.map((each) => [each, name(each)]),
            state.beside,
            (value) => {
              state.beside = value;
              this.rebuilt(".shown .choice:last-child select");
            },
          )
        : null,
    );
  }

  private cellSection(): HTMLElement {
    return h("section", {}, h("h2", {}, this.words.say("cell")), this.facts);
  }

  private wholeSection(): HTMLElement {
    return h("section", { class: "whole" }, this.whole);
  }

  private largest(): HTMLElement | string {
    const { words, subject } = this;
    if (!subject.largest(this.state.slot, words).length) return "";
    return h(
      "details",
      {},
      h("summary", {}, words.say("largest")),
      h("p", { class: "hint" }, words.say("largestHint")),
      this.list,
    );
  }

  /** Another slot, or all together; while they are played, nothing is read out. */
  private during(slot: Slot, playing: boolean): void {
    this.state.slot = slot;
    this.recolour();
    this.refresh();
    if (playing) return;
    this.address();
    this.ask?.again();
  }

  private slotOf(name: string | null): Slot {
    const at = name === null ? -1 : this.subject.slots.indexOf(name);
    return at < 0 ? null : at;
  }

  /** On the map, a comma and a point go from slot to slot, and p plays them. */
  private timeKey(event: KeyboardEvent): void {
    if (!this.time || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "," || event.key === ".") {
      this.time.stop();
      this.time.step(event.key === "," ? -1 : 1);
      this.read(this.state.slot === null ? this.words.say("allSlots") : this.subject.slots[this.state.slot]!);
    } else if (event.key === "p") this.time.pressed();
    else return;
    event.preventDefault();
  }

  private settings(): HTMLElement {
    const { words, state } = this;
    const said = h("p", { "aria-live": "polite", class: "hint" });
    const names = { auto: "themeAuto", light: "themeLight", dark: "themeDark" } as const;
    return h(
      "section",
      { class: "settings", "aria-label": words.say("settings") },
      choice(
        words.say("language"),
        LANGUAGES.map((each) => [each, CATALOGUE[each].languageName]),
        words.language,
        (value) => {
          this.words = new Words(value as Words["language"]);
          this.rebuilt(".settings .choice:nth-of-type(1) select");
        },
      ),
      choice(
        words.say("appearance"),
        THEMES.map((each) => [each, words.say(names[each])]),
        state.theme,
        (value) => {
          state.theme = value as Theme;
          this.rebuilt(".settings .choice:nth-of-type(2) select");
        },
      ),
      button(words.say("copyLink"), () => {
        this.address();
        const copied =
          navigator.clipboard?.writeText(window.location.href) ?? Promise.reject(new Error("no clipboard"));
        copied.then(
          () => said.replaceChildren(words.say("linkCopied")),
          () => said.replaceChildren(words.say("linkFailed")),
        );
      }),
      button(words.say("print"), () => window.print()),
      said,
    );
  }

  private privacy(): HTMLDialogElement {
    const { words, payload } = this;
    const dialog = h(
      "dialog",
      { "aria-labelledby": "privacy-title" },
      h("h2", { id: "privacy-title" }, words.say("privacy")),
      ...plainWords(payload, words).map((sentence) => h("p", {}, sentence)),
      h(
        "details",
        {},
        h("summary", {}, words.say("wholeStatement")),
        h("pre", { lang: "en", tabindex: "0" }, payload.text),
      ),
      h("form", { method: "dialog" }, h("button", {}, words.say("close"))),
    );
    return dialog;
  }

  /** The line between two layers, to be dragged or moved by keys. */
  private divider(): HTMLElement[] {
    if (!this.state.beside) return [];
    const line = h("input", {
      type: "range",
      class: "divider",
      min: "0",
      max: "100",
      step: "0.5",
      "aria-label": this.words.say("divider"),
    });
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

  /** In light colours, and as wide as the paper is. */
  private print(paper: boolean): void {
    if (paper === this.paper) return;
    this.paper = paper;
    document.documentElement.dataset["theme"] = paper ? "light" : this.state.theme;
    this.recolour();
    this.map.resized();
    this.map.draw(true); // paper does not wait for the next frame
    this.refresh();
  }

  private point(at: Point | null): void {
    if (at !== null) this.tell(this.map.partAt(at));
  }

  /** What is in the middle, on the panel at once and read out when the map stands still. */
  private middle(): void {
    this.read("", () => this.tell(this.map.partAt([this.map.width / 2, this.map.height / 2])));
  }

  /** Read something out, and what is known of the cell, when nothing more is done. */
  private read(first: string, before: () => void = () => undefined): void {
    clearTimeout(this.quiet);
    this.quiet = setTimeout(() => {
      before();
      const said = [...this.facts.querySelectorAll("p")].map((each) => each.textContent).join(" ");
      this.aloud.textContent = said.startsWith(first) ? said : `${first}. ${said}`;
    }, QUIET);
  }

  private tell(part: number): void {
    const { words, subject, state } = this;
    this.shown = part;
    this.facts.replaceChildren(
      ...(part === NONE
        ? [h("p", { class: "hint" }, words.say("hoverHint"))]
        : subject.facts(part, state.layer, state.slot, words)),
    );
  }

  private goTo(part: number): void {
    const { shapes } = this.subject;
    const side = Math.max(shapes.east[part]! - shapes.west[part]!, shapes.south[part]! - shapes.north[part]!);
    const scale = Math.max(this.map.view.scale, 60 / side);
    this.map.look({
      x: (shapes.west[part]! + shapes.east[part]!) / 2,
      y: (shapes.north[part]! + shapes.south[part]!) / 2,
      scale,
    });
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
    const most = side * 140,
      power = 10 ** Math.floor(Math.log10(most));
    const length = [5, 2, 1].map((digit) => digit * power).find((each) => each <= most)!;
    const unit = this.projection.plane?.unit ?? "m";
    const text =
      unit === "m" && length >= 1000 ? `${this.words.short(length / 1000)} km` : `${this.words.short(length)} ${unit}`;
    this.scale.replaceChildren(text);
    this.scale.style.width = `${length / side}px`;
    clearTimeout(this.write);
    this.write = setTimeout(() => this.address(), 300);
  }

  /** Write what is seen into the page's address, where the browser lets it. */
  private address(): void {
    const { view } = this.map,
      { layer, beside, slot, hatch, theme } = this.state,
      { slots } = this.subject;
    const link: Link = {
      middle: [this.projection.lon(view.x), this.projection.lat(view.y)],
      zoom: Math.log2(view.scale / 256),
      layer,
      beside,
      slot: slots.length ? (slot === null ? ALL : slots[slot]!) : null,
      language: this.words.language,
      theme,
      hatch,
    };
    try {
      window.history.replaceState(null, "", writeLink(link));
    } catch {
      // a frame without an address of its own
    }
  }
}
