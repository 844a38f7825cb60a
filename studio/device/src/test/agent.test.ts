import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { Agent } from "../agent.js";
import { systemRandom } from "../bytes.js";
import type { Device, DeviceAnswer } from "../device.js";
import { createdRecord, DeviceStore } from "../device_store.js";
import type { HttpReply, HttpTransport } from "../http_transport.js";

const SESSION = "ab".repeat(32);
const WORK = JSON.stringify({ session: SESSION, stage: 4, task: null, message: "", until: "2026-01-02T03:04:05+00:00" });

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

for (const [held, query] of [[true, 0], [true, 9_000], [false, 0]] as const) {
  test(`an answer ${held ? `whose query took ${query} ms goes out at a multiple of 4 s` : "without a query goes out at once"}`, async () => {
    let now = 0;
    mock.timers.enable({ apis: ["setTimeout"] });
    mock.method(performance, "now", () => now);
    try {
      const store = new Memory();
      store.record.ticket = "ticket";
      const [stop, sent] = [new AbortController(), [] as string[]];
      let asked = false;
      const reply = (status: number, content = ""): HttpReply => ({ status, wait: 3_600, kind: "", content: new TextEncoder().encode(content) });
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
        logged: async () => null,
        ended: () => false,
        answer: async () => {
          now += query;
          return answer;
        },
      } as unknown as Device;
      const running = new Agent(device, store, http, "https://maps.example", "", Infinity, () => undefined).run(stop.signal);
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
