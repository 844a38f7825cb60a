/** Moving the map and drawing on it: by mouse, by fingers, by keys. */

import type { Point } from "./decorations.js";
import type { MapCanvas } from "./map_canvas.js";

/** What somebody is drawing. */
export type Drawing = "box" | "polygon" | null;

export interface Listener {
  /** A pixel that is pointed at; null where the pointer left. */
  pointed(at: Point | null): void;
  /** The middle, after a key moved the map. */
  middle(): void;
  /** Corners on the sheet of what is drawn, so far or whole. */
  drawn(corners: readonly Point[], whole: boolean): void;
  cancelled(): void;
}

const CLOSE = 10; // pixels: so near to the first corner a click closes a polygon

export class Gestures {
  private mode: Drawing = null;
  private readonly fingers = new Map<number, Point>();
  private corners: Point[] = [];

  constructor(
    private readonly map: MapCanvas,
    private readonly listener: Listener,
  ) {
    const { element } = map;
    element.addEventListener("pointerdown", (event) => this.down(event));
    element.addEventListener("pointermove", (event) => this.move(event));
    for (const name of ["pointerup", "pointercancel"] as const)
      element.addEventListener(name, (event) => this.up(event));
    element.addEventListener("pointerleave", () => this.listener.pointed(null));
    element.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    element.addEventListener("dblclick", (event) => this.mode === null && map.zoom(2, at(event)));
    element.addEventListener("keydown", (event) => this.key(event));
    for (const name of ["focus", "blur"] as const) element.addEventListener(name, () => map.draw());
  }

  draw(mode: Drawing): void {
    this.mode = mode;
    this.corners = [];
    this.map.element.classList.toggle("drawing", mode !== null);
  }

  private down(event: PointerEvent): void {
    if (event.button !== 0) return;
    this.map.element.setPointerCapture(event.pointerId);
    this.fingers.set(event.pointerId, at(event));
    this.map.hold(true);
    if (this.mode === "box" && this.fingers.size === 1) this.corners = [this.map.place(at(event))];
  }

  private move(event: PointerEvent): void {
    const now = at(event),
      before = this.fingers.get(event.pointerId);
    if (before === undefined) {
      this.listener.pointed(now);
      if (this.mode === "polygon" && this.corners.length)
        this.listener.drawn([...this.corners, this.map.place(now)], false);
      return;
    }
    if (this.mode === "box") {
      this.listener.drawn(this.box(now), false);
    } else if (this.fingers.size === 1) {
      this.map.pan(now[0] - before[0], now[1] - before[1]);
    } else {
      const other = [...this.fingers].find(([id]) => id !== event.pointerId)![1];
      this.map.pan((now[0] - before[0]) / 2, (now[1] - before[1]) / 2);
      const factor = Math.max(1, distance(now, other)) / Math.max(1, distance(before, other));
      this.map.zoom(factor, [(now[0] + other[0]) / 2, (now[1] + other[1]) / 2]);
    }
    this.fingers.set(event.pointerId, now);
  }

  private up(event: PointerEvent): void {
    const now = at(event),
      was = this.fingers.delete(event.pointerId);
    this.map.hold(this.fingers.size > 0);
    if (!was || event.type === "pointercancel") return;
    if (this.mode === "box" && this.corners.length) {
      const corners = this.box(now),
        [a, , c] = corners.map((each) => this.map.pixel(each));
      if (Math.abs(a![0] - c![0]) > 2 && Math.abs(a![1] - c![1]) > 2) this.finish(corners);
    } else if (this.mode === "polygon") {
      const first = this.corners[0] && this.map.pixel(this.corners[0]);
      if (first && this.corners.length > 2 && distance(first, now) < CLOSE) this.finish(this.corners);
      else {
        this.corners.push(this.map.place(now));
        this.listener.drawn(this.corners, false);
      }
    } else this.listener.pointed(now);
  }

  private box(now: Point): Point[] {
    const [x, y] = this.corners[0]!,
      [u, v] = this.map.place(now);
    return [
      [x, y],
      [u, y],
      [u, v],
      [x, v],
    ];
  }

  private finish(corners: readonly Point[]): void {
    this.draw(null);
    this.listener.drawn(corners, true);
  }

  private wheel(event: WheelEvent): void {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 18 : event.deltaMode === 2 ? 400 : 1;
    this.map.zoom(2 ** (-Math.max(-400, Math.min(400, event.deltaY * lines)) / 240), at(event));
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = event.shiftKey ? 12 : 60;
    const moves: { readonly [key: string]: () => void } = {
      ArrowLeft: () => this.map.pan(step, 0),
      ArrowRight: () => this.map.pan(-step, 0),
      ArrowUp: () => this.map.pan(0, step),
      ArrowDown: () => this.map.pan(0, -step),
      "+": () => this.map.zoom(1.5),
      "=": () => this.map.zoom(1.5),
      "-": () => this.map.zoom(1 / 1.5),
      "0": () => this.map.fit(),
    };
    if (this.mode !== null && event.key === "Escape") {
      this.draw(null);
      this.listener.cancelled();
    } else if (this.mode === "polygon" && event.key === "Enter" && this.corners.length > 2) this.finish(this.corners);
    else if (moves[event.key]) {
      moves[event.key]!();
      this.listener.middle();
    } else return;
    event.preventDefault();
  }
}

function at(event: MouseEvent): Point {
  return [event.offsetX, event.offsetY];
}

function distance(one: Point, other: Point): number {
  return Math.hypot(one[0] - other[0], one[1] - other[1]);
}
