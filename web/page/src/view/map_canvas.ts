/** The map as it is drawn and moved. Cells are painted when the view has come to rest; until then the last picture moves. */

import { colourPixels, NONE, paintCells } from "../map/raster.js";
import type { Shapes } from "../map/shapes.js";
import { type Extent, type Projection, type View, viewOf } from "../map/sheet.js";
import type { Base } from "../payload/release.js";
import { drawBase, drawGraticule, drawOutlines, drawRegion, type Ink, type Point } from "./decorations.js";

/** Colours of painted parts, first that of no part; and which of them are hatched. */
export interface Paint {
  readonly colours: Uint32Array;
  readonly hatched: Uint8Array | null;
}

/** A picture of a part of the sheet, larger than what is seen. */
interface Sheet {
  readonly west: number;
  readonly north: number;
  readonly scale: number; // pixels of the device
  readonly width: number;
  readonly height: number;
  readonly fine: number; // samples across a pixel
  readonly cells: Int32Array;
}

const ROOM = 0.2; // of what is seen, on each side
const REST = 110; // milliseconds
const MOST_SAMPLES = 12e6;
/** Pictures are written pixel by pixel and moved: where graphics are drawn in software, that is three times as fast in memory. */
const IN_MEMORY: CanvasRenderingContext2DSettings = { willReadFrequently: true };
const HATCH = 7; // pixels of the page between hatches

export class MapCanvas {
  readonly element: HTMLCanvasElement;
  view: View;
  region: readonly Point[] = [];
  onMove: () => void = () => undefined;
  private readonly context: CanvasRenderingContext2D;
  private readonly layers = [document.createElement("canvas"), document.createElement("canvas")];
  private readonly pictures = [document.createElement("canvas"), document.createElement("canvas")];
  private readonly under = document.createElement("canvas");
  private readonly over = document.createElement("canvas");
  private sheet: Sheet | null = null;
  private frame = 0;
  private rest: ReturnType<typeof setTimeout> | undefined;
  private held = false;
  private moved = false; // by a person: then another size does not fit it anew

  constructor(
    private readonly shapes: Shapes,
    private readonly projection: Projection,
    private readonly base: Base | null,
    private ink: Ink,
    private paints: readonly Paint[],
    readonly extent: Extent,
    /** What is shown until somebody moves the map, and lines to draw over it. */
    private readonly first: Extent = extent,
    private readonly outlines: readonly (readonly Point[])[] = [],
  ) {
    this.element = document.createElement("canvas");
    this.element.className = "map";
    this.context = this.element.getContext("2d", IN_MEMORY)!;
    this.view = { x: 0.5, y: 0.5, scale: 256 };
    new ResizeObserver(() => this.resized()).observe(this.element);
  }

  /** In pixels of the page. */
  get width(): number {
    return this.element.clientWidth || 1;
  }

  get height(): number {
    return this.element.clientHeight || 1;
  }

  private get ratio(): number {
    return Math.min(window.devicePixelRatio || 1, 3);
  }

  /** Where the line between two layers is, 0 to 1. */
  divider = 0.5;

  paint(paints: readonly Paint[], ink = this.ink): void {
    this.ink = ink;
    this.paints = paints;
    if (this.sheet) {
      this.colour(this.sheet);
      this.decorate(this.sheet);
    }
    this.draw();
  }

  look(view: View): void {
    const most = 2 ** 40,
      least = viewOf(this.extent, this.width, this.height).scale / 3;
    const scale = Math.max(least, Math.min(most, view.scale));
    this.view = { x: Math.max(-0.2, Math.min(1.2, view.x)), y: Math.max(-0.2, Math.min(1.2, view.y)), scale };
    this.moved = true;
    this.settle();
    this.draw();
    this.onMove();
  }

  fit(): void {
    this.look(viewOf(this.extent, this.width, this.height));
    this.moved = false;
  }

  zoom(factor: number, at: Point = [this.width / 2, this.height / 2]): void {
    const [x, y] = this.place(at),
      scale = this.view.scale * factor;
    this.look({ scale, x: x - (at[0] - this.width / 2) / scale, y: y - (at[1] - this.height / 2) / scale });
  }

  pan(across: number, down: number): void {
    const { x, y, scale } = this.view;
    this.look({ scale, x: x - across / scale, y: y - down / scale });
  }

  /** The place on the sheet of a pixel of the page. */
  place([x, y]: Point): Point {
    return [
      this.view.x + (x - this.width / 2) / this.view.scale,
      this.view.y + (y - this.height / 2) / this.view.scale,
    ];
  }

  /** The pixel of the page of a place on the sheet. */
  pixel([x, y]: Point): Point {
    return [
      (x - this.view.x) * this.view.scale + this.width / 2,
      (y - this.view.y) * this.view.scale + this.height / 2,
    ];
  }

  /** The painted part at a pixel of the page, or `NONE`. */
  partAt(at: Point): number {
    const { sheet } = this,
      [x, y] = this.place(at);
    if (!sheet) return NONE;
    const column = Math.floor((x - sheet.west) * sheet.scale * sheet.fine);
    const row = Math.floor((y - sheet.north) * sheet.scale * sheet.fine);
    const across = sheet.width * sheet.fine;
    return column >= 0 && column < across && row >= 0 && row < sheet.height * sheet.fine
      ? sheet.cells[row * across + column]!
      : NONE;
  }

  /** What is seen, on the sheet. */
  get seen(): Extent {
    const [west, north] = this.place([0, 0]),
      [east, south] = this.place([this.width, this.height]);
    return { west, north, east, south };
  }

  /** Paint the cells anew, now. */
  repaint(): void {
    clearTimeout(this.rest);
    const began = performance.now();
    const { ratio, view } = this,
      scale = view.scale * ratio;
    const width = Math.ceil(this.width * ratio * (1 + 2 * ROOM)),
      height = Math.ceil(this.height * ratio * (1 + 2 * ROOM));
    const fine = ratio < 2 && width * height * 4 <= MOST_SAMPLES ? 2 : 1;
    // Samples begin at whole pixels of the page, so that a picture at rest is sharp.
    const west = view.x - width / 2 / scale,
      north = view.y - height / 2 / scale;
    const samples = width * height * fine * fine;
    const cells = this.sheet && this.sheet.cells.length >= samples ? this.sheet.cells : new Int32Array(samples);
    const sheet = { west, north, scale, width, height, fine, cells };
    paintCells(this.shapes, { west, north, scale: scale * fine, width: width * fine, height: height * fine }, cells);
    this.sheet = sheet;
    this.colour(sheet);
    this.decorate(sheet);
    this.draw(true);
    performance.measure("repaint", { start: began });
  }

  /** Paint when the map has come to rest: not while it is held and the picture reaches beyond all that is seen. */
  private settle(): void {
    clearTimeout(this.rest);
    if (!this.held || !this.covered) this.rest = setTimeout(() => this.repaint(), REST);
  }

  private get covered(): boolean {
    const { sheet, seen, view, ratio } = this;
    return (
      sheet !== null &&
      sheet.scale === view.scale * ratio &&
      seen.west >= sheet.west &&
      seen.north >= sheet.north &&
      seen.east <= sheet.west + sheet.width / sheet.scale &&
      seen.south <= sheet.north + sheet.height / sheet.scale
    );
  }

  /** Whether somebody holds the map with a pointer. */
  hold(held: boolean): void {
    const released = this.held && !held;
    this.held = held;
    if (released) this.settle();
  }

  /** Fit to the size that the element has now. */
  resized(): void {
    if (!this.moved) {
      this.view = viewOf(this.first, this.width, this.height);
      this.onMove();
    }
    this.repaint();
  }

  private colour({ cells, width, height, fine }: Sheet): void {
    this.paints.forEach(({ colours, hatched }, which) => {
      const canvas = this.layers[which]!,
        context = sized(canvas, width, height);
      const image = context.createImageData(width, height),
        pixels = new Uint32Array(image.data.buffer);
      colourPixels(cells, width, height, fine, colours, pixels);
      if (hatched) this.hatch(cells, width, height, fine, hatched, pixels);
      context.putImageData(image, 0, 0);
    });
  }

  /** Thin lines at 45° over cells that are hatched. */
  private hatch(
    cells: Int32Array,
    width: number,
    height: number,
    fine: number,
    hatched: Uint8Array,
    pixels: Uint32Array,
  ): void {
    const apart = Math.round(HATCH * this.ratio),
      thick = Math.max(1, Math.round(this.ratio));
    const [red, green, blue, share] = this.ink.hatch;
    for (let y = 0; y < height; y++) {
      for (let x = (apart - (y % apart)) % apart; x < width; x += apart) {
        for (let at = x; at < Math.min(x + thick, width); at++) {
          if (!hatched[cells[(y * width * fine + at) * fine]! + 1]) continue;
          const colour = pixels[y * width + at]!;
          const mix = (own: number, other: number) => Math.round(own * (1 - share) + other * share);
          pixels[y * width + at] =
            ((colour & 0xff000000) |
              (mix((colour >>> 16) & 255, blue) << 16) |
              (mix((colour >>> 8) & 255, green) << 8) |
              mix(colour & 255, red)) >>>
            0;
        }
      }
    }
  }

  private decorate(sheet: Sheet): void {
    const contexts = [this.under, this.over].map((canvas) => sized(canvas, sheet.width, sheet.height));
    if (this.base) drawBase(contexts[0]!, contexts[1]!, this.base, this.projection, sheet, this.ink, this.ratio);
    if (this.outlines.length) drawOutlines(contexts[1]!, this.outlines, this.projection, sheet, this.ink, this.ratio);
    // Each layer between what is under and over it, as one picture: a map that is dragged copies no more than that.
    this.paints.forEach((_, which) => {
      const context = sized(this.pictures[which]!, sheet.width, sheet.height);
      context.fillStyle = this.ink.water;
      context.fillRect(0, 0, sheet.width, sheet.height);
      for (const each of [this.under, this.layers[which]!, this.over]) context.drawImage(each, 0, 0);
    });
  }

  draw(now = false): void {
    if (now) {
      cancelAnimationFrame(this.frame);
      this.compose();
    } else {
      cancelAnimationFrame(this.frame);
      this.frame = requestAnimationFrame(() => this.compose());
    }
  }

  private compose(): void {
    const { context, ratio, sheet } = this;
    const width = Math.round(this.width * ratio),
      height = Math.round(this.height * ratio);
    if (this.element.width !== width || this.element.height !== height) {
      this.element.width = width;
      this.element.height = height;
    }
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = this.ink.water;
    context.fillRect(0, 0, width, height);
    if (sheet) {
      const scale = this.view.scale * ratio,
        zoom = scale / sheet.scale;
      const exact = Math.abs(zoom - 1) < 1e-9,
        round = (at: number) => (exact ? Math.round(at) : at);
      const x = round((sheet.west - this.view.x) * scale + width / 2),
        y = round((sheet.north - this.view.y) * scale + height / 2);
      const put = (canvas: HTMLCanvasElement) =>
        context.drawImage(canvas, x, y, sheet.width * zoom, sheet.height * zoom);
      context.imageSmoothingEnabled = !exact && zoom < 1;
      this.paints.forEach((_, which) => {
        context.save();
        if (this.paints.length > 1) {
          const line = Math.round(this.divider * width);
          context.beginPath();
          context.rect(which === 0 ? 0 : line, 0, which === 0 ? line : width - line, height);
          context.clip();
        }
        put(this.pictures[which]!);
        context.restore();
      });
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    drawGraticule(context, this.projection, this.seen, this.width, this.height, this.ink);
    if (this.base && sheet) this.labels(context);
    if (this.region.length)
      drawRegion(
        context,
        this.region.map((each) => this.pixel(each)),
        this.ink,
      );
    if (this.paints.length > 1) {
      const line = Math.round(this.divider * this.width);
      context.fillStyle = this.ink.text;
      context.fillRect(line - 1, 0, 2, this.height);
    }
    if (document.activeElement === this.element && this.element.matches(":focus-visible")) this.cross(context);
  }

  /** Names of places, the most important ones first, none over another. */
  private labels(context: CanvasRenderingContext2D): void {
    const taken: [number, number, number, number][] = [];
    context.font = "12px system-ui, sans-serif";
    context.lineJoin = "round";
    context.lineWidth = 3;
    context.strokeStyle = this.ink.halo;
    context.fillStyle = this.ink.text;
    const places = [...(this.base?.places ?? [])].sort((a, b) => a[3] - b[3]);
    for (const [lon, lat, name] of places) {
      const [x, y] = this.pixel([this.projection.x(lon), this.projection.y(lat)]);
      const wide = context.measureText(name).width;
      if (x < 0 || y < 8 || x + wide + 8 > this.width || y > this.height - 8) continue;
      const box: [number, number, number, number] = [x - 4, y - 10, x + wide + 10, y + 8];
      if (taken.some((other) => box[0] < other[2] && box[2] > other[0] && box[1] < other[3] && box[3] > other[1]))
        continue;
      taken.push(box);
      context.beginPath();
      context.arc(x, y, 2.5, 0, 7);
      context.stroke();
      context.fill();
      context.strokeText(name, x + 6, y + 4);
      context.fillText(name, x + 6, y + 4);
    }
  }

  /** What a keyboard points at. */
  private cross(context: CanvasRenderingContext2D): void {
    const x = Math.round(this.width / 2),
      y = Math.round(this.height / 2);
    for (const [colour, wide] of [
      [this.ink.halo, 4],
      [this.ink.text, 1.5],
    ] as const) {
      context.strokeStyle = colour;
      context.lineWidth = wide;
      context.beginPath();
      context.moveTo(x - 11, y);
      context.lineTo(x + 11, y);
      context.moveTo(x, y - 11);
      context.lineTo(x, y + 11);
      context.stroke();
    }
  }
}

function sized(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D {
  canvas.width = width;
  canvas.height = height;
  return canvas.getContext("2d", IN_MEMORY)!;
}
