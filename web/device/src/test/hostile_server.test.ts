import assert from "node:assert/strict";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { hex, systemRandom, unhex } from "../../../shared/src/bytes.js";
import { createdRecord, type DeviceRecord } from "../device_store.js";
import { Identity } from "../ed25519.js";
import { challengeStatement, enrol } from "../enrolment.js";
import { CodecError, Refused, Unreachable } from "../errors.js";
import { type HttpReply, HttpTransport } from "../http_transport.js";

const SERVER = "https://maps.example";

interface Lies {
  readonly origin?: string;
  readonly key?: Identity;
  readonly challenge?: object;
  readonly enrolled?: object;
  readonly status?: number;
}

/** Enrols at a server that tells these lies. */
async function enrolledAt(
  record: DeviceRecord,
  { origin = SERVER, key, challenge, enrolled, status = 200 }: Lies,
): Promise<void> {
  const identity = key ?? (await Identity.of(systemRandom(32)));
  const nonce = systemRandom(56);
  const reply = (code: number, fields: object): HttpReply => ({
    status: code,
    wait: null,
    kind: "",
    content: new TextEncoder().encode(JSON.stringify(fields)),
  });
  const http = {
    async post(path: string, _: string | null, asked: { identity: string }): Promise<HttpReply> {
      if (path === "/v1/enrol") return reply(201, { device: "one", ticket: "ticket", ...enrolled });
      const signature = hex(await identity.sign(challengeStatement(origin, unhex(asked.identity), nonce)));
      return reply(status, { server: hex(identity.public), challenge: hex(nonce), signature, ...challenge });
    },
  } as unknown as HttpTransport;
  await enrol(record, http, SERVER, "code");
}

test("a device enrols at the server that it first met there, and at nobody who stands between", async () => {
  const key = await Identity.of(systemRandom(32));
  const record = createdRecord(systemRandom);
  await enrolledAt(record, { key });
  assert.deepEqual([record.ticket, record.pinned], ["ticket", hex(key.public)]);
  await enrolledAt(record, { key });
  const before = JSON.stringify(record);
  const lies: [Lies, RegExp][] = [
    [{}, /another identity than when this device enrolled there first/],
    [{ key, origin: "https://other.example" }, /another server may stand between/],
    [{ key, challenge: { signature: "00".repeat(64) } }, /another server may stand between/],
    [{ key, status: 421 }, /does not go by the name/],
    [{ key, status: 404 }, /no hazemap server/],
  ];
  for (const [told, words] of lies) {
    await assert.rejects(
      enrolledAt(record, told),
      (error: Error) => error instanceof Refused && words.test(error.message),
      JSON.stringify(told),
    );
  }
  const strange: Lies[] = [
    { challenge: { server: 5 } },
    { challenge: { server: "0g".repeat(32) } },
    { challenge: { challenge: "" } },
    { challenge: { signature: [] } },
    { enrolled: { ticket: "a\r\nSet-Cookie: b" } },
    { enrolled: { ticket: "x".repeat(5_000) } },
    { enrolled: { ticket: null } },
    { enrolled: { device: {} } },
  ];
  for (const told of strange)
    await assert.rejects(enrolledAt(record, { key, ...told }), CodecError, JSON.stringify(told).slice(0, 80));
  assert.equal(JSON.stringify(record), before, "what is refused changes nothing");
  await assert.rejects(
    enrolledAt({ ...record, server: "https://other.example" }, { key }),
    /enrolled at another server/,
  );
});

/** What a device says of a server that answers so. */
async function asking(answers: RequestListener): Promise<HttpReply> {
  const server = createServer(answers);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    return await new HttpTransport(`http://127.0.0.1:${(server.address() as AddressInfo).port}`).send(
      "GET",
      "/v1/tasks",
      "ticket",
    );
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

test("an answer is read no further than 64 MiB, also where it was a few kB on the wire", async () => {
  const bomb = gzipSync(new Uint8Array((64 << 20) + 1));
  const sent = asking((_, response) => response.writeHead(200, { "Content-Encoding": "gzip" }).end(bomb));
  await assert.rejects(sent, (error: Error) => error instanceof Unreachable && /larger than/.test(error.message));
});

test("no redirect is followed, cut answers are none, and a server is left alone for a number of seconds alone", async () => {
  const paths: string[] = [];
  const moved = await asking((request, response) => {
    paths.push(request.url!);
    response.writeHead(307, { Location: "/elsewhere" }).end();
  });
  assert.deepEqual([moved.status, paths], [307, ["/v1/tasks"]]);
  const cut: RequestListener = (_, response) =>
    void response.writeHead(200, { "Content-Length": "100" }).write("half", () => response.destroy());
  await assert.rejects(asking(cut), Unreachable);
  for (const [said, meant] of [
    ["5", 5],
    ["1e9", null],
    ["-1", null],
    ["Thu, 01 Jan 2099 00:00:00 GMT", null],
    ["9999999999", null],
  ] as const) {
    assert.equal(
      (await asking((_, response) => response.writeHead(204, { "Retry-After": said }).end())).wait,
      meant,
      said,
    );
  }
  const busy = asking((_, response) => response.writeHead(503, { "Retry-After": "7" }).end());
  await assert.rejects(busy, (error: Error) => error instanceof Unreachable && error.wait === 7);
});
