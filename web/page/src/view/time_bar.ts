/** The slots of a map with time: a slider, a button that plays them one after another, and one for all together. */

import { h } from "../../../shared/src/elements.js";
import type { Slot } from "../kinds/subject.js";
import type { Words } from "../words/words.js";
import { button } from "./controls.js";

const STEP = 1000; // milliseconds that a slot is shown

export class TimeBar {
  private readonly calm = window.matchMedia("(prefers-reduced-motion: reduce)");
  private readonly slider = h("input", { type: "range", min: "0", step: "1", class: "slots" });
  private readonly name = h("output", { class: "slot" });
  private words!: Words;
  private play!: HTMLButtonElement;
  private all: HTMLButtonElement | null = null;
  private timer: ReturnType<typeof setInterval> | undefined;
  private last = 0; // the slot that was chosen before all together

  constructor(
    private readonly names: readonly string[],
    private readonly together: boolean,
    private slot: Slot,
    private readonly chosen: (slot: Slot, playing: boolean) => void,
  ) {
    this.slider.max = String(names.length - 1);
    this.last = slot ?? 0;
    this.slider.addEventListener("input", () => {
      this.stop();
      this.choose(Number(this.slider.value));
    });
    this.calm.addEventListener("change", () => {
      this.stop();
      this.tell();
    });
  }

  element(words: Words): HTMLElement {
    this.words = words;
    this.play = button("", () => this.pressed(), { class: "play" });
    this.all = this.together
      ? button(
          words.say("allSlots"),
          () => {
            this.stop();
            this.choose(this.slot === null ? this.last : null);
          },
          { class: "all" },
        )
      : null;
    this.slider.setAttribute("aria-label", words.say("slot"));
    this.tell();
    return h(
      "section",
      { class: "time", "aria-label": words.say("time") },
      this.play,
      this.slider,
      this.name,
      this.all,
    );
  }

  get playing(): boolean {
    return this.timer !== undefined;
  }

  /** To the slot so many further on, around the end. */
  step(by: number): void {
    const size = this.names.length;
    this.choose(this.slot === null ? (by > 0 ? 0 : size - 1) : (this.slot + by + size) % size);
  }

  /** Play, or stop; whoever prefers less motion goes one slot further instead. */
  pressed(): void {
    if (this.calm.matches) this.step(1);
    else if (this.playing) this.stop();
    else {
      this.timer = setInterval(() => this.step(1), STEP);
      this.step(1);
    }
    this.tell();
  }

  stop(): void {
    if (!this.playing) return;
    clearInterval(this.timer);
    this.timer = undefined;
    this.tell();
    this.chosen(this.slot, false);
  }

  /** Show a slot, without telling anybody. */
  set(slot: Slot): void {
    this.slot = slot;
    if (slot !== null) this.last = slot;
    this.tell();
  }

  private choose(slot: Slot): void {
    this.set(slot);
    this.chosen(slot, this.playing);
  }

  private tell(): void {
    const { words, slot } = this,
      name = slot === null ? words.say("allSlots") : this.names[slot]!;
    const action = words.say(this.calm.matches ? "nextSlot" : this.playing ? "pause" : "play");
    this.play.textContent = this.calm.matches ? "⏵|" : this.playing ? "⏸" : "▶";
    this.play.setAttribute("aria-label", action);
    this.play.title = action;
    this.slider.value = String(slot ?? this.last);
    this.slider.setAttribute("aria-valuetext", name);
    this.slider.classList.toggle("unused", slot === null);
    this.name.textContent = slot === null ? "" : name;
    this.all?.setAttribute("aria-pressed", String(slot === null));
  }
}
