import assert from "node:assert/strict";
import { test } from "node:test";
import { hex, systemRandom, unhex } from "../../../shared/src/bytes.js";
import { answer, type ClientOwner, drawsFrom } from "../client.js";
import { type ClientState, readState, writeState } from "../client_state.js";
import { coinsOf } from "../coins.js";
import { Identity } from "../ed25519.js";
import { CodecError, Refused } from "../errors.js";
import { decodeParameters, encodeParameters, sessionOf } from "../session_parameters.js";
import { vectors } from "./vectors.js";

test("coins, and what a first message shows of a contribution, are those of the vectors", async () => {
  const { draws, first_messages } = vectors("secure_aggregation/coins");
  for (const { key, session, purpose, bound, draws: drawn } of draws) {
    const random = await coinsOf(unhex(key))(unhex(session), purpose, ...bound.map(unhex));
    for (const each of drawn) assert.equal(hex(random(each.length / 2)), each);
  }
  for (const { key, identity_private, invitation, contribution, reply } of first_messages) {
    const own: ClientOwner = {
      identity: await Identity.of(unhex(identity_private)),
      draws: drawsFrom(coinsOf(unhex(key))),
      check: () => undefined,
      contribution: async ({ bits }) =>
        Uint32Array.from(contribution, (sum: number) => Number(BigInt.asUintN(bits, BigInt(sum)))),
      pay: async () => undefined,
      noisy: (sums) => sums,
    };
    assert.equal(hex((await answer(null, unhex(invitation), own)).reply), reply);
  }
});

interface Message {
  stage: string;
  client: number;
  down: string;
  up: string;
}

/** Picks as the vector's client sent them: what it drew is nowhere else. */
function picksOf(messages: Message[], client: number): number[] {
  const found = messages.find((message) => message.stage === "PICKS" && message.client === client);
  if (!found) return [];
  const view = new DataView(unhex(found.up).buffer);
  return Array.from({ length: view.getUint32(34) }, (_, i) => view.getUint32(38 + 4 * i));
}

async function owner(vector: any, client: any): Promise<ClientOwner & { asked: number }> {
  const numbers = (of: string): bigint[] => client.coefficients[of].map((each: string) => BigInt(`0x${each}`));
  const found: ClientOwner & { asked: number } = {
    asked: 0,
    identity: await Identity.of(unhex(client.identity_private)),
    draws: {
      secrets: async () => [unhex(client.sealing_private), unhex(client.masking_private), unhex(client.self_mask_seed)],
      polynomials: async () => [numbers("masking"), numbers("seed")],
      neighbours: async () => picksOf(vector.messages, client.position),
      noise: async () => systemRandom,
    },
    check: () => undefined,
    async contribution(terms) {
      return Uint32Array.from(client.contribution, (own: number) => Number(BigInt.asUintN(terms.bits, BigInt(own))));
    },
    async pay() {
      found.asked++;
    },
    noisy: (sums, terms) => sums.map((own, i) => Number(BigInt.asUintN(terms.bits, BigInt(own + client.noise[i])))),
  };
  return found;
}

for (const mode of ["semi-honest", "malicious"]) {
  const vector = vectors(`secure_aggregation/session-${mode}`);
  const messagesOf = (position: number): Message[] =>
    vector.messages.filter((message: Message) => message.client === position);

  test(`the terms of a ${mode} session have the bytes of the vectors`, async () => {
    const terms = decodeParameters(unhex(vector.terms_bytes));
    assert.equal(hex(encodeParameters(terms)), vector.terms_bytes);
    assert.equal(hex(await sessionOf(terms)), vector.session);
  });

  test(`every client of a ${mode} session sends the bytes of the vectors, through a crash at every stage`, async () => {
    for (const client of vector.clients) {
      const own = await owner(vector, client);
      let state: ClientState | null = null;
      for (const { stage, down, up } of messagesOf(client.position)) {
        state = await answer(state, unhex(down), own);
        assert.equal(hex(state.reply), up, stage);
        state = readState(JSON.parse(JSON.stringify(writeState(state))));
        assert.equal(await answer(state, unhex(down), own), state, "the same message again has the same answer");
      }
      assert.ok(own.asked <= 1);
      if (client.position !== vector.gone_after_shares) {
        const { sealing, masking, seed, said, contribution, shares, peers } = state!;
        assert.deepEqual(
          [sealing, masking, seed, said, contribution, shares.size, peers.length],
          [null, null, null, null, null, 0, 0],
          "all is forgotten",
        );
      }
    }
  });

  test(`a message of a ${mode} session with a byte changed, of another stage or time is refused`, async () => {
    const [client] = vector.clients;
    const own = await owner(vector, client);
    let state: ClientState | null = null;
    const all = messagesOf(client.position);
    for (const [number, { stage, down }] of all.entries()) {
      for (const other of all.filter((_, i) => i !== number && i !== number - 1)) {
        await assert.rejects(answer(state, unhex(other.down), own), Refused, `${other.stage} at ${stage}`);
      }
      const bytes = unhex(down);
      let answered = 0;
      // Terms are checked elsewhere: of an invitation what stands behind them is changed.
      const begin = stage === "KEYS" ? 4 + unhex(vector.terms_bytes).length : 0;
      for (let at = begin; at < bytes.length; at += stage === "SHARES" ? 29 : 7) {
        const changed = bytes.slice();
        changed[at]! ^= 0x11;
        try {
          await answer(state, changed, own);
          answered++;
        } catch (error) {
          assert.ok(error instanceof Refused || error instanceof CodecError, `${stage} ${at}: ${error}`);
        }
      }
      // A letter that does not open harms its dealer alone; of the assents as many are read as count.
      if (!["MASKED", "UNMASK"].includes(stage)) assert.equal(answered, 0, stage);
      state = await answer(state, bytes, own);
    }
  });
}
