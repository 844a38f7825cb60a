import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { systemRandom } from "../../../shared/src/bytes.js";
import { Agent } from "../agent.js";
import type { Device, DeviceAnswer } from "../device.js";
import { createdRecord, DeviceStore } from "../device_store.js";
import { Refused, Unreachable } from "../errors.js";
import type { HttpReply, HttpTransport } from "../http_transport.js";

const SESSION = "ab".repeat(32);
const WORK = JSON.stringify({
  session: SESSION,
  stage: 4,
  task: null,
  message: "",
  until: "2026-01-02T03:04:05+00:00",
});

class Memory extends DeviceStore {
  constructor() {
    super(createdRecord(systemRandom));
  }

  override async save(): Promise<void> {}
}

/** All that is due now, and what follows from it. */
const settled = async (): Promise<void> => {
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
};

for (const [held, query] of [
  [true, 0],
  [true, 9_000],
  [false, 0],
] as const) {
  test(`an answer ${held ? `whose query took ${query} ms goes out at a multiple of 4 s` : "without a query goes out at once"}`, async () => {
    let now = 0;
    mock.timers.enable({ apis: ["setTimeout"] });
    mock.method(performance, "now", () => now);
    try {
      const store = new Memory();
      store.record.ticket = "ticket";
      const [stop, sent] = [new AbortController(), [] as string[]];
      let asked = false;
      const reply = (status: number, content = ""): HttpReply => ({
        status,
        wait: 3_600,
        kind: "",
        content: new TextEncoder().encode(content),
      });
      const http = {
        async send(method: string, path: string): Promise<HttpReply> {
          if (method === "POST") sent.push(path);
          if (method === "POST" || asked) return reply(204);
          asked = true;
          return reply(200, WORK);
        },
      } as unknown as HttpTransport;
      const answer: DeviceAnswer = { reply: new Uint8Array(8), refusal: null, campaign: null, last: false, held };
      const device = {
        sweep: async () => undefined,
        putBack: async () => undefined,
        head: async () => null,
        logged: async () => null,
        ended: () => false,
        answer: async () => {
          now += query;
          return answer;
        },
      } as unknown as Device;
      const running = new Agent(device, store, http, "https://maps.example", "", Infinity, () => undefined).run(
        stop.signal,
      );
      await settled();
      const due = held ? 4_000 - (query % 4_000) : 0;
      if (held) {
        mock.timers.tick(due - 1);
        await settled();
        assert.deepEqual(sent, [], "what a query took is not told");
        mock.timers.tick(1);
        await settled();
      }
      assert.deepEqual(sent, [`/v1/tasks/${SESSION}`]);
      stop.abort();
      await running;
    } finally {
      mock.reset();
      mock.timers.reset();
    }
  });
}

const said = (status: number, content = ""): HttpReply => ({
  status,
  wait: null,
  kind: "",
  content: new TextEncoder().encode(content),
});

/** What a device logs of a server that answers so, question by question, and then has no work for it. */
async function logged(
  store: DeviceStore,
  tasks: readonly (HttpReply | Error)[],
  challenge: () => HttpReply,
  answer: () => Promise<DeviceAnswer>,
): Promise<string[]> {
  mock.timers.enable({ apis: ["setTimeout"] });
  const [stop, log] = [new AbortController(), [] as string[]];
  let asked = 0;
  const http = {
    async send(): Promise<HttpReply> {
      const found = tasks[asked++] ?? said(204);
      if (found instanceof Error) throw found;
      return found;
    },
    post: async () => challenge(),
  } as unknown as HttpTransport;
  const device = {
    sweep: async () => undefined,
    putBack: async () => undefined,
    head: async () => null,
    logged: async () => null,
    ended: () => false,
    answer,
  } as unknown as Device;
  try {
    const running = new Agent(device, store, http, "https://maps.example", "", Infinity, (line) => log.push(line)).run(
      stop.signal,
    );
    running.catch(() => undefined);
    for (let turn = 0; turn < 2 * tasks.length + 2 && asked <= tasks.length; turn++) {
      await settled();
      mock.timers.tick(450_001);
    }
    stop.abort();
    await running;
    assert.ok(asked > tasks.length, log.join("\n"));
    return log;
  } finally {
    mock.timers.reset();
  }
}

test("a device that was enrolled asks again whatever its server answers, and whatever fails", async () => {
  const store = new Memory();
  Object.assign(store.record, { ticket: "ticket", pinned: "ab".repeat(32) });
  const refusals = [404, 405, 421, 403, 500, 200, 200];
  const enrolments = refusals.map(() => said(401));
  const failures = [
    new RangeError("Invalid time value"),
    new TypeError("undefined is no function"),
    new Error("no space left on device"),
    new Refused("a server's lie"),
  ];
  const work = failures.map(() => said(200, WORK));
  const odd = [404, 403, 400, 418, 302].map((status) => said(status));
  const garbage = ["", "[]", "\ufeff{}", '{"session":1}', "\ud800", "[".repeat(99)].map((text) => said(200, text));
  const replies = [...refusals];
  const log = await logged(
    store,
    [...enrolments, ...odd, ...garbage, ...work, new Unreachable("gone", 7), ...enrolments.slice(0, 1)],
    () => said(replies.shift() ?? 404, "{}"),
    async () => {
      throw failures.shift() ?? new Error("?");
    },
  );
  for (const words of [
    /no hazemap server/,
    /does not go by the name/,
    /HTTP 403/,
    /HTTP 418/,
    /Invalid time value/,
    /no space left/,
    /a server's lie/,
    /gone/,
  ]) {
    assert.ok(
      log.some((line) => words.test(line)),
      `${words}: ${log.join("\n")}`,
    );
  }
});

test("a device that was never enrolled stops where its server does not take it, for its owner to see", async () => {
  await assert.rejects(
    logged(
      new Memory(),
      [],
      () => said(404),
      async () => assert.fail(),
    ),
    /no hazemap server/,
  );
});

test("a message that comes again and again, and one that is refused, is answered less and less often", () => {
  const agent = new Agent(
    {} as Device,
    new Memory(),
    {} as HttpTransport,
    "https://maps.example",
    "",
    Infinity,
    () => undefined,
  );
  const after = (taken: boolean, fresh: boolean): number =>
    (agent as unknown as { after(taken: boolean, fresh: boolean): number }).after(taken, fresh);
  assert.ok(after(true, true) <= 0.75);
  for (let times = 0; times < 20; times++) {
    const [wait, middle] = [after(true, false), Math.min(300, 0.5 * 2 ** times)];
    assert.ok(wait >= 0.5 * middle && wait <= 1.5 * middle, `${times}: ${wait}`);
  }
  assert.ok(after(true, true) <= 0.75, "a new answer begins anew");
  for (let times = 0; times < 12; times++) after(false, true);
  assert.ok(after(false, true) >= 30);
});
