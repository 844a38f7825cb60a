import assert from "node:assert/strict";
import { test } from "node:test";
import { InputError } from "../../../device/src/errors.js";
import { readPlaces, writtenPlaces } from "../kept_places.js";
import { madeUpWalk } from "../made_up_walk.js";
import { placesOf } from "../places_file.js";

const gpx = (inside: string): string =>
  `<?xml version="1.0"?>\n<gpx version="1.1" xmlns="http://www.topografix.com/GPX/1/1">${inside}</gpx>`;

test("GPX gives its way, track and route points, in any order of attributes, with prefixes and comments", () => {
  assert.deepEqual(
    placesOf(
      gpx(`<wpt lat="52.5" lon="13.4"><name>home &lt;wpt lat="1" lon="2"></name></wpt>
      <trk><trkseg><trkpt lon='-0.1' lat='+51'/><!-- <trkpt lat="9" lon="9"/> --></trkseg></trk>
      <g:rte xmlns:g="x"><g:rtept lat="-33." lon="151.2" /></g:rte><![CDATA[<trkpt lat="8" lon="8"/>]]>`),
    ),
    [
      { lon: 13.4, lat: 52.5 },
      { lon: -0.1, lat: 51 },
      { lon: 151.2, lat: -33 },
    ],
  );
});

test("Google's three kinds of files give the places where somebody was, and no guesses at others", () => {
  const [lat, lon] = [525000000, 134000000];
  const at = { latitudeE7: lat, longitudeE7: lon };
  assert.deepEqual(placesOf(JSON.stringify({ locations: [{ ...at, accuracy: 9 }, { timestampMs: "1" }] })), [
    { lon: 13.4, lat: 52.5 },
  ]);
  const history = {
    timelineObjects: [
      { placeVisit: { location: at, otherCandidateLocations: [{ latitudeE7: 0, longitudeE7: 0 }] } },
      {
        activitySegment: {
          startLocation: at,
          endLocation: { latitudeE7: 1, longitudeE7: 2 },
          waypointPath: { waypoints: [at] },
        },
      },
    ],
  };
  assert.deepEqual(placesOf(JSON.stringify(history)), [
    { lon: 13.4, lat: 52.5 },
    { lon: 13.4, lat: 52.5 },
    { lon: 2e-7, lat: 1e-7 },
  ]);
  const timeline = {
    semanticSegments: [
      { startTime: "2026-01-01T00:00", timelinePath: [{ point: "52.5°, 13.4°", time: "2026" }] },
      { visit: { topCandidate: { placeLocation: { latLng: "-33.9°, 151.2°" } } } },
    ],
    rawSignals: [{ position: { LatLng: "1°, 2°" } }],
    userLocationProfile: { frequentPlaces: [{ placeLocation: "3°, 4°" }] },
  };
  assert.deepEqual(placesOf(JSON.stringify(timeline)), [
    { lon: 13.4, lat: 52.5 },
    { lon: 151.2, lat: -33.9 },
  ]);
  const phone = [
    { visit: { topCandidate: { placeLocation: "geo:52.5,13.4" } } },
    { activity: { start: "geo:1,2", end: "geo:3,4" } },
  ];
  assert.deepEqual(placesOf(JSON.stringify(phone)), [
    { lon: 13.4, lat: 52.5 },
    { lon: 2, lat: 1 },
    { lon: 4, lat: 3 },
  ]);
  assert.deepEqual(placesOf('[{"lon": 13.4, "lat": 52.5}]'), [{ lon: 13.4, lat: 52.5 }]);
});

test("times are read where a file says them, in its own way, and none is made up", () => {
  const at = { latitudeE7: 525000000, longitudeE7: 134000000 };
  const day = (time: string): number => Date.parse(`2026-03-01T${time}Z`) / 1_000;
  const times = (text: string): unknown[] => placesOf(text).map(({ time }) => time);
  assert.deepEqual(
    times(
      gpx(`<metadata><time>2020-01-01T00:00:00Z</time></metadata><trkpt lat="1" lon="1"><ele>3</ele><g:time> 2026-03-01T08:00:00.5Z </g:time></trkpt>
      <wpt lat="1" lon="1"/><time>2020-01-01T00:00:00Z</time><wpt lat="1" lon="1"></wpt><time>2020-01-01T00:00:00Z</time>
      <rtept lat="1" lon="1"><time>soon</time></rtept><wpt lat="1" lon="1"><time>2026-03-01T09:00:00</time></wpt><wpt lat="1" lon="1"><time>2026-03-01T12:00+01:00</time></wpt>`),
    ),
    [day("08:00:00") + 0.5, undefined, undefined, undefined, day("09:00:00"), day("11:00:00")],
  );
  assert.deepEqual(
    times(
      JSON.stringify({
        locations: [
          { ...at, timestamp: "2026-03-01T08:00:00.000Z" },
          { ...at, timestampMs: `${1_000 * day("09:00:00")}` },
          { ...at, timestamp: "2026-03-01T08:00:00" },
          at,
        ],
      }),
    ),
    [day("08:00:00"), day("09:00:00"), undefined, undefined],
  );
  const duration = { startTimestamp: "2026-03-01T08:00:00Z", endTimestampMs: `${1_000 * day("09:30:00")}` };
  assert.deepEqual(
    times(
      JSON.stringify({
        timelineObjects: [
          { placeVisit: { location: at, duration } },
          { activitySegment: { startLocation: at, endLocation: at, duration } },
          { placeVisit: { location: at } },
        ],
      }),
    ),
    [day("08:00:00"), day("08:00:00"), day("09:30:00"), undefined],
  );
  const [startTime, endTime] = ["2026-03-01T09:00:00.000+01:00", "2026-03-01T10:00:00.000+01:00"];
  assert.deepEqual(
    times(
      JSON.stringify({
        semanticSegments: [
          {
            startTime,
            endTime,
            timelinePath: [
              { point: "1°, 2°", time: "2026-03-01T08:20:00Z" },
              { point: "1°, 2°", time: "2026" },
            ],
          },
          { startTime, endTime, activity: { start: { latLng: "1°, 2°" }, end: { latLng: "1°, 2°" } } },
        ],
      }),
    ),
    ["08:20:00", "08:00:00", "08:00:00", "09:00:00"].map(day),
  );
  assert.deepEqual(
    times(
      JSON.stringify([
        { startTime, endTime, timelinePath: [{ point: "geo:1,2", durationMinutesOffsetFromStartTime: "12" }] },
        { startTime, endTime, visit: { topCandidate: { placeLocation: "geo:1,2" } } },
      ]),
    ),
    [day("08:12:00"), day("08:00:00")],
  );
  assert.deepEqual(
    times(
      '[{"lon": 1, "lat": 2, "time": 5}, {"lon": 1, "lat": 2, "time": 1e300}, {"lon": 1, "lat": 2, "time": "2026-03-01T08:00Z"}]',
    ),
    [5, undefined, day("08:00:00")],
  );
});

test("any other file is refused in words", () => {
  for (const text of [
    "",
    "lon,lat\n1,2",
    "<html></html>",
    gpx(""),
    "[]",
    "null",
    '"52.5, 13.4"',
    '{"locations": []}',
    "\u0000",
    "[1e999]",
  ]) {
    assert.throws(() => placesOf(text), InputError, text);
  }
  for (const inside of [
    '<wpt lat="91" lon="0"/>',
    '<wpt lat="x" lon="0"/>',
    '<wpt lon="0"/>',
    '<wpt lat="1e2" lon="0"/>',
  ]) {
    assert.throws(() => placesOf(gpx(inside)), /not on earth/, inside);
  }
  assert.throws(() => placesOf("[".repeat(1_000_000)), InputError);
  assert.throws(() => placesOf(`${"[".repeat(5_000)}${"]".repeat(5_000)}`), /no place/);
});

test("a file that is made to cost much is read in time that grows with its length", () => {
  const hostile = gpx(`${"<wpt ".repeat(200_000)}${'<wpt lat="1" lon="1" a="'.repeat(10_000)}`);
  assert.throws(() => placesOf(hostile), InputError);
  assert.throws(() => placesOf(gpx("<!--".repeat(100_000))), InputError);
});

test("places are kept as doubles, to the last bit", () => {
  const places = [
    { lon: 13.4, lat: -0 },
    { lon: -180, lat: 1 / 3 },
  ];
  assert.deepEqual(readPlaces(writtenPlaces(places)), places);
  assert.deepEqual(readPlaces(writtenPlaces([])), []);
  const timed = [
    { lon: 1, lat: 2, time: 1_767_225_600.5 },
    { lon: 1, lat: 2 },
    { lon: 3, lat: 4, time: 0 },
  ];
  assert.deepEqual(readPlaces(writtenPlaces(timed)), timed);
  for (const few of [[], places.slice(0, 1), places]) {
    // as pages kept them that knew no times
    assert.deepEqual(
      readPlaces(new Uint8Array(Float64Array.from(few.flatMap(({ lon, lat }) => [lon, lat])).buffer)),
      few,
    );
  }
});

test("a made-up walk begins near its place, stays on earth, and is another each time", () => {
  const random = (length: number): Uint8Array<ArrayBuffer> => crypto.getRandomValues(new Uint8Array(length));
  for (const near of [
    { lon: 13.4, lat: 52.5 },
    { lon: 180, lat: 85 },
  ]) {
    const [one, other] = [madeUpWalk(near, random, 0), madeUpWalk(near, random, 0)];
    assert.notDeepEqual(one, other);
    assert.ok(
      one.every(
        ({ lon, lat }) => Math.abs(lon - near.lon) < 0.2 && Math.abs(lat - near.lat) < 0.2 && Math.abs(lon) <= 180,
      ),
    );
  }
});
