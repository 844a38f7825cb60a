/** The sheet: a square of side 1, y downwards, that holds the world in Web Mercator, or a plane. */

import type { Plane } from "../payload/release.js";

export const CIRCUMFERENCE = 2 * Math.PI * 6378137; // metres around the equator
const POLAR = 85.051128779806604;

/** Between coordinates that people write and places on the sheet. */
export interface Projection {
  readonly plane: Plane | null;
  x(lon: number): number;
  y(lat: number): number;
  lon(x: number): number;
  lat(y: number): number;
}

export function projectionOf(plane: Plane | null): Projection {
  if (plane === null) {
    return {
      plane,
      x: (lon) => 0.5 + lon / 360,
      y: (lat) => 0.5 - Math.asinh(Math.tan((Math.max(-POLAR, Math.min(POLAR, lat)) * Math.PI) / 180)) / (2 * Math.PI),
      lon: (x) => (x - 0.5) * 360,
      lat: (y) => (Math.atan(Math.sinh((0.5 - y) * 2 * Math.PI)) * 180) / Math.PI,
    };
  }
  const { x, y, size, down } = plane;
  return {
    plane,
    x: (east) => (east - x) / size,
    y: (north) => (down ? (north - y) / size : 1 - (north - y) / size),
    lon: (at) => x + size * at,
    lat: (at) => y + size * (down ? at : 1 - at),
  };
}

/** How many metres, or units of the plane, one side of the sheet is on the ground at a height of it. */
export function groundSide(projection: Projection, y: number): number {
  if (projection.plane) return projection.plane.size;
  return CIRCUMFERENCE * Math.cos((projection.lat(y) * Math.PI) / 180);
}

/** What is seen: the place in the middle, and how many pixels the sheet's side is long. */
export interface View {
  readonly x: number;
  readonly y: number;
  readonly scale: number;
}

/** Edges on the sheet. */
export interface Extent {
  readonly west: number;
  readonly north: number;
  readonly east: number;
  readonly south: number;
}

/** The view that shows an extent whole, with some room around it. */
export function viewOf(extent: Extent, width: number, height: number, room = 1.06): View {
  const across = Math.max(extent.east - extent.west, 1e-9) * room;
  const down = Math.max(extent.south - extent.north, 1e-9) * room;
  const scale = Math.min(width / across, height / down);
  return { x: (extent.west + extent.east) / 2, y: (extent.north + extent.south) / 2, scale };
}
