/** What is drawn beside the cells: the base map, a graticule, a region that somebody draws. */

import type { Extent, Projection } from "../map/sheet.js";
import type { Base } from "../payload/release.js";

export type Point = readonly [number, number];

/** Colours of lines and letters in a theme. */
export interface Ink {
  readonly water: string;
  readonly land: string;
  readonly lake: string;
  readonly coast: string;
  readonly river: string;
  readonly border: string;
  readonly grid: string;
  readonly text: string;
  readonly halo: string;
  readonly region: string;
  readonly hatch: readonly [number, number, number, number];
}

export const LIGHT: Ink = {
  water: "#e7edf1",
  land: "#f4f2ec",
  lake: "#e7edf1",
  coast: "#5b6b77",
  river: "#7f9db1",
  border: "#6d5a72",
  grid: "#33445533",
  text: "#1c2733",
  halo: "#ffffffd9",
  region: "#0b5cad",
  hatch: [40, 52, 66, 0.28],
};

export const DARK: Ink = {
  water: "#10161c",
  land: "#1a2027",
  lake: "#10161c",
  coast: "#8b9aa6",
  river: "#4d6a80",
  border: "#a28fa8",
  grid: "#c8d4e033",
  text: "#eef2f5",
  halo: "#0c1116d9",
  region: "#7cc0ff",
  hatch: [220, 228, 236, 0.26],
};

type Line = readonly (readonly [number, number])[];

/** Land and lakes beneath the cells; coasts, rivers and borders above them. */
export function drawBase(
  under: CanvasRenderingContext2D,
  over: CanvasRenderingContext2D,
  base: Base,
  projection: Projection,
  sheet: Place,
  ink: Ink,
  ratio: number,
): void {
  const land = base.land.flat(),
    lakes = base.lakes.flat();
  const cut = cuts(land);
  const trace = (context: CanvasRenderingContext2D, lines: readonly Line[], whole: boolean) =>
    path(context, lines, projection, sheet, (from, to) => !whole && cut(from, to));
  for (const [areas, colour] of [
    [land, ink.land],
    [lakes, ink.lake],
  ] as const) {
    trace(under, areas, true);
    under.fillStyle = colour;
    under.fill("evenodd");
  }
  over.lineJoin = "round";
  for (const [lines, colour, wide, dash] of [
    [base.rivers, ink.river, 0.8, []],
    [land, ink.coast, 0.9, []],
    [lakes, ink.coast, 0.6, []],
    [base.states, ink.border, 0.7, [2, 3]],
    [base.borders, ink.border, 1.1, [6, 3]],
  ] as const) {
    trace(over, lines, false);
    over.setLineDash(dash.map((each) => each * ratio));
    over.strokeStyle = colour;
    over.lineWidth = wide * ratio;
    over.stroke();
  }
}

/** Lines that somebody drew over the map: dark on pale or pale on dark, so that they are seen on all cells. */
export function drawOutlines(
  over: CanvasRenderingContext2D,
  lines: readonly Line[],
  projection: Projection,
  sheet: Place,
  ink: Ink,
  ratio: number,
): void {
  over.setLineDash([]);
  over.lineJoin = "round";
  for (const [colour, wide] of [
    [ink.halo, 3],
    [ink.text, 1.2],
  ] as const) {
    path(over, lines, projection, sheet, () => false);
    over.strokeStyle = colour;
    over.lineWidth = wide * ratio;
    over.stroke();
  }
}

type Place = { west: number; north: number; scale: number };

/** Begins a path along lines, where it is not to be broken off. */
function path(
  context: CanvasRenderingContext2D,
  lines: readonly Line[],
  projection: Projection,
  sheet: Place,
  broken: (from: Point, to: Point) => boolean,
): void {
  context.beginPath();
  for (const line of lines) {
    line.forEach((at, i) => {
      const x = (projection.x(at[0]) - sheet.west) * sheet.scale,
        y = (projection.y(at[1]) - sheet.north) * sheet.scale;
      if (i === 0 || broken(line[i - 1]!, at)) context.moveTo(x, y);
      else context.lineTo(x, y);
    });
  }
}

/** Whether an edge is no coast, but where the land was cut off at the end of the base map. */
function cuts(land: readonly Line[]): (from: Point, to: Point) => boolean {
  const ends = [Infinity, Infinity, -Infinity, -Infinity] as [number, number, number, number];
  for (const [lon, lat] of land.flat()) {
    ends[0] = Math.min(ends[0], lon);
    ends[1] = Math.min(ends[1], lat);
    ends[2] = Math.max(ends[2], lon);
    ends[3] = Math.max(ends[3], lat);
  }
  return ([a, b], [c, d]) =>
    (a === c && (a === ends[0] || a === ends[2])) || (b === d && (b === ends[1] || b === ends[3]));
}

/** Round steps of degrees, or of a plane's unit, of which so many at most lie between two numbers. */
export function roundSteps(low: number, high: number, most: number): { at: number[]; decimals: number } {
  const rough = Math.max((high - low) / most, 1e-12);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((digit) => digit * power >= rough * (1 - 1e-9))!;
  const at = [];
  for (let n = Math.ceil(low / step); n * step <= high; n++) at.push(n * step);
  return { at, decimals: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
}

/** A longitude or latitude as maps write it: 160° W, also where the sheet goes on beyond the antimeridian. */
export function degreesName(value: number, digits: number, positive: string, negative: string): string {
  const within = Number((value - 360 * Math.ceil((value - 180) / 360)).toFixed(digits)); // above −180, 180 at most
  const sign = within === 0 || Math.abs(within) === 180 ? "" : within > 0 ? ` ${positive}` : ` ${negative}`;
  return `${Math.abs(within).toFixed(digits)}°${sign}`;
}

export function drawGraticule(
  context: CanvasRenderingContext2D,
  projection: Projection,
  seen: Extent,
  width: number,
  height: number,
  ink: Ink,
): void {
  const west = projection.lon(seen.west),
    east = projection.lon(seen.east);
  const ends = [projection.lat(seen.south), projection.lat(seen.north)];
  const across = roundSteps(west, east, Math.max(2, width / 170));
  const down = roundSteps(Math.min(...ends), Math.max(...ends), Math.max(2, height / 140));
  const label = (value: number, digits: number, positive: string, negative: string) =>
    projection.plane ? value.toFixed(digits) : degreesName(value, digits, positive, negative);
  context.font = "11px system-ui, sans-serif";
  context.strokeStyle = ink.grid;
  context.lineWidth = 1;
  context.beginPath();
  const x = (lon: number) => ((projection.x(lon) - seen.west) / (seen.east - seen.west)) * width;
  const y = (lat: number) => ((projection.y(lat) - seen.north) / (seen.south - seen.north)) * height;
  for (const lon of across.at) {
    context.moveTo(Math.round(x(lon)) + 0.5, 0);
    context.lineTo(Math.round(x(lon)) + 0.5, height);
  }
  for (const lat of down.at) {
    context.moveTo(0, Math.round(y(lat)) + 0.5);
    context.lineTo(width, Math.round(y(lat)) + 0.5);
  }
  context.stroke();
  const write = (text: string, left: number, foot: number) => {
    context.lineJoin = "round";
    context.lineWidth = 3;
    context.strokeStyle = ink.halo;
    context.fillStyle = ink.text;
    context.strokeText(text, left, foot);
    context.fillText(text, left, foot);
  };
  for (const lon of across.at) {
    const text = label(lon, across.decimals, "E", "W"),
      wide = context.measureText(text).width;
    if (x(lon) - wide / 2 > 80 && x(lon) + wide / 2 < width - 4) write(text, x(lon) - wide / 2, 14);
  }
  for (const lat of down.at) {
    const text = label(lat, down.decimals, "N", "S"),
      wide = context.measureText(text).width;
    if (y(lat) > 30 && y(lat) < height - 60) write(text, width - wide - 6, y(lat) - 4);
  }
}

export function drawRegion(context: CanvasRenderingContext2D, corners: readonly Point[], ink: Ink): void {
  context.beginPath();
  corners.forEach(([x, y], i) => (i === 0 ? context.moveTo(x, y) : context.lineTo(x, y)));
  context.closePath();
  context.lineJoin = "round";
  context.strokeStyle = ink.halo;
  context.lineWidth = 5;
  context.stroke();
  context.strokeStyle = ink.region;
  context.lineWidth = 2.5;
  context.stroke();
  for (const [x, y] of corners) {
    context.beginPath();
    context.arc(x, y, 3.5, 0, 7);
    context.fillStyle = ink.region;
    context.fill();
  }
}
